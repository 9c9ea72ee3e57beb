package node

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"metal-ipi.test/lab/openshift/cluster"
)

// authority is one for tests.
func authority(t *testing.T, name string) cluster.Pair {
	t.Helper()
	return must(cluster.NewAuthority(name, time.Now(), time.Hour))
}

// kubeconfigText is a kubeconfig for a server, with these fields of its user.
func kubeconfigText(server string, authority []byte, user string) string {
	return fmt.Sprintf("clusters:\n- cluster:\n    server: %s\n    certificate-authority-data: %s\nusers:\n- user:\n    %s\n",
		server, base64.StdEncoding.EncodeToString(authority), user)
}

func certificateFields(pair cluster.Pair) string {
	return fmt.Sprintf("client-certificate-data: %s\n    client-key-data: %s",
		base64.StdEncoding.EncodeToString(pair.Cert), base64.StdEncoding.EncodeToString(pair.Key))
}

func TestReadKubeconfig(t *testing.T) {
	signer, other := authority(t, "signer"), authority(t, "other")
	good := kubeconfigText("https://api.test:6443", signer.Cert, certificateFields(other))
	for name, each := range map[string]struct{ text, problem string }{
		"certificate":        {good, ""},
		"token":              {kubeconfigText("https://api.test:6443", signer.Cert, "token: abc"), ""},
		"no YAML":            {"clusters: [", "kubeconfig: yaml"},
		"nothing":            {"", "not a kubeconfig of one cluster and one user"},
		"two users":          {good + "- user: {token: abc}\n", "not a kubeconfig of one cluster and one user"},
		"no authority":       {kubeconfigText("https://api.test:6443", nil, "token: abc"), "authority is no certificate"},
		"authority no PEM":   {kubeconfigText("https://api.test:6443", []byte("abc"), "token: abc"), "authority is no certificate"},
		"not base64":         {strings.Replace(good, "client-key-data: ", "client-key-data: '%' #", 1), "kubeconfig: illegal base64"},
		"nobody":             {kubeconfigText("https://api.test:6443", signer.Cert, "username: abc"), "neither a certificate nor a token"},
		"key of another one": {kubeconfigText("https://api.test:6443", signer.Cert, certificateFields(cluster.Pair{Cert: other.Cert, Key: signer.Key})), "kubeconfig: certificate pair"},
	} {
		path := filepath.Join(t.TempDir(), "kubeconfig")
		put(t, path, each.text, 0o600)
		way, told, pair, err := readKubeconfig(path)
		switch {
		case each.problem != "":
			if err == nil || !strings.Contains(err.Error(), each.problem) {
				t.Errorf("%s: %v", name, err)
			}
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case way.server != "https://api.test:6443" || string(told) != string(signer.Cert):
			t.Errorf("%s: %+v", name, way)
		case name == "token" && (way.token != "abc" || pair != nil || way.pair != nil):
			t.Errorf("%s: %+v %v", name, way, pair)
		case name == "certificate" && (way.token != "" || string(pair.Key) != string(other.Key) || way.pair == nil):
			t.Errorf("%s: %+v %v", name, way, pair)
		}
	}
	if _, _, _, err := readKubeconfig(filepath.Join(t.TempDir(), "absent")); !os.IsNotExist(err) {
		t.Errorf("absent: %v", err)
	}
}

// haveAssets writes what the installer leaves of keys and certificates, each its own pair, and an administrator's kubeconfig.
func haveAssets(t *testing.T, directory string) assets {
	t.Helper()
	files := assets{tls: filepath.Join(directory, "tls"), kubeconfig: filepath.Join(directory, adminFile)}
	pair := authority(t, "all")
	for _, name := range []string{
		"kube-apiserver-lb-server", "kube-apiserver-internal-lb-server", "kube-apiserver-localhost-server",
		"kube-apiserver-service-network-server", "kube-apiserver-lb-signer", "kube-apiserver-localhost-signer",
		"kube-apiserver-service-network-signer", "kubelet-signer",
	} {
		put(t, filepath.Join(files.tls, name+".crt"), "certificate of "+name, 0o600)
		put(t, filepath.Join(files.tls, name+".key"), "key of "+name, 0o600)
	}
	put(t, filepath.Join(files.tls, "kube-apiserver-complete-client-ca-bundle.crt"), "clients", 0o600)
	put(t, filepath.Join(files.tls, "service-account.key"), "tokens", 0o600)
	put(t, files.kubeconfig, kubeconfigText("https://api.test:6443", pair.Cert, certificateFields(pair)), 0o600)
	return files
}

func TestTheServiceIsToldWhatTheInstallerMade(t *testing.T) {
	files := haveAssets(t, t.TempDir())
	facts := &releaseFacts{Domain: "lab.example.test"}
	told := must(files.hello(facts))
	of := func(name string) keyPair { return keyPair{"certificate of " + name, "key of " + name} }
	if told.Clients != "clients" || told.Tokens != "tokens" || told.Facts != facts || told.Kubelets != of("kubelet-signer") {
		t.Errorf("%+v", told)
	}
	if told.Certificate != of("kube-apiserver-lb-server") || len(told.Named) != 3 || told.Named[1] != of("kube-apiserver-localhost-server") {
		t.Errorf("%+v", told)
	}
	if len(told.Signers) != 3 || told.Signers["service-network"] != of("kube-apiserver-service-network-signer") {
		t.Errorf("%+v", told.Signers)
	}
	if !strings.HasPrefix(told.Controller.Certificate, "-----BEGIN CERTIFICATE") {
		t.Errorf("%+v", told.Controller)
	}
}

func TestTheServiceIsToldNothingWhileAFileIsMissing(t *testing.T) {
	present, _ := filepath.Glob(filepath.Join(haveAssets(t, t.TempDir()).tls, "*"))
	for _, path := range present {
		files := haveAssets(t, t.TempDir())
		check(t, os.Remove(filepath.Join(files.tls, filepath.Base(path))))
		if _, err := files.hello(nil); err == nil || !strings.Contains(err.Error(), filepath.Base(path)) {
			t.Errorf("without %s: %v", filepath.Base(path), err)
		}
	}
	files := haveAssets(t, t.TempDir())
	put(t, files.kubeconfig, kubeconfigText("https://api.test:6443", authority(t, "any").Cert, "token: abc"), 0o600)
	if _, err := files.hello(nil); err == nil || !strings.Contains(err.Error(), "no administrator's certificate") {
		t.Errorf("with a token: %v", err)
	}
}

const (
	clusterConfigText = "data:\n  install-config: |\n    baseDomain: example.test.\n    metadata: {name: lab}\n    controlPlane: {replicas: 3}\n" +
		"    networking: {serviceNetwork: [172.20.0.0/16]}\n"
	overridesText = "spec: {clusterID: the-id}\n"
)

func TestReadFacts(t *testing.T) {
	for name, each := range map[string]struct{ config, overrides, problem string }{
		"all":                {clusterConfigText, overridesText, ""},
		"no install-config":  {"data: {}\n", overridesText, "cluster-config.yaml"},
		"bad install-config": {"data: {install-config: '['}\n", overridesText, "install-config in cluster-config.yaml"},
		"no replicas":        {strings.Replace(clusterConfigText, "replicas: 3", "", 1), overridesText, "controlPlane.replicas"},
		"no services":        {strings.Replace(clusterConfigText, "[172.20.0.0/16]", "[]", 1), overridesText, "networking.serviceNetwork"},
		"no name":            {strings.Replace(clusterConfigText, "name: lab", "", 1), overridesText, "metadata.name"},
		"no id":              {clusterConfigText, "spec: {}\n", "clusterID"},
		"no YAML":            {clusterConfigText, "spec: [", "cvo-overrides.yaml"},
	} {
		directory := t.TempDir()
		put(t, filepath.Join(directory, "manifests/cluster-config.yaml"), each.config, 0o600)
		put(t, filepath.Join(directory, "manifests/cvo-overrides.yaml"), each.overrides, 0o600)
		put(t, filepath.Join(directory, "manifests/cluster-scheduler-02-config.yml"), "spec: {mastersSchedulable: true}\n", 0o600)
		facts, err := readFacts(directory, "4.19.0")
		if each.problem != "" {
			if err == nil || !strings.Contains(err.Error(), each.problem) {
				t.Errorf("%s: %+v %v", name, facts, err)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(*facts, releaseFacts{"lab.example.test", "the-id", "4.19.0", 3, true, []string{"172.20.0.0/16"}}) {
			t.Errorf("%s: %+v %v", name, facts, err)
		}
	}
}

func TestReadFacility(t *testing.T) {
	root := t.TempDir()
	if _, err := readFacility(root); err == nil || !strings.Contains(err.Error(), "without a Kubernetes API") {
		t.Error(err)
	}
	put(t, filepath.Join(root, facilityFile), `{"server": "192.0.2.1:1", "name": "api"}`, 0o644)
	if place, err := readFacility(root); err != nil || place.Server != "192.0.2.1:1" || place.Name != "api" {
		t.Errorf("%+v %v", place, err)
	}
	put(t, filepath.Join(root, facilityFile), "[]", 0o644)
	if _, err := readFacility(root); err == nil || !strings.Contains(err.Error(), facilityFile) {
		t.Error(err)
	}
}
