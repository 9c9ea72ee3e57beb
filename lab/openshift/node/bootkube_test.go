package node

import (
	"archive/tar"
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"metal-ipi.test/lab/openshift/cluster"
	"metal-ipi.test/lab/openshift/kube"
)

const (
	releaseImage = "registry.test/release:v1"
	configImage  = "registry.test/config-api"
	mcoImage     = "registry.test/mco"
	// Addresses of loopback that nothing else uses.
	bootstrapAddress = "127.61.0.1"
	firstAddress     = "127.61.0.2"
	secondAddress    = "127.61.0.3"
)

// renderAssets is the programs that render: each writes down its run, and a file of the kind that it makes.
func renderAssets() int {
	name := filepath.Base(os.Args[0])
	runs, err := os.OpenFile("/assets/runs", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = fmt.Fprintln(runs, name, strings.Join(os.Args[1:], " "))
	}
	files := map[string]string{"/assets/api-bootstrap/manifests/role.yaml": namedObject("rbac.authorization.k8s.io/v1", "ClusterRole", "of-api")}
	if name == "machine-config-operator" {
		files = map[string]string{
			"/assets/mco-bootstrap/bootstrap/" + bootstrapPod:       "kind: Pod\n",
			"/assets/mco-bootstrap/bootstrap/manifests/config.yaml": "kind: Config\n",
			"/assets/mco-bootstrap/manifests/role.yaml":             namedObject("rbac.authorization.k8s.io/v1", "ClusterRole", "of-mco"),
		}
	}
	for path, text := range files {
		err = errors.Join(err, os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600))
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func namedObject(version, kind, name string) string {
	return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: %s}\n", version, kind, name)
}

func archive(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var data bytes.Buffer
	writer := tar.NewWriter(&data)
	for _, name := range slices.Sorted(maps.Keys(files)) { // the same bytes each time: images are named by their digest
		check(t, writer.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name]))}))
		must(writer.Write([]byte(files[name])))
	}
	check(t, writer.Close())
	return data.Bytes()
}

// haveRelease serves a release image and two others, one without files of its own.
func haveRelease(t *testing.T) {
	t.Helper()
	self := must(os.Executable())
	stream := fmt.Sprintf(`{"metadata": {"name": "4.19.0"}, "spec": {"tags": [
		{"name": "cluster-config-api", "from": {"name": %q}}, {"name": "machine-config-operator", "from": {"name": %q}}]}}`, configImage, mcoImage)
	archives := map[string][]byte{
		releaseImage: archive(t, map[string]string{
			"release-manifests/image-references": stream,
			"release-manifests/0000_crd.yaml":    strings.ReplaceAll(thingDefinition, "Thing", "Unused"),
		}),
		mcoImage: archive(t, map[string]string{
			"manifests/machineconfigserver/daemonset.yaml": "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: machine-config-server, namespace: {{.TargetNamespace}}}\n" +
				"spec: {image: \"{{.Images.MachineConfigOperator}}\", server: \"{{.APIServerURL}}\", ciphers: \"{{join .TLSCipherSuites \",\"}}\"}\n",
			"manifests/machineconfigserver/kube-apiserver-serving-ca-configmap.yaml": "{{.Nothing.OfThis}}",
		}),
	}
	mux := http.NewServeMux()
	for name, data := range archives {
		mux.HandleFunc("/"+name+"/files.tar", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) })
	}
	for _, path := range []string{configImage + "/bin/render", mcoImage + "/bin/machine-config-operator"} {
		mux.HandleFunc("/"+path, func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, self) })
	}
	serveRegistry(t, mux)
}

// site is a bootstrap machine, and an API server that the lab's service runs for it.
type site struct {
	host  machine
	heard *told
	api   *fakeAPI
	// server is where the API is; others reach it under the addresses of the control plane.
	server string
}

// servicePort is free on the site's addresses, and below the ports that the kernel gives to connections, which have
// these addresses as well.
func servicePort(t *testing.T) string {
	t.Helper()
	for range 100 {
		port, free := fmt.Sprint(20000+rand.IntN(10000)), true
		for _, address := range []string{bootstrapAddress, firstAddress, secondAddress} {
			listener, err := net.Listen("tcp", net.JoinHostPort(address, port))
			if err == nil {
				listener.Close()
			}
			free = free && err == nil
		}
		if free {
			return port
		}
	}
	t.Fatal("no port is free")
	return ""
}

func newSite(t *testing.T, inPlace bool) *site {
	t.Helper()
	haveRelease(t)
	before := apiPort
	apiPort = servicePort(t)
	t.Cleanup(func() { apiPort = before })
	host, heard := testMachine(t)
	host.network = kube.Network{Source: bootstrapAddress, Static: map[string][]string{"api.lab.example.test": {firstAddress}}}
	it := &site{host: host, heard: heard, api: newFakeAPI()}

	signer := authority(t, "signer")
	pair := must(signer.Issue(cluster.Leaf{Names: []string{"localhost", "api.lab.example.test", "api-int.lab.example.test", "service.test"}, Validity: time.Hour}, time.Now()))
	certificate := must(pair.TLS())
	config := &tls.Config{Certificates: []tls.Certificate{certificate}}
	api := httptest.NewUnstartedServer(it.api)
	api.TLS = config.Clone()
	api.StartTLS()
	t.Cleanup(api.Close)
	it.server = api.Listener.Addr().String()
	place := cluster.Native{Server: it.service(t, config), Name: "service.test", Authority: string(signer.Cert)}
	put(t, filepath.Join(host.root, facilityFile), encode(t, place), 0o644)

	files := filepath.Join(host.root, assetDirectory)
	haveAssets(t, files)
	put(t, filepath.Join(files, adminFile), kubeconfigText("https://api.lab.example.test:"+apiPort, signer.Cert, certificateFields(pair)), 0o600)
	script := "#!/bin/bash\nBOOTSTRAP_INPLACE=false\n"
	if inPlace {
		script = "#!/bin/bash\nBOOTSTRAP_INPLACE=true\n"
	}
	for path, text := range map[string]string{
		bootkubeScript: script,
		"/usr/local/bin/release-image-download.sh":                               "#!/bin/bash\nRELEASE_IMAGE=" + releaseImage + "\n",
		"/usr/local/bin/installer-gather.sh":                                     "gather",
		"/usr/local/bin/installer-masters-gather.sh":                             "masters",
		assetDirectory + "/manifests/cluster-config.yaml":                        "kind: ConfigMap\napiVersion: v1\nmetadata: {name: cluster-config-v1, namespace: kube-system}\n" + clusterConfigText,
		assetDirectory + "/manifests/cluster-scheduler-02-config.yml":            namedObject("config.openshift.io/v1", "Scheduler", "cluster") + "spec: {mastersSchedulable: false}\n",
		assetDirectory + "/manifests/cvo-overrides.yaml":                         namedObject("config.openshift.io/v1", "ClusterVersion", "version") + overridesText,
		assetDirectory + "/openshift/99_config.yaml":                             namedObject("machineconfiguration.openshift.io/v1", "MachineConfig", "99-ssh"),
		assetDirectory + "/tls/machine-config-server.crt":                        "certificate",
		assetDirectory + "/tls/machine-config-server.key":                        "key",
		assetDirectory + "/auth/kubeconfig-kubelet":                              "kubelet",
		assetDirectory + "/auth/kubeconfig-loopback":                             "loopback",
		assetDirectory + "/original_cvo_overrides.patch":                         "patch",
		assetDirectory + "/bootstrap-in-place/bootstrap-in-place-post-reboot.sh": "post-reboot",
		"/etc/mcs/bootstrap/controller-config/machine-config-controller.yaml":    namedObject("rbac.authorization.k8s.io/v1", "ClusterRole", "of-controller"),
		"/etc/mcs/bootstrap/machine-configs/rendered-master.yaml":                namedObject("machineconfiguration.openshift.io/v1", "MachineConfig", "rendered-master"),
	} {
		put(t, filepath.Join(host.root, path), text, 0o644)
	}
	return it
}

// service is the lab's: it tells everybody where the API is.
func (s *site) service(t *testing.T, config *tls.Config) string {
	t.Helper()
	return accepting(t, must(tls.Listen("tcp", "127.0.0.1:0", config)), func(connection net.Conn) {
		defer connection.Close()
		lines := bufio.NewReader(connection)
		_, err := lines.ReadBytes('\n')
		if err == nil {
			fmt.Fprintf(connection, "{\"address\": %q}\n", s.server)
		}
		for err == nil {
			_, err = lines.ReadBytes('\n')
		}
	})
}

// controlPlane has two nodes of the control plane be ready, and serve the API until the test ends.
func (s *site) controlPlane(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	for name, address := range map[string]string{"master0": firstAddress, "master1": secondAddress} {
		check(t, relay(ctx, net.JoinHostPort(address, apiPort), s.server))
		node := must(toObject(kube.Node{Kind: "Node", Metadata: kube.Meta{Name: name, Labels: map[string]string{controlPlane: ""}}, Status: kube.NodeStatus{
			Addresses:  []kube.NodeAddress{{Type: "InternalIP", Address: address}},
			Conditions: []kube.Condition{{Type: "Ready", Status: "True", LastHeartbeatTime: kube.Time(time.Now().Add(time.Minute))}},
		}}))
		s.api.set(kube.Nodes+"/"+name, node)
	}
}

func (s *site) path(name string) string {
	if strings.HasPrefix(name, "/") {
		return filepath.Join(s.host.root, name)
	}
	return filepath.Join(s.host.root, assetDirectory, name)
}

// start begins bootkube; the result ends it, as one is killed, and is what it ended with.
func (s *site) start(t *testing.T) (kill func() error, ended <-chan error) {
	t.Helper()
	work := must(newBootkube(s.host))
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() { over <- work.run(ctx); close(over) }()
	kill = func() error { cancel(); return <-over }
	t.Cleanup(func() { _ = kill() })
	return kill, over
}

func finishes(t *testing.T, s *site, ended <-chan error) error {
	t.Helper()
	select {
	case err := <-ended:
		return err
	case <-time.After(20 * time.Second):
		t.Fatalf("it does not end:\n%s", s.heard.String())
		return nil
	}
}

func (s *site) runs() int { return strings.Count(readOr(s.path("runs"), ""), "\n") }

func TestBootkubeGoesOnWhereItWasKilled(t *testing.T) {
	s := newSite(t, false)
	kill, _ := s.start(t)
	s.heard.await(t, "0 of 3 API servers of the control plane answer, 2 are needed")
	if err := kill(); err == nil {
		t.Fatal("it is done before there is a control plane")
	}
	if !exists(s.path("mco-bootstrap.done")) {
		t.Error("mco-bootstrap.done is missing")
	}
	if exists(s.path("cb-bootstrap.done")) || exists(s.path(".bootkube.done")) || s.api.get(bootstrapName) != nil {
		t.Error("it said that it is done")
	}
	runs := readOr(s.path("runs"), "")
	if s.runs() != 2 || !strings.Contains(runs, "--payload-version=4.19.0") || !strings.Contains(runs, "--release-image="+releaseImage) {
		t.Errorf("%s", runs)
	}
	for _, path := range []string{
		manifestDirectory + "/" + bootstrapPod, "/etc/mcc/bootstrap/config.yaml", "/etc/mcc/bootstrap/99_config.yaml",
		"/etc/mcc/bootstrap/cvo-overrides.yaml", "/etc/ssl/mcs/tls.crt", "/etc/mcs/kubeconfig", "image-references",
	} {
		if !exists(s.path(path)) {
			t.Errorf("%s is missing", path)
		}
	}
	for _, path := range []string{
		"/apis/rbac.authorization.k8s.io/v1/clusterroles/of-api", "/apis/rbac.authorization.k8s.io/v1/clusterroles/of-mco",
		"/apis/rbac.authorization.k8s.io/v1/clusterroles/of-controller", versionName,
		"/apis/machineconfiguration.openshift.io/v1/machineconfigs/rendered-master", "/apis/machineconfiguration.openshift.io/v1/machineconfigs/99-ssh",
	} {
		if s.api.get(path) == nil {
			t.Errorf("%s is missing", path)
		}
	}
	server, _ := s.api.get(daemonSets + "/machine-config-server")["spec"].(kube.Object)
	if server["image"] != mcoImage || server["server"] != "https://api-int.lab.example.test:"+apiPort || !strings.HasPrefix(server["ciphers"].(string), "TLS_ECDHE") {
		t.Errorf("%v", server)
	}
	if s.api.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/things.lab.test") != nil {
		t.Error("a definition that nothing needs is there")
	}

	made := len(s.api.requests(http.MethodPost))
	s.controlPlane(t)
	_, ended := s.start(t)
	check(t, finishes(t, s, ended))
	// As cluster-bootstrap does, it offers the first objects again until the control plane runs.
	if posts := s.api.requests(http.MethodPost)[made:]; posts[len(posts)-1] != kube.ConfigMaps || s.runs() != 2 {
		t.Errorf("it did again what was done: %q", posts)
	}
	if !exists(s.path("cb-bootstrap.done")) {
		t.Error("it does not tell that the control plane runs")
	}
	if exists(s.path(manifestDirectory + "/" + bootstrapPod)) {
		t.Error("the machine config server of the bootstrap is still to run")
	}
	status, _ := s.api.get(bootstrapName)["data"].(kube.Object)
	if status["status"] != "complete" || !exists(s.path(".bootkube.done")) {
		t.Errorf("%v", status)
	}
}

// bootkube.service does not start again once .bootkube.done is there: what is not said by then is never said.
func TestBootkubeIsDoneOnceTheClusterKnowsIt(t *testing.T) {
	s := newSite(t, false)
	s.api.refuseWhere(http.StatusServiceUnavailable, func(method, path string) bool {
		return method == http.MethodPost && path == kube.ConfigMaps && exists(s.path("cb-bootstrap.done"))
	})
	s.controlPlane(t)
	kill, _ := s.start(t)
	s.heard.await(t, "Reporting install progress...")
	if err := kill(); err == nil {
		t.Fatal("it ended well")
	}
	if exists(s.path(".bootkube.done")) {
		t.Error("it was done before the cluster knew it")
	}
}

func TestAStageThatFailsIsNotFinished(t *testing.T) {
	for name, each := range map[string]struct {
		spoil   func(s *site) error
		problem string
	}{
		"no certificate": {func(s *site) error { return os.Remove(s.path("tls/machine-config-server.crt")) }, "machine-config-server.crt"},
		"no facts":       {func(s *site) error { return os.Remove(s.path("manifests/cvo-overrides.yaml")) }, "cvo-overrides.yaml"},
		"a bad manifest": {func(s *site) error { return os.WriteFile(s.path("openshift/bad.yaml"), []byte("kind: ["), 0o600) }, "bad.yaml"},
		"no lab service": {func(s *site) error { return os.Remove(s.path(facilityFile)) }, "without a Kubernetes API"},
		"the port is taken": {func(s *site) error {
			listener, err := net.Listen("tcp", net.JoinHostPort(bootstrapAddress, apiPort))
			if err == nil {
				t.Cleanup(func() { listener.Close() })
			}
			return err
		}, "address already in use"},
	} {
		s := newSite(t, false)
		check(t, each.spoil(s))
		kill, ended := s.start(t)
		err := finishes(t, s, ended)
		if err == nil || !strings.Contains(err.Error(), each.problem) {
			t.Errorf("%s: %v", name, err)
		}
		_ = kill()
		if exists(s.path("cb-bootstrap.done")) || exists(s.path(".bootkube.done")) {
			t.Errorf("%s: it is said to be finished", name)
		}
	}
}

func TestAnImageThatTheReleaseDoesNotNameIsSaid(t *testing.T) {
	s := newSite(t, false)
	work := must(newBootkube(s.host))
	work.images = map[string]string{}
	if err := work.execute(context.Background(), "cluster-config-api", "render"); err == nil || !strings.Contains(err.Error(), "no image cluster-config-api") {
		t.Error(err)
	}
}

func TestBootkubeNeedsTheInstallersFiles(t *testing.T) {
	s := newSite(t, true)
	if work, err := newBootkube(s.host); err != nil || !work.inPlace || work.release != releaseImage {
		t.Errorf("%+v %v", work, err)
	}
	put(t, s.path("/usr/local/bin/release-image-download.sh"), "#!/bin/bash\n", 0o755)
	if _, err := newBootkube(s.host); err == nil || !strings.Contains(err.Error(), "names no release image") {
		t.Error(err)
	}
	check(t, os.Remove(s.path(bootkubeScript)))
	if _, err := newBootkube(s.host); !os.IsNotExist(err) {
		t.Error(err)
	}
}

func TestASingleNodesDiskGetsWhatBootkubeMade(t *testing.T) {
	s := newSite(t, true)
	served := make(chan string, 10)
	listener := must(net.Listen("tcp", net.JoinHostPort(bootstrapAddress, "22624")))
	answers := 0
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served <- r.URL.Path + " " + r.Header.Get("Accept")
		switch answers++; answers {
		case 1: // it has just started
			http.Error(w, "not yet", http.StatusInternalServerError)
		case 2: // its pod is started again
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write([]byte(`{"ignition": `))
		default:
			_, _ = w.Write([]byte(`{"ignition": {"version": "3.2.0"}}`))
		}
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	_, ended := s.start(t)
	check(t, finishes(t, s, ended))
	if asked := <-served; asked != "/config/master application/vnd.coreos.ignition+json;version=3.2.0" {
		t.Error(asked)
	}
	s.heard.await(t, "waiting for the machine config server: 500 Internal Server Error")
	var config cluster.Ignition
	check(t, json.Unmarshal([]byte(readOr(s.path("master.ign"), "")), &config))
	if merge := config.Ignition.Config.Merge; len(merge) != 1 || merge[0] != cluster.Data([]byte(`{"ignition": {"version": "3.2.0"}}`)) {
		t.Errorf("%+v", merge)
	}
	modes := map[string]int{}
	for _, file := range config.Storage.Files {
		modes[file.Path] = file.Mode
		if file.Path == bootstrapSecrets+"/kubeconfig" && file.Contents != cluster.Data([]byte("loopback")) {
			t.Errorf("%+v", file)
		}
	}
	for path, mode := range map[string]int{
		bootstrapSecrets + "/kubelet-signer.key": 0o600, "/usr/local/bin/bootstrap-in-place-post-reboot.sh": 0o555,
		"/usr/local/bin/installer-gather.sh": 0o555, "/opt/openshift/original_cvo_overrides.patch": 0o600,
	} {
		if modes[path] != mode {
			t.Errorf("%s: %o", path, modes[path])
		}
	}
	if !slices.IsSorted(slices.Collect(func(yield func(string) bool) {
		for _, file := range config.Storage.Files {
			if !yield(file.Path) {
				return
			}
		}
	})) {
		t.Errorf("%v", slices.Sorted(maps.Keys(modes)))
	}
	if units := config.Systemd.Units; len(units) != 1 || units[0].Name != "bootkube.service" || !units[0].Enabled {
		t.Errorf("%+v", units)
	}
	if !exists(s.path(".bootkube.done")) || s.api.get(bootstrapName) != nil {
		t.Error("it is the disk's part to say that bootstrapping is complete")
	}
}

// restarted is a single node that starts from its disk for the first time.
func restarted(t *testing.T) *site {
	t.Helper()
	s := newSite(t, true)
	haveAssets(t, s.path(bootstrapSecrets))
	present, _ := filepath.Glob(s.path(bootstrapSecrets + "/tls/*"))
	for _, path := range present {
		check(t, os.Rename(path, filepath.Join(s.path(bootstrapSecrets), filepath.Base(path))))
	}
	check(t, copyFile(s.path(adminFile), s.path(bootstrapSecrets+"/kubeconfig")))
	return s
}

func TestASingleNodeAdmitsItselfAndForgetsTheSecrets(t *testing.T) {
	s := restarted(t)
	s.api.set(kube.CSRs+"/one", kube.Object{"metadata": kube.Object{"name": "one"}, "spec": kube.Object{}})
	denied := []any{kube.Object{"type": "Denied", "status": "True"}}
	s.api.set(kube.CSRs+"/denied", kube.Object{"metadata": kube.Object{"name": "denied"}, "status": kube.Object{"conditions": denied}})
	ended := make(chan error, 1)
	go func() { ended <- afterRestart(context.Background(), s.host) }()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		csr := must(fromObject[kube.CSR](s.api.get(kube.CSRs + "/one")))
		if kube.Is(csr.Status.Conditions, "Approved", "True") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("nobody approved it:\n%s", s.heard.String())
		}
	}
	if !exists(s.path(bootstrapSecrets + "/kubeconfig")) {
		t.Error("the secrets are gone before the node is ready")
	}
	s.controlPlane(t)
	check(t, finishes(t, s, ended))
	status, _ := s.api.get(bootstrapName)["data"].(kube.Object)
	if status["status"] != "complete" || exists(s.path(bootstrapSecrets)) {
		t.Errorf("%v", status)
	}
	if csr, err := fromObject[kube.CSR](s.api.get(kube.CSRs + "/denied")); err != nil || kube.Is(csr.Status.Conditions, "Approved", "True") {
		t.Errorf("%+v %v", csr, err)
	}
}

// The kubelet may have the port already, when bootkube is started a second time.
func TestASingleNodeSaysThatItsPortIsTaken(t *testing.T) {
	s := restarted(t)
	listener := must(net.Listen("tcp", net.JoinHostPort(bootstrapAddress, apiPort)))
	ended := make(chan error, 1)
	go func() { ended <- afterRestart(context.Background(), s.host) }()
	s.heard.await(t, "port "+apiPort+" is not free yet")
	listener.Close()
	s.controlPlane(t)
	check(t, finishes(t, s, ended))
}

func TestWhatIsOfAnotherFeatureSetOrProfileIsLeftOut(t *testing.T) {
	of := func(sets string, profiles ...string) kube.Object {
		annotations := kube.Object{}
		if sets != "" {
			annotations["release.openshift.io/feature-set"] = sets
		}
		for _, profile := range profiles {
			annotations["include.release.openshift.io/"+profile] = "true"
		}
		return kube.Object{"metadata": kube.Object{"name": sets + strings.Join(profiles, "+"), "annotations": annotations}}
	}
	const ours, theirs = "self-managed-high-availability", "ibm-cloud-managed"
	for set, wanted := range map[string][]string{
		"":                     {"", "Default", theirs + "+" + ours},
		"TechPreviewNoUpgrade": {"", "CustomNoUpgrade,TechPreviewNoUpgrade", theirs + "+" + ours},
	} {
		gate := kube.Object{"kind": "FeatureGate", "spec": kube.Object{"featureSet": set}}
		all := []kube.Object{of(""), of("Default"), of("CustomNoUpgrade,TechPreviewNoUpgrade"), of("", theirs, ours), of("", theirs)}
		names := []string{}
		for _, each := range ofFeatureSet(all, featureSet([]kube.Object{{"kind": "Scheduler"}, gate})) {
			names = append(names, metadata(each)["name"].(string))
		}
		if !slices.Equal(names, wanted) {
			t.Errorf("%q: %q", set, names)
		}
	}
}
