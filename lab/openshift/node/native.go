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
	apiEvery       = 200 * time.Millisecond // asking for an API server costs little
	startLimit     = 2 * time.Minute
	dialLimit      = 5 * time.Second
)

// native is an API server that the lab's service runs for this machine, outside of it: emulated processors are too slow
// for a program of kube-apiserver's size. The machine tells who it is, forwards its own port there, and so decides from when on
// and until when it is reached. TLS and all that is said over it ends at the API server.
type native struct {
	place   cluster.Native
	network kube.Network
	log     *log.Logger
	// hello is what the service is told first.
	hello func() (any, error)
	// keep is given the administrator's kubeconfig for the machine's own API server before that can be reached; nil for a
	// machine that has one.
	keep func(kubeconfig string) error
	// prove answers the service's question who this is; nil for a machine that has told all it knows.
	prove func(nonce []byte) (any, error)
	// during runs beside an API server that is ready, until its context ends; nil: nothing does.
	during func(ctx context.Context, address string)
}

// keyPair is a certificate and its key, PEM.
type keyPair struct {
	Certificate string `json:"certificate"`
	Key         string `json:"key"`
}

// standInHello is what a machine of the stand-in for openshift-install tells: all that an API server of its cluster
// needs, as PEM.
type standInHello struct {
	Clients     string  `json:"clients"`        // whose certificates are accepted
	Tokens      string  `json:"serviceAccount"` // the key of service accounts; knowing it is what makes one part of this cluster
	Controller  keyPair `json:"controller"`     // as whom the service may ask the API
	Certificate keyPair `json:"certificate"`
	// Services is where Services have addresses; the real installer's machines tell it among their facts.
	Services []string `json:"serviceNetwork,omitempty"`
}

// newNative is the API server of a machine of the stand-in, with the loops of its cluster beside it.
func newNative(role Role, bundle cluster.Bundle, host machine) (*native, error) {
	if bundle.Facts.Kubernetes == nil {
		return nil, errors.New("cluster.json names no service that runs API servers: it was made outside of the lab, or by an older one; take the cluster down")
	}
	told := standInHello{
		Clients: string(bundle.Files["client-ca-bundle.crt"]), Tokens: string(bundle.Files[cluster.ServiceAccountKey]),
		Services: bundle.Facts.Services,
	}
	shown, err := bundle.Pair("kube-apiserver-lb-server")
	if role != Bootstrap {
		shown, err = bundle.Issue("kube-apiserver-lb-signer", bundle.ServerLeaf(cluster.Decade))
	}
	if err != nil {
		return nil, err
	}
	own, err := bundle.Issue("kube-control-plane-signer", cluster.Leaf{
		Subject: pkix.Name{CommonName: controllerName, Organization: []string{masters}}, Validity: cluster.Decade,
	})
	if err != nil {
		return nil, err
	}
	told.Certificate, told.Controller = encoded(shown), encoded(own)
	client, err := clientConfig(bundle)
	if err != nil {
		return nil, err
	}
	certificate, err := own.TLS()
	if err != nil {
		return nil, err
	}
	client.Certificates = []tls.Certificate{certificate}
	loops, err := newController(role, bundle, host)
	if err != nil {
		return nil, err
	}
	return &native{
		place: *bundle.Facts.Kubernetes, network: host.network, log: host.log,
		hello: func() (any, error) { return told, nil },
		during: func(ctx context.Context, address string) {
			client := kube.NewClient("https://"+address, client, host.network, requestLimit)
			defer client.Close()
			loops.use(client)
			loops.Run(ctx)
		},
	}, nil
}

// Run has an API server and serves it, again and again until the context ends.
func (n *native) Run(ctx context.Context) error {
	var taken error
	_ = until(ctx, apiEvery, n.log, "there is no API server here, trying again", func() (bool, error) { // it ends with the context
		err := n.session(ctx)
		var cannot *net.OpError
		if errors.As(err, &cannot) && cannot.Op == "listen" {
			taken = err
		}
		return taken != nil, err
	})
	return taken
}

// runOncePortIsFree is Run where another service of this machine may have the port.
func (n *native) runOncePortIsFree(ctx context.Context) {
	_ = until(ctx, podRetry, n.log, "port "+apiPort+" is not free yet", func() (bool, error) { // it ends with the context
		return false, n.Run(ctx)
	})
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
	breakOff := context.AfterFunc(ctx, func() { _ = service.Close() }) // it may take minutes to start
	address, err := n.start(service, lines)
	if breakOff(); err != nil {
		return err
	}
	for _, own := range n.network.Sources() {
		listener, err := net.Listen("tcp", net.JoinHostPort(own, apiPort))
		if err != nil {
			return err
		}
		n.log.Printf("serving on %s, by an API server of the lab's at %s", listener.Addr(), address)
		stop := context.AfterFunc(ctx, func() { _ = listener.Close() })
		defer stop()
		defer listener.Close()
		go relayFrom(ctx, listener, func(ctx context.Context) (net.Conn, error) {
			return n.network.Dial(ctx, "tcp", address)
		}, func(err error) { n.log.Printf("accepting connections: %v", err) })
	}
	go func() {
		_, err := lines.ReadString('\n') // it says nothing more until it ends
		cancel(fmt.Errorf("the lab's service has ended it: %w", err))
	}()
	over := make(chan struct{})
	go func() {
		if n.during != nil {
			n.during(ctx, address)
		}
		close(over)
	}()
	err = n.pulse(ctx, service)
	cancel(err)
	<-over
	return context.Cause(ctx)
}

func (n *native) connect(ctx context.Context) (net.Conn, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(n.place.Authority)) {
		return nil, fmt.Errorf("the authority of the lab's service is no certificate")
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

// start tells who this machine is, and waits until its API server is ready; the answer is where it is.
func (n *native) start(service net.Conn, lines *bufio.Reader) (string, error) {
	_ = service.SetDeadline(time.Now().Add(startLimit)) // a connection that is closed fails below
	told, err := n.hello()
	if err == nil {
		err = json.NewEncoder(service).Encode(told)
	}
	if err != nil {
		return "", err
	}
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return "", fmt.Errorf("waiting for the API server: %w", err)
		}
		var answer struct {
			Address    string `json:"address"`
			Kubeconfig string `json:"kubeconfig"`
			Error      string `json:"error"`
			Challenge  []byte `json:"challenge"`
		}
		if err := json.Unmarshal(line, &answer); err != nil {
			return "", fmt.Errorf("the lab's service: %w", err)
		}
		switch {
		case answer.Error != "":
			return "", fmt.Errorf("the lab's service cannot start it: %s", answer.Error)
		case answer.Address != "":
			if n.keep != nil {
				if err := n.keep(answer.Kubeconfig); err != nil {
					return "", err
				}
			}
			return answer.Address, service.SetDeadline(time.Time{})
		case answer.Challenge != nil && n.prove != nil:
			if told, err = n.prove(answer.Challenge); err == nil {
				err = json.NewEncoder(service).Encode(told)
			}
			if err != nil {
				return "", err
			}
		default:
			return "", fmt.Errorf("the lab's service says what is not understood: %s", line)
		}
	}
}

// pulse tells the service every second that this machine lives.
func (n *native) pulse(ctx context.Context, service net.Conn) error {
	for ctx.Err() == nil {
		_ = service.SetWriteDeadline(time.Now().Add(dialLimit)) // a connection that is closed fails below
		if _, err := service.Write([]byte("{}\n")); err != nil {
			return err
		}
		sleep(ctx, pulseEvery)
	}
	return nil
}

func encoded(pair cluster.Pair) keyPair {
	return keyPair{Certificate: string(pair.Cert), Key: string(pair.Key)}
}
