// Package cluster holds what the installer and the node services share: the cluster's facts, its certificates
// and the Ignition configs made of them.
package cluster

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// backdate is how long before now a certificate begins: machines whose clock is a little behind must accept it.
const backdate = time.Hour

// Pair is a certificate with its key, as PEM.
type Pair struct {
	Cert []byte
	Key  []byte
}

// Leaf says what a certificate is for.
type Leaf struct {
	Subject  pkix.Name
	Names    []string // DNS names; a server certificate when there are any
	IPs      []net.IP
	Validity time.Duration
}

// NewAuthority makes a self-signed signer that ends `validity` from now.
func NewAuthority(name string, now time.Time, validity time.Duration) (Pair, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name, OrganizationalUnit: []string{"openshift"}},
		NotBefore:             now.Add(-backdate),
		NotAfter:              now.Add(validity),
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IsCA:                  true,
		BasicConstraintsValid: true,
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	return sign(template, template, &key.PublicKey, key, key)
}

// Issue makes a certificate with a new key, signed by the authority. It never outlives its signer.
func (p Pair) Issue(leaf Leaf, now time.Time) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, err
	}
	return p.issue(leaf, now, &key.PublicKey, key)
}

// Certify signs somebody else's public key; the result is the certificate alone.
func (p Pair) Certify(leaf Leaf, now time.Time, public any) ([]byte, error) {
	pair, err := p.issue(leaf, now, public, nil)
	return pair.Cert, err
}

func (p Pair) issue(leaf Leaf, now time.Time, public any, key *ecdsa.PrivateKey) (Pair, error) {
	signer, err := p.TLS()
	if err != nil {
		return Pair{}, err
	}
	usage := x509.ExtKeyUsageClientAuth
	if len(leaf.Names) > 0 {
		usage = x509.ExtKeyUsageServerAuth
	}
	end := now.Add(leaf.Validity)
	if end.After(signer.Leaf.NotAfter) {
		end = signer.Leaf.NotAfter
	}
	template := &x509.Certificate{
		Subject:               leaf.Subject,
		NotBefore:             now.Add(-backdate),
		NotAfter:              end,
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{usage},
		DNSNames:              leaf.Names,
		IPAddresses:           leaf.IPs,
		BasicConstraintsValid: true,
	}
	private, ok := signer.PrivateKey.(crypto.Signer)
	if !ok {
		return Pair{}, fmt.Errorf("the key of signer %q cannot sign", signer.Leaf.Subject.CommonName)
	}
	return sign(template, signer.Leaf, public, private, key)
}

// TLS parses the pair; Leaf is always set.
func (p Pair) TLS() (tls.Certificate, error) {
	certificate, err := tls.X509KeyPair(p.Cert, p.Key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("certificate pair: %w", err)
	}
	if certificate.Leaf == nil {
		certificate.Leaf, err = x509.ParseCertificate(certificate.Certificate[0])
	}
	return certificate, err
}

// NewKey makes a private key and its PEM.
func NewKey() (*ecdsa.PrivateKey, []byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	encoded, err := encodeKey(key)
	return key, encoded, err
}

// sign makes a certificate of a public key, and tells its private key where it is known.
func sign(template, parent *x509.Certificate, public any, signer crypto.Signer, key *ecdsa.PrivateKey) (Pair, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return Pair{}, err
	}
	template.SerialNumber = serial
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, signer)
	if err != nil {
		return Pair{}, err
	}
	pair := Pair{Cert: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
	if key != nil {
		pair.Key, err = encodeKey(key)
	}
	return pair, err
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

// UUID is a new random one.
func UUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
