package node

import (
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"metal-ipi.test/lab/openshift/cluster"
	"metal-ipi.test/lab/openshift/kube"
)

// nodeCertificate is how long a node's certificate lives; nodes renew theirs in time.
const nodeCertificate = 24 * time.Hour

// admitCSR fills in what the server says about a request: who made it. A node's renewal of its own certificate is
// approved at once, as Kubernetes does.
func (s *server) admitCSR(object kube.Object, who user) (kube.Object, error) {
	csr, err := fromObject[kube.CSR](object)
	if err != nil {
		return nil, fail(http.StatusBadRequest, "BadRequest", "not a CertificateSigningRequest: %v", err)
	}
	request, err := parseRequest(csr.Spec.Request)
	if err != nil {
		return nil, fail(http.StatusUnprocessableEntity, "Invalid", "spec.request: %v", err)
	}
	csr.Spec.Username, csr.Spec.Groups, csr.Status = who.name, who.groups, kube.CSRStatus{}
	if _, isNode := who.node(); isNode && request.Subject.CommonName == who.name {
		s.settle(&csr, kube.Condition{Type: "Approved", Status: "True", Reason: "AutoApproved", Message: "a node renews its own certificate"})
	}
	return toObject(csr)
}

// approve serves PUT .../approval: it takes over the conditions, and signs what became approved.
func (s *server) approve(item resource, who user, request *http.Request) (int, any, error) {
	object, err := body(request)
	if err != nil {
		return 0, nil, err
	}
	wanted, err := fromObject[kube.CSR](object)
	if err != nil {
		return 0, nil, fail(http.StatusBadRequest, "BadRequest", "not a CertificateSigningRequest: %v", err)
	}
	updated, err := s.store.Update(item.path+"/"+request.PathValue("name"), func(current kube.Object) (kube.Object, error) {
		if current == nil {
			return nil, notFound(item, request)
		}
		if err := checkVersion(item, object, current); err != nil {
			return nil, err
		}
		csr, err := fromObject[kube.CSR](current)
		if err != nil {
			return nil, err
		}
		for _, condition := range wanted.Status.Conditions {
			if condition.Type != "Approved" && condition.Type != "Denied" {
				return nil, fail(http.StatusUnprocessableEntity, "Invalid", "status.conditions: type %q", condition.Type)
			}
			if kube.Find(csr.Status.Conditions, condition.Type) == nil {
				s.settle(&csr, condition)
				s.log.Printf("CSR %s of %s: %s by %s", csr.Metadata.Name, subject(csr), condition.Type, who.name)
			}
		}
		return toObject(csr)
	})
	return http.StatusOK, updated, err
}

// approvePending approves what control plane machines ask for; the bootstrap machine's own duty.
func (s *server) approvePending() {
	for _, object := range s.store.List(kube.CSRs) {
		csr, err := fromObject[kube.CSR](object)
		if err != nil || len(csr.Status.Conditions) > 0 || !slices.Contains(csr.Spec.Groups, cluster.ControlPlaneGroup) {
			continue
		}
		s.settle(&csr, kube.Condition{
			Type: "Approved", Status: "True", Reason: "BootstrapApproved", Message: "a control plane machine during bootstrap",
		})
		_, err = s.store.Update(kube.CSRs+"/"+csr.Metadata.Name, func(kube.Object) (kube.Object, error) { return toObject(csr) })
		if err != nil {
			s.log.Printf("CSR %s: %v", csr.Metadata.Name, err)
			continue
		}
		s.log.Printf("CSR %s of %s: approved, a control plane machine", csr.Metadata.Name, subject(csr))
	}
}

// settle adds a condition, and the certificate if the condition approves.
func (s *server) settle(csr *kube.CSR, condition kube.Condition) {
	now := s.now()
	condition.LastUpdateTime, condition.LastTransitionTime = kube.Time(now), kube.Time(now)
	csr.Status.Conditions = append(csr.Status.Conditions, condition)
	if condition.Type != "Approved" || csr.Status.Certificate != nil || csr.Spec.SignerName != kube.KubeletSigner {
		return
	}
	certificate, err := s.signNode(csr.Spec.Request, now)
	if err != nil {
		csr.Status.Conditions = append(csr.Status.Conditions, kube.Condition{
			Type: "Failed", Status: "True", Reason: "SignerValidationFailure", Message: err.Error(),
			LastUpdateTime: kube.Time(now), LastTransitionTime: kube.Time(now),
		})
		return
	}
	csr.Status.Certificate = certificate
}

// signNode signs a node's client certificate; it refuses any other subject.
func (s *server) signNode(data []byte, now time.Time) ([]byte, error) {
	request, err := parseRequest(data)
	if err != nil {
		return nil, err
	}
	name := request.Subject.CommonName
	if !strings.HasPrefix(name, "system:node:") || !slices.Equal(request.Subject.Organization, []string{"system:nodes"}) {
		return nil, fmt.Errorf("subject %q is not that of a node", request.Subject)
	}
	if len(request.DNSNames)+len(request.IPAddresses)+len(request.EmailAddresses)+len(request.URIs) > 0 {
		return nil, fmt.Errorf("a node's client certificate has no alternative names")
	}
	if _, ok := request.PublicKey.(*ecdsa.PublicKey); !ok {
		return nil, fmt.Errorf("only ECDSA keys are supported")
	}
	if signer, err := s.signer.TLS(); err != nil {
		return nil, err
	} else if now.After(signer.Leaf.NotAfter) {
		return nil, fmt.Errorf("the signer %q expired at %s", signer.Leaf.Subject.CommonName, kube.Time(signer.Leaf.NotAfter))
	}
	return s.signer.Certify(cluster.Leaf{Subject: request.Subject, Validity: nodeCertificate}, now, request.PublicKey)
}

func parseRequest(data []byte) (*x509.CertificateRequest, error) {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return nil, fmt.Errorf("not a PEM certificate request")
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, err
	}
	return request, request.CheckSignature()
}

// subject is the common name asked for, for the log.
func subject(csr kube.CSR) string {
	request, err := parseRequest(csr.Spec.Request)
	if err != nil {
		return "(unreadable)"
	}
	return request.Subject.CommonName
}
