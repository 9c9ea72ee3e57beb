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
	// BootstrapInPlace is a bootstrap machine that becomes the control plane, from its disk.
	BootstrapInPlace Role = "bootstrap-in-place"
)

// apiPort is a variable for the sake of tests.
var apiPort = "6443"

const (
	machinePort = "22623"
)

// Main runs a role's services until it is told to stop; it returns the exit code.
func Main(role Role) int {
	return supervised(string(role), func(ctx context.Context, host machine) error { return run(ctx, role, host) })
}

// machine is what every service needs to know of the machine that it runs on.
type machine struct {
	name    string
	root    string
	network kube.Network
	log     *log.Logger
}

// supervised runs a service until it is told to stop; it returns the exit code.
func supervised(name string, run func(ctx context.Context, host machine) error) int {
	flags := log.LstdFlags | log.LUTC
	if os.Getenv("JOURNAL_STREAM") != "" {
		flags = 0 // the journal keeps the time
	}
	host := machine{root: os.Getenv("LAB_ROOT"), log: log.New(os.Stderr, "", flags)}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	var err error
	if host.network, err = kube.NetworkFromEnv(); err == nil {
		host.name, err = hostname(host.root)
	}
	if err == nil {
		err = run(ctx, host)
	}
	if err != nil && ctx.Err() == nil {
		host.log.Printf("%s: %v", name, err)
		return 1
	}
	return 0
}

func run(ctx context.Context, role Role, host machine) error {
	bundle, err := cluster.LoadBundle(filepath.Join(host.root, cluster.Directory))
	if err != nil {
		return err
	}
	host.log.Printf("%s %s of cluster %s, release %s (lab stand-in)", role, host.name, bundle.Facts.Domain(), bundle.Facts.Release)
	way, err := standInAccess(role, bundle)
	if err != nil {
		return err
	}
	labels := []string{controlPlane, master}
	member := &agent{name: host.name, access: way, network: host.network, root: host.root, now: time.Now, log: host.log, bothFamilies: bundle.Facts.DualStack()}
	switch {
	case role == Worker:
		labels = []string{worker}
	case bundle.Facts.Schedulable:
		labels = append(labels, worker)
	default:
		member.taints = []kube.Taint{{Key: master, Effect: "NoSchedule"}}
	}
	member.annotations = map[string]string{nodeLabels: strings.Join(labels, ",")}
	its := &assigned{host: host, agent: member, authority: bundle.Files["kube-apiserver-lb-signer.crt"], every: 2 * time.Second}
	member.joined = its.joined
	runner := &pods{root: host.root, addresses: host.network.Sources(), wire: wireFromEnv(), log: host.log, assigned: its.assignedPods}
	switch role {
	case Worker:
		var group sync.WaitGroup
		group.Go(func() { runner.Run(ctx) })
		member.Run(ctx)
		group.Wait()
		return nil
	case BootstrapInPlace:
		return bootstrapInPlace(ctx, bundle, host, member, runner)
	}
	return serveCluster(ctx, role, bundle, host, member, runner)
}

// standInAccess is how the machines of the stand-in for openshift-install reach the API.
func standInAccess(role Role, bundle cluster.Bundle) (access, error) {
	roots, err := bundle.Pool("kube-apiserver-lb-signer.crt")
	if err != nil {
		return access{}, err
	}
	name := "control-plane-bootstrapper"
	if role == Worker {
		name = "node-bootstrapper"
	}
	certificate, err := bundle.TLS(name)
	server := "https://" + net.JoinHostPort(bundle.Facts.Internal(), apiPort)
	return access{server: server, roots: roots, pair: &certificate}, err
}

// newController makes the loops of a machine's API server; where its objects are is still to be said.
func newController(role Role, bundle cluster.Bundle, host machine) (*controller, error) {
	signer := "kube-csr-signer"
	if role == Bootstrap {
		signer = "kubelet-signer" // it ends after a day, which is why an old bootstrap.ign makes no cluster
	}
	nodes, err := bundle.Pair(signer)
	if err != nil {
		return nil, err
	}
	// Where there is no bootstrap machine, the only node itself admits itself and says that bootstrapping is complete.
	bootstraps := role == Bootstrap || bundle.Facts.InPlace
	result := &controller{
		facts: bundle.Facts, now: time.Now, log: host.log, every: controlEvery,
		certifier: certifier{signer: nodes, bootstrap: bootstraps, now: time.Now, log: host.log},
	}
	if bootstraps {
		config, err := clientConfig(bundle)
		if err != nil {
			return nil, err
		}
		result.every = bootstrapEvery
		result.bootstrap = &bootstrapper{facts: bundle.Facts, network: host.network, root: host.root, log: host.log, config: config}
	}
	return result, nil
}

// clientConfig is how API servers are called: under the name that is in their certificates.
func clientConfig(bundle cluster.Bundle) (*tls.Config, error) {
	roots, err := bundle.Pool("kube-apiserver-lb-signer.crt")
	return &tls.Config{RootCAs: roots, ServerName: bundle.Facts.Internal(), MinVersion: tls.VersionTLS12}, err
}

// serveCluster runs what a machine with an API server serves, until the context ends or something of it fails.
func serveCluster(ctx context.Context, role Role, bundle cluster.Bundle, host machine, member *agent, runner *pods) error {
	api, err := newNative(role, bundle, host)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	certificate, err := bundle.TLS("machine-config-server")
	if err != nil {
		return err
	}
	configs, err := machineConfigServer(bundle, host.log)
	if err != nil {
		return err
	}
	settings := &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	tasks := []func(context.Context) error{
		api.Run,
		func(ctx context.Context) error {
			return serve(ctx, net.JoinHostPort(host.network.Source, machinePort), configs, settings, host.log)
		},
		func(ctx context.Context) error { runner.Run(ctx); return nil },
	}
	if role == ControlPlane {
		tasks = append(tasks, func(ctx context.Context) error { member.Run(ctx); return nil })
	}
	failed := make(chan error, len(tasks))
	for _, task := range tasks {
		go func() {
			err := task(ctx)
			if err != nil {
				cancel()
			}
			failed <- err
		}()
	}
	var problems []error
	for range tasks {
		problems = append(problems, <-failed)
	}
	return errors.Join(problems...)
}

// serve serves one address until the context ends.
func serve(ctx context.Context, address string, handler http.Handler, config *tls.Config, logger *log.Logger) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	web := &http.Server{
		Handler: handler, TLSConfig: config, ReadHeaderTimeout: requestLimit, IdleTimeout: 2 * time.Minute,
		ErrorLog: log.New(quiet{logger}, "", 0),
	}
	logger.Printf("serving on %s", listener.Addr())
	stop := context.AfterFunc(ctx, func() { _ = web.Close() }) // the process ends
	defer stop()
	if err := web.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// hostname is the node's name. /etc/hostname comes first: simulated machines share a kernel.
func hostname(root string) (string, error) {
	if name := strings.TrimSpace(readOr(filepath.Join(root, "/etc/hostname"), "")); name != "" {
		return name, nil
	}
	return os.Hostname()
}

// until tries again and again, until it is done or the context ends; a problem is logged when it is another than before.
func until(ctx context.Context, every time.Duration, logger *log.Logger, what string, try func() (done bool, err error)) error {
	last := ""
	for ctx.Err() == nil {
		done, err := try()
		if done {
			return nil
		}
		text := fmt.Sprint(err)
		if err != nil && text != last && ctx.Err() == nil {
			logger.Printf("%s: %s", what, text)
		}
		last = text
		sleep(ctx, every)
	}
	return ctx.Err()
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
