package node

import (
	"crypto/tls"
	"crypto/x509/pkix"
	"sync"
	"time"

	"metal-ipi.test/lab/openshift/cluster"
)

// minter makes a server's own certificate, and a new one when half of its life is over: a cluster that lives longer
// than a day must not stop. On OpenShift operators do that.
type minter struct {
	signer  cluster.Pair
	leaf    cluster.Leaf
	mu      sync.Mutex
	current tls.Certificate
	until   time.Time
}

func peerLeaf() cluster.Leaf {
	return cluster.Leaf{Subject: pkix.Name{CommonName: cluster.PeerName}, Validity: servingPeriod}
}

func newMinter(bundle cluster.Bundle, signer string, leaf cluster.Leaf) (*minter, error) {
	pair, err := bundle.Pair(signer)
	if err != nil {
		return nil, err
	}
	result := &minter{signer: pair, leaf: leaf}
	_, err = result.get()
	return result, err
}

func (m *minter) get() (*tls.Certificate, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if now.After(m.until) {
		pair, err := m.signer.Issue(m.leaf, now)
		if err != nil {
			return nil, err
		}
		if m.current, err = pair.TLS(); err != nil {
			return nil, err
		}
		m.until = now.Add(m.leaf.Validity / 2)
	}
	current := m.current
	return &current, nil
}

func (m *minter) server(*tls.ClientHelloInfo) (*tls.Certificate, error)        { return m.get() }
func (m *minter) client(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return m.get() }
