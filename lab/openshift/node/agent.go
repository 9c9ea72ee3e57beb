package node

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"metal-ipi.test/lab/openshift/cluster"
	"metal-ipi.test/lab/openshift/kube"
)

const (
	// heartbeatEvery is how often OpenShift's kubelets look whether their status changed, and reportEvery how old a status
	// may be that did not (machine-config-operator, templates/worker/01-worker-kubelet/_base/files/kubelet.yaml,
	// nodeStatusUpdateFrequency and nodeStatusReportFrequency).
	heartbeatEvery = 10 * time.Second
	reportEvery    = 5 * time.Minute
	// leaseSeconds is how long a node's lease lasts (kubernetes, pkg/kubelet/apis/config/v1beta1/defaults.go,
	// NodeLeaseDurationSeconds). It is renewed each quarter of that, which is heartbeatEvery (pkg/kubelet/kubelet.go,
	// nodeLeaseRenewIntervalFraction).
	leaseSeconds = 40
	buryEvery    = 2 * time.Second
	// The real kubelet looks every 100 ms whether it can call its node ready (kubernetes, pkg/kubelet/kubelet.go,
	// fastStatusUpdateOnce).
	unreadyEvery = 500 * time.Millisecond
	pollEvery    = 500 * time.Millisecond
	retryEvery   = time.Second
	requestLimit = 10 * time.Second
	// forgotten is how long a request may be unknown to the API before it is made again: the server that took it
	// may have gone before it told the others.
	forgotten = 30 * time.Second
	// elsewhere is an address that no machine has (RFC 5737): the way there is the default route.
	elsewhere = "192.0.2.1:9"
)

// agent is what the kubelet is on a real node, as far as the API sees it: it obtains the node's certificate,
// registers the node and reports that it is alive.
type agent struct {
	name    string
	access  access
	network kube.Network
	root    string
	now     func() time.Time
	log     *log.Logger

	// bothFamilies is whether this node has an IPv6 address in the cluster, beside that of IPv4.
	bothFamilies bool
	taints       []kube.Taint
	annotations  map[string]string
	// unready is why this node is not ready, which others find out; nil: nothing keeps it.
	unready func(ctx context.Context, client *kube.Client) string
	// joined is called once the node is registered, with a client that is the node.
	joined func(ctx context.Context, client *kube.Client)

	// reported is when this process last wrote its node's status; zero: it has not registered it. The kubelet does so once
	// (kubernetes, pkg/kubelet/kubelet_node_status.go, registrationCompleted): whose Node object is deleted stays out until
	// it starts again.
	reported time.Time
	// lease is the node's as it was last written: nobody else writes it, so it is not asked for first.
	lease kube.Object
	// noLeases is whether the API has none; then the status is written each time.
	noLeases bool
	// noPods is whether the API keeps no pods.
	noPods bool
}

// errDeleted is what the kubelet meets whose Node object was deleted while it ran.
var errDeleted = errors.New("its Node object was deleted, and is made again only when the kubelet starts again")

// access is how a machine reaches the API, and as whom it asks for its first certificate.
type access struct {
	server string // a URL
	roots  *x509.CertPool
	pair   *tls.Certificate // of the bootstrapper; nil: it has a token
	token  string
}

// Run keeps the node a member until the context ends.
func (a *agent) Run(ctx context.Context) {
	_ = until(ctx, pollEvery, a.log, "not a member of the cluster yet, trying again", func() (bool, error) { // it ends with the context
		return false, a.member(ctx)
	})
}

func (a *agent) member(ctx context.Context) error {
	certificate, err := a.certificate(ctx)
	if err != nil {
		return err
	}
	client := a.access.client(&certificate, a.network)
	defer client.Close()
	reported := false
	for ctx.Err() == nil {
		if a.now().After(renewal(certificate.Leaf)) {
			a.log.Print("renewing the node's certificate")
			return a.request(ctx, client)
		}
		ready, err := a.report(ctx, client)
		switch {
		case kube.Code(err) == http.StatusUnauthorized:
			return errors.Join(err, os.Remove(a.path()))
		case err != nil && !errors.Is(err, errDeleted) && (!reported || kube.Code(err) != 0):
			return err
		case err != nil:
			a.log.Printf("no heartbeat: %v", err)
			sleep(ctx, retryEvery)
			continue
		case !reported:
			reported = true
			a.log.Printf("node %s is registered", a.name)
			if a.joined != nil {
				a.joined(ctx, client)
			}
		}
		pause := unreadyEvery
		if ready {
			pause = heartbeatEvery
		}
		a.buryUntil(ctx, client, a.now().Add(pause))
	}
	return ctx.Err()
}

// buryUntil buries pods until it is time for the next report.
func (a *agent) buryUntil(ctx context.Context, client *kube.Client, next time.Time) {
	for ctx.Err() == nil {
		if err := a.bury(ctx, client); err != nil {
			a.log.Printf("pods that are to go stay: %v", err)
		}
		left := next.Sub(a.now())
		if left <= 0 {
			return
		}
		sleep(ctx, min(left, buryEvery))
	}
}

// bury does what the kubelet does last for a pod that is to be deleted: nothing of it runs here, so its object goes.
// A small API server keeps no pods.
func (a *agent) bury(ctx context.Context, client *kube.Client) error {
	if a.noPods {
		return nil
	}
	pods, err := assignedTo(ctx, client, a.name)
	if kube.Code(err) == http.StatusNotFound {
		a.noPods = true
		return nil
	}
	for _, pod := range pods {
		meta := metadata(pod)
		if meta["deletionTimestamp"] == nil {
			continue
		}
		now := kube.Object{
			"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0, "preconditions": kube.Object{"uid": meta["uid"]},
		}
		path := fmt.Sprintf("/api/v1/namespaces/%v/pods/%v", meta["namespace"], meta["name"])
		err := client.Do(ctx, http.MethodDelete, path, now, nil)
		if code := kube.Code(err); err != nil && code != http.StatusNotFound && code != http.StatusConflict {
			return err
		}
	}
	return err
}

// assignedTo is the API's pods for a node.
func assignedTo(ctx context.Context, client *kube.Client, node string) ([]kube.Object, error) {
	return client.Follow(ctx, "/api/v1/pods?fieldSelector="+url.QueryEscape("spec.nodeName="+node))
}

// certificate is the node's own, from an earlier run or newly asked for.
func (a *agent) certificate(ctx context.Context) (tls.Certificate, error) {
	certificate, err := a.stored()
	if err == nil && a.now().Before(certificate.Leaf.NotAfter) {
		return certificate, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // the real kubelet asks anew, too (its certificate/bootstrap/bootstrap.go)
		a.log.Printf("the node's certificate cannot be read, asking for another one: %v", err)
	}
	client := a.access.bootstrapper(a.network)
	defer client.Close()
	if err := a.request(ctx, client); err != nil {
		return tls.Certificate{}, err
	}
	return a.stored()
}

// request asks for the certificate that the node uses as a client, waits until it is there, and keeps it.
func (a *agent) request(ctx context.Context, client *kube.Client) error {
	pair, err := a.ask(ctx, client, kube.KubeletSigner, x509.CertificateRequest{})
	if err != nil {
		return err
	}
	return a.keep(pair)
}

// ask asks for one of the node's certificates and waits until it is there; the template has its alternative names.
func (a *agent) ask(ctx context.Context, client *kube.Client, signer string, template x509.CertificateRequest) (cluster.Pair, error) {
	key, encoded, err := cluster.NewKey()
	if err != nil {
		return cluster.Pair{}, err
	}
	template.Subject = pkix.Name{CommonName: "system:node:" + a.name, Organization: []string{"system:nodes"}}
	der, err := x509.CreateCertificateRequest(rand.Reader, &template, key)
	if err != nil {
		return cluster.Pair{}, err
	}
	usages := map[string]string{kube.KubeletSigner: "client auth", kube.ServingSigner: "server auth"}
	var csr kube.CSR
	err = client.Do(ctx, http.MethodPost, kube.CSRs, kube.CSR{
		APIVersion: "certificates.k8s.io/v1", Kind: "CertificateSigningRequest", Metadata: kube.Meta{GenerateName: "csr-"},
		Spec: kube.CSRSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: signer, Usages: []string{"digital signature", usages[signer]},
		},
	}, &csr)
	if err != nil {
		return cluster.Pair{}, err
	}
	name := csr.Metadata.Name
	what := map[string]string{kube.KubeletSigner: "the node's certificate", kube.ServingSigner: "the certificate of the kubelet's port"}
	a.log.Printf("asked for %s, CSR %s; waiting for its approval", what[signer], name)
	seen := a.now()
	defer client.Leave(kube.CSRs, name)
	for ctx.Err() == nil {
		sleep(ctx, pollEvery)
		found, err := client.FollowOne(ctx, kube.CSRs, name)
		if err == nil {
			csr, err = fromObject[kube.CSR](found)
		}
		switch {
		case (gone(err) || found == nil && err == nil) && a.now().Sub(seen) > forgotten:
			return cluster.Pair{}, fmt.Errorf("CSR %s is not known any more", name)
		case found == nil || err != nil:
			continue // another API server, or the same one later
		case kube.Is(csr.Status.Conditions, "Denied", "True"):
			return cluster.Pair{}, fmt.Errorf("CSR %s was denied", name)
		case kube.Is(csr.Status.Conditions, "Failed", "True"):
			return cluster.Pair{}, fmt.Errorf("CSR %s failed: %s", name, kube.Find(csr.Status.Conditions, "Failed").Message)
		case len(csr.Status.Certificate) > 0:
			a.log.Printf("CSR %s: the certificate is there", name)
			return cluster.Pair{Cert: csr.Status.Certificate, Key: encoded}, nil
		}
		seen = a.now()
	}
	return cluster.Pair{}, ctx.Err()
}

// gone is whether the API does not know whoever asks, or what is asked for.
func gone(err error) bool {
	return kube.Code(err) == http.StatusNotFound || kube.Code(err) == http.StatusUnauthorized
}

// report shows that the node is alive, writes its status where the API has another one or an old one, and registers the
// node if the API has never known it. What others write about the node stays. It tells whether the node calls itself ready.
func (a *agent) report(ctx context.Context, client *kube.Client) (bool, error) {
	node, err := a.node()
	if err != nil {
		return false, err
	}
	if a.unready != nil {
		if why := a.unready(ctx, client); why != "" {
			ready := &node.Status.Conditions[0]
			ready.Status, ready.Reason, ready.Message = "False", "KubeletNotReady", why
		}
	}
	ready := node.Status.Conditions[0].Status == "True"
	seen, err := client.FollowOne(ctx, kube.Nodes, a.name)
	if err != nil {
		return ready, err
	}
	if !a.noLeases && a.now().Sub(a.reported) < reportEvery && tells(seen, node.Status) {
		return ready, a.renew(ctx, client)
	}
	_, err = client.UpdateFrom(ctx, kube.Nodes+"/"+a.name, "status", seen, func(current kube.Object) (kube.Object, error) {
		if current == nil && !a.reported.IsZero() {
			return nil, errDeleted
		}
		if current == nil {
			return toObject(node)
		}
		known, err := fromObject[kube.Node](current)
		if err != nil {
			return nil, err
		}
		for number := range node.Status.Conditions {
			now := &node.Status.Conditions[number]
			if before := kube.Find(known.Status.Conditions, now.Type); before != nil && before.Status == now.Status {
				now.LastTransitionTime = before.LastTransitionTime
			}
		}
		status, err := toObject(node.Status)
		return with(current, "status", status), err
	})
	if err != nil {
		return ready, err
	}
	a.reported = a.now()
	return ready, a.renew(ctx, client)
}

// tells is whether the API's node has this status already, whatever its times are.
func tells(object kube.Object, status kube.NodeStatus) bool {
	known, err := fromObject[kube.Node](object)
	if err != nil || !slices.Equal(known.Status.Addresses, status.Addresses) {
		return false
	}
	for key, value := range status.NodeInfo { // a server adds fields that are empty
		if known.Status.NodeInfo[key] != value {
			return false
		}
	}
	return slices.EqualFunc(known.Status.Conditions, status.Conditions, func(one, other kube.Condition) bool {
		return one.Type == other.Type && one.Status == other.Status && one.Reason == other.Reason && one.Message == other.Message
	})
}

// renew shows that the node is alive: its lease is what others go by while its status stays as it is.
func (a *agent) renew(ctx context.Context, client *kube.Client) error {
	if a.noLeases {
		return nil
	}
	spec := kube.Object{"holderIdentity": a.name, "leaseDurationSeconds": leaseSeconds, "renewTime": kube.MicroTime(a.now())}
	var err error
	a.lease, err = client.UpdateFrom(ctx, kube.Leases+"/"+a.name, "", a.lease, func(current kube.Object) (kube.Object, error) {
		if current == nil {
			current = kube.Object{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": kube.Object{"name": a.name}}
		}
		return with(current, "spec", spec), nil
	})
	if kube.Code(err) == http.StatusNotFound {
		a.noLeases = true
		return nil
	}
	return err
}

// node is what this machine says of itself. Its role it may not say.
func (a *agent) node() (kube.Node, error) {
	own, err := a.addresses()
	if err != nil {
		return kube.Node{}, err
	}
	addresses := []kube.NodeAddress{}
	for _, address := range own {
		addresses = append(addresses, kube.NodeAddress{Type: "InternalIP", Address: address})
	}
	now := kube.Time(a.now())
	labels := map[string]string{"kubernetes.io/hostname": a.name, "kubernetes.io/os": "linux"}
	return kube.Node{
		APIVersion: "v1", Kind: "Node", Spec: kube.NodeSpec{Taints: a.taints},
		Metadata: kube.Meta{Name: a.name, Labels: labels, Annotations: a.annotations},
		Status: kube.NodeStatus{
			Addresses: append(addresses, kube.NodeAddress{Type: "Hostname", Address: a.name}),
			Conditions: append([]kube.Condition{{
				Type: "Ready", Status: "True", Reason: "KubeletReady", Message: "the lab's stand-in for the kubelet is posting ready status",
				LastHeartbeatTime: now, LastTransitionTime: now,
			}}, withoutPressure(now)...),
			NodeInfo: map[string]string{
				"kubeletVersion": KubernetesVersion, "osImage": a.release(), "operatingSystem": "linux",
				"bootID":        strings.TrimSpace(readOr("/proc/sys/kernel/random/boot_id", "")),
				"kernelVersion": strings.TrimSpace(readOr("/proc/sys/kernel/osrelease", "unknown")),
			},
		},
	}, nil
}

// withoutPressure is what a kubelet says of a machine that has enough of everything (pkg/kubelet/nodestatus/setters.go):
// Cluster API takes a node without these conditions for one that nothing is known of.
func withoutPressure(now string) []kube.Condition {
	conditions := []kube.Condition{
		{Type: "MemoryPressure", Reason: "KubeletHasSufficientMemory", Message: "kubelet has sufficient memory available"},
		{Type: "DiskPressure", Reason: "KubeletHasNoDiskPressure", Message: "kubelet has no disk pressure"},
		{Type: "PIDPressure", Reason: "KubeletHasSufficientPID", Message: "kubelet has sufficient PID available"},
	}
	for number := range conditions {
		conditions[number].Status = "False"
		conditions[number].LastHeartbeatTime, conditions[number].LastTransitionTime = now, now
	}
	return conditions
}

// address is the one this machine reaches others from. The API's own address does not tell: a machine that announces
// it has it itself.
func (a *agent) address() (string, error) {
	if a.network.Source != "" {
		return a.network.Source, nil
	}
	connection, err := net.Dial("udp", elsewhere) // sends nothing
	if err != nil {
		return "", err
	}
	defer connection.Close()
	host, _, err := net.SplitHostPort(connection.LocalAddr().String())
	return host, err
}

// addresses is those that this node has in the cluster, the first family's first.
func (a *agent) addresses() ([]string, error) {
	address, err := a.address()
	if err != nil || !a.bothFamilies {
		return []string{address}, err
	}
	if a.network.SourceIPv6 == "" {
		return nil, errors.New("the kubelet is to have addresses of both families, and this machine has no IPv6 address")
	}
	return []string{address, a.network.SourceIPv6}, nil
}

// client is somebody with a certificate.
func (a access) client(certificate *tls.Certificate, network kube.Network) *kube.Client {
	config := &tls.Config{RootCAs: a.roots, MinVersion: tls.VersionTLS12}
	if certificate != nil {
		config.Certificates = []tls.Certificate{*certificate}
	}
	return kube.NewClient(a.server, config, network, requestLimit)
}

// bootstrapper is whoever may ask for a node's first certificate.
func (a access) bootstrapper(network kube.Network) *kube.Client {
	return a.client(a.pair, network).WithToken(a.token)
}

// stored is the certificate that was kept; an error where there is none that can be read.
func (a *agent) stored() (tls.Certificate, error) {
	data, err := os.ReadFile(a.path())
	if err != nil {
		return tls.Certificate{}, err
	}
	return cluster.Pair{Cert: data, Key: data}.TLS()
}

func (a *agent) keep(pair cluster.Pair) error {
	return replaceFile(a.path(), append(bytes.Clone(pair.Cert), pair.Key...), 0o600)
}

// path is where the real kubelet has its certificate and key: whether the file is there tells others that the node was
// a member.
func (a *agent) path() string {
	return filepath.Join(a.root, "/var/lib/kubelet/pki/kubelet-client-current.pem")
}

// replaceFile writes a file in one step: whoever reads it sees the whole of it, or what was there before. That is so after
// a power cut, too.
func replaceFile(path string, data []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// release is the operating system's name, from its os-release.
func (a *agent) release() string {
	scanner := bufio.NewScanner(strings.NewReader(readOr(filepath.Join(a.root, "/etc/os-release"), "")))
	for scanner.Scan() {
		if value, found := strings.CutPrefix(scanner.Text(), "PRETTY_NAME="); found {
			return strings.Trim(value, `"'`)
		}
	}
	return "unknown"
}

// renewal is when two thirds of a certificate's life are over.
func renewal(certificate *x509.Certificate) time.Time {
	life := certificate.NotAfter.Sub(certificate.NotBefore)
	return certificate.NotBefore.Add(life * 2 / 3)
}

func readOr(path, otherwise string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return otherwise
	}
	return string(data)
}
