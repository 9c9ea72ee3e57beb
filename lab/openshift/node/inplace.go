package node

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"metal-ipi.test/lab/openshift/cluster"
	"metal-ipi.test/lab/openshift/kube"
)

const masterIgnition = assetDirectory + "/master.ign"

// bootstrapInPlace forms the cluster on the machine that is to be all of it: it serves the API until the cluster's
// own objects are there, ends it, and leaves the Ignition of the machine's disk, which has what the API kept.
func bootstrapInPlace(ctx context.Context, bundle cluster.Bundle, network kube.Network, member *agent, logger *log.Logger) error {
	if finished(member.root, allDone) {
		logger.Print("bootstrapped already")
		return nil
	}
	api, err := newAPIServer(Bootstrap, bundle, network, member.root, logger)
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
	kept, err := os.ReadFile(filepath.Join(member.root, storeFile))
	switch {
	case err == nil:
		config.Storage.Files = append(config.Storage.Files, cluster.NewFile(storeFile, 0o600, kept))
	case !errors.Is(err, fs.ErrNotExist): // where the API server runs elsewhere, so do its objects
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
	admin, err := fixedPair(bundle, "admin-kubeconfig-client")
	if err != nil {
		return err
	}
	config.GetClientCertificate = admin.client
	for ctx.Err() == nil {
		if address, err := member.address(); err == nil {
			client := kube.NewClient("https://"+net.JoinHostPort(address, apiPort), config, member.network, requestLimit)
			var version kube.ClusterVersion
			err = client.Do(ctx, http.MethodGet, versionName, nil, &version)
			client.Close()
			if err == nil {
				return nil
			}
		}
		sleep(ctx, time.Second)
	}
	return ctx.Err()
}
