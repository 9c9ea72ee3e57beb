package installer

import (
	"crypto/rand"
	"encoding/json"
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

// create makes a new cluster's files in a directory, and consumes the install-config.yaml that is there.
func create(directory string, inPlace bool) error {
	path := filepath.Join(directory, configName)
	data, err := os.ReadFile(path)
	if err != nil {
		return &configError{err}
	}
	config, err := readConfig(data, inPlace)
	if err != nil {
		return err
	}
	tell("info", "Consuming Install Config from target directory")
	bundle, err := newBundle(config, inPlace)
	if err != nil {
		return err
	}
	files, err := assets(config, bundle)
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
	return os.Remove(path)
}

// newBundle is the facts and certificates of a new cluster.
func newBundle(config installConfig, inPlace bool) (cluster.Bundle, error) {
	facts := cluster.Facts{
		Name: config.Metadata.Name, ID: cluster.UUID(), BaseDomain: strings.TrimSuffix(config.BaseDomain, "."),
		ControlPlane: config.ControlPlane.count(), Schedulable: config.schedulable(),
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
func assets(config installConfig, bundle cluster.Bundle) (map[string][]byte, error) {
	facts, random := bundle.Facts, rand.Text()
	admin, err := yaml.Marshal(bundle.Kubeconfig(facts.API()))
	if err != nil {
		return nil, err
	}
	password := fmt.Sprintf("%s-%s-%s-%s", random[:5], random[5:10], random[10:15], random[15:20])
	values := map[string]any{
		"worker.ign": bundle.Pointer("worker"),
		"metadata.json": map[string]any{
			"clusterName": facts.Name, "clusterID": facts.ID, "featureSet": config.FeatureSet, "customFeatureSet": nil,
			"infraID": fmt.Sprintf("%.27s-%s", facts.Name, strings.ToLower(random[20:25])),
		},
	}
	if facts.InPlace {
		values["bootstrap-in-place-for-live-iso.ign"], err = bundle.InPlaceConfig(payload(config, bundle, admin), config.BootstrapInPlace.InstallationDisk)
	} else {
		values["master.ign"] = bundle.Pointer("master")
		values["bootstrap.ign"], err = bundle.BootstrapConfig(payload(config, bundle, admin))
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
