package node

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"metal-ipi.test/lab/openshift/cluster"
)

const masterIgnition = assetDirectory + "/master.ign"

// bootstrapInPlace forms the cluster on the machine that is to be all of it: it serves the API until the cluster's
// own objects are there, ends it, and leaves the Ignition of the machine's disk.
func bootstrapInPlace(ctx context.Context, bundle cluster.Bundle, host machine, member *agent, runner *pods) error {
	if finished(host.root, allDone) {
		host.log.Print("bootstrapped already")
		return nil
	}
	serving, cancel := context.WithCancel(ctx)
	defer cancel()
	formed := make(chan error, 1)
	go func() {
		formed <- hasVersion(serving, bundle, host)
		cancel()
	}()
	if err := serveCluster(serving, Bootstrap, bundle, host, member, runner); err != nil {
		return err
	}
	if err := <-formed; err != nil {
		return err
	}
	host.log.Print("the cluster's objects are there; its API ends here, and goes on from the disk")
	if err := finish(host.root, clusterFormed); err != nil {
		return err
	}
	config, err := bundle.PoolConfig("master")
	if err != nil {
		return err
	}
	data, err := json.Marshal(config)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(host.root, masterIgnition), data, 0o600); err != nil {
		return err
	}
	return finish(host.root, allDone)
}

// hasVersion returns once this machine's own API server has the cluster's version.
func hasVersion(ctx context.Context, bundle cluster.Bundle, host machine) error {
	roots, err := bundle.Pool("kube-apiserver-lb-signer.crt")
	if err != nil {
		return err
	}
	admin, err := bundle.TLS("admin-kubeconfig-client")
	if err != nil {
		return err
	}
	client := host.ownAPI(access{roots: roots, pair: &admin})
	defer client.Close()
	return until(ctx, time.Second, host.log, "waiting for the cluster's version", func() (bool, error) {
		version, err := client.Get(ctx, versionName)
		return version != nil && err == nil, err
	})
}
