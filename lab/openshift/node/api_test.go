package node

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"metal-ipi.test/lab/openshift/cluster"
	"metal-ipi.test/lab/openshift/kube"
)

var testFacts = cluster.Facts{Name: "lab", BaseDomain: "example.test", ControlPlane: 1, Release: "1"}

// small is a small API server, and the loops of its cluster, which step when they are told to.
type small struct {
	t      *testing.T
	bundle cluster.Bundle
	server *server
	loops  *controller
}

func newSmall(t *testing.T) *small {
	t.Helper()
	bundle := must(cluster.NewBundle(testFacts, time.Now(), time.Hour))
	clients := must(bundle.Pool("client-ca-bundle.crt"))
	silent := log.New(io.Discard, "", 0)
	loops := must(newController(ControlPlane, bundle, machine{root: t.TempDir(), log: silent}))
	w := &small{t, bundle, &server{store: store{t.TempDir()}, clients: clients, now: time.Now, log: silent}, loops}
	// The loops ask as an administrator.
	api := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		request.TLS = shown(t, bundle.Files["admin-kubeconfig-client.crt"])
		w.server.Handler().ServeHTTP(answer, request)
	}))
	t.Cleanup(api.Close)
	loops.use(kube.NewClient(api.URL, nil, kube.Network{}, requestLimit))
	loops.certifier.bootstrap = true
	return w
}

// shown is a connection on which that certificate was shown; none if it is nil.
func shown(t *testing.T, certificate []byte) *tls.ConnectionState {
	t.Helper()
	if certificate == nil {
		return &tls.ConnectionState{}
	}
	block, _ := pem.Decode(certificate)
	parsed := must(x509.ParseCertificate(block.Bytes))
	return &tls.ConnectionState{PeerCertificates: []*x509.Certificate{parsed}}
}

func (w *small) step() {
	w.t.Helper()
	check(w.t, w.loops.step(context.Background()))
}

// call makes a request with the certificate of that name, none if it is empty.
func (w *small) call(who, method, path string, in any) (int, kube.Object) {
	w.t.Helper()
	if who == "" {
		return w.callWith(nil, method, path, in)
	}
	return w.callWith(must(w.bundle.Pair(who)).Cert, method, path, in)
}

func (w *small) callWith(certificate []byte, method, path string, in any) (int, kube.Object) {
	w.t.Helper()
	request := httptest.NewRequest(method, "https://api"+path, bytes.NewReader(must(json.Marshal(in))))
	request.TLS = shown(w.t, certificate)
	recorder := httptest.NewRecorder()
	w.server.Handler().ServeHTTP(recorder, request)
	object := kube.Object{}
	_ = json.Unmarshal(recorder.Body.Bytes(), &object) // health checks answer text
	return recorder.Code, object
}

func request(t *testing.T, subject pkix.Name) kube.CSR {
	t.Helper()
	key, _, err := cluster.NewKey()
	check(t, err)
	der := must(x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: subject}, key))
	return kube.CSR{Metadata: kube.Meta{Name: "csr-a"}, Spec: kube.CSRSpec{
		SignerName: kube.KubeletSigner, Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
	}}
}

func nodeSubject(name string) pkix.Name {
	return pkix.Name{CommonName: "system:node:" + name, Organization: []string{"system:nodes"}}
}

func approved() kube.CSR {
	return kube.CSR{Status: kube.CSRStatus{Conditions: []kube.Condition{{Type: "Approved", Status: "True"}}}}
}

func (w *small) stored(name string) kube.CSR {
	w.t.Helper()
	return must(fromObject[kube.CSR](get(w.t, w.server.store, kube.CSRs+"/"+name)))
}

// join takes a node through its request and returns its certificate.
func (w *small) join(name string) []byte {
	w.t.Helper()
	if code, answer := w.call("node-bootstrapper", "POST", kube.CSRs, request(w.t, nodeSubject(name))); code != http.StatusCreated {
		w.t.Fatalf("%d %v", code, answer)
	}
	if code, answer := w.call("admin-kubeconfig-client", "PUT", kube.CSRs+"/csr-a/approval", approved()); code != http.StatusOK {
		w.t.Fatalf("%d %v", code, answer)
	}
	w.step()
	return w.stored("csr-a").Status.Certificate
}

func fixed(t time.Time) func() time.Time { return func() time.Time { return t } }

func TestAnObjectIsListedByItsName(t *testing.T) {
	w := newSmall(t)
	w.join("one")
	for name, wanted := range map[string]int{"csr-a": 1, "csr": 0} {
		code, answer := w.callWith(w.bundle.Files["node-bootstrapper.crt"], "GET", kube.CSRs+"?fieldSelector=metadata.name%3D"+name, nil)
		if items, _ := answer["items"].([]any); code != http.StatusOK || len(items) != wanted {
			t.Errorf("%s: %d, %d objects, want %d", name, code, len(items), wanted)
		}
	}
}

func TestWhoMayDoWhat(t *testing.T) {
	w := newSmall(t)
	certificate := w.join("one")
	node := func(name string) kube.Node { return kube.Node{Metadata: kube.Meta{Name: name}} }
	stranger := must(cluster.NewBundle(testFacts, time.Now(), time.Hour))
	for _, c := range []struct {
		what         string
		certificate  []byte
		method, path string
		in           any
		code         int
	}{
		{"anybody asks for health", nil, "GET", "/readyz", nil, 200},
		{"anybody asks for the version", nil, "GET", "/version", nil, 200},
		{"nobody lists nodes", nil, "GET", kube.Nodes, nil, 403},
		{"another cluster's administrator", stranger.Files["admin-kubeconfig-client.crt"], "GET", kube.Nodes, nil, 401},
		{"a joining machine lists nodes", w.bundle.Files["node-bootstrapper.crt"], "GET", kube.Nodes, nil, 403},
		{"a joining machine approves", w.bundle.Files["node-bootstrapper.crt"], "PUT", kube.CSRs + "/csr-a/approval", approved(), 403},
		{"a node registers", certificate, "POST", kube.Nodes, node("one"), 201},
		{"a node registers twice", certificate, "POST", kube.Nodes, node("one"), 409},
		{"a node registers another", certificate, "POST", kube.Nodes, node("two"), 403},
		{"a node reports", certificate, "PUT", kube.Nodes + "/one/status", node("one"), 200},
		{"a node reports for another", certificate, "PUT", kube.Nodes + "/two/status", node("two"), 403},
		{"a node deletes itself", certificate, "DELETE", kube.Nodes + "/one", nil, 403},
		{"what is not there", w.bundle.Files["admin-kubeconfig-client.crt"], "GET", kube.ConfigMaps + "/bootstrap", nil, 404},
		{"a path that is not there", w.bundle.Files["admin-kubeconfig-client.crt"], "GET", "/apis/route.openshift.io/v1", nil, 404},
		{"what is not implemented", w.bundle.Files["admin-kubeconfig-client.crt"], "PATCH", kube.Nodes + "/one", node("one"), 501},
		{"a watch", w.bundle.Files["admin-kubeconfig-client.crt"], "GET", kube.Nodes + "?watch=1", nil, 501},
		{"another selector than of a name", w.bundle.Files["admin-kubeconfig-client.crt"], "GET", kube.Nodes + "?fieldSelector=spec.x%3D1", nil, 501},
		{"a selector of more than a list", w.bundle.Files["admin-kubeconfig-client.crt"], "GET", kube.Nodes + "/one?fieldSelector=metadata.name%3Done", nil, 501},
		{"the administrator lists nodes", w.bundle.Files["admin-kubeconfig-client.crt"], "GET", kube.Nodes, nil, 200},
		{"the administrator deletes a node", w.bundle.Files["admin-kubeconfig-client.crt"], "DELETE", kube.Nodes + "/one", nil, 200},
	} {
		code, answer := w.callWith(c.certificate, c.method, c.path, c.in)
		if code != c.code {
			t.Errorf("%s: %d %v, want %d", c.what, code, answer, c.code)
		}
		if code >= 400 && answer["kind"] != "Status" {
			t.Errorf("%s: not a Status: %v", c.what, answer)
		}
	}
}

func TestApprovalSignsWhatIsANode(t *testing.T) {
	w := newSmall(t)
	block, _ := pem.Decode(w.join("one"))
	certificate := must(x509.ParseCertificate(block.Bytes))
	if certificate.Subject.CommonName != "system:node:one" || certificate.IsCA {
		t.Fatalf("certificate = %v", certificate.Subject)
	}
	if csr := w.stored("csr-a"); csr.Spec.Username != cluster.BootstrapperName {
		t.Fatalf("username = %q", csr.Spec.Username)
	}
}

func TestApprovalOfAnotherSubjectSignsNothing(t *testing.T) {
	w := newSmall(t)
	w.call("node-bootstrapper", "POST", kube.CSRs, request(t, pkix.Name{CommonName: "system:admin", Organization: []string{"system:masters"}}))
	w.call("admin-kubeconfig-client", "PUT", kube.CSRs+"/csr-a/approval", approved())
	w.step()
	if csr := w.stored("csr-a"); csr.Status.Certificate != nil || !kube.Is(csr.Status.Conditions, "Failed", "True") {
		t.Fatalf("status = %+v", csr.Status)
	}
}

func TestNodeCannotAskInTheNameOfTheBootstrapper(t *testing.T) {
	w := newSmall(t)
	csr := request(t, nodeSubject("one"))
	csr.Spec.Username, csr.Spec.Groups = "system:admin", []string{cluster.ControlPlaneGroup}
	csr.Status = approved().Status
	w.call("node-bootstrapper", "POST", kube.CSRs, csr)
	w.step()
	if stored := w.stored("csr-a"); stored.Spec.Username != cluster.BootstrapperName || len(stored.Status.Conditions) > 0 {
		t.Fatalf("stored = %+v", stored)
	}
}

func TestBootstrapApprovesControlPlaneMachines(t *testing.T) {
	w := newSmall(t)
	w.call("control-plane-bootstrapper", "POST", kube.CSRs, request(t, nodeSubject("one")))
	w.step()
	if csr := w.stored("csr-a"); csr.Status.Certificate == nil {
		t.Fatalf("status = %+v", csr.Status)
	}
}

func TestNodeRenewsItsOwnCertificateOnly(t *testing.T) {
	w := newSmall(t)
	certificate := w.join("one")
	for name, want := range map[string]bool{"one": true, "two": false} {
		csr := request(t, nodeSubject(name))
		csr.Metadata.Name = "renew-" + name
		w.callWith(certificate, "POST", kube.CSRs, csr)
		w.step()
		if got := w.stored(csr.Metadata.Name).Status.Certificate != nil; got != want {
			t.Errorf("certificate for %s: %t", name, got)
		}
	}
}

func TestExpiredSignerSignsNothing(t *testing.T) {
	w := newSmall(t)
	signer := must(w.bundle.Pair("kubelet-signer"))
	w.loops.certifier.signer, w.loops.certifier.now = signer, fixed(time.Now().Add(2*time.Hour))
	w.call("control-plane-bootstrapper", "POST", kube.CSRs, request(t, nodeSubject("one")))
	w.step()
	csr := w.stored("csr-a")
	if csr.Status.Certificate != nil || !kube.Is(csr.Status.Conditions, "Failed", "True") {
		t.Fatalf("status = %+v", csr.Status)
	}
}

func TestSilentNodeIsNotReady(t *testing.T) {
	w := newSmall(t)
	node := kube.Node{Metadata: kube.Meta{Name: "one", Labels: map[string]string{controlPlane: ""}}, Status: kube.NodeStatus{
		Conditions: []kube.Condition{{Type: "Ready", Status: "True", LastHeartbeatTime: kube.Time(time.Now())}},
	}}
	if code, answer := w.call("admin-kubeconfig-client", "POST", kube.Nodes, node); code != http.StatusCreated {
		t.Fatal(answer)
	}
	set(t, w.server.store, bootstrapName, bootstrapObject("complete"))
	for _, c := range []struct {
		after     time.Duration
		ready     string
		available string
	}{{0, "True", "True"}, {time.Minute, "Unknown", "False"}} {
		w.loops.now = fixed(time.Now().Add(c.after))
		w.step()
		_, answer := w.call("admin-kubeconfig-client", "GET", kube.Nodes+"/one", nil)
		seen := must(fromObject[kube.Node](answer))
		if !kube.Is(seen.Status.Conditions, "Ready", c.ready) {
			t.Errorf("after %s: %+v", c.after, seen.Status.Conditions)
		}
		version, err := fromObject[kube.ClusterVersion](get(t, w.server.store, versionName))
		if err != nil || !kube.Is(version.Status.Conditions, "Available", c.available) {
			t.Errorf("after %s: %v %+v", c.after, err, version.Status.Conditions)
		}
	}
}

func TestStaleWriteIsAConflict(t *testing.T) {
	w := newSmall(t)
	_, created := w.call("admin-kubeconfig-client", "POST", kube.ConfigMaps, kube.ConfigMap{Metadata: kube.Meta{Name: "a"}})
	created["data"] = kube.Object{"x": "1"}
	if code, answer := w.call("admin-kubeconfig-client", "PUT", kube.ConfigMaps+"/a", created); code != http.StatusOK {
		t.Fatal(answer)
	}
	if code, _ := w.call("admin-kubeconfig-client", "PUT", kube.ConfigMaps+"/a", created); code != http.StatusConflict {
		t.Fatalf("code = %d", code)
	}
}
