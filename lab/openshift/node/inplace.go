package node

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"log"
	"net"
	"os"
	"path/filepath"
	"time"

	"metal-ipi.test/lab/openshift/cluster"
	"metal-ipi.test/lab/openshift/kube"
)

const masterIgnition = assetDirectory + "/master.ign"

// bootstrapInPlace forms the cluster on the machine that is to be all of it: it serves the API until the cluster's
// own objects are there, ends it, and leaves the Ignition of the machine's disk.
func bootstrapInPlace(ctx context.Context, bundle cluster.Bundle, network kube.Network, member *agent, logger *log.Logger) error {
	if finished(member.root, allDone) {
		logger.Print("bootstrapped already")
		return nil
	}
	api, err := newNative(Bootstrap, bundle, network, member.root, logger)
	if err != nil {
		return err
	}
	serving, cancel := context.WithCancel(ctx)
	defer cancel()
	formed := make(chan error, 1)
	go func() {
		formed <- hasVersion(serving, bundle, member)
		cancel()
	}()
	all := &services{role: Bootstrap, bundle: bundle, network: network, api: api, log: logger}
	if err := all.run(serving, member); err != nil {
		return err
	}
	if err := <-formed; err != nil {
		return err
	}
	logger.Print("the cluster's objects are there; its API ends here, and goes on from the disk")
	if err := finish(member.root, clusterFormed); err != nil {
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
	if err := os.WriteFile(filepath.Join(member.root, masterIgnition), data, 0o600); err != nil {
		return err
	}
	return finish(member.root, allDone)
}

// hasVersion returns once this machine's own API server has the cluster's version.
func hasVersion(ctx context.Context, bundle cluster.Bundle, member *agent) error {
	config, err := clientConfig(bundle)
	if err != nil {
		return err
	}
	admin, err := bundle.TLS("admin-kubeconfig-client")
	if err != nil {
		return err
	}
	config.Certificates = []tls.Certificate{admin}
	return until(ctx, time.Second, member.log, "waiting for the cluster's version", func() (bool, error) {
		address, err := member.address()
		if err != nil {
			return false, err
		}
		client := kube.NewClient("https://"+net.JoinHostPort(address, apiPort), config, member.network, requestLimit)
		defer client.Close()
		version, err := client.Get(ctx, versionName)
		return version != nil && err == nil, err
	})
}
