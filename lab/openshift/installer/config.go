package installer

import (
	"encoding/json"
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"
)

const configName = "install-config.yaml"

// configError is a failure that the install-config causes; it has an exit code of its own.
type configError struct{ cause error }

func (e *configError) Error() string {
	return fmt.Sprintf(`failed to load asset "Install Config": invalid %q file: %v`, configName, e.cause)
}

// installConfig is the part of install-config.yaml that the stand-in reads. It leaves the rest unjudged: the program's own
// settings refuse what the real installer refuses, which `make conformance` shows.
type installConfig struct {
	APIVersion string `yaml:"apiVersion"`
	Metadata   struct {
		Name string `yaml:"name"`
	} `yaml:"metadata"`
	BaseDomain   string `yaml:"baseDomain"`
	ControlPlane pool   `yaml:"controlPlane"`
	Compute      []pool `yaml:"compute"`
	Networking   struct {
		ServiceNetwork []string `yaml:"serviceNetwork"`
	} `yaml:"networking"`
	Platform         map[string]any `yaml:"platform"`
	BootstrapInPlace struct {
		InstallationDisk string `yaml:"installationDisk"`
	} `yaml:"bootstrapInPlace"`
	PullSecret string `yaml:"pullSecret"`
	SSHKey     string `yaml:"sshKey"`
	FeatureSet string `yaml:"featureSet"`
}

// services is the networks of services; not given, the one that the real installer takes.
func (c installConfig) services() []string {
	if len(c.Networking.ServiceNetwork) == 0 {
		return []string{"172.30.0.0/16"}
	}
	return c.Networking.ServiceNetwork
}

type pool struct {
	Replicas *int `yaml:"replicas"`
}

// count is the number of a pool's machines.
func (p pool) count() int {
	if p.Replicas == nil {
		return 3
	}
	return *p.Replicas
}

// schedulable says whether the control plane takes pods: where there are no workers.
func (c installConfig) schedulable() bool {
	for _, each := range c.Compute {
		if each.count() > 0 {
			return false
		}
	}
	return len(c.Compute) > 0
}

// readConfig reads an install-config.yaml, for a single node that bootstraps in place or for a cluster. It refuses, in the
// words of Kubernetes' field errors, what no cluster can be made of.
func readConfig(data []byte, inPlace bool) (installConfig, error) {
	var config installConfig
	if err := yaml.Unmarshal(data, &config); err != nil {
		return config, &configError{err}
	}
	var secret struct {
		Auths map[string]any `json:"auths"`
	}
	unreadable := json.Unmarshal([]byte(config.PullSecret), &secret)
	_, none := config.Platform["none"]
	problems := []string{}
	for _, each := range []struct {
		wrong bool
		told  string
	}{
		{config.APIVersion != "v1", fmt.Sprintf(`apiVersion: Invalid value: %q: install-config version must be "v1"`, config.APIVersion)},
		{config.Metadata.Name == "", "metadata.name: Required value: cluster name required"},
		{config.BaseDomain == "", "baseDomain: Required value"},
		{!none, "platform: Invalid value: must be none: the lab's stand-in knows no other"},
		{unreadable != nil || len(secret.Auths) == 0, "pullSecret: Invalid value: auths required"},
		{config.ControlPlane.count() <= 0, "controlPlane.replicas: Invalid value: must be positive"},
		{config.ControlPlane.count() == 2, "controlPlane.replicas: Invalid value: 2: etcd of two members is lost with either of them"},
		{inPlace && config.ControlPlane.count() != 1, "controlPlane.replicas: Invalid value: bootstrap in place requires a single ControlPlane replica"},
		{inPlace && config.BootstrapInPlace.InstallationDisk == "", "bootstrapInPlace.installationDisk: Required value"},
	} {
		if each.wrong {
			problems = append(problems, each.told)
		}
	}
	if len(problems) > 0 {
		return config, &configError{fmt.Errorf("[%s]", strings.Join(problems, ", "))}
	}
	return config, nil
}
