package node

import (
	"context"
	"crypto/tls"
	"log"
	"time"

	"metal-ipi.test/lab/openshift/cluster"
	"metal-ipi.test/lab/openshift/kube"
)

// small is the API server of the lab's own that machines run where there is no real one to be had.
type small struct {
	network    kube.Network
	server     *server
	gossip     *gossip
	controller *controller
	config     *tls.Config
	log        *log.Logger
}

func newSmall(role Role, bundle cluster.Bundle, network kube.Network, root string, store *Store, logger *log.Logger) (*small, error) {
	clients, err := bundle.Pool("client-ca-bundle.crt")
	if err != nil {
		return nil, err
	}
	certificate, err := serving(role, bundle)
	if err != nil {
		return nil, err
	}
	own, err := newMinter(bundle, "kube-control-plane-signer", peerLeaf())
	if err != nil {
		return nil, err
	}
	peers, err := clientConfig(bundle)
	if err != nil {
		return nil, err
	}
	peers.GetClientCertificate = own.client
	loops, err := newController(role, bundle, network, root, logger)
	if err != nil {
		return nil, err
	}
	instance := uuid()
	all := &gossip{
		store: store, instance: instance, name: bundle.Facts.Internal(), network: network, log: logger, config: peers,
		first: role == Bootstrap || bundle.Facts.InPlace, peers: map[string]*peer{}, heard: map[string]time.Time{},
	}
	loops.use(stored{store})
	if loops.bootstrap != nil {
		loops.bootstrap.complete = func(ctx context.Context, addresses []string, status kube.Object) error {
			entry := store.Propose(bootstrapName, with(store.Get(bootstrapName), "data", status["data"]))
			err := all.Everywhere(ctx, addresses, entry)
			if err == nil {
				store.Merge([]Entry{entry})
			}
			return err
		}
	}
	return &small{
		network: network, gossip: all, controller: loops, log: logger,
		config: &tls.Config{ClientAuth: tls.RequestClientCert, GetCertificate: certificate.server, MinVersion: tls.VersionTLS12},
		server: &server{
			store: store, clients: clients, instance: instance, ready: all.Ready, heard: all.Heard, now: time.Now, log: logger,
		},
	}, nil
}

// Run serves, and keeps this server and its peers the same.
func (s *small) Run(ctx context.Context) error {
	done := make(chan struct{}, 2)
	for _, task := range []func(context.Context){s.gossip.Run, s.controller.Run} {
		go func() {
			task(ctx)
			done <- struct{}{}
		}()
	}
	err := serve(ctx, s.network, apiPort, s.server.Handler(), s.config, s.log)
	if err == nil {
		<-done
		<-done
	}
	return err
}
