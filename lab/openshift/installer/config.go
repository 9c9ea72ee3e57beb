package installer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"
)

// InstallConfig is the part of install-config.yaml that platform none has.
type InstallConfig struct {
	APIVersion            string         `json:"apiVersion"`
	Metadata              ConfigMetadata `json:"metadata"`
	BaseDomain            string         `json:"baseDomain"`
	ControlPlane          *MachinePool   `json:"controlPlane,omitempty"`
	Compute               []MachinePool  `json:"compute,omitempty"`
	Networking            *Networking    `json:"networking,omitempty"`
	Platform              map[string]any `json:"platform"`
	BootstrapInPlace      *InPlace       `json:"bootstrapInPlace,omitempty"`
	PullSecret            string         `json:"pullSecret"`
	SSHKey                string         `json:"sshKey,omitempty"`
	FIPS                  bool           `json:"fips,omitempty"`
	Publish               string         `json:"publish,omitempty"`
	AdditionalTrustBundle string         `json:"additionalTrustBundle,omitempty"`
	Proxy                 map[string]any `json:"proxy,omitempty"`
	ImageDigestSources    []any          `json:"imageDigestSources,omitempty"`
	Capabilities          map[string]any `json:"capabilities,omitempty"`
	CPUPartitioningMode   string         `json:"cpuPartitioningMode,omitempty"`
	FeatureSet            string         `json:"featureSet,omitempty"`
	TrustBundlePolicy     string         `json:"additionalTrustBundlePolicy,omitempty"`
}

type InPlace struct {
	InstallationDisk string `json:"installationDisk"`
}

type ConfigMetadata struct {
	Name              string `json:"name"`
	CreationTimestamp any    `json:"creationTimestamp,omitempty"`
}

type MachinePool struct {
	Name           string         `json:"name"`
	Replicas       *int           `json:"replicas,omitempty"`
	Platform       map[string]any `json:"platform,omitempty"`
	Hyperthreading string         `json:"hyperthreading,omitempty"`
	Architecture   string         `json:"architecture,omitempty"`
}

type Networking struct {
	NetworkType    string           `json:"networkType,omitempty"`
	MachineNetwork []MachineNetwork `json:"machineNetwork,omitempty"`
	ClusterNetwork []ClusterNetwork `json:"clusterNetwork,omitempty"`
	ServiceNetwork []string         `json:"serviceNetwork,omitempty"`
}

type MachineNetwork struct {
	CIDR string `json:"cidr"`
}

type ClusterNetwork struct {
	CIDR       string `json:"cidr"`
	HostPrefix int    `json:"hostPrefix,omitempty"`
}

// parseConfig reads an install-config.yaml. An unknown field is worth a warning only, as with the real installer.
func parseConfig(data []byte, log *logger) (InstallConfig, error) {
	var tree any
	if err := yaml.Unmarshal(data, &tree); err != nil {
		return InstallConfig{}, fmt.Errorf("failed to unmarshal %s: error converting YAML to JSON: %w", configName, err)
	}
	encoded, err := json.Marshal(tree)
	if err != nil {
		return InstallConfig{}, fmt.Errorf("failed to unmarshal %s: error converting YAML to JSON: %w", configName, err)
	}
	var config InstallConfig
	strict := json.NewDecoder(bytes.NewReader(encoded))
	strict.DisallowUnknownFields()
	err = strict.Decode(&config)
	if err != nil && strings.Contains(err.Error(), "unknown field") {
		log.warn("failed to parse first occurrence of unknown field: failed to unmarshal %s: error unmarshaling JSON: "+
			"while decoding JSON: %v", configName, err)
		log.info("Attempting to unmarshal while ignoring unknown keys because strict unmarshaling failed")
		config = InstallConfig{}
		err = json.Unmarshal(encoded, &config)
	}
	if err != nil {
		return InstallConfig{}, fmt.Errorf("failed to unmarshal %s: error unmarshaling JSON: while decoding JSON: %w", configName, err)
	}
	config.setDefaults()
	return config, nil
}

func (c *InstallConfig) setDefaults() {
	three := 3
	if c.ControlPlane == nil {
		c.ControlPlane = &MachinePool{Name: "master"}
	}
	if len(c.Compute) == 0 {
		c.Compute = []MachinePool{{Name: "worker"}}
	}
	pools := []*MachinePool{c.ControlPlane}
	for i := range c.Compute {
		pools = append(pools, &c.Compute[i])
	}
	for _, pool := range pools {
		if pool.Replicas == nil {
			replicas := three
			pool.Replicas = &replicas
		}
		setDefault(&pool.Hyperthreading, "Enabled")
		setDefault(&pool.Architecture, "amd64")
	}
	if c.Networking == nil {
		c.Networking = &Networking{}
	}
	setDefault(&c.Networking.NetworkType, "OVNKubernetes")
	setDefault(&c.Publish, "External")
	if len(c.Networking.MachineNetwork) == 0 {
		c.Networking.MachineNetwork = []MachineNetwork{{CIDR: "10.0.0.0/16"}}
	}
	if len(c.Networking.ServiceNetwork) == 0 {
		c.Networking.ServiceNetwork = []string{"172.30.0.0/16"}
	}
	if len(c.Networking.ClusterNetwork) == 0 {
		c.Networking.ClusterNetwork = []ClusterNetwork{{CIDR: "10.128.0.0/14", HostPrefix: 23}}
	}
	for i := range c.Networking.ClusterNetwork {
		if c.Networking.ClusterNetwork[i].HostPrefix == 0 {
			c.Networking.ClusterNetwork[i].HostPrefix = 23
		}
	}
}

// workers is the number of compute machines.
func (c *InstallConfig) workers() int {
	count := 0
	for _, pool := range c.Compute {
		count += *pool.Replicas
	}
	return count
}

func setDefault(field *string, value string) {
	if *field == "" {
		*field = value
	}
}
