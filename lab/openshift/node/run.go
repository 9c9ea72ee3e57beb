// Package node is the services that the stand-in's Ignition configs start: API server, machine config server and
// the part of the kubelet that the API sees.
package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"metal-ipi.test/lab/openshift/cluster"
	"metal-ipi.test/lab/openshift/kube"
)

// Role is what a machine is in the cluster.
type Role string

const (
	Bootstrap    Role = "bootstrap"
	ControlPlane Role = "control-plane"
	Worker       Role = "worker"
)

const (
	apiPort       = "6443"
	machinePort   = "22623"
	controlEvery  = 500 * time.Millisecond
	servingPeriod = 24 * time.Hour
)

// Main runs a role's services until it is told to stop; it returns the exit code.
func Main(role Role) int {
	flags := log.LstdFlags | log.LUTC
	if os.Getenv("JOURNAL_STREAM") != "" {
		flags = 0 // the journal keeps the time
	}
	logger := log.New(os.Stderr, "", flags)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, role, logger); err != nil {
		logger.Printf("%s: %v", role, err)
		return 1
	}
	return 0
}

func run(ctx context.Context, role Role, logger *log.Logger) error {
	root := os.Getenv("LAB_ROOT")
	network, err := kube.NetworkFromEnv()
	if err != nil {
		return err
	}
	bundle, err := cluster.LoadBundle(filepath.Join(root, cluster.Directory))
	if err != nil {
		return err
	}
	name, err := hostname(root)
	if err != nil {
		return err
	}
	logger.Printf("%s %s of cluster %s, release %s (lab stand-in)", role, name, bundle.Facts.Domain(), bundle.Facts.Release)
	member := &agent{name: name, role: role, bundle: bundle, network: network, root: root, now: time.Now, log: logger}
	if role == Worker {
		member.Run(ctx)
		return nil
	}
	store := NewStore(time.Now)
	if err := OpenStore(filepath.Join(root, storeFile), store); err != nil {
		return err
	}
	services, err := newServices(role, bundle, network, store, logger)
	if err != nil {
		return err
	}
	return services.run(ctx, member)
}

// services is what runs on a machine with an API server.
type services struct {
	role        Role
	bundle      cluster.Bundle
	network     kube.Network
	api         *server
	gossip      *gossip
	bootstrap   *bootstrapper
	certificate *minter
	log         *log.Logger
}

func newServices(role Role, bundle cluster.Bundle, network kube.Network, store *Store, logger *log.Logger) (*services, error) {
	roots, err := bundle.Pool("kube-apiserver-lb-signer.crt")
	if err != nil {
		return nil, err
	}
	clients, err := bundle.Pool("client-ca-bundle.crt")
	if err != nil {
		return nil, err
	}
	signer := "kube-csr-signer"
	if role == Bootstrap {
		signer = "kubelet-signer" // it ends after a day, which is why an old bootstrap.ign makes no cluster
	}
	nodes, err := bundle.Pair(signer)
	if err != nil {
		return nil, err
	}
	peers, err := newMinter(bundle, "kube-control-plane-signer", peerLeaf())
	if err != nil {
		return nil, err
	}
	instance := uuid()
	all := &gossip{
		store: store, instance: instance, name: bundle.Facts.Internal(), network: network, log: logger,
		first: role == Bootstrap, peers: map[string]*peer{}, heard: map[string]time.Time{},
		config: &tls.Config{RootCAs: roots, GetClientCertificate: peers.client, MinVersion: tls.VersionTLS12},
	}
	result := &services{
		role: role, bundle: bundle, network: network, gossip: all, log: logger,
		api: &server{
			store: store, clients: clients, signer: nodes, instance: instance, ready: all.Ready, heard: all.Heard,
			now: time.Now, log: logger,
		},
	}
	if role == Bootstrap {
		result.bootstrap = &bootstrapper{
			store: store, gossip: all, facts: bundle.Facts, network: network, log: logger,
			config: &tls.Config{RootCAs: roots, ServerName: bundle.Facts.Internal(), MinVersion: tls.VersionTLS12},
		}
		return result, nil
	}
	result.certificate, err = newMinter(bundle, "kube-apiserver-lb-signer", bundle.ServerLeaf(servingPeriod))
	return result, err
}

func (s *services) run(ctx context.Context, member *agent) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	api := &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
	if s.certificate != nil {
		api.GetCertificate = s.certificate.server
	} else if err := use(api, s.bundle, "kube-apiserver-lb-server"); err != nil {
		return err
	}
	machine := &tls.Config{MinVersion: tls.VersionTLS12}
	if err := use(machine, s.bundle, "machine-config-server"); err != nil {
		return err
	}
	configs, err := machineConfigServer(s.bundle, s.log)
	if err != nil {
		return err
	}
	failed := make(chan error, 2)
	var group sync.WaitGroup
	for _, item := range []struct {
		port    string
		handler http.Handler
		config  *tls.Config
	}{{apiPort, s.api.Handler(), api}, {machinePort, configs, machine}} {
		listener, err := net.Listen("tcp", net.JoinHostPort(s.network.Source, item.port))
		if err != nil {
			return err
		}
		web := &http.Server{
			Handler: item.handler, TLSConfig: item.config, ReadHeaderTimeout: requestLimit, IdleTimeout: 2 * time.Minute,
			ErrorLog: log.New(quiet{s.log}, "", 0),
		}
		s.log.Printf("serving on %s", listener.Addr())
		group.Add(1)
		go func() {
			defer group.Done()
			if err := web.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
				failed <- err
				cancel()
			}
		}()
		go func() {
			<-ctx.Done()
			_ = web.Close() // the process ends
		}()
	}
	for _, task := range s.tasks(member) {
		group.Add(1)
		go func() {
			defer group.Done()
			task(ctx)
		}()
	}
	group.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

func (s *services) tasks(member *agent) []func(context.Context) {
	static := &pods{root: member.root, log: s.log}
	tasks := []func(context.Context){s.gossip.Run, s.control, static.Run}
	if s.role == ControlPlane {
		tasks = append(tasks, member.Run)
	}
	return tasks
}

// control is the loop that keeps the cluster's own objects true.
func (s *services) control(ctx context.Context) {
	last := ""
	for ctx.Err() == nil {
		var err error
		if s.bootstrap != nil {
			s.api.approvePending()
			err = s.bootstrap.step(ctx)
		}
		err = errors.Join(err, reconcileVersion(s.api.store, s.bundle.Facts))
		if text := fmt.Sprint(err); err != nil && text != last {
			last = text
			s.log.Print(text)
		}
		sleep(ctx, controlEvery)
	}
}

// hostname is the node's name. /etc/hostname comes first: simulated machines share a kernel.
func hostname(root string) (string, error) {
	if name := strings.TrimSpace(readOr(filepath.Join(root, "/etc/hostname"), "")); name != "" {
		return name, nil
	}
	return os.Hostname()
}

func use(config *tls.Config, bundle cluster.Bundle, name string) error {
	pair, err := bundle.Pair(name)
	if err != nil {
		return err
	}
	certificate, err := pair.TLS()
	config.Certificates = []tls.Certificate{certificate}
	return err
}

func sleep(ctx context.Context, duration time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(duration):
	}
}

// quiet leaves out of the log the connections that only tried whether the port answers.
type quiet struct{ log *log.Logger }

func (q quiet) Write(line []byte) (int, error) {
	if text := string(line); !strings.Contains(text, "EOF") && !strings.Contains(text, "connection reset") {
		q.log.Print(strings.TrimSpace(text))
	}
	return len(line), nil
}
