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
	signer cluster.Pair
	leaf   cluster.Leaf // nothing in it: the certificate stays the one that it is

	mu      sync.Mutex
	current cluster.Pair
	parsed  tls.Certificate
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
	_, err = result.pair()
	return result, err
}

// fixedPair is a certificate that somebody else made.
func fixedPair(bundle cluster.Bundle, name string) (*minter, error) {
	pair, err := bundle.Pair(name)
	if err != nil {
		return nil, err
	}
	parsed, err := pair.TLS()
	return &minter{current: pair, parsed: parsed}, err
}

// pair is the certificate and key of now.
func (m *minter) pair() (cluster.Pair, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if m.leaf.Validity == 0 || now.Before(m.until) {
		return m.current, nil
	}
	fresh, err := m.signer.Issue(m.leaf, now)
	if err != nil {
		return fresh, err
	}
	if m.parsed, err = fresh.TLS(); err != nil {
		return fresh, err
	}
	m.current, m.until = fresh, now.Add(m.leaf.Validity/2)
	return fresh, nil
}

func (m *minter) get() (*tls.Certificate, error) {
	if _, err := m.pair(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	current := m.parsed
	return &current, nil
}

func (m *minter) server(*tls.ClientHelloInfo) (*tls.Certificate, error)        { return m.get() }
func (m *minter) client(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return m.get() }
