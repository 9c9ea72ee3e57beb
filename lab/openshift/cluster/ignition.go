package cluster

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Ignition, spec 3.2.0: the part of it that OpenShift's configs use.
type Ignition struct {
	Ignition Section  `json:"ignition"`
	Passwd   *Passwd  `json:"passwd,omitempty"`
	Storage  *Storage `json:"storage,omitempty"`
	Systemd  *Systemd `json:"systemd,omitempty"`
}

type Section struct {
	Version  string    `json:"version"`
	Config   *Merge    `json:"config,omitempty"`
	Security *Security `json:"security,omitempty"`
}

type Merge struct {
	Merge []Resource `json:"merge"`
}

type Security struct {
	TLS struct {
		CertificateAuthorities []Resource `json:"certificateAuthorities"`
	} `json:"tls"`
}

type Resource struct {
	Source string `json:"source"`
}

type Passwd struct {
	Users []User `json:"users"`
}

type User struct {
	Name              string   `json:"name"`
	SSHAuthorizedKeys []string `json:"sshAuthorizedKeys"`
}

type Storage struct {
	Files []File `json:"files"`
}

type File struct {
	Path      string   `json:"path"`
	Overwrite bool     `json:"overwrite"`
	Mode      int      `json:"mode"`
	Contents  Resource `json:"contents"`
}

type Systemd struct {
	Units []Unit `json:"units"`
}

type Unit struct {
	Name     string `json:"name"`
	Enabled  bool   `json:"enabled"`
	Contents string `json:"contents"`
}

const (
	specVersion = "3.2.0"
	unitName    = "lab-openshift.service"
	unitText    = `[Unit]
Description=OpenShift stand-in of the lab: %s
StartLimitIntervalSec=0

[Service]
ExecStart=/usr/local/bin/lab-openshift %s
Restart=always
RestartSec=1

[Install]
WantedBy=multi-user.target
`
)

// Units of a machine that bootstraps in place, and the script of the second one, under the names they have there.
const (
	bootkubeText = `[Unit]
Description=OpenShift stand-in of the lab: bootstrap in place
Wants=network-online.target
After=network-online.target

[Service]
ExecStart=/usr/local/bin/lab-openshift bootstrap-in-place
Restart=on-failure
RestartSec=1

[Install]
WantedBy=multi-user.target
`
	installToDiskText = `[Unit]
Description=Install to disk (lab stand-in)
Requires=bootkube.service
After=bootkube.service

[Service]
ExecStart=/bin/bash /usr/local/bin/install-to-disk.sh
Restart=on-failure
RestartSec=5

[Install]
WantedBy=multi-user.target
`
	installToDisk = `#!/bin/bash
set -eu
until [ -e /opt/openshift/.bootkube.done ]; do sleep 1; done
coreos-installer install --ignition-file /opt/openshift/master.ign %s
systemctl reboot
`
)

// What each role's machines get of the cluster's certificates. The bootstrap machine gets all of them.
var (
	workerFiles       = []string{"kube-apiserver-lb-signer.crt", "node-bootstrapper.crt", "node-bootstrapper.key"}
	controlPlaneFiles = []string{
		"root-ca.crt", "client-ca-bundle.crt",
		"kube-apiserver-lb-signer.crt", "kube-apiserver-lb-signer.key",
		"machine-config-server.crt", "machine-config-server.key",
		"kube-csr-signer.crt", "kube-csr-signer.key",
		"kube-control-plane-signer.crt", "kube-control-plane-signer.key",
		"node-bootstrapper.crt", "node-bootstrapper.key",
		"control-plane-bootstrapper.crt", "control-plane-bootstrapper.key",
		"admin-kubeconfig-client.crt", "admin-kubeconfig-client.key",
		ServiceAccountKey,
	}
)

// Pointer is master.ign or worker.ign: where a machine of that pool gets its real config, and whom to trust for it.
func (b Bundle) Pointer(pool string) Ignition {
	pointer := Ignition{Ignition: Section{
		Version:  specVersion,
		Config:   &Merge{Merge: []Resource{{Source: fmt.Sprintf("https://%s:22623/config/%s", b.Facts.Internal(), pool)}}},
		Security: &Security{},
	}}
	pointer.Ignition.Security.TLS.CertificateAuthorities = []Resource{Data(b.Files["root-ca.crt"])}
	return pointer
}

// PoolConfig is what the machine config server hands to the machines of a pool.
func (b Bundle) PoolConfig(pool string) (Ignition, error) {
	switch pool {
	case "master":
		local, err := json.Marshal(b.Kubeconfig("localhost"))
		if err != nil {
			return Ignition{}, err
		}
		return b.config("control-plane", controlPlaneFiles, []File{NewFile(LocalKubeconfig, 0o600, local)})
	case "worker":
		return b.config("worker", workerFiles, nil)
	}
	return Ignition{}, fmt.Errorf("there is no machine config pool %q", pool)
}

// BootstrapConfig is bootstrap.ign; payload is the manifests and other files that the real one carries, by path.
func (b Bundle) BootstrapConfig(payload []File) (Ignition, error) {
	return b.config("bootstrap", slices.Sorted(maps.Keys(b.Files)), payload)
}

// InPlaceConfig is the config of the live system in which a single node bootstraps itself; the disk is where
// install-to-disk.sh would put the result.
func (b Bundle) InPlaceConfig(payload []File, disk string) (Ignition, error) {
	config, err := b.BootstrapConfig(append(payload, NewFile("/usr/local/bin/install-to-disk.sh", 0o555, fmt.Appendf(nil, installToDisk, disk))))
	if err != nil {
		return Ignition{}, err
	}
	config.Systemd.Units = []Unit{
		{Name: "bootkube.service", Enabled: true, Contents: bootkubeText},
		{Name: "install-to-disk.service", Enabled: true, Contents: installToDiskText},
	}
	return config, nil
}

// NewFile is a file for an Ignition config.
func NewFile(path string, mode int, data []byte) File {
	return File{Path: path, Overwrite: true, Mode: mode, Contents: Data(data)}
}

func (b Bundle) config(service string, certificates []string, payload []File) (Ignition, error) {
	facts, err := json.MarshalIndent(b.Facts, "", "  ")
	if err != nil {
		return Ignition{}, err
	}
	files := []File{NewFile(Directory+"/cluster.json", 0o600, facts)}
	for _, name := range certificates {
		data, ok := b.Files[name]
		if !ok {
			return Ignition{}, fmt.Errorf("a %s machine needs %q, which is not there", service, name)
		}
		files = append(files, NewFile(Directory+"/tls/"+name, 0o600, data))
	}
	config := Ignition{
		Ignition: Section{Version: specVersion},
		Storage:  &Storage{Files: append(files, payload...)},
		Systemd: &Systemd{Units: []Unit{
			{Name: unitName, Enabled: true, Contents: fmt.Sprintf(unitText, service, service)},
		}},
	}
	if b.Facts.SSHKey != "" {
		config.Passwd = &Passwd{Users: []User{{Name: "core", SSHAuthorizedKeys: []string{b.Facts.SSHKey}}}}
	}
	return config, nil
}

// Data is a resource that is carried along.
func Data(data []byte) Resource {
	return Resource{Source: "data:text/plain;charset=utf-8;base64," + base64.StdEncoding.EncodeToString(data)}
}
