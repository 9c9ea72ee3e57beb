package node

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"time"

	"metal-ipi.test/lab/openshift/cluster"
	"metal-ipi.test/lab/openshift/kube"
)

const (
	// controllerName is who the loops of this machine are to the API, and the lab's service, too.
	controllerName = "system:lab-openshift:controller"
	pulseEvery     = time.Second
	startLimit     = 2 * time.Minute
	dialLimit      = 5 * time.Second
)

// native is a kube-apiserver that the lab's service runs for this machine, outside of it: emulated processors are too
// slow for a program of that size. The machine hands over what it needs, forwards its own port there, and so decides
// from when on and until when it is reached. TLS and all that is said over it ends at the kube-apiserver.
type native struct {
	place       cluster.Native
	network     kube.Network
	hello       hello
	certificate *minter // what the API server shows
	own         *minter // what our loops show it
	client      *tls.Config
	controller  *controller
	log         *log.Logger
}

// hello is what the service is told first: all that an API server of this cluster needs, as PEM.
type hello struct {
	Clients     string  `json:"clients"`        // whose certificates are accepted
	Tokens      string  `json:"serviceAccount"` // the key of service accounts; knowing it is what makes one part of this cluster
	Controller  keyPair `json:"controller"`     // as whom the service may ask the API
	Certificate keyPair `json:"certificate"`
}

type keyPair struct {
	Certificate string `json:"certificate"`
	Key         string `json:"key"`
}

func newNative(role Role, bundle cluster.Bundle, network kube.Network, logger *log.Logger) (*native, error) {
	certificate, err := serving(role, bundle)
	if err != nil {
		return nil, err
	}
	leaf := cluster.Leaf{
		Subject: pkix.Name{CommonName: controllerName, Organization: []string{masters}}, Validity: servingPeriod,
	}
	own, err := newMinter(bundle, "kube-control-plane-signer", leaf)
	if err != nil {
		return nil, err
	}
	client, err := clientConfig(bundle)
	if err != nil {
		return nil, err
	}
	client.GetClientCertificate = own.client
	loops, err := newController(role, bundle, network, logger)
	if err != nil {
		return nil, err
	}
	loops.mark = true
	return &native{
		place: *bundle.Facts.Kubernetes, network: network, certificate: certificate, own: own, client: client,
		controller: loops, log: logger,
		hello: hello{
			Clients: string(bundle.Files["client-ca-bundle.crt"]), Tokens: string(bundle.Files[cluster.ServiceAccountKey]),
		},
	}, nil
}

// Run has an API server and serves it, again and again until the context ends.
func (n *native) Run(ctx context.Context) error {
	last := ""
	for ctx.Err() == nil {
		err := n.session(ctx)
		var cannot *net.OpError
		if errors.As(err, &cannot) && cannot.Op == "listen" {
			return err
		}
		if text := fmt.Sprint(err); text != last && ctx.Err() == nil {
			last = text
			n.log.Printf("there is no API server here, trying again: %s", text)
		}
		sleep(ctx, retryEvery)
	}
	return nil
}

// session is the life of one API server. It ends when the service's connection does.
func (n *native) session(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	service, err := n.connect(ctx)
	if err != nil {
		return err
	}
	defer service.Close()
	lines := bufio.NewReader(service)
	address, err := n.start(service, lines)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(n.network.Source, apiPort))
	if err != nil {
		return err
	}
	n.log.Printf("serving on %s, by a kube-apiserver of the lab's at %s", listener.Addr(), address)
	stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
	defer stop()
	defer listener.Close()
	go n.forward(ctx, listener, address)
	go func() {
		_, err := lines.ReadString('\n') // it says nothing more until it ends
		cancel(fmt.Errorf("the lab's service has ended it: %w", err))
	}()
	client := kube.NewClient("https://"+address, n.client, n.network, requestLimit)
	defer client.Close()
	n.controller.use(remote{client})
	controlled := make(chan struct{})
	go func() {
		n.controller.Run(ctx)
		close(controlled)
	}()
	err = n.pulse(ctx, service)
	cancel(err)
	<-controlled
	return context.Cause(ctx)
}

func (n *native) connect(ctx context.Context) (net.Conn, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(n.place.Authority)) {
		return nil, fmt.Errorf("cluster.json: kubernetes.authority is no certificate")
	}
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	plain, err := n.network.Dial(ctx, "tcp", n.place.Server)
	if err != nil {
		return nil, err
	}
	secure := tls.Client(plain, &tls.Config{RootCAs: roots, ServerName: n.place.Name, MinVersion: tls.VersionTLS12})
	if err := secure.HandshakeContext(ctx); err != nil {
		plain.Close()
		return nil, err
	}
	return secure, nil
}

// start hands over what the API server needs, and waits until it is ready; the answer is where it is.
func (n *native) start(service net.Conn, lines *bufio.Reader) (string, error) {
	told := n.hello
	var err error
	if told.Certificate, err = encoded(n.certificate); err != nil {
		return "", err
	}
	if told.Controller, err = encoded(n.own); err != nil {
		return "", err
	}
	_ = service.SetDeadline(time.Now().Add(startLimit)) // a connection that is closed fails below
	if err := json.NewEncoder(service).Encode(told); err != nil {
		return "", err
	}
	line, err := lines.ReadBytes('\n')
	if err != nil {
		return "", fmt.Errorf("waiting for the API server: %w", err)
	}
	var answer struct {
		Address string `json:"address"`
		Error   string `json:"error"`
	}
	if err := json.Unmarshal(line, &answer); err != nil {
		return "", fmt.Errorf("the lab's service: %w", err)
	}
	if answer.Error != "" || answer.Address == "" {
		return "", fmt.Errorf("the lab's service cannot start it: %s", answer.Error)
	}
	return answer.Address, service.SetDeadline(time.Time{})
}

// pulse tells the service that this machine lives, and of certificates that replace older ones.
func (n *native) pulse(ctx context.Context, service net.Conn) error {
	pairs := map[string]*minter{"certificate": n.certificate, "controller": n.own}
	last := map[string]keyPair{}
	for ctx.Err() == nil {
		told := map[string]keyPair{}
		for name, from := range pairs {
			current, err := encoded(from)
			if err != nil {
				return err
			}
			if current != last[name] {
				told[name], last[name] = current, current
			}
		}
		_ = service.SetWriteDeadline(time.Now().Add(dialLimit)) // a connection that is closed fails below
		if err := json.NewEncoder(service).Encode(told); err != nil {
			return err
		}
		sleep(ctx, pulseEvery)
	}
	return nil
}

func encoded(from *minter) (keyPair, error) {
	pair, err := from.pair()
	return keyPair{Certificate: string(pair.Cert), Key: string(pair.Key)}, err
}

// forward carries connections to the API server until the context ends.
func (n *native) forward(ctx context.Context, listener net.Listener, address string) {
	for {
		connection, err := listener.Accept()
		if err != nil {
			if ctx.Err() == nil {
				n.log.Printf("accepting connections: %v", err)
				sleep(ctx, retryEvery)
				continue
			}
			return
		}
		go n.carry(ctx, connection.(*net.TCPConn), address)
	}
}

func (n *native) carry(ctx context.Context, near *net.TCPConn, address string) {
	defer near.Close()
	other, err := n.network.Dial(ctx, "tcp", address)
	if err != nil {
		return // whoever called sees the connection closed
	}
	far := other.(*net.TCPConn)
	defer far.Close()
	stop := context.AfterFunc(ctx, func() {
		near.Close()
		far.Close()
	})
	defer stop()
	go func() {
		_, _ = io.Copy(far, near) // either side may break off
		_ = far.CloseWrite()
	}()
	_, _ = io.Copy(near, far)
}
