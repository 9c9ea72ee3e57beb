package cluster

import "encoding/base64"

// LocalKubeconfig is where a control plane machine has an administrator's kubeconfig of its own, as on OpenShift.
const LocalKubeconfig = "/etc/kubernetes/static-pod-resources/kube-apiserver-certs/secrets/node-kubeconfigs/localhost.kubeconfig"

type tree = map[string]any

// Kubeconfig is the administrator's, for the API under one of its names.
func (b Bundle) Kubeconfig(server string) map[string]any {
	name := b.Facts.Name
	data := func(file string) string { return base64.StdEncoding.EncodeToString(b.Files[file]) }
	return tree{
		"apiVersion": "v1", "kind": "Config", "current-context": "admin", "preferences": tree{},
		"clusters": []tree{{"name": name, "cluster": tree{
			"server":                     "https://" + server + ":6443",
			"certificate-authority-data": data("kube-apiserver-lb-signer.crt"),
		}}},
		"contexts": []tree{{"name": "admin", "context": tree{"cluster": name, "user": "admin"}}},
		"users": []tree{{"name": "admin", "user": tree{
			"client-certificate-data": data("admin-kubeconfig-client.crt"),
			"client-key-data":         data("admin-kubeconfig-client.key"),
		}}},
	}
}
