package installer

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"metal-ipi.test/lab/openshift/cluster"
)

// paddingSize brings bootstrap.ign to the size of the real one, several times what a machine's userdata can hold. It makes
// up for manifests that only programs of the release image read.
const paddingSize = 90_000

const (
	// stateFile keeps what a later command goes on from, the install-config.
	stateFile = ".openshift_install_state.json"
	// extraManifests is the directory whose manifests, the user's among them, the bootstrap machine is given as they are.
	extraManifests = "openshift"
)

// createManifests makes the manifests that the stand-in has of its own, beside which users put theirs, and consumes the
// install-config.yaml. They are what the settings of a cluster stand in; the rest is what only the real one makes.
func createManifests(directory string) error {
	data, err := consume(directory)
	if err != nil {
		return err
	}
	if _, err := readConfig(data, false); err != nil {
		return err
	}
	state, err := json.Marshal(map[string]string{configName: string(data)})
	if err != nil {
		return err
	}
	object, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "cluster-config-v1", "namespace": "kube-system"},
		"data": map[string]any{"install-config": string(data)},
	})
	if err != nil {
		return err
	}
	for _, each := range []string{"manifests", extraManifests} {
		if err := os.MkdirAll(filepath.Join(directory, each), 0o750); err != nil {
			return err
		}
	}
	err = errors.Join(
		os.WriteFile(filepath.Join(directory, "manifests", "cluster-config.yaml"), object, 0o640),
		os.WriteFile(filepath.Join(directory, stateFile), state, 0o640),
	)
	if err != nil {
		return err
	}
	tell("info", fmt.Sprintf("Manifests created in: %s and %s", filepath.Join(directory, "manifests"), filepath.Join(directory, extraManifests)))
	return os.Remove(filepath.Join(directory, configName))
}

// consume is the install-config: that of the directory, or what an earlier command made manifests of.
func consume(directory string) ([]byte, error) {
	data, err := os.ReadFile(filepath.Join(directory, configName))
	if err == nil {
		tell("info", "Consuming Install Config from target directory")
		return data, nil
	}
	kept, missing := os.ReadFile(filepath.Join(directory, stateFile))
	if missing != nil {
		return nil, &configError{err}
	}
	state := map[string]string{}
	if err := json.Unmarshal(kept, &state); err != nil || state[configName] == "" {
		return nil, fmt.Errorf("%s is none of the stand-in's", stateFile)
	}
	tell("info", "Consuming Openshift Manifests from target directory")
	return []byte(state[configName]), nil
}

// extra is the manifests that the bootstrap machine is given as they are.
func extra(directory string) ([]cluster.File, error) {
	files := []cluster.File{}
	for _, ending := range []string{"*.yaml", "*.yml", "*.json"} {
		found, _ := filepath.Glob(filepath.Join(directory, extraManifests, ending)) // the pattern is good
		for _, path := range found {
			data, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			files = append(files, cluster.NewFile("/opt/openshift/"+extraManifests+"/"+filepath.Base(path), 0o644, data))
		}
	}
	return files, nil
}

// create makes a new cluster's files in a directory, and consumes what it makes them of.
func create(directory string, inPlace bool) error {
	data, err := consume(directory)
	if err != nil {
		return err
	}
	config, err := readConfig(data, inPlace)
	if err != nil {
		return err
	}
	bundle, err := newBundle(config, inPlace)
	if err != nil {
		return err
	}
	manifests, err := extra(directory)
	if err != nil {
		return err
	}
	files, err := assets(config, bundle, manifests)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(directory, "auth"), 0o750); err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(directory, name), content, 0o640); err != nil {
			return err
		}
	}
	tell("info", fmt.Sprintf("Ignition-Configs created in: %s and %s", directory, filepath.Join(directory, "auth")))
	var problems []error
	for _, each := range []string{configName, "manifests", extraManifests} {
		problems = append(problems, os.RemoveAll(filepath.Join(directory, each)))
	}
	return errors.Join(problems...)
}

// newBundle is the facts and certificates of a new cluster.
func newBundle(config installConfig, inPlace bool) (cluster.Bundle, error) {
	facts := cluster.Facts{
		Name: config.Metadata.Name, ID: cluster.UUID(), BaseDomain: strings.TrimSuffix(config.BaseDomain, "."),
		ControlPlane: config.ControlPlane.count(), Schedulable: config.schedulable(), Services: config.services(),
		SSHKey: strings.TrimSpace(config.SSHKey), Release: Version, InPlace: inPlace,
	}
	short := cluster.ShortLived
	var err error
	if text := os.Getenv("LAB_OPENSHIFT_CERTIFICATE_VALIDITY"); text != "" {
		if short, err = time.ParseDuration(text); err != nil || short <= 0 {
			return cluster.Bundle{}, fmt.Errorf("LAB_OPENSHIFT_CERTIFICATE_VALIDITY=%q is not a duration such as 90s", text)
		}
	}
	if facts.Kubernetes, err = native(); err != nil {
		return cluster.Bundle{}, err
	}
	return cluster.NewBundle(facts, time.Now(), short)
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

// assets is what is written, by path in the assets directory.
func assets(config installConfig, bundle cluster.Bundle, manifests []cluster.File) (map[string][]byte, error) {
	facts, random := bundle.Facts, rand.Text()
	admin, err := yaml.Marshal(bundle.Kubeconfig(facts.API()))
	if err != nil {
		return nil, err
	}
	given := append(payload(config, bundle, admin), manifests...)
	password := fmt.Sprintf("%s-%s-%s-%s", random[:5], random[5:10], random[10:15], random[15:20])
	values := map[string]any{
		"worker.ign": bundle.Pointer("worker"),
		"metadata.json": map[string]any{
			"clusterName": facts.Name, "clusterID": facts.ID, "featureSet": config.FeatureSet, "customFeatureSet": nil,
			"infraID": fmt.Sprintf("%.27s-%s", facts.Name, strings.ToLower(random[20:25])),
		},
	}
	if facts.InPlace {
		values["bootstrap-in-place-for-live-iso.ign"], err = bundle.InPlaceConfig(given, config.BootstrapInPlace.InstallationDisk)
	} else {
		values["master.ign"] = bundle.Pointer("master")
		values["bootstrap.ign"], err = bundle.BootstrapConfig(given)
	}
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{"auth/kubeconfig": admin, "auth/kubeadmin-password": []byte(password)}
	for name, value := range values {
		if files[name], err = json.Marshal(value); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// payload is the files of bootstrap.ign that the stand-in's own services do not read: others look into them, and they make
// it as large and as secret as the real one.
func payload(config installConfig, bundle cluster.Bundle, admin []byte) []cluster.File {
	padding := make([]byte, paddingSize)
	_, _ = rand.Read(padding) // never fails
	files := []cluster.File{
		cluster.NewFile("/opt/openshift/auth/kubeconfig", 0o600, admin),
		cluster.NewFile("/root/.docker/config.json", 0o600, []byte(config.PullSecret)),
		cluster.NewFile("/opt/openshift/lab-padding", 0o600, padding),
	}
	for _, name := range slices.Sorted(maps.Keys(bundle.Files)) {
		files = append(files, cluster.NewFile("/opt/openshift/tls/"+name, 0o600, bundle.Files[name]))
	}
	return files
}
