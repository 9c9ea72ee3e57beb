package node

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"strings"
	"time"

	"metal-ipi.test/lab/openshift/kube"
)

// Ports of a router are variables for the sake of tests.
var httpsPort, httpPort, routerHealthPort = "443", "80", "1936"

const (
	routerHealthPath  = "/healthz/ready"
	routerCertificate = 2 * 365 * 24 * time.Hour // as the ingress operator makes it
)

// serveIngress takes the place of OpenShift's default router on a node that takes users' pods, once it is known as one:
// it answers every name as a router answers one that no route has. There are no routes in the lab.
func (a *assigned) serveIngress(ctx context.Context) {
	const what = "no router here yet, trying again"
	_ = until(ctx, retryEvery, a.host.log, what, func() (bool, error) { // it ends with the context
		a.mu.Lock()
		client := a.member // the node's certificate changes meanwhile
		a.mu.Unlock()
		node, err := client.FollowOne(ctx, kube.Nodes, a.host.name)
		if err != nil || node == nil {
			return false, err
		}
		labels, _ := metadata(node)["labels"].(kube.Object)
		if _, found := labels[worker]; !found {
			return false, nil
		}
		_, domain, _ := strings.Cut(a.host.name, ".")
		return false, serveUsers(ctx, a.host.network.Source, "*.apps."+domain, a.host.log)
	})
}

// serveUsers serves users until the context ends or a port cannot be had.
func serveUsers(ctx context.Context, address, names string, logger *log.Logger) error {
	certificate, err := routerTLS(names)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	unknown := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, "Application is not available: the lab's router has no routes\n") // the client may be gone
	})
	healthy := http.NewServeMux()
	for _, path := range []string{"/healthz", routerHealthPath} {
		healthy.HandleFunc("GET "+path, func(http.ResponseWriter, *http.Request) {})
	}
	ended := make(chan error, 3)
	for _, each := range []struct {
		port    string
		handler http.Handler
	}{{httpsPort, unknown}, {httpPort, unknown}, {routerHealthPort, healthy}} {
		listener, err := net.Listen("tcp", net.JoinHostPort(address, each.port))
		if err != nil {
			return err
		}
		if each.port == httpsPort {
			listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12})
		}
		web := &http.Server{Handler: each.handler, ReadHeaderTimeout: requestLimit, ErrorLog: log.New(quiet{logger}, "", 0)}
		context.AfterFunc(ctx, func() { _ = web.Close() })
		go func() { ended <- web.Serve(listener) }()
	}
	logger.Printf("a router serves %s", names)
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return ctx.Err()
}

// routerTLS is a certificate for all names that routers serve; nobody has to trust who signed it.
func routerTLS(names string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	now := time.Now()
	template := x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: names}, DNSNames: []string{names},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(routerCertificate),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	signed, err := x509.CreateCertificate(rand.Reader, &template, &template, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{signed}, PrivateKey: key}, err
}
