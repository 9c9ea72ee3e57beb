package node

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"gopkg.in/yaml.v3"

	"metal-ipi.test/lab/openshift/cluster"
)

const (
	// assetDirectory is where the real installer's Ignition puts what a cluster is made of.
	assetDirectory = "/opt/openshift"
	// bootstrapSecrets is where a single node that was bootstrapped in place has the same keys, on its disk.
	bootstrapSecrets = "/etc/kubernetes/bootstrap-secrets"
	// facilityFile is what the image tells of the lab: who runs API servers.
	facilityFile = "/etc/lab-openshift/facility.json"
)

// Stages of bootkube.sh, by the files that it leaves behind, without their ending.
const (
	configRendered = "mco-bootstrap"
	clusterFormed  = "cb-bootstrap" // the cluster runs by itself from here on
	allDone        = ".bootkube"
)

// finished says whether the machine with this root is past that stage of bootkube.sh.
func finished(root, stage string) bool {
	_, err := os.Stat(filepath.Join(root, assetDirectory, stage+".done"))
	return err == nil
}

// finish leaves behind, as bootkube.sh does, that the machine is past that stage.
func finish(root, stage string) error {
	path := filepath.Join(root, assetDirectory, stage+".done")
	return replaceFile(path, nil, 0o644) // the stand-in's machines have no such directory
}

// assetsHello is what the machine with the real installer's files tells the lab's service: those of them that an API
// server needs, and those that OpenShift's operators make further certificates with. Nothing of it is made here.
type assetsHello struct {
	standInHello
	Named    []keyPair          `json:"named"`   // further certificates, chosen by the name that is asked for
	Signers  map[string]keyPair `json:"signers"` // who signs the control plane's own ones, by what they are for
	Kubelets keyPair            `json:"kubelets"`
	Facts    *releaseFacts      `json:"facts,omitempty"` // nil where they were told before
}

// releaseFacts is what the stand-in for OpenShift's operators has to know of a cluster.
type releaseFacts struct {
	Domain       string   `json:"domain"`
	ClusterID    string   `json:"clusterID"`
	Release      string   `json:"release"`
	ControlPlane int      `json:"controlPlaneReplicas"`
	Schedulable  bool     `json:"mastersSchedulable"`
	Services     []string `json:"serviceNetwork"`
}

// assets is the real installer's files on a machine.
type assets struct {
	tls        string // the directory of keys and certificates
	kubeconfig string // an administrator's
}

func (a assets) pair(name string) (keyPair, error) {
	certificate, err := os.ReadFile(filepath.Join(a.tls, name+".crt"))
	if err != nil {
		return keyPair{}, err
	}
	key, err := os.ReadFile(filepath.Join(a.tls, name+".key"))
	return keyPair{Certificate: string(certificate), Key: string(key)}, err
}

// hello is what the lab's service is told, from the files as they are.
func (a assets) hello(facts *releaseFacts) (assetsHello, error) {
	told := assetsHello{Signers: map[string]keyPair{}, Facts: facts}
	clients, err := os.ReadFile(filepath.Join(a.tls, "kube-apiserver-complete-client-ca-bundle.crt"))
	if err != nil {
		return told, err
	}
	tokens, err := os.ReadFile(filepath.Join(a.tls, "service-account.key"))
	if err != nil {
		return told, err
	}
	_, _, admin, err := readKubeconfig(a.kubeconfig)
	if err != nil {
		return told, err
	}
	if admin == nil {
		return told, fmt.Errorf("%s: it has no administrator's certificate", a.kubeconfig)
	}
	told.Clients, told.Tokens = string(clients), string(tokens)
	told.Controller = keyPair{Certificate: string(admin.Cert), Key: string(admin.Key)}
	if told.Certificate, err = a.pair("kube-apiserver-lb-server"); err != nil {
		return told, err
	}
	for _, name := range []string{"internal-lb", "localhost", "service-network"} {
		pair, err := a.pair("kube-apiserver-" + name + "-server")
		if err != nil {
			return told, err
		}
		told.Named = append(told.Named, pair)
	}
	for _, name := range []string{"lb", "localhost", "service-network"} {
		if told.Signers[name], err = a.pair("kube-apiserver-" + name + "-signer"); err != nil {
			return told, err
		}
	}
	told.Kubelets, err = a.pair("kubelet-signer")
	return told, err
}

// readFacts reads what the installer's manifests say of the cluster.
func readFacts(directory, release string) (*releaseFacts, error) {
	var config struct {
		Data struct {
			InstallConfig string `yaml:"install-config"`
		} `yaml:"data"`
	}
	if err := readYAML(filepath.Join(directory, "manifests/cluster-config.yaml"), &config); err != nil {
		return nil, err
	}
	var install struct {
		BaseDomain string `yaml:"baseDomain"`
		Metadata   struct {
			Name string `yaml:"name"`
		} `yaml:"metadata"`
		ControlPlane struct {
			Replicas int `yaml:"replicas"`
		} `yaml:"controlPlane"`
		Networking struct {
			ServiceNetwork []string `yaml:"serviceNetwork"`
		} `yaml:"networking"`
	}
	if err := yaml.Unmarshal([]byte(config.Data.InstallConfig), &install); err != nil {
		return nil, fmt.Errorf("install-config in cluster-config.yaml: %w", err)
	}
	var scheduler struct {
		Spec struct {
			Schedulable bool `yaml:"mastersSchedulable"`
		} `yaml:"spec"`
	}
	if err := readYAML(filepath.Join(directory, "manifests/cluster-scheduler-02-config.yml"), &scheduler); err != nil {
		return nil, err
	}
	var version struct {
		Spec struct {
			ClusterID string `yaml:"clusterID"`
		} `yaml:"spec"`
	}
	if err := readYAML(filepath.Join(directory, "manifests/cvo-overrides.yaml"), &version); err != nil {
		return nil, err
	}
	for name, missing := range map[string]bool{
		"metadata.name of install-config in cluster-config.yaml":             install.Metadata.Name == "",
		"baseDomain of install-config in cluster-config.yaml":                install.BaseDomain == "",
		"controlPlane.replicas of install-config in cluster-config.yaml":     install.ControlPlane.Replicas == 0,
		"networking.serviceNetwork of install-config in cluster-config.yaml": len(install.Networking.ServiceNetwork) == 0,
		"spec.clusterID of cvo-overrides.yaml":                               version.Spec.ClusterID == "",
	} {
		if missing {
			return nil, fmt.Errorf("the installer's manifests have no %s", name)
		}
	}
	return &releaseFacts{
		Domain: install.Metadata.Name + "." + strings.TrimSuffix(install.BaseDomain, "."), ClusterID: version.Spec.ClusterID,
		Release: release, ControlPlane: install.ControlPlane.Replicas, Schedulable: scheduler.Spec.Schedulable,
		Services: install.Networking.ServiceNetwork,
	}, nil
}

func readYAML(path string, into any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := yaml.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// readFacility is who runs API servers.
func readFacility(root string) (cluster.Native, error) {
	var told cluster.Native
	data, err := os.ReadFile(filepath.Join(root, facilityFile))
	if err != nil {
		return told, fmt.Errorf("this image was made for a lab without a Kubernetes API: %w", err)
	}
	if err := json.Unmarshal(data, &told); err != nil {
		return told, fmt.Errorf("%s: %w", facilityFile, err)
	}
	return told, nil
}
