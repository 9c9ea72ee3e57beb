package installer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"metal-ipi.test/lab/openshift/cluster"
)

// configError is a failure that the install-config causes; it has an exit code of its own.
type configError struct{ error }

func (e *configError) Unwrap() error { return e.error }

// singleNodeAsset is what the real one calls it.
const singleNodeAsset = "Single node bootstrap In Place Ignition Config"

// gatherScript is what `gather bootstrap` runs on the bootstrap machine, under the name it has there.
const gatherScript = `#!/bin/bash
# Packs what explains a failed bootstrap into /home/core/log-bundle-<id>.tar.gz (lab stand-in).
set -u
[ "${1:-}" = --id ] || { echo "usage: $0 --id ID [MASTER ...]" >&2; exit 2; }
id=$2
work=$(mktemp -d)/log-bundle-$id
mkdir -p "$work/bootstrap"
cd "$work/bootstrap" || exit 1
journalctl --no-pager -b >journal.log 2>&1
systemctl --no-pager list-units --failed >failed-units.txt 2>&1
cp /etc/.ignition-result.json /run/metadata/afterburn . 2>/dev/null
tar -C "${work%/*}" -czf "/home/core/log-bundle-$id.tar.gz" "log-bundle-$id" && rm -r "${work%/*}"
`

func createManifests(directory string, log *logger) error {
	work, err := loadState(directory, "Master Machines", log)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(work.Manifests)) {
		if err := write(directory, name, work.Manifests[name]); err != nil {
			return fmt.Errorf("failed to write asset (Manifests) to disk: %w", err)
		}
	}
	if err := work.save(directory, configName); err != nil {
		return err
	}
	log.info("Manifests created in: %s and %s", filepath.Join(directory, "manifests"), filepath.Join(directory, "openshift"))
	return nil
}

func createIgnition(directory string, log *logger) error {
	return createConfigs(directory, "Bootstrap Ignition Config", (*state).ignitionAssets, log)
}

func createSingleNode(directory string, log *logger) error {
	return createConfigs(directory, singleNodeAsset, (*state).singleNodeAssets, log)
}

// createConfigs writes what `assets` makes of the work in a directory.
func createConfigs(directory, asset string, assets func(*state) (map[string][]byte, error), log *logger) error {
	work, err := loadState(directory, asset, log)
	if err != nil {
		return err
	}
	consumed := []string{configName}
	found, err := readManifests(directory)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		log.info("Consuming Common Manifests from target directory")
		work.Manifests = found
		consumed = append(consumed, "manifests", "openshift")
	}
	files, err := assets(work)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := write(directory, name, files[name]); err != nil {
			return fmt.Errorf("failed to write asset (Ignition Configs) to disk: %w", err)
		}
	}
	if err := work.save(directory, consumed...); err != nil {
		return err
	}
	log.info("Ignition-Configs created in: %s and %s", directory, filepath.Join(directory, "auth"))
	return nil
}

// ignitionAssets is what `create ignition-configs` writes, by path in the assets directory.
func (s *state) ignitionAssets() (map[string][]byte, error) {
	bundle, err := s.bundle()
	if err != nil {
		return nil, err
	}
	admin, err := encode(bundle.Kubeconfig(bundle.Facts.API()))
	if err != nil {
		return nil, err
	}
	bootstrap, err := bundle.BootstrapConfig(s.payload(admin))
	if err != nil {
		return nil, err
	}
	return s.assets(bundle, admin, map[string]cluster.Ignition{"bootstrap.ign": bootstrap, "master.ign": bundle.Pointer("master")})
}

// singleNodeAssets is what `create single-node-ignition-config` writes.
func (s *state) singleNodeAssets() (map[string][]byte, error) {
	var found problems
	if replicas := *s.Config.ControlPlane.Replicas; replicas != 1 {
		found.invalid("controlPlane.replicas", replicas, "bootstrap in place requires a single ControlPlane replica")
	}
	switch {
	case s.Config.BootstrapInPlace == nil:
		found.required("bootstrapInPlace", "bootstrapInPlace is required when creating a single node bootstrap-in-place ignition")
	case s.Config.BootstrapInPlace.InstallationDisk == "":
		found.required("bootstrapInPlace.installationDisk", "installationDisk must be set the target disk drive for the installation")
	}
	if err := found.err(); err != nil {
		return nil, &configError{fmt.Errorf("failed to fetch %s: failed to generate asset %q: %w", singleNodeAsset, singleNodeAsset, err)}
	}
	bundle, err := s.bundle()
	if err != nil {
		return nil, err
	}
	bundle.Facts.InPlace = true
	admin, err := encode(bundle.Kubeconfig(bundle.Facts.API()))
	if err != nil {
		return nil, err
	}
	live, err := bundle.InPlaceConfig(s.payload(admin), s.Config.BootstrapInPlace.InstallationDisk)
	if err != nil {
		return nil, err
	}
	return s.assets(bundle, admin, map[string]cluster.Ignition{"bootstrap-in-place-for-live-iso.ign": live})
}

// assets is Ignition configs, and what is written with any of them.
func (s *state) assets(bundle cluster.Bundle, admin []byte, configs map[string]cluster.Ignition) (map[string][]byte, error) {
	files := map[string][]byte{"auth/kubeconfig": admin, "auth/kubeadmin-password": []byte(s.Password)}
	values := map[string]any{
		"worker.ign": bundle.Pointer("worker"),
		"metadata.json": map[string]any{
			"clusterName": bundle.Facts.Name, "clusterID": s.Cluster.UUID, "infraID": s.Cluster.InfraID,
			"featureSet": s.Config.FeatureSet, "customFeatureSet": nil,
		},
	}
	for name, config := range configs {
		values[name] = config
	}
	for name, value := range values {
		var err error
		if files[name], err = json.Marshal(value); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// payload is the files of bootstrap.ign that only the real bootstrap process reads; here they make it as large and
// as secret as the real one.
func (s *state) payload(admin []byte) []cluster.File {
	files := []cluster.File{
		cluster.NewFile("/opt/openshift/auth/kubeconfig", 0o600, admin),
		cluster.NewFile("/root/.docker/config.json", 0o600, []byte(s.Config.PullSecret)),
		cluster.NewFile("/usr/local/bin/installer-gather.sh", 0o555, []byte(gatherScript)),
	}
	for _, name := range slices.Sorted(maps.Keys(s.Manifests)) {
		files = append(files, cluster.NewFile("/opt/openshift/"+name, 0o600, s.Manifests[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(s.TLS)) {
		files = append(files, cluster.NewFile("/opt/openshift/tls/"+name, 0o600, s.TLS[name]))
	}
	return files
}

// readManifests is the manifests in an assets directory, as `create manifests` left them and people changed them.
func readManifests(directory string) (map[string][]byte, error) {
	found := map[string][]byte{}
	for _, part := range []string{"manifests", "openshift"} {
		entries, err := os.ReadDir(filepath.Join(directory, part))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			if !manifestName(entry.Name()) {
				continue
			}
			if found[part+"/"+entry.Name()], err = os.ReadFile(filepath.Join(directory, part, entry.Name())); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

func jsonTree(value any) (any, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var tree any
	return tree, json.Unmarshal(data, &tree)
}
