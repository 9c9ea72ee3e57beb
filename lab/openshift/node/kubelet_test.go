package node

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"metal-ipi.test/lab/openshift/cluster"
	"metal-ipi.test/lab/openshift/kube"
)

// masterUnit has the form of the machine config operator's templates/master/01-master-kubelet.
const masterUnit = `[Service]
ExecStartPre=/bin/mkdir --parents=yes /etc/kubernetes/manifests
ExecStart=/usr/local/bin/kubenswrapper \
    /usr/bin/kubelet \
      --config=/etc/kubernetes/kubelet.conf \
      --bootstrap-kubeconfig=/etc/kubernetes/kubeconfig \
      --node-ip=${KUBELET_NODE_IP} \
      --node-labels=node-role.kubernetes.io/control-plane,node-role.kubernetes.io/master,node.openshift.io/os_id=${ID},${CUSTOM_KUBELET_LABELS} \
      --register-with-taints=node-role.kubernetes.io/master=:NoSchedule \
      --v=${KUBELET_LOG_LEVEL}
Restart=always
`

func TestUnitFlags(t *testing.T) {
	for name, each := range map[string]struct {
		text  string
		flags map[string]string
	}{
		"a node": {masterUnit, map[string]string{
			"config": "/etc/kubernetes/kubelet.conf", "bootstrap-kubeconfig": "/etc/kubernetes/kubeconfig", "node-ip": "${KUBELET_NODE_IP}",
			"node-labels":          "node-role.kubernetes.io/control-plane,node-role.kubernetes.io/master,node.openshift.io/os_id=${ID},${CUSTOM_KUBELET_LABELS}",
			"register-with-taints": "node-role.kubernetes.io/master=:NoSchedule", "v": "${KUBELET_LOG_LEVEL}",
		}},
		"a bootstrap machine": {"[Service]\nExecStart=/usr/local/bin/kubelet.sh\n", map[string]string{}},
	} {
		path := filepath.Join(t.TempDir(), "kubelet.service")
		put(t, path, each.text, 0o644)
		if flags, err := unitFlags(path); err != nil || !reflect.DeepEqual(flags, each.flags) {
			t.Errorf("%s: %v %v", name, flags, err)
		}
	}
	if _, err := unitFlags(filepath.Join(t.TempDir(), "absent")); !os.IsNotExist(err) {
		t.Error(err)
	}
}

func TestParseTaints(t *testing.T) {
	for text, wanted := range map[string][]kube.Taint{
		"":                            {},
		"a=:NoSchedule":               {{Key: "a", Effect: "NoSchedule"}},
		"a:NoExecute":                 {{Key: "a", Effect: "NoExecute"}},
		"a=b:NoSchedule,c=:NoExecute": {{Key: "a", Value: "b", Effect: "NoSchedule"}, {Key: "c", Effect: "NoExecute"}},
	} {
		if taints, err := parseTaints(text); err != nil || !slices.Equal(taints, wanted) {
			t.Errorf("%q: %v %v", text, taints, err)
		}
	}
	if _, err := parseTaints("a=b"); err == nil || !strings.Contains(err.Error(), "has no effect") {
		t.Error(err)
	}
}

func TestTheChassisIDIsMadeOnce(t *testing.T) {
	root := t.TempDir()
	first, err := chassisID(root)
	if err != nil || len(first) != 36 {
		t.Fatal(first, err)
	}
	if second, err := chassisID(root); err != nil || second != first {
		t.Error(second, err)
	}
	if other, err := chassisID(t.TempDir()); err != nil || other == first {
		t.Error(other, err)
	}
	// A machine without power may have lost what was written last.
	put(t, filepath.Join(root, "/etc/openvswitch/system-id.conf"), "", 0o644)
	if fresh, err := chassisID(root); err != nil || len(fresh) != 36 {
		t.Error(fresh, err)
	}
}

func TestTheKubeletWaitsForTheFirstBoot(t *testing.T) {
	root := t.TempDir()
	t.Setenv("LAB_ROOT", root)
	put(t, filepath.Join(root, kubeletUnit), masterUnit, 0o644)
	put(t, filepath.Join(root, encapsulated), "{}", 0o600)
	if code := Kubelet(); code != 1 {
		t.Errorf("it ended with %d", code)
	}
	if exists(filepath.Join(root, "/etc/openvswitch/system-id.conf")) {
		t.Error("it went on to be a node")
	}
}

// joining is a node of the control plane that is not a member yet, and an API that signs whatever it is asked for.
func joining(t *testing.T) (*kubeletNode, *fakeAPI, cluster.Pair, *told) {
	t.Helper()
	signer, api := authority(t, "kubelet-signer"), newFakeAPI()
	api.created = func(object kube.Object) {
		if csr, err := fromObject[kube.CSR](object); err == nil && csr.Kind == "CertificateSigningRequest" {
			certificate, err := signNode(signer, csr.Spec, time.Now())
			if err != nil {
				t.Error(err)
			}
			object["status"] = kube.Object{"certificate": certificate}
		}
	}
	host, heard := testMachine(t)
	server := api.address(t)
	put(t, filepath.Join(host.root, kubeletUnit), masterUnit, 0o644)
	bootstrap := filepath.Join(host.root, "/etc/kubernetes/kubeconfig")
	put(t, bootstrap, kubeconfigText(server, signer.Cert, "token: abc"), 0o600)
	put(t, filepath.Join(host.root, "/etc/machine-config-daemon/node-annotations.json"), `{"machineconfiguration.openshift.io/currentConfig": "rendered-master-1"}`, 0o600)
	host.network.Source = "127.0.0.1"
	flags := must(unitFlags(filepath.Join(host.root, kubeletUnit)))
	node := must(newKubeletNode(host, flags, bootstrap))
	return node, api, signer, heard
}

func parsedRequest(t *testing.T, object kube.Object) (kube.CSRSpec, *x509.CertificateRequest) {
	t.Helper()
	csr := must(fromObject[kube.CSR](object))
	request := must(parseRequest(csr.Spec.Request))
	return csr.Spec, request
}

func TestANodeJoins(t *testing.T) {
	node, api, _, _ := joining(t)
	ctx := context.Background()
	certificate := must(node.agent.certificate(ctx))
	if certificate.Leaf.Subject.CommonName != "system:node:node0" {
		t.Error(certificate.Leaf.Subject)
	}
	spec, request := parsedRequest(t, api.get(kube.CSRs+"/csr-1"))
	if spec.SignerName != kube.KubeletSigner || !slices.Equal(spec.Usages, []string{"digital signature", "client auth"}) {
		t.Errorf("%+v", spec)
	}
	if request.Subject.String() != "CN=system:node:node0,O=system:nodes" || len(request.DNSNames)+len(request.IPAddresses) != 0 {
		t.Errorf("%v %v", request.Subject, request.DNSNames)
	}

	client := node.agent.access.client(&certificate, node.host.network)
	defer client.Close()
	must(node.agent.report(ctx, client))
	registered := must(fromObject[kube.Node](api.get(kube.Nodes + "/node0")))
	if !slices.Equal(registered.Spec.Taints, []kube.Taint{{Key: master, Effect: "NoSchedule"}}) {
		t.Errorf("taints %v", registered.Spec.Taints)
	}
	wanted := map[string]string{
		"machineconfiguration.openshift.io/currentConfig": "rendered-master-1",
		nodeLabels: "node-role.kubernetes.io/control-plane,node-role.kubernetes.io/master,node.openshift.io/os_id=${ID},${CUSTOM_KUBELET_LABELS}",
	}
	if !reflect.DeepEqual(registered.Metadata.Annotations, wanted) {
		t.Errorf("annotations %v", registered.Metadata.Annotations)
	}
	if _, found := registered.Metadata.Labels[master]; found {
		t.Error("the node says itself what it is")
	}
	ready := kube.Find(registered.Status.Conditions, "Ready")
	if ready.Status != "False" || !strings.Contains(ready.Message, "NetworkPluginNotReady message:the node is not registered yet") {
		t.Errorf("%+v", ready)
	}

	must(node.agent.report(ctx, client))
	object := api.get(kube.Nodes + "/node0")
	registered = must(fromObject[kube.Node](object))
	said := map[string]string{}
	for _, each := range registered.Status.Conditions {
		said[each.Type] = each.Status
	}
	if !reflect.DeepEqual(said, map[string]string{"Ready": "True", "MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False"}) {
		t.Errorf("%v", said)
	}
	wanted[chassisAnnotation] = node.chassis
	if !reflect.DeepEqual(registered.Metadata.Annotations, wanted) {
		t.Errorf("annotations %v", registered.Metadata.Annotations)
	}
	if patches := api.requests(http.MethodPatch); len(patches) != 2 {
		t.Errorf("patched %q", patches)
	}
}

func TestAHeartbeatRenewsTheLeaseAndLeavesTheStatus(t *testing.T) {
	node, api, _, _ := joining(t)
	node.attached = true
	now := time.Now()
	node.agent.now = func() time.Time { return now }
	ctx := context.Background()
	certificate := must(node.agent.certificate(ctx))
	client := node.agent.access.client(&certificate, node.host.network)
	defer client.Close()
	must(node.agent.report(ctx, client))
	path, lease := kube.Nodes+"/node0", kube.Leases+"/node0"
	written := func() []string {
		before := len(api.requests(http.MethodPut))
		must(node.agent.report(ctx, client))
		return api.requests(http.MethodPut)[before:]
	}
	renewed := func() any { return api.get(lease)["spec"].(kube.Object)["renewTime"] }
	if renewed() != kube.MicroTime(now) {
		t.Errorf("the lease says %v", renewed())
	}

	now = now.Add(heartbeatEvery)
	if puts := written(); !slices.Equal(puts, []string{lease}) || renewed() != kube.MicroTime(now) {
		t.Errorf("wrote %q, the lease says %v", puts, renewed())
	}
	check(t, client.Do(ctx, http.MethodDelete, lease, nil, nil))
	if written(); renewed() != kube.MicroTime(now) {
		t.Errorf("after its deletion the lease says %v", renewed())
	}

	// What the loops make of a node that was silent for a while.
	object := with(api.get(path), "metadata", with(metadata(api.get(path)), "labels", kube.Object{"of": "others"}))
	silent, _ := observeNode(object, nil, now.Add(time.Hour))
	api.set(path, silent)
	if puts := written(); !slices.Equal(puts, []string{path + "/status", lease}) {
		t.Errorf("wrote %q", puts)
	}
	if status, _ := readiness(api.get(path)); status != "True" {
		t.Errorf("it is %s", status)
	}
	now = now.Add(reportEvery)
	refused := 0
	api.refuseWhere(http.StatusConflict, func(method, target string) bool {
		if method == http.MethodPut && target == path+"/status" {
			refused++
		}
		return refused == 1 && method == http.MethodPut
	})
	if puts := written(); !slices.Equal(puts, []string{path + "/status", path + "/status", lease}) {
		t.Errorf("wrote %q", puts)
	}
	if labels := metadata(api.get(path))["labels"]; !reflect.DeepEqual(labels, kube.Object{"of": "others"}) {
		t.Errorf("labels %v", labels)
	}
}

func TestWithoutLeasesTheStatusIsTheHeartbeat(t *testing.T) {
	node, api, _, _ := joining(t)
	node.attached = true
	delete(api.kinds, "/apis/coordination.k8s.io/v1")
	ctx := context.Background()
	certificate := must(node.agent.certificate(ctx))
	client := node.agent.access.client(&certificate, node.host.network)
	defer client.Close()
	for range 3 {
		must(node.agent.report(ctx, client))
	}
	if puts := api.requests(http.MethodPut); len(puts) != 3 {
		t.Errorf("wrote %q", puts)
	}
}

// As the kubelet: it registers its node once, and again only when it starts again.
func TestANodeThatIsDeletedStaysOutUntilTheKubeletStartsAgain(t *testing.T) {
	node, api, _, heard := joining(t)
	node.attached = true
	ctx, cancel := context.WithCancel(context.Background())
	certificate := must(node.agent.certificate(ctx))
	client := node.agent.access.client(&certificate, node.host.network)
	defer client.Close()
	must(node.agent.report(ctx, client))
	check(t, client.Do(ctx, http.MethodDelete, kube.Nodes+"/node0", nil, nil))

	ended := make(chan struct{})
	go func() { defer close(ended); node.agent.Run(ctx) }()
	heard.await(t, "no heartbeat: its Node object was deleted")
	cancel()
	<-ended
	if api.get(kube.Nodes+"/node0") != nil {
		t.Error("it is registered again")
	}
	again := *node.agent
	again.reported = time.Time{}
	must(again.report(context.Background(), client))
	if api.get(kube.Nodes+"/node0") == nil {
		t.Error("it is not registered")
	}
}

// OVN-Kubernetes' admission refuses another chassis under the name of one that is there.
func TestANodeWhoseChassisIsRefusedIsNotReady(t *testing.T) {
	node, api, _, _ := joining(t)
	api.set(kube.Nodes+"/node0", kube.Object{"metadata": kube.Object{"name": "node0"}})
	api.refuseWhere(http.StatusForbidden, func(method, _ string) bool { return method == http.MethodPatch })
	client := node.agent.access.bootstrapper(node.host.network)
	defer client.Close()
	for range 2 {
		must(node.agent.report(context.Background(), client))
	}
	registered := must(fromObject[kube.Node](api.get(kube.Nodes + "/node0")))
	if ready := kube.Find(registered.Status.Conditions, "Ready"); ready.Status != "False" || !strings.Contains(ready.Message, "403 refused by the test") {
		t.Errorf("%+v", ready)
	}
	if patches := api.requests(http.MethodPatch); len(patches) != 2 {
		t.Errorf("it was tried %d times", len(patches))
	}
}

func TestTheNetworkPlugInRejectsTheMachineConfigServersPorts(t *testing.T) {
	node, api, _, _ := joining(t)
	node.host.network.Source = "" // a machine with a kernel of its own
	api.set(kube.Nodes+"/node0", kube.Object{"metadata": kube.Object{"name": "node0"}})
	rules := filepath.Join(t.TempDir(), "rules")
	calls := haveProgram(t, "nft", "cat > "+rules)
	client := node.agent.access.bootstrapper(kube.Network{})
	defer client.Close()
	for range 2 {
		if why := node.networkProblem(context.Background(), client); why != "" {
			t.Fatal(why)
		}
	}
	if made := calls(); !slices.Equal(made, []string{"-f -"}) || readOr(rules, "") != rejections {
		t.Errorf("nft %q", made)
	}
	haveProgram(t, "nft", "echo not permitted; exit 1")
	node.attached = false
	if why := node.networkProblem(context.Background(), client); !strings.Contains(why, "nft: exit status 1: not permitted") {
		t.Error(why)
	}
}

func TestANodeAsksForTheCertificateOfItsPort(t *testing.T) {
	node, api, _, _ := joining(t)
	path := filepath.Join(node.host.root, serverFile)
	client := node.agent.access.bootstrapper(node.host.network)
	defer client.Close()
	node.client = client
	node.serve(context.Background())
	spec, request := parsedRequest(t, api.get(kube.CSRs+"/csr-1"))
	if spec.SignerName != kube.ServingSigner || !slices.Equal(spec.Usages, []string{"digital signature", "server auth"}) {
		t.Errorf("%+v", spec)
	}
	if !slices.Equal(request.DNSNames, []string{"node0"}) || len(request.IPAddresses) != 1 || request.IPAddresses[0].String() != "127.0.0.1" {
		t.Errorf("%v %v", request.DNSNames, request.IPAddresses)
	}
	data := []byte(readOr(path, ""))
	if _, err := (cluster.Pair{Cert: data, Key: data}).TLS(); err != nil {
		t.Error(err)
	}
	node.serve(context.Background())
	if asked := api.requests(http.MethodPost); len(asked) != 1 {
		t.Errorf("asked %q", asked)
	}
}

// The first certificate of a node that waits for approval may end before; whoever asks on goes on with the next one.
func TestTheCertificateOfThePortIsAskedForAsWhoTheNodeIsNow(t *testing.T) {
	node, _, _, _ := joining(t)
	ended := newFakeAPI()
	ended.refuse = func(string, string) int { return http.StatusUnauthorized }
	current := node.agent.access.bootstrapper(node.host.network)
	defer current.Close()
	node.client = ended.serve(t)
	over := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { node.serve(ctx); close(over) }()
	time.Sleep(100 * time.Millisecond)
	node.joined(ctx, current)
	select {
	case <-over:
	case <-time.After(10 * time.Second):
		t.Fatal("it still asks as the one before")
	}
}

func TestADeniedRequestIsSaid(t *testing.T) {
	node, api, _, _ := joining(t)
	for kind, problem := range map[string]string{"Denied": "was denied", "Failed": "failed: the message"} {
		api.created = func(object kube.Object) {
			object["status"] = kube.Object{"conditions": []any{kube.Object{"type": kind, "status": "True", "message": "the message"}}}
		}
		if _, err := node.agent.certificate(context.Background()); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// A machine that loses its power while it writes must be a member again afterwards.
func TestANodesCertificateSurvivesWhatIsHalfWritten(t *testing.T) {
	node, api, _, _ := joining(t)
	ctx := context.Background()
	first := must(node.agent.certificate(ctx))
	if again, err := node.agent.certificate(ctx); err != nil || !again.Leaf.Equal(first.Leaf) {
		t.Fatal(err)
	}
	if count := len(api.requests(http.MethodPost)); count != 1 {
		t.Fatalf("asked %d times", count)
	}
	found := []string{}
	err := filepath.WalkDir(node.host.root, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.Contains(path, "pki") {
			found = append(found, strings.TrimPrefix(path, node.host.root))
		}
		return err
	})
	if err != nil || !slices.Equal(found, []string{"/var/lib/kubelet/pki/kubelet-client-current.pem"}) {
		t.Fatalf("a certificate and its key are not written in one step: %q %v", found, err)
	}
	for _, left := range []string{"", "-----BEGIN CERT", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: first.Leaf.Raw}))} {
		put(t, filepath.Join(node.host.root, found[0]), left, 0o600)
		if _, err := node.agent.certificate(ctx); err != nil {
			t.Errorf("%q: %v", left, err)
		}
	}
}

func TestARequestThatIsForgottenIsMadeAgain(t *testing.T) {
	for _, code := range []int{http.StatusNotFound, http.StatusUnauthorized} {
		node, api, _, _ := joining(t)
		api.refuseWhere(code, func(method, _ string) bool { return method == http.MethodGet })
		now := time.Now()
		node.agent.now = func() time.Time { now = now.Add(forgotten / 2); return now }
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		_, err := node.agent.certificate(ctx)
		cancel()
		if err == nil || !strings.Contains(err.Error(), "CSR csr-1 is not known any more") {
			t.Errorf("%d: %v", code, err)
		}
	}
}

func TestANodeOfBothFamiliesHasBothAddresses(t *testing.T) {
	both := &agent{name: "n", network: kube.Network{Source: "127.0.0.9", SourceIPv6: "2001:db8::9"}, now: time.Now, bothFamilies: true}
	node := must(both.node())
	wanted := []kube.NodeAddress{{Type: "InternalIP", Address: "127.0.0.9"}, {Type: "InternalIP", Address: "2001:db8::9"}, {Type: "Hostname", Address: "n"}}
	if !slices.Equal(node.Status.Addresses, wanted) {
		t.Errorf("%v", node.Status.Addresses)
	}
	both.network.SourceIPv6 = ""
	if _, err := both.node(); err == nil || !strings.Contains(err.Error(), "no IPv6 address") {
		t.Error(err)
	}
}
