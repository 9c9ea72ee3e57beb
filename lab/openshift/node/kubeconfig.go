package node

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"os"

	"gopkg.in/yaml.v3"

	"metal-ipi.test/lab/openshift/cluster"
)

// kubeconfig is the part of one that has everything in it, as all of OpenShift's that concern us have.
type kubeconfig struct {
	Clusters []struct {
		Cluster struct {
			Server    string `yaml:"server"`
			Authority string `yaml:"certificate-authority-data"`
		} `yaml:"cluster"`
	} `yaml:"clusters"`
	Users []struct {
		User struct {
			Certificate string `yaml:"client-certificate-data"`
			Key         string `yaml:"client-key-data"`
			Token       string `yaml:"token"`
		} `yaml:"user"`
	} `yaml:"users"`
}

// readKubeconfig is who a kubeconfig lets in, and where. The pair is nil for one with a token.
func readKubeconfig(path string) (way access, authority []byte, pair *cluster.Pair, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return way, nil, nil, err
	}
	var config kubeconfig
	if err := yaml.Unmarshal(data, &config); err != nil {
		return way, nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(config.Clusters) != 1 || len(config.Users) != 1 {
		return way, nil, nil, fmt.Errorf("%s: not a kubeconfig of one cluster and one user", path)
	}
	target, who := config.Clusters[0].Cluster, config.Users[0].User
	decoded := [3][]byte{}
	for i, text := range []string{target.Authority, who.Certificate, who.Key} {
		if decoded[i], err = base64.StdEncoding.DecodeString(text); err != nil {
			return way, nil, nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	way = access{server: target.Server, roots: x509.NewCertPool(), token: who.Token}
	if !way.roots.AppendCertsFromPEM(decoded[0]) {
		return way, nil, nil, fmt.Errorf("%s: its authority is no certificate", path)
	}
	if who.Token != "" {
		return way, decoded[0], nil, nil
	}
	if len(decoded[1]) == 0 {
		return way, nil, nil, errors.New(path + ": it has neither a certificate nor a token")
	}
	pair = &cluster.Pair{Cert: decoded[1], Key: decoded[2]}
	var certificate tls.Certificate
	if certificate, err = pair.TLS(); err != nil {
		return way, nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	way.pair = &certificate
	return way, decoded[0], pair, nil
}
