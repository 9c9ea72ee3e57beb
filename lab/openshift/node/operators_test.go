package node

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"metal-ipi.test/lab/openshift/kube"
)

const (
	daemonSets   = workloads + "/namespaces/" + operatorSpace + "/daemonsets"
	operatorPods = "/api/v1/namespaces/" + operatorSpace + "/pods"
)

// operating is the stand-in for the operators, of an API that has these objects.
func operating(t *testing.T, api *fakeAPI, manifest string) operators {
	t.Helper()
	objects := must(parseObjects([]byte(manifest)))
	for _, object := range objects {
		meta := metadata(object)
		base := map[string]string{
			"Node": kube.Nodes, "DaemonSet": daemonSets, "Pod": operatorPods, "Secret": secrets, "ClusterVersion": kube.ClusterVersions,
		}[object["kind"].(string)]
		api.set(base+"/"+meta["name"].(string), object)
	}
	api.set("/api/v1/namespaces/"+operatorSpace, kube.Object{"kind": "Namespace"})
	client := api.serve(t)
	pair := authority(t, "kubelet-signer")
	config := operatorsConfig{
		Clients: "clients", Kubelets: keyPair{string(pair.Cert), string(pair.Key)},
		Facts: releaseFacts{Domain: "lab.example.test", ClusterID: "the-id", Release: "4.19.0", ControlPlane: 1},
	}
	return operators{client: client, config: config, log: log.New(&told{}, "", 0)}
}

func (o operators) nodes(t *testing.T) []kube.Object {
	t.Helper()
	return must(o.client.List(context.Background(), kube.Nodes))
}

func TestNodesGetTheLabelsOfTheirKubelets(t *testing.T) {
	api := newFakeAPI()
	it := operating(t, api, `
kind: Node
metadata:
  name: new
  labels: {kubernetes.io/hostname: new}
  annotations: {lab-openshift/node-labels: "node-role.kubernetes.io/master,zone=a,os_id=${ID},${CUSTOM}"}
---
kind: Node
metadata:
  name: changed
  labels: {node-role.kubernetes.io/master: "", zone: b}
  annotations: {lab-openshift/node-labels: "node-role.kubernetes.io/master,zone=a"}
---
kind: Node
metadata: {name: bare}
`)
	for range 2 {
		check(t, (&controller{objects: it.client}).changeNodes(context.Background(), it.nodes(t), "", withLabels))
	}
	labels := metadata(api.get(kube.Nodes + "/new"))["labels"]
	if wanted := (kube.Object{"kubernetes.io/hostname": "new", master: "", "zone": "a"}); !reflect.DeepEqual(labels, wanted) {
		t.Errorf("%v", labels)
	}
	if asked := api.requests(http.MethodPut); !slices.Equal(asked, []string{kube.Nodes + "/new"}) {
		t.Errorf("%q", asked)
	}
}

func TestSecretsGetTheTokensOfTheirAccounts(t *testing.T) {
	api := newFakeAPI()
	it := operating(t, api, `
kind: Secret
type: kubernetes.io/service-account-token
metadata: {name: node-bootstrapper-token, annotations: {kubernetes.io/service-account.name: node-bootstrapper}}
---
kind: Secret
type: kubernetes.io/service-account-token
metadata: {name: has-one, annotations: {kubernetes.io/service-account.name: node-bootstrapper}}
data: {token: YWJj}
---
kind: Secret
type: kubernetes.io/service-account-token
metadata: {name: of-nobody}
`)
	for range 2 {
		check(t, it.fillTokens(context.Background()))
	}
	data, _ := api.get(secrets + "/node-bootstrapper-token")["data"].(kube.Object)
	for name, wanted := range map[string]string{"token": "token of node-bootstrapper", "ca.crt": "clients", "namespace": operatorSpace} {
		if data[name] != base64.StdEncoding.EncodeToString([]byte(wanted)) {
			t.Errorf("%s: %v", name, data[name])
		}
	}
	if asked := append(api.requests(http.MethodPost), api.requests(http.MethodPatch)...); len(asked) != 2 {
		t.Errorf("%q", asked)
	}
}

const serverSet = `
kind: DaemonSet
metadata: {name: machine-config-server, namespace: openshift-machine-config-operator}
spec:
  template:
    metadata: {labels: {k8s-app: machine-config-server}}
    spec:
      nodeSelector: {node-role.kubernetes.io/master: ""}
      containers: [{name: server, image: mco, volumeMounts: [{name: own, mountPath: /own}]}, {name: other, image: mco}]
      volumes: [{name: own, secret: {secretName: own}}]
---
kind: Node
metadata: {name: master0, uid: one, labels: {node-role.kubernetes.io/master: ""}}
---
kind: Node
metadata: {name: worker0, uid: two, labels: {node-role.kubernetes.io/worker: ""}}
`

func TestDaemonSetsHaveTheirPodsOnTheNodesTheyAreFor(t *testing.T) {
	api := newFakeAPI()
	it := operating(t, api, serverSet)
	ctx := context.Background()
	spread := func() []kube.Object {
		t.Helper()
		check(t, (&controller{objects: it.client}).spread(ctx, it.nodes(t)))
		pods := must(it.client.List(ctx, operatorPods))
		return pods
	}
	pods := spread()
	if len(pods) != 1 {
		t.Fatalf("%v", pods)
	}
	name := metadata(pods[0])["name"].(string)
	told := must(parsePod([]byte(strings.ReplaceAll(encode(t, pods[0]), `"spec":{`, `"spec":{"hostNetwork":true,`))))
	if told.Spec.NodeName != "master0" || !strings.HasPrefix(name, "machine-config-server-") {
		t.Errorf("%s on %s", name, told.Spec.NodeName)
	}
	for i, mounts := range [][]string{{"/own", "/var/run/secrets/kubernetes.io/serviceaccount"}, {"/var/run/secrets/kubernetes.io/serviceaccount"}} {
		found := []string{}
		for _, mount := range told.Spec.Containers[i].VolumeMounts {
			found = append(found, mount.MountPath)
		}
		if !slices.Equal(found, mounts) {
			t.Errorf("container %d: %q", i, found)
		}
	}
	if len(told.Spec.Volumes) != 2 || told.Spec.Volumes[1].Projected == nil {
		t.Errorf("%+v", told.Spec.Volumes)
	}

	if again := spread(); len(again) != 1 || len(api.requests(http.MethodPost)) != 1 || len(api.requests(http.MethodDelete)) != 0 {
		t.Errorf("%v", again)
	}
	// A machine that is installed anew is another node.
	node := api.get(kube.Nodes + "/master0")
	api.set(kube.Nodes+"/master0", with(node, "metadata", with(metadata(node), "uid", "three")))
	if next := spread(); len(next) != 1 || metadata(next[0])["name"] == name {
		t.Errorf("%v", next)
	}
	// One that goes away is waited for, and not told twice.
	pod := api.get(api.requests(http.MethodDelete)[0])
	if pod != nil {
		t.Errorf("%v", pod)
	}
	leaving := operatorPods + "/leaving"
	api.set(leaving, kube.Object{"metadata": kube.Object{"name": "leaving", "namespace": operatorSpace, "deletionTimestamp": "now"}})
	if spread(); len(api.requests(http.MethodDelete)) != 1 {
		t.Errorf("%q", api.requests(http.MethodDelete))
	}
}

const controllerDeployment = `
kind: DaemonSet
metadata: {name: speaker, namespace: metallb-system}
spec: {template: {spec: {nodeSelector: {none: here}}}}
---
kind: Deployment
metadata: {name: controller, namespace: metallb-system}
spec: {template: {spec: {containers: []}}}
---
kind: DaemonSet
metadata: {name: theirs, namespace: default}
spec: {template: {spec: {}}}
---
kind: Pod
metadata: {name: theirs, namespace: metallb-system}
spec: {}
`

// A Deployment's pod is on a node that is ready, and moves to another one.
func TestADeploymentHasOnePodWhereANodeIsReady(t *testing.T) {
	api := newFakeAPI()
	api.kinds[workloads] = append(api.kinds[workloads], apiKind{"deployments", "Deployment", true})
	it := operating(t, api, "")
	for _, object := range must(parseObjects([]byte(controllerDeployment))) {
		base := map[string]string{"Pod": "/api/v1", "DaemonSet": workloads, "Deployment": workloads}[object["kind"].(string)]
		plural := strings.ToLower(object["kind"].(string)) + "s"
		api.set(base+"/namespaces/"+space(object)+"/"+plural+"/"+metadata(object)["name"].(string), object)
	}
	api.set("/api/v1/namespaces/"+metalLB, kube.Object{"kind": "Namespace"})
	for _, ready := range []string{"c", "b", "b", ""} {
		nodes := []kube.Object{}
		for _, name := range []string{"c", "a", "b"} {
			node := kube.Node{Metadata: kube.Meta{Name: name}, Status: kube.NodeStatus{Conditions: []kube.Condition{{Type: "Ready", Status: "True"}}}}
			switch {
			case name == "a":
				node.Spec.Taints = []kube.Taint{{Key: master, Effect: "NoSchedule"}}
			case name > ready:
				node.Status.Conditions[0].Status = "Unknown"
			}
			if ready == "c" && name == "b" {
				node.Status.Conditions[0].Status = "False"
			}
			nodes = append(nodes, must(toObject(node)))
		}
		check(t, (&controller{objects: it.client}).spread(context.Background(), nodes))
		found := []string{}
		for _, pod := range must(it.client.List(context.Background(), allPods)) {
			found = append(found, fmt.Sprint(pod["spec"].(kube.Object)["nodeName"]))
		}
		slices.Sort(found)
		wanted := []string{"<nil>"} // the pod that nobody has made for a set stays
		if ready != "" {
			wanted = append(wanted, ready)
		}
		if !slices.Equal(found, wanted) {
			t.Errorf("%q: %q", ready, found)
		}
	}
}

func encode(t *testing.T, object any) string {
	t.Helper()
	return string(must(json.Marshal(object)))
}

func TestOneProblemKeepsNothingElseFromBeingDone(t *testing.T) {
	api := newFakeAPI()
	it := operating(t, api, serverSet+`---
kind: Secret
metadata: {name: token, annotations: {kubernetes.io/service-account.name: node-bootstrapper}}
`)
	api.refuseWhere(http.StatusServiceUnavailable, func(_, path string) bool { return strings.HasSuffix(path, "/token") })
	if err := it.step(context.Background()); err == nil || !strings.Contains(err.Error(), "serviceaccounts/node-bootstrapper/token: 503") {
		t.Error(err)
	}
	if made := api.requests(http.MethodPost); !slices.Contains(made, operatorPods) {
		t.Errorf("%q", made)
	}
}

// The version is the bootstrap machine's to make.
func TestTheClusterVersionIsKeptOnlyOnceItIsThere(t *testing.T) {
	api := newFakeAPI()
	it := operating(t, api, `
kind: Node
metadata: {name: master0, labels: {node-role.kubernetes.io/control-plane: ""}}
status: {conditions: [{type: Ready, status: "True", lastHeartbeatTime: "`+kube.Time(time.Now())+`"}]}
`)
	check(t, it.step(context.Background()))
	if version := api.get(versionName); version != nil {
		t.Fatalf("%v", version)
	}
	api.set(versionName, kube.Object{"metadata": kube.Object{"name": "version"}, "spec": kube.Object{"clusterID": "the-id"}})
	available := func() string {
		t.Helper()
		check(t, it.step(context.Background()))
		version := must(fromObject[kube.ClusterVersion](api.get(versionName)))
		return kube.Find(version.Status.Conditions, "Available").Status
	}
	if now := available(); now != "False" {
		t.Error(now)
	}
	api.set(bootstrapName, bootstrapObject("complete"))
	if now := available(); now != "True" {
		t.Error(now)
	}
}

func TestOperateWaitsForWhatItNeeds(t *testing.T) {
	path := filepath.Join(t.TempDir(), operatorsFile)
	logger := log.New(&told{}, "", 0)
	if err := operate(context.Background(), path, logger); err == nil {
		t.Error("there is no file")
	}
	put(t, path, "{", 0o600)
	if err := operate(context.Background(), path, logger); err == nil || !strings.Contains(err.Error(), operatorsFile) {
		t.Error(err)
	}
	put(t, path, `{"servers": []}`, 0o600)
	if err := operate(context.Background(), path, logger); err != nil {
		t.Error(err)
	}
	put(t, path, `{"servers": ["127.0.0.1:1"]}`, 0o600)
	if err := operate(context.Background(), path, logger); err == nil || !strings.Contains(err.Error(), "certificate pair") {
		t.Error(err)
	}
}

func TestANodeThatRenewsItsLeaseIsReady(t *testing.T) {
	now := time.Now()
	node := `
kind: Node
metadata: {name: %s}
status: {conditions: [{type: Ready, status: "True", lastHeartbeatTime: "` + kube.Time(now.Add(-reportEvery)) + `"}]}
---`
	api := newFakeAPI()
	it := operating(t, api, fmt.Sprintf(node+node+node, "alive", "silent", "without"))
	for name, renewed := range map[string]time.Time{"alive": now.Add(-heartbeatEvery), "silent": now.Add(-time.Minute)} {
		spec := kube.Object{"renewTime": kube.MicroTime(renewed)}
		api.set(kube.Leases+"/"+name, kube.Object{"metadata": kube.Object{"name": name}, "spec": spec})
	}
	renewed := must(renewals(context.Background(), it.client))
	check(t, (&controller{objects: it.client, now: fixed(now)}).keepNodes(context.Background(), it.nodes(t), renewed))
	for name, wanted := range map[string]string{"alive": "True", "silent": "Unknown", "without": "Unknown"} {
		if status, _ := readiness(api.get(kube.Nodes + "/" + name)); status != wanted {
			t.Errorf("%s is %s", name, status)
		}
	}
}
