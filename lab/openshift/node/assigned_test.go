package node

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"metal-ipi.test/lab/openshift/kube"
)

// assignedNode is a node that joined, whose API has these pods and secrets.
func assignedNode(t *testing.T, manifest string) (*kubeletNode, *fakeAPI, *told) {
	t.Helper()
	node, api, _, heard := joining(t)
	objects := must(parseObjects([]byte(manifest)))
	for _, object := range objects {
		meta := metadata(object)
		plural := map[string]string{"Pod": "pods", "Secret": "secrets", "ConfigMap": "configmaps"}[object["kind"].(string)]
		api.set("/api/v1/namespaces/"+meta["namespace"].(string)+"/"+plural+"/"+meta["name"].(string), object)
	}
	node.client = api.serve(t)
	return node, api, heard
}

const assignedPod = `
kind: Pod
metadata: {namespace: mco, name: server, uid: u1}
spec:
  hostNetwork: true
  serviceAccountName: server
  containers:
  - {name: server, image: mco, env: [{name: A, value: b}, {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}, {name: IP, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}]}
  volumes:
  - {name: own, secret: {secretName: own}}
  - {name: settings, configMap: {name: settings}}
  - {name: token, projected: {sources: []}}
  - {name: host, hostPath: {path: /etc}}
`

const ownSecret = `---
kind: Secret
metadata: {namespace: mco, name: own}
data: {tls.key: a2V5}
---
kind: ConfigMap
metadata: {namespace: mco, name: settings}
data: {a.yaml: "a: 1"}
`

func TestAPodOfTheAPIHasWhatItMounts(t *testing.T) {
	node, api, _ := assignedNode(t, assignedPod+ownSecret)
	ctx := context.Background()
	its, found := node.assignedPods(ctx)["mco/server"]
	if !found {
		t.Fatal("it is not there")
	}
	volumes := filepath.Join(node.host.root, "/var/lib/kubelet/pods/u1/volumes")
	for path, wanted := range map[string]string{
		"own/tls.key": "key", "settings/a.yaml": "a: 1", "token/token": "token of server", "token/ca.crt": string(node.authority), "token/namespace": "mco",
	} {
		info, err := os.Stat(filepath.Join(volumes, path))
		if text := readOr(filepath.Join(volumes, path), ""); text != wanted || err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %q %v", path, text, err)
		}
	}
	if len(its.files) != 3 || its.files["own"] != filepath.Join(volumes, "own") {
		t.Errorf("%v", its.files)
	}
	variables := environment(its.Spec.Containers[0].Env)
	for _, wanted := range []string{"A=b", "NODE=node0", "IP=127.0.0.1", "KUBERNETES_SERVICE_HOST=127.0.0.1"} {
		if !slices.Contains(variables, wanted) {
			t.Errorf("%q", variables)
		}
	}
	check(t, its.started(ctx))
	status, _ := api.get("/api/v1/namespaces/mco/pods/server")["status"].(kube.Object)
	if status["phase"] != "Running" || status["podIP"] != "127.0.0.1" {
		t.Errorf("%v", status)
	}
	// The same pod is not prepared again, another one of its name is.
	node.asked = time.Time{}
	if node.assignedPods(ctx); len(api.requests(http.MethodPost)) != 1 {
		t.Errorf("%q", api.requests(http.MethodPost))
	}
	other := strings.ReplaceAll(assignedPod, "u1", "u2")
	objects := must(parseObjects([]byte(other)))
	api.set("/api/v1/namespaces/mco/pods/server", objects[0])
	node.asked = time.Time{}
	if next := node.assignedPods(ctx)["mco/server"]; string(next.text) != "u2" {
		t.Errorf("%s", next.text)
	}
	objects[0]["metadata"] = with(metadata(objects[0]), "deletionTimestamp", "now")
	node.asked = time.Time{}
	if left := node.assignedPods(ctx); len(left) != 0 {
		t.Errorf("%v", left)
	}
}

func TestAPodWaitsForItsSecret(t *testing.T) {
	node, api, heard := assignedNode(t, assignedPod)
	ctx := context.Background()
	if pods := node.assignedPods(ctx); len(pods) != 0 {
		t.Errorf("%v", pods)
	}
	heard.await(t, "pod mco/server: GET /api/v1/namespaces/mco/secrets/own: 404")
	api.set("/api/v1/namespaces/mco/secrets/own", kube.Object{"kind": "Secret"})
	node.asked = time.Time{}
	node.assignedPods(ctx)
	heard.await(t, "pod mco/server: secret own is empty still")
	api.set("/api/v1/namespaces/mco/secrets/own", kube.Object{"data": kube.Object{"a": "YQ=="}})
	api.set("/api/v1/namespaces/mco/configmaps/settings", kube.Object{"data": kube.Object{"a": "b"}})
	node.asked = time.Time{}
	if pods := node.assignedPods(ctx); len(pods) != 1 {
		t.Errorf("%v", pods)
	}
}

// Pods run on while nobody answers; what keeps the node from hearing of others is said once.
func TestPodsStayWhileTheAPIIsAway(t *testing.T) {
	node, api, heard := assignedNode(t, assignedPod+ownSecret)
	ctx := context.Background()
	if pods := node.assignedPods(ctx); len(pods) != 1 {
		t.Fatalf("%v", pods)
	}
	api.refuse = func(string, string) int { return http.StatusServiceUnavailable }
	for range 3 {
		node.asked = time.Time{}
		if pods := node.assignedPods(ctx); len(pods) != 1 {
			t.Errorf("%v", pods)
		}
	}
	if count := strings.Count(heard.String(), "this node's pods are not known: "); count != 1 {
		t.Errorf("said %d times: %s", count, heard.String())
	}
}

func TestAVariableOfAnUnknownFieldKeepsThePodFromStarting(t *testing.T) {
	node, _, heard := assignedNode(t, strings.Replace(assignedPod, "status.hostIP", "status.phase", 1)+ownSecret)
	if pods := node.assignedPods(context.Background()); len(pods) != 0 {
		t.Errorf("%v", pods)
	}
	heard.await(t, `pod mco/server: variable IP is of "status.phase", which the lab's kubelet does not know`)
}

func TestAnAPIWithoutPodsIsNotAskedAgain(t *testing.T) {
	node, api, heard := assignedNode(t, "")
	api.refuseWhere(http.StatusNotFound, func(_, path string) bool { return path == "/api/v1/pods" })
	for range 3 {
		node.asked = time.Time{}
		node.assignedPods(context.Background())
	}
	if asked := api.requests(http.MethodGet); len(asked) != 1 || heard.String() != "" {
		t.Errorf("%q %s", asked, heard.String())
	}
}

func TestANodeThatDidNotJoinHasNoPodsOfTheAPI(t *testing.T) {
	node, api, _ := assignedNode(t, assignedPod+ownSecret)
	node.client = nil
	if pods := node.assignedPods(context.Background()); len(pods) != 0 || len(api.requests(http.MethodGet)) != 0 {
		t.Errorf("%v", pods)
	}
}

// The API that does not know who asks any more makes the node ask for another certificate.
func TestANodeWhoseCertificateIsRefusedAsksForAnotherOne(t *testing.T) {
	node, api, _, _ := joining(t)
	ctx := context.Background()
	must(node.agent.certificate(ctx))
	api.refuseWhere(http.StatusUnauthorized, func(_, path string) bool { return strings.HasPrefix(path, kube.Nodes) })
	node.attached = true
	if err := node.agent.member(ctx); kube.Code(err) != http.StatusUnauthorized {
		t.Fatal(err)
	}
	if exists(node.agent.path()) {
		t.Error("it is kept")
	}
	if _, err := node.agent.certificate(ctx); err != nil || len(api.requests(http.MethodPost)) != 2 {
		t.Errorf("%q %v", api.requests(http.MethodPost), err)
	}
}

func TestANodeRenewsItsCertificateInTime(t *testing.T) {
	node, api, _, _ := joining(t)
	ctx := context.Background()
	first := must(node.agent.certificate(ctx))
	life := first.Leaf.NotAfter.Sub(first.Leaf.NotBefore)
	node.agent.now = func() time.Time { return first.Leaf.NotBefore.Add(life*2/3 + time.Second) }
	check(t, node.agent.member(ctx))
	second, err := node.agent.stored()
	if err != nil || second.Leaf.Equal(first.Leaf) || len(api.requests(http.MethodPost)) != 2 {
		t.Errorf("%q %v", api.requests(http.MethodPost), err)
	}
}
