package installer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"metal-ipi.test/lab/openshift/cluster"
)

const (
	configName = "install-config.yaml"
	stateName  = ".openshift_install_state.json"
)

// state is what the installer remembers between its commands, in the assets directory. The keys look like those of
// the real one, which are the types of its assets.
type state struct {
	Config    InstallConfig     `json:"*installconfig.InstallConfig"`
	Cluster   identity          `json:"*installconfig.ClusterID"`
	TLS       map[string][]byte `json:"*tls.Bundle"`
	Password  string            `json:"*password.KubeadminPassword"`
	Manifests map[string][]byte `json:"*manifests.Manifests"`
}

type identity struct {
	UUID    string `json:"UUID"`
	InfraID string `json:"InfraID"`
}

// bundle is the cluster's facts and certificates.
func (s *state) bundle() (cluster.Bundle, error) {
	schedulable, err := mastersSchedulable(s.Manifests)
	if err != nil {
		return cluster.Bundle{}, err
	}
	bundle := cluster.Bundle{Facts: facts(s.Config, schedulable), Files: s.TLS}
	bundle.Facts.ID = s.Cluster.UUID
	bundle.Facts.Kubernetes, err = native()
	return bundle, err
}

// native is what LAB_OPENSHIFT_KUBERNETES, a file of the lab's, says of who runs the machines' API servers.
func native() (*cluster.Native, error) {
	path := os.Getenv("LAB_OPENSHIFT_KUBERNETES")
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("LAB_OPENSHIFT_KUBERNETES: %w", err)
	}
	told := &cluster.Native{}
	if err := json.Unmarshal(data, told); err != nil || told.Server == "" || told.Name == "" || told.Authority == "" {
		return nil, fmt.Errorf("LAB_OPENSHIFT_KUBERNETES=%s does not say server, name and authority", path)
	}
	return told, nil
}

func facts(config InstallConfig, schedulable bool) cluster.Facts {
	return cluster.Facts{
		Name: config.Metadata.Name, BaseDomain: strings.TrimSuffix(config.BaseDomain, "."), ControlPlane: *config.ControlPlane.Replicas,
		Schedulable: schedulable, SSHKey: strings.TrimSpace(config.SSHKey), Release: Version,
	}
}

// loadState takes up the work in a directory: from a new install-config.yaml, which is consumed, or from what an
// earlier command left. `asset` is what the caller wants, for the error.
func loadState(directory, asset string, log *logger) (*state, error) {
	wrap := func(err error) error {
		return &configError{fmt.Errorf(`failed to fetch %s: failed to load asset "Install Config": failed to create install config: %w`, asset, err)}
	}
	data, err := os.ReadFile(filepath.Join(directory, configName))
	if errors.Is(err, fs.ErrNotExist) {
		remembered, err := readState(directory)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, wrap(fmt.Errorf("there is no %q file in %q; the lab's stand-in asks no questions", configName, directory))
		}
		return remembered, err
	}
	if err != nil {
		return nil, wrap(err)
	}
	config, err := parseConfig(data, log)
	if err != nil {
		return nil, wrap(err)
	}
	if err := validate(config); err != nil {
		return nil, wrap(fmt.Errorf("invalid %q file: %w", configName, err))
	}
	log.info("Consuming Install Config from target directory")
	return newState(config, log)
}

func newState(config InstallConfig, log *logger) (*state, error) {
	if config.workers() == 0 {
		log.warn("Making control-plane schedulable by setting MastersSchedulable to true for Scheduler cluster settings")
	}
	short, err := duration("LAB_OPENSHIFT_CERTIFICATE_VALIDITY", cluster.ShortLived)
	if err != nil {
		return nil, err
	}
	bundle, err := cluster.NewBundle(facts(config, config.workers() == 0), time.Now(), short)
	if err != nil {
		return nil, err
	}
	fresh := &state{
		Config: config, TLS: bundle.Files, Password: password(),
		Cluster: identity{UUID: uuid(), InfraID: fmt.Sprintf("%.27s-%s", config.Metadata.Name, random(5))},
	}
	fresh.Manifests, err = renderManifests(config, fresh.Cluster, bundle, fresh.Password)
	return fresh, err
}

func readState(directory string) (*state, error) {
	data, err := os.ReadFile(filepath.Join(directory, stateName))
	if err != nil {
		return nil, err
	}
	remembered := &state{}
	if err := json.Unmarshal(data, remembered); err != nil {
		return nil, fmt.Errorf("failed to unmarshal state file %q: %w", stateName, err)
	}
	return remembered, nil
}

// save writes the state first, and only then removes what was consumed: an interruption loses nothing.
func (s *state) save(directory string, consumed ...string) error {
	data, err := json.MarshalIndent(s, "", "    ")
	if err != nil {
		return err
	}
	if err := write(directory, stateName, data); err != nil {
		return err
	}
	for _, name := range consumed {
		if err := os.RemoveAll(filepath.Join(directory, name)); err != nil {
			return err
		}
	}
	return nil
}

// write replaces a file in one step.
func write(directory, name string, data []byte) error {
	path := filepath.Join(directory, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	temporary := path + ".part"
	if err := os.WriteFile(temporary, data, 0o640); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}
