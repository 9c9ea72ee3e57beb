package cluster

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Directory is where Ignition puts the cluster's facts and certificates on a node.
const Directory = "/etc/lab-openshift"

// BootstrapperName is the identity a machine asks for its node certificate with, the same as on OpenShift.
const BootstrapperName = "system:serviceaccount:openshift-machine-config-operator:node-bootstrapper"

// ControlPlaneGroup marks bootstrap credentials handed to control plane machines: the bootstrap machine
// approves their requests by itself. Those of workers wait for somebody who knows the machines.
const ControlPlaneGroup = "system:lab-openshift:control-plane-bootstrappers"

const (
	// Decade is longer than a cluster of the lab lives.
	Decade = 10 * 365 * 24 * time.Hour
	// ShortLived is how long the certificates live that OpenShift makes for the time of the installation only.
	ShortLived = 24 * time.Hour
)

// Facts is what a node knows about its cluster, the content of cluster.json.
type Facts struct {
	Name         string   `json:"name"`
	ID           string   `json:"clusterID"`
	BaseDomain   string   `json:"baseDomain"`
	ControlPlane int      `json:"controlPlaneReplicas"`
	Schedulable  bool     `json:"mastersSchedulable"`
	SSHKey       string   `json:"sshKey,omitempty"`
	Release      string   `json:"release"`
	Kubernetes   *Native  `json:"kubernetes,omitempty"` // nil: it was made outside of a lab
	InPlace      bool     `json:"bootstrapInPlace,omitempty"`
	Services     []string `json:"serviceNetwork"` // one network, or one of each family
}

// DualStack says whether nodes have addresses of both families.
func (f Facts) DualStack() bool { return len(f.Services) == 2 }

// Native is the lab's service that runs a machine's API server for it.
type Native struct {
	Server    string `json:"server"`    // address:port
	Name      string `json:"name"`      // in its certificate
	Authority string `json:"authority"` // who signed its certificate, PEM
}

// ServiceAccountKey is the file of the key that signs the tokens of service accounts. All API servers share it, and
// nobody else has it.
const ServiceAccountKey = "service-account.key"

// Domain is the cluster's domain: name and base domain.
func (f Facts) Domain() string { return f.Name + "." + f.BaseDomain }

// API and Internal are the two names of the API; nodes use the internal one.
func (f Facts) API() string      { return "api." + f.Domain() }
func (f Facts) Internal() string { return "api-int." + f.Domain() }

// Bundle is a cluster's facts with those of its certificates that the holder needs, by file name.
type Bundle struct {
	Facts Facts
	Files map[string][]byte
}

// NewBundle makes every certificate of a new cluster. Those for the time of the installation, the kubelet signer
// and the bootstrap machine's API certificate, end after `short`, as the real ones do after a day.
func NewBundle(facts Facts, now time.Time, short time.Duration) (Bundle, error) {
	bundle := Bundle{Facts: facts, Files: map[string][]byte{}}
	var clients bytes.Buffer
	for _, name := range []string{
		"root-ca", "kube-apiserver-lb-signer", "admin-kubeconfig-signer", "kubelet-bootstrap-kubeconfig-signer",
		"kube-control-plane-signer", "kube-csr-signer", "kubelet-signer",
	} {
		validity := Decade
		if name == "kubelet-signer" {
			validity = short
		}
		pair, err := NewAuthority(name, now, validity)
		if err != nil {
			return Bundle{}, err
		}
		bundle.put(name, pair)
		if name != "root-ca" && name != "kube-apiserver-lb-signer" { // these two sign servers
			clients.Write(pair.Cert)
		}
	}
	bundle.Files["client-ca-bundle.crt"] = clients.Bytes()
	_, tokens, err := NewKey()
	if err != nil {
		return Bundle{}, err
	}
	bundle.Files[ServiceAccountKey] = tokens

	bootstrapperGroups := []string{"system:serviceaccounts:openshift-machine-config-operator", "system:serviceaccounts"}
	leaves := []struct {
		name, signer string
		leaf         Leaf
	}{
		{"kube-apiserver-lb-server", "kube-apiserver-lb-signer", bundle.ServerLeaf(short)},
		{"machine-config-server", "root-ca", Leaf{
			Subject: pkix.Name{CommonName: "system:machine-config-server"}, Names: []string{facts.Internal()}, Validity: Decade,
		}},
		{"admin-kubeconfig-client", "admin-kubeconfig-signer", Leaf{
			Subject: pkix.Name{CommonName: "system:admin", Organization: []string{"system:masters"}}, Validity: Decade,
		}},
		{"node-bootstrapper", "kubelet-bootstrap-kubeconfig-signer", Leaf{
			Subject: pkix.Name{CommonName: BootstrapperName, Organization: bootstrapperGroups}, Validity: Decade,
		}},
		{"control-plane-bootstrapper", "kubelet-bootstrap-kubeconfig-signer", Leaf{
			Subject: pkix.Name{
				CommonName: BootstrapperName, Organization: append([]string{ControlPlaneGroup}, bootstrapperGroups...),
			},
			Validity: Decade,
		}},
	}
	for _, item := range leaves {
		pair, err := bundle.Issue(item.signer, item.leaf)
		if err != nil {
			return Bundle{}, err
		}
		bundle.put(item.name, pair)
	}
	return bundle, nil
}

// ServerLeaf describes an API server's certificate.
func (b Bundle) ServerLeaf(validity time.Duration) Leaf {
	return Leaf{
		Subject:  pkix.Name{CommonName: "system:kube-apiserver", Organization: []string{"kube-master"}},
		Names:    []string{b.Facts.API(), b.Facts.Internal(), "localhost"},
		IPs:      []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		Validity: validity,
	}
}

// Issue makes a certificate by one of the bundle's signers, for now.
func (b Bundle) Issue(signer string, leaf Leaf) (Pair, error) {
	pair, err := b.Pair(signer)
	if err != nil {
		return Pair{}, err
	}
	return pair.Issue(leaf, time.Now())
}

// Pair is the certificate and key of that name.
func (b Bundle) Pair(name string) (Pair, error) {
	cert, key := b.Files[name+".crt"], b.Files[name+".key"]
	if cert == nil || key == nil {
		return Pair{}, fmt.Errorf("this node has no certificate and key %q", name)
	}
	return Pair{Cert: cert, Key: key}, nil
}

// TLS is the certificate of that name, for a connection.
func (b Bundle) TLS(name string) (tls.Certificate, error) {
	pair, err := b.Pair(name)
	if err != nil {
		return tls.Certificate{}, err
	}
	return pair.TLS()
}

// Pool is the certificates of one file, to trust.
func (b Bundle) Pool(file string) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(b.Files[file]) {
		return nil, fmt.Errorf("this node has no certificate authority %q", file)
	}
	return pool, nil
}

// LoadBundle reads a bundle from a node's file system, where Ignition wrote it.
func LoadBundle(directory string) (Bundle, error) {
	bundle := Bundle{Files: map[string][]byte{}}
	data, err := os.ReadFile(filepath.Join(directory, "cluster.json"))
	if err != nil {
		return Bundle{}, err
	}
	if err := json.Unmarshal(data, &bundle.Facts); err != nil {
		return Bundle{}, fmt.Errorf("cluster.json: %w", err)
	}
	entries, err := os.ReadDir(filepath.Join(directory, "tls"))
	if err != nil {
		return Bundle{}, err
	}
	for _, entry := range entries {
		if name := entry.Name(); strings.HasSuffix(name, ".crt") || strings.HasSuffix(name, ".key") {
			if bundle.Files[name], err = os.ReadFile(filepath.Join(directory, "tls", name)); err != nil {
				return Bundle{}, err
			}
		}
	}
	return bundle, nil
}

func (b Bundle) put(name string, pair Pair) {
	b.Files[name+".crt"], b.Files[name+".key"] = pair.Cert, pair.Key
}
