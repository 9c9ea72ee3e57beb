package node

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"metal-ipi.test/lab/openshift/cluster"
	"metal-ipi.test/lab/openshift/kube"
)

const (
	operatorsFile  = "operators.json"
	operatorsEvery = 250 * time.Millisecond
	secrets        = "/api/v1/namespaces/" + operatorSpace + "/secrets"
	tokenKind      = "kubernetes.io/service-account-token"
	tokenSeconds   = 10 * 365 * 24 * 3600
)

// operatorsConfig is what the lab's service tells: where a cluster's API is, as whom to ask it, and what the cluster is.
type operatorsConfig struct {
	Servers     []string     `json:"servers"`   // address:port of those that run
	Name        string       `json:"name"`      // in their certificates
	Authority   string       `json:"authority"` // PEM, as all that follows
	Certificate string       `json:"certificate"`
	Key         string       `json:"key"`
	Kubelets    keyPair      `json:"kubelets"` // the signer of the nodes' certificates
	Facts       releaseFacts `json:"facts"`
	Clients     string       `json:"clients"` // the authority that those who ask the API from outside trust
}

// Operators keeps a cluster of the real installer true from outside of its machines, until it is told to stop: the parts
// of kube-controller-manager, of the cluster version operator and of the machine config operator that an installation
// needs. `directory` is the cluster's in the lab's service.
func Operators(directory string) int {
	logger := log.New(os.Stderr, "", log.LstdFlags|log.LUTC)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	_ = until(ctx, operatorsEvery, logger, operatorsFile, func() (bool, error) { // it ends with the context
		return false, operate(ctx, filepath.Join(directory, operatorsFile), logger)
	})
	return 0
}

// operators is one round's work.
type operators struct {
	client *kube.Client
	config operatorsConfig
	log    *log.Logger
}

func operate(ctx context.Context, path string, logger *log.Logger) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var config operatorsConfig
	if err := json.Unmarshal(data, &config); err != nil {
		return fmt.Errorf("%s: %w", operatorsFile, err)
	}
	if len(config.Servers) == 0 {
		return nil
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(config.Authority))
	own, err := cluster.Pair{Cert: []byte(config.Certificate), Key: []byte(config.Key)}.TLS()
	if err != nil {
		return err
	}
	settings := &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{own}, ServerName: config.Name, MinVersion: tls.VersionTLS12}
	client := kube.NewClient("https://"+config.Servers[0], settings, kube.Network{}, requestLimit)
	defer client.Close()
	it := operators{client: client, config: config, log: logger}
	for ctx.Err() == nil {
		if err := it.step(ctx); err != nil {
			return err
		}
		sleep(ctx, operatorsEvery)
		if current, err := os.ReadFile(path); err != nil || string(current) != string(data) {
			return err
		}
	}
	return nil
}

func (o operators) step(ctx context.Context) error {
	requests, err := o.client.Follow(ctx, kube.CSRs)
	if err != nil {
		return err
	}
	nodes, err := o.client.Follow(ctx, kube.Nodes)
	if err != nil {
		return err
	}
	renewed, err := renewals(ctx, o.client)
	if err != nil {
		return err
	}
	signer := certifier{
		objects: o.client, now: time.Now, log: o.log,
		signer: cluster.Pair{Cert: []byte(o.config.Kubelets.Certificate), Key: []byte(o.config.Kubelets.Key)},
	}
	loops := controller{
		objects: o.client, now: time.Now, log: o.log,
		facts: cluster.Facts{Release: o.config.Facts.Release, ID: o.config.Facts.ClusterID, ControlPlane: o.config.Facts.ControlPlane, Schedulable: o.config.Facts.Schedulable},
	}
	return errors.Join(
		signer.step(ctx, requests), loops.keepNodes(ctx, nodes, renewed), o.fillTokens(ctx), loops.spread(ctx, nodes),
		o.reconcileVersion(ctx, loops, controlPlaneNodes(nodes, renewed, time.Now())),
	)
}

// reconcileVersion keeps the cluster's version true from when the bootstrap machine has made it.
func (o operators) reconcileVersion(ctx context.Context, loops controller, nodes []kube.Node) error {
	if version, err := follow(ctx, o.client, versionName); err != nil || version == nil {
		return err
	}
	return loops.reconcileVersion(ctx, nodes)
}

// fillTokens writes tokens of service accounts into the Secrets that are there for them.
func (o operators) fillTokens(ctx context.Context) error {
	found, err := o.client.Follow(ctx, secrets+"?fieldSelector=type%3D"+strings.ReplaceAll(tokenKind, "/", "%2F"))
	if err != nil {
		return err
	}
	var problems []error
	for _, secret := range found {
		data, _ := secret["data"].(kube.Object)
		annotations, _ := metadata(secret)["annotations"].(kube.Object)
		account, _ := annotations["kubernetes.io/service-account.name"].(string)
		if data["token"] != nil || account == "" {
			continue
		}
		token, err := accountToken(ctx, o.client, operatorSpace, account, kube.Object{"expirationSeconds": tokenSeconds})
		if err == nil {
			files := map[string][]byte{"token": token, "ca.crt": []byte(o.config.Clients), "namespace": []byte(operatorSpace)}
			err = o.client.Merge(ctx, secrets+"/"+fmt.Sprint(metadata(secret)["name"]), kube.Object{"data": files})
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}
