package node

import (
	"crypto/x509"
	"net/http"
	"slices"
	"strings"

	"metal-ipi.test/lab/openshift/cluster"
)

const masters = "system:masters"

// user is who a request comes from, as its client certificate says.
type user struct {
	name   string
	groups []string
}

// authenticate tells the user of a request; false if it brings a certificate that is not of this cluster.
func (s *server) authenticate(request *http.Request) (user, bool) {
	if len(request.TLS.PeerCertificates) == 0 {
		return user{name: "system:anonymous", groups: []string{"system:unauthenticated"}}, true
	}
	certificate := request.TLS.PeerCertificates[0]
	_, err := certificate.Verify(x509.VerifyOptions{
		Roots: s.clients, CurrentTime: s.now(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		s.log.Printf("rejected the client certificate of %s: %v", request.RemoteAddr, err)
		return user{}, false
	}
	groups := append(slices.Clone(certificate.Subject.Organization), "system:authenticated")
	return user{name: certificate.Subject.CommonName, groups: groups}, true
}

// may says whether a user is allowed to do something: the administrator all, a machine that wants to join what it
// needs for that, a node what concerns itself.
func (u user) may(verb, resource, name string) bool {
	node, isNode := u.node()
	switch {
	case slices.Contains(u.groups, masters):
		return true
	case resource == "certificatesigningrequests" && (u.name == cluster.BootstrapperName || isNode):
		return verb == "create" || verb == "get" || verb == "list"
	case isNode && resource == "nodes":
		return verb == "get" || verb == "list" || verb == "create" || name == node && verb == "update/status"
	}
	return false
}

// node is the name of the node that a user is.
func (u user) node() (string, bool) {
	name, found := strings.CutPrefix(u.name, "system:node:")
	return name, found && slices.Contains(u.groups, "system:nodes")
}
