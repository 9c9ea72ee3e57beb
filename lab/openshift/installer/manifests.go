package installer

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"

	"metal-ipi.test/lab/openshift/cluster"
	"metal-ipi.test/lab/openshift/kube"
)

const schedulerName = "manifests/cluster-scheduler-02-config.yml"

// paddingSize brings bootstrap.ign to the size of the real one, several times what a machine's userdata can hold.
const paddingSize = 90_000

// renderManifests is what `create manifests` writes, by path in the assets directory. It is the part of the real
// one's that says something on platform none.
func renderManifests(config InstallConfig, id identity, bundle cluster.Bundle, password string) (map[string][]byte, error) {
	names := bundle.Facts
	redacted := config
	redacted.PullSecret = ""
	installConfig, err := encode(redacted)
	if err != nil {
		return nil, err
	}
	pods := []kube.Object{}
	for _, network := range config.Networking.ClusterNetwork {
		pods = append(pods, kube.Object{"cidr": network.CIDR, "hostPrefix": network.HostPrefix})
	}
	platform := kube.Object{"platformSpec": kube.Object{"type": "None"}}
	infrastructure := spec("Infrastructure", platform)
	infrastructure["status"] = kube.Object{
		"apiServerURL": "https://" + names.API() + ":6443", "apiServerInternalURI": "https://" + names.Internal() + ":6443",
		"controlPlaneTopology": topology(names.ControlPlane), "infrastructureName": id.InfraID, "platform": "None",
	}
	proxy := kube.Object{}
	if config.Proxy != nil {
		proxy = config.Proxy
	}
	objects := map[string]kube.Object{
		"manifests/cluster-config.yaml":                  configMap("kube-system", "cluster-config-v1", kube.Object{"install-config": string(installConfig)}),
		"manifests/cluster-dns-02-config.yml":            spec("DNS", kube.Object{"baseDomain": names.Domain()}),
		"manifests/cluster-infrastructure-02-config.yml": infrastructure,
		"manifests/cluster-ingress-02-config.yml":        spec("Ingress", kube.Object{"domain": "apps." + names.Domain()}),
		"manifests/cluster-network-02-config.yml": spec("Network", kube.Object{
			"clusterNetwork": pods, "networkType": config.Networking.NetworkType, "serviceNetwork": config.Networking.ServiceNetwork,
		}),
		"manifests/cluster-proxy-01-config.yaml": spec("Proxy", proxy),
		schedulerName: spec("Scheduler", kube.Object{
			"mastersSchedulable": names.Schedulable, "policy": kube.Object{"name": ""},
		}),
		"manifests/cvo-overrides.yaml": object("config.openshift.io/v1", "ClusterVersion", "version", "", "spec",
			kube.Object{"channel": "stable-4.21", "clusterID": id.UUID}),
		"manifests/kube-system-configmap-root-ca.yaml": configMap("kube-system", "root-ca", kube.Object{"ca.crt": string(bundle.Files["root-ca.crt"])}),
		"manifests/machine-config-server-tls-secret.yaml": secret("openshift-machine-config-operator", "machine-config-server-tls", "Opaque",
			map[string][]byte{"tls.crt": bundle.Files["machine-config-server.crt"], "tls.key": bundle.Files["machine-config-server.key"]}),
		"manifests/openshift-config-secret-pull-secret.yaml": secret("openshift-config", "pull-secret", "kubernetes.io/dockerconfigjson",
			map[string][]byte{".dockerconfigjson": []byte(config.PullSecret)}),
		"openshift/99_kubeadmin-password-secret.yaml": secret("kube-system", "kubeadmin", "Opaque", map[string][]byte{"kubeadmin": []byte(password)}),
		"openshift/openshift-install-manifests.yaml": configMap("openshift-config", "openshift-install-manifests",
			kube.Object{"invoker": "lab-stand-in", "version": Version}),
		"openshift/99_lab-padding.yaml": configMap("openshift-config", "lab-padding",
			kube.Object{"about": "fills bootstrap.ign to the size of a real one", "padding": pick(strong, paddingSize)}),
	}
	if config.SSHKey != "" {
		for _, role := range []string{"master", "worker"} {
			objects["openshift/99_openshift-machineconfig_99-"+role+"-ssh.yaml"] = sshMachineConfig(role, names.SSHKey)
		}
	}
	files := map[string][]byte{}
	for name, manifest := range objects {
		if files[name], err = encode(manifest); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// mastersSchedulable is read back from the manifests: people change it there between the installer's two steps.
func mastersSchedulable(manifests map[string][]byte) (bool, error) {
	var scheduler struct {
		Spec struct {
			MastersSchedulable bool `yaml:"mastersSchedulable"`
		} `yaml:"spec"`
	}
	if err := yaml.Unmarshal(manifests[schedulerName], &scheduler); err != nil {
		return false, fmt.Errorf("%s: %w", schedulerName, err)
	}
	return scheduler.Spec.MastersSchedulable, nil
}

func object(version, kind, name, namespace, part string, content kube.Object) kube.Object {
	metadata := kube.Object{"name": name}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	return kube.Object{"apiVersion": version, "kind": kind, "metadata": metadata, part: content}
}

func configMap(namespace, name string, data kube.Object) kube.Object {
	return object("v1", "ConfigMap", name, namespace, "data", data)
}

func secret(namespace, name, kind string, data map[string][]byte) kube.Object {
	encoded := kube.Object{}
	for key, value := range data {
		encoded[key] = base64.StdEncoding.EncodeToString(value)
	}
	manifest := object("v1", "Secret", name, namespace, "data", encoded)
	manifest["type"] = kind
	return manifest
}

// spec is one of OpenShift's configuration objects; each kind has one, named cluster.
func spec(kind string, content kube.Object) kube.Object {
	return object("config.openshift.io/v1", kind, "cluster", "", "spec", content)
}

// sshMachineConfig lets the administrator's key in on a role's machines.
func sshMachineConfig(role, key string) kube.Object {
	manifest := object("machineconfiguration.openshift.io/v1", "MachineConfig", "99-"+role+"-ssh", "", "spec", kube.Object{
		"config": kube.Object{
			"ignition": kube.Object{"version": "3.2.0"},
			"passwd":   kube.Object{"users": []kube.Object{{"name": "core", "sshAuthorizedKeys": []string{key}}}},
		},
	})
	manifest["metadata"] = kube.Object{
		"name": "99-" + role + "-ssh", "labels": kube.Object{"machineconfiguration.openshift.io/role": role},
	}
	return manifest
}

func topology(replicas int) string {
	if replicas == 1 {
		return "SingleReplica"
	}
	return "HighlyAvailable"
}

// encode writes YAML with the field names that JSON has.
func encode(value any) ([]byte, error) {
	tree, err := jsonTree(value)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	if err := encoder.Encode(tree); err != nil {
		return nil, err
	}
	return text.Bytes(), nil
}

// manifestName says whether a path in the assets directory is that of a manifest.
func manifestName(path string) bool {
	return strings.HasSuffix(path, ".yaml") || strings.HasSuffix(path, ".yml") || strings.HasSuffix(path, ".json")
}
