package node

import (
	"context"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log"
	"net/http"
	"slices"
	"strings"
	"time"

	"metal-ipi.test/lab/openshift/cluster"
	"metal-ipi.test/lab/openshift/kube"
)

// nodeCertificate is how long a node's certificate lives; nodes renew theirs in time.
const nodeCertificate = 24 * time.Hour

// admitCSR fills in what the server says about a request: who made it.
func (s *server) admitCSR(object kube.Object, who user) (kube.Object, error) {
	csr, err := fromObject[kube.CSR](object)
	if err != nil {
		return nil, fail(http.StatusBadRequest, "BadRequest", "not a CertificateSigningRequest: %v", err)
	}
	if _, err := parseRequest(csr.Spec.Request); err != nil {
		return nil, fail(http.StatusUnprocessableEntity, "Invalid", "spec.request: %v", err)
	}
	csr.Spec.Username, csr.Spec.Groups, csr.Status = who.name, who.groups, kube.CSRStatus{}
	return toObject(csr)
}

// certifier decides about requests for nodes' certificates as far as that is the cluster's own business, and signs
// what was approved: kube-controller-manager's part.
type certifier struct {
	objects   *kube.Client
	signer    cluster.Pair
	bootstrap bool // control plane machines are approved
	now       func() time.Time
	log       *log.Logger
}

// step does what there is to do about these requests.
func (c *certifier) step(ctx context.Context, requests []kube.Object) error {
	var problems []error
	for _, object := range requests {
		if status, _ := object["status"].(kube.Object); status["certificate"] != nil {
			continue // they stay for hours
		}
		csr, err := fromObject[kube.CSR](object)
		if err == nil && (csr.Spec.SignerName == kube.KubeletSigner || csr.Spec.SignerName == kube.ServingSigner) {
			err = c.settle(ctx, csr)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("CSR %s: %w", csr.Metadata.Name, err))
		}
	}
	return errors.Join(problems...)
}

func (c *certifier) settle(ctx context.Context, csr kube.CSR) error {
	key := kube.CSRs + "/" + csr.Metadata.Name
	if reason, why := c.approval(csr); len(csr.Status.Conditions) == 0 && reason != "" {
		csr.Status.Conditions = []kube.Condition{condition("Approved", reason, why, c.now())}
		c.log.Printf("CSR %s of %s: approved, %s", csr.Metadata.Name, subject(csr), why)
		if err := c.update(ctx, key, "approval", csr); err != nil {
			return err
		}
	}
	conditions := csr.Status.Conditions
	if !kube.Is(conditions, "Approved", "True") || kube.Is(conditions, "Failed", "True") || csr.Status.Certificate != nil {
		return nil
	}
	certificate, err := signNode(c.signer, csr.Spec, c.now())
	if err != nil {
		csr.Status.Conditions = append(conditions, condition("Failed", "SignerValidationFailure", err.Error(), c.now()))
	}
	csr.Status.Certificate = certificate
	return c.update(ctx, key, "status", csr)
}

// update writes a request's status, unless another server did so first.
func (c *certifier) update(ctx context.Context, key, part string, csr kube.CSR) error {
	return c.objects.Update(ctx, key, part, func(current kube.Object) (kube.Object, error) {
		present, err := fromObject[kube.CSR](current)
		if err != nil {
			return nil, err
		}
		if current == nil || len(present.Status.Conditions) >= len(csr.Status.Conditions) && (part == "approval" || present.Status.Certificate != nil) {
			return nil, kube.ErrUnchanged
		}
		changed := withStatus(current, "conditions", csr.Status.Conditions)
		if csr.Status.Certificate != nil {
			changed = withStatus(changed, "certificate", csr.Status.Certificate)
		}
		return changed, nil
	})
}

// approval is why the cluster approves a request by itself; nothing when somebody else has to decide.
func (c *certifier) approval(csr kube.CSR) (reason, why string) {
	if csr.Spec.SignerName != kube.KubeletSigner {
		return "", ""
	}
	switch {
	case c.bootstrap && csr.Spec.Username == cluster.BootstrapperName && slices.Contains(csr.Spec.Groups, cluster.ControlPlaneGroup):
		return "BootstrapApproved", "a control plane machine during bootstrap"
	case slices.Contains(csr.Spec.Groups, "system:nodes") && csr.Spec.Username == subject(csr):
		return "AutoApproved", "a node renews its own certificate"
	}
	return "", ""
}

// signNode signs a node's certificate; it refuses any other subject.
func signNode(authority cluster.Pair, told kube.CSRSpec, now time.Time) ([]byte, error) {
	request, err := parseRequest(told.Request)
	if err != nil {
		return nil, err
	}
	name := request.Subject.CommonName
	if !strings.HasPrefix(name, "system:node:") || !slices.Equal(request.Subject.Organization, []string{"system:nodes"}) {
		return nil, fmt.Errorf("subject %q is not that of a node", request.Subject)
	}
	serves := told.SignerName == kube.ServingSigner
	if names := len(request.DNSNames) + len(request.IPAddresses); serves == (names == 0) || len(request.EmailAddresses)+len(request.URIs) > 0 {
		return nil, fmt.Errorf("a node's certificate as a client has no alternative names, the one as a server has its own")
	}
	if _, ok := request.PublicKey.(*ecdsa.PublicKey); !ok {
		return nil, fmt.Errorf("only ECDSA keys are supported")
	}
	if signer, err := authority.TLS(); err != nil {
		return nil, err
	} else if now.After(signer.Leaf.NotAfter) {
		return nil, fmt.Errorf("the signer %q expired at %s", signer.Leaf.Subject.CommonName, kube.Time(signer.Leaf.NotAfter))
	}
	leaf := cluster.Leaf{
		Subject: request.Subject, Names: request.DNSNames, IPs: request.IPAddresses, Validity: nodeCertificate,
	}
	return authority.Certify(leaf, now, request.PublicKey)
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
