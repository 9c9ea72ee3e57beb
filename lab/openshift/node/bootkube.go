package node

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"
	"time"

	"metal-ipi.test/lab/openshift/cluster"
	"metal-ipi.test/lab/openshift/kube"
)

const (
	bootkubeScript = "/usr/local/bin/bootkube.sh"
	bootstrapPod   = "machineconfigoperator-bootstrap-pod.yaml"
	operatorSpace  = "openshift-machine-config-operator"
	adminFile      = "auth/kubeconfig"
	clusterProfile = "self-managed-high-availability"
	profilePrefix  = "include.release.openshift.io/"
	ciphers        = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256," +
		"TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"
)

// Bootkube takes the place of bootkube.sh below the real unit: it does what that does in its order, with the real
// installer's files, and the real programs where the lab's release image has them. Steps whose programs are not to be had
// are left out. On a single node's disk it takes the place of what bootkube.service does after the restart.
func Bootkube() int {
	if _, err := os.Stat(filepath.Join(os.Getenv("LAB_ROOT"), cluster.Directory, "cluster.json")); err == nil {
		return Main(BootstrapInPlace) // a machine of the stand-in for openshift-install
	}
	return supervised("bootkube", func(ctx context.Context, host machine) error {
		if _, err := os.Stat(filepath.Join(host.root, bootstrapSecrets, "kubeconfig")); err == nil {
			return afterRestart(ctx, host)
		}
		work, err := newBootkube(host)
		if err != nil {
			return err
		}
		return work.run(ctx)
	})
}

// bootkube is the work of the bootstrap machine.
type bootkube struct {
	host    machine
	assets  string // the directory of the installer's files
	release string // the release image
	inPlace bool
	facts   *releaseFacts
	images  map[string]string
}

func newBootkube(host machine) (*bootkube, error) {
	script, err := os.ReadFile(filepath.Join(host.root, bootkubeScript))
	if err != nil {
		return nil, err
	}
	download, err := os.ReadFile(filepath.Join(host.root, "/usr/local/bin/release-image-download.sh"))
	if err != nil {
		return nil, err
	}
	work := &bootkube{
		host: host, assets: filepath.Join(host.root, assetDirectory), inPlace: strings.Contains(string(script), "BOOTSTRAP_INPLACE=true"),
	}
	for line := range strings.Lines(string(download)) {
		if name, found := strings.CutPrefix(strings.TrimSpace(line), "RELEASE_IMAGE="); found {
			work.release = name
		}
	}
	if work.release == "" {
		return nil, errors.New("release-image-download.sh names no release image")
	}
	return work, nil
}

// run does all of it beside an API server, whose end it does not outlive.
func (b *bootkube) run(ctx context.Context) error {
	if err := b.readRelease(ctx); err != nil {
		return err
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	serving, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := b.serveAPI(serving); err != nil {
			fail(fmt.Errorf("serving the API: %w", err))
		}
	}()
	endAPI := func() {
		cancel()
		<-ended
	}
	defer endAPI()
	if err := b.stages(ctx, endAPI); err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	return nil
}

// stages is what is done one after the other; `endAPI` ends this machine's API server. A stage that was finished before is
// left out. The last one is to say so: bootkube.service does not start again after it.
func (b *bootkube) stages(ctx context.Context, endAPI func()) error {
	if err := b.render(ctx); err != nil {
		return err
	}
	if err := b.bootstrapCluster(ctx); err != nil {
		return err
	}
	if b.inPlace {
		if err := b.leaveIgnition(ctx); err != nil {
			return err
		}
		endAPI()
		return b.done()
	}
	b.host.log.Print("Tearing down temporary bootstrap control plane...")
	if err := os.Remove(filepath.Join(b.host.root, manifestDirectory, bootstrapPod)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	endAPI()
	if err := b.reportProgress(ctx); err != nil {
		return err
	}
	return b.done()
}

// bootstrapCluster is cluster-bootstrap's part: it ends once the cluster's first objects are there and, where there are
// other machines, their control plane runs.
func (b *bootkube) bootstrapCluster(ctx context.Context) error {
	if finished(b.host.root, clusterFormed) {
		return nil
	}
	if err := b.applyManifests(ctx); err != nil {
		return err
	}
	if !b.inPlace {
		if err := b.awaitControlPlane(ctx); err != nil {
			return err
		}
	}
	return finish(b.host.root, clusterFormed)
}

func (b *bootkube) done() error {
	if err := finish(b.host.root, allDone); err != nil {
		return err
	}
	b.host.log.Print("bootkube.service complete")
	return nil
}

// readRelease reads the release image's list of images.
func (b *bootkube) readRelease(ctx context.Context) error {
	var from image
	err := until(ctx, retryEvery, b.host.log, "Pull failed. Retrying "+b.release, func() (done bool, err error) {
		from, err = pull(ctx, b.host.root, b.release)
		return err == nil, err
	})
	if err != nil {
		return err
	}
	data, err := os.ReadFile(filepath.Join(from.root, "release-manifests/image-references"))
	if err != nil {
		return err
	}
	var stream struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Spec struct {
			Tags []struct {
				Name string `json:"name"`
				From struct {
					Name string `json:"name"`
				} `json:"from"`
			} `json:"tags"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(data, &stream); err != nil {
		return fmt.Errorf("image-references: %w", err)
	}
	b.images = map[string]string{}
	for _, tag := range stream.Spec.Tags {
		b.images[tag.Name] = tag.From.Name
	}
	if b.facts, err = readFacts(b.assets, stream.Metadata.Name); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(b.assets, "image-references"), data, 0o644)
}

// serveAPI keeps the bootstrap control plane until the context ends.
func (b *bootkube) serveAPI(ctx context.Context) error {
	place, err := readFacility(b.host.root)
	if err != nil {
		return err
	}
	files := assets{tls: filepath.Join(b.assets, "tls"), kubeconfig: filepath.Join(b.assets, adminFile)}
	return apiFromAssets(place, b.host, files, b.facts).Run(ctx)
}

// apiFromAssets is a kube-apiserver of the real installer's files.
func apiFromAssets(place cluster.Native, host machine, files assets, facts *releaseFacts) *native {
	return &native{
		place: place, network: host.network, log: host.log,
		hello: func() (any, error) { return files.hello(facts) },
	}
}

// render makes the manifests that the API's own program and the machine config programs make, and has the kubelet start
// the machine config server.
func (b *bootkube) render(ctx context.Context) error {
	if finished(b.host.root, configRendered) {
		return nil
	}
	if err := b.copyAll("openshift/*", "manifests"); err != nil {
		return err
	}
	b.host.log.Print("Rendering api manifests...")
	err := b.execute(ctx, "cluster-config-api", "render",
		"--asset-output-dir=/assets/api-bootstrap", "--rendered-manifest-dir=/assets/manifests",
		"--cluster-profile="+clusterProfile, "--payload-version="+b.facts.Release)
	if err != nil {
		return err
	}
	b.host.log.Print("Rendering MCO manifests...")
	err = b.execute(ctx, "machine-config-operator", "machine-config-operator", "bootstrap",
		"--root-ca=/assets/tls/root-ca.crt", "--kube-ca=/assets/tls/kube-apiserver-complete-client-ca-bundle.crt",
		"--config-file=/assets/manifests/cluster-config.yaml", "--dest-dir=/assets/mco-bootstrap",
		"--pull-secret=/assets/manifests/openshift-config-secret-pull-secret.yaml", "--release-image="+b.release,
		"--image-references=/assets/image-references", "--payload-version="+b.facts.Release)
	if err != nil {
		return err
	}
	copies := [][2]string{
		{"mco-bootstrap/bootstrap/manifests/*", "/etc/mcc/bootstrap"}, {"openshift/*", "/etc/mcc/bootstrap"},
		{"manifests/*", "/etc/mcc/bootstrap"}, {"mco-bootstrap/manifests/*", "manifests"},
	}
	resources, err := filepath.Glob(b.path("mco-bootstrap/baremetal/static-pod-resources/*"))
	if err != nil {
		return err
	}
	for _, each := range resources {
		name := filepath.Base(each)
		copies = append(copies, [2]string{"mco-bootstrap/baremetal/static-pod-resources/" + name + "/*", "/etc/kubernetes/static-pod-resources/" + name})
	}
	copies = append(copies, [2]string{"mco-bootstrap/baremetal/manifests/*", manifestDirectory}) // last: they need the others
	for _, each := range copies {
		if err := b.copyAll(each[0], each[1]); err != nil {
			return err
		}
	}
	files := [][2]string{
		{"tls/machine-config-server.crt", "/etc/ssl/mcs/tls.crt"}, {"tls/machine-config-server.key", "/etc/ssl/mcs/tls.key"},
		{"auth/kubeconfig-kubelet", "/etc/mcs/kubeconfig"},
		{"mco-bootstrap/bootstrap/" + bootstrapPod, manifestDirectory + "/" + bootstrapPod}, // last: it starts what needs the others
	}
	if err := os.MkdirAll(b.path("/etc/mcs/bootstrap"), 0o755); err != nil {
		return err
	}
	for _, each := range files {
		if err := copyFile(b.path(each[0]), b.path(each[1])); err != nil {
			return err
		}
	}
	return finish(b.host.root, configRendered)
}

// execute runs a program of one of the release's images, with the installer's files at /assets.
func (b *bootkube) execute(ctx context.Context, name, program string, arguments ...string) error {
	if b.images[name] == "" {
		return fmt.Errorf("%s has no image %s", b.release, name)
	}
	from, err := pull(ctx, b.host.root, b.images[name])
	if err != nil {
		return err
	}
	path, err := from.program(ctx, program)
	if err != nil {
		return err
	}
	its := box{
		Root: from.root, Command: append([]string{path}, arguments...), Mounts: []bind{{Source: b.assets, Target: "/assets"}},
		Environment: environment(nil),
	}
	return its.run(ctx, &lines{log: b.host.log, prefix: program + ": "})
}

// path is where a file is: below the installer's directory, or anywhere on the machine.
func (b *bootkube) path(name string) string {
	if strings.HasPrefix(name, "/") {
		return filepath.Join(b.host.root, name)
	}
	return filepath.Join(b.assets, name)
}

func (b *bootkube) copyAll(pattern, target string) error {
	found, err := filepath.Glob(b.path(pattern))
	if err != nil {
		return err
	}
	for _, source := range found {
		if err := copyFile(source, filepath.Join(b.path(target), filepath.Base(source))); err != nil {
			return err
		}
	}
	return nil
}

func copyFile(source, target string) error {
	data, err := os.ReadFile(source)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	// In one step: the kubelet reads what is half there.
	fresh := filepath.Join(filepath.Dir(target), "."+filepath.Base(target)+".new")
	if err := os.WriteFile(fresh, data, 0o600); err != nil {
		return err
	}
	return os.Rename(fresh, target)
}

// admin is the administrator's way to the cluster's API.
func (b *bootkube) admin() (access, error) {
	way, _, _, err := readKubeconfig(filepath.Join(b.assets, adminFile))
	return way, err
}

// ownAPI is a client of this machine's API server, under a name that is in its certificate.
func (m machine) ownAPI(way access) *kube.Client {
	network := m.network
	address := cmp.Or(network.Source, "127.0.0.1")
	network.Static = map[string][]string{"localhost": {address}}
	way.server = "https://localhost:" + apiPort
	return way.bootstrapper(network)
}

// applyManifests has the cluster's first objects be there: the installer's, the release's definitions of their kinds, and
// what the machine config operator will keep true.
func (b *bootkube) applyManifests(ctx context.Context) error {
	way, err := b.admin()
	if err != nil {
		return err
	}
	client := b.host.ownAPI(way)
	defer client.Close()
	rendered, err := b.awaitRendered(ctx)
	if err != nil {
		return err
	}
	release, err := pull(ctx, b.host.root, b.release)
	if err != nil {
		return err
	}
	paths := rendered
	for _, pattern := range []string{b.path("api-bootstrap/manifests/*"), filepath.Join(release.root, "release-manifests/*.yaml")} {
		found, _ := filepath.Glob(pattern) // the patterns are good
		paths = append(paths, found...)
	}
	manifests, _ := filepath.Glob(b.path("manifests/*")) // the pattern is good
	objects, err := readObjects(manifests, parseManifest)
	if err != nil {
		return err
	}
	others, err := readObjects(paths, parseObjects)
	if err != nil {
		return err
	}
	objects = append(objects, ofFeatureSet(others, featureSet(objects))...)
	operator, err := b.operatorObjects(ctx)
	if err != nil {
		return err
	}
	b.host.log.Print("Starting cluster-bootstrap...")
	return newApplier(client, b.host.log).Apply(ctx, needed(append(objects, operator...)))
}

// featureSet is what the installer's FeatureGate says: Default where it names none.
func featureSet(objects []kube.Object) string {
	for _, object := range objects {
		if object["kind"] == "FeatureGate" {
			spec, _ := object["spec"].(kube.Object)
			named, _ := spec["featureSet"].(string)
			return cmp.Or(named, "Default")
		}
	}
	return "Default"
}

// ofFeatureSet is the release's manifests that a cluster of a feature set, and of the self-managed profile, gets: those
// that name it, and those that name none, as the cluster version operator has it (library-go, pkg/manifest).
func ofFeatureSet(objects []kube.Object, set string) []kube.Object {
	return slices.DeleteFunc(objects, func(object kube.Object) bool {
		annotations, _ := metadata(object)["annotations"].(kube.Object)
		told, found := annotations["release.openshift.io/feature-set"].(string)
		if found && !slices.Contains(strings.Split(told, ","), set) {
			return true
		}
		profiles := slices.DeleteFunc(slices.Collect(maps.Keys(annotations)), func(name string) bool {
			return !strings.HasPrefix(name, profilePrefix)
		})
		return len(profiles) > 0 && !slices.Contains(profiles, profilePrefix+clusterProfile)
	})
}

// awaitRendered waits for what the machine config controller renders, and lists it.
func (b *bootkube) awaitRendered(ctx context.Context) ([]string, error) {
	controller := b.path("/etc/mcs/bootstrap/controller-config/machine-config-controller.yaml")
	for ctx.Err() == nil {
		if _, err := os.Stat(controller); err == nil { // it is written last
			break
		}
		sleep(ctx, retryEvery/2)
	}
	found := []string{controller}
	for _, part := range []string{"machine-configs", "machine-pools"} {
		paths, _ := filepath.Glob(b.path("/etc/mcs/bootstrap/" + part + "/*.yaml")) // the pattern is good
		found = append(found, paths...)
	}
	return found, ctx.Err()
}

// operatorObjects is what the machine config operator makes in the cluster, from its own manifests: the machine config
// server of the control plane, whom it is let in as, and the token that nodes join with.
func (b *bootkube) operatorObjects(ctx context.Context) ([]kube.Object, error) {
	from, err := pull(ctx, b.host.root, b.images["machine-config-operator"])
	if err != nil {
		return nil, err
	}
	paths, _ := filepath.Glob(filepath.Join(from.root, "manifests/machineconfigserver/*.yaml")) // the pattern is good
	values := map[string]any{
		"TargetNamespace": operatorSpace, "APIServerURL": "https://api-int." + b.facts.Domain + ":" + apiPort,
		"ReleaseVersion": b.facts.Release, "TLSMinVersion": "VersionTLS12", "TLSCipherSuites": strings.Split(ciphers, ","),
		"Images": map[string]string{"MachineConfigOperator": b.images["machine-config-operator"]},
	}
	objects := []kube.Object{}
	for _, path := range paths {
		if strings.HasPrefix(filepath.Base(path), "kube-apiserver-serving-ca") {
			continue // rendered by the operator's bootstrap already
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		parsed, err := template.New(filepath.Base(path)).Funcs(template.FuncMap{"join": strings.Join}).Parse(string(text))
		if err != nil {
			return nil, err
		}
		var rendered strings.Builder
		if err := parsed.Execute(&rendered, values); err != nil {
			return nil, err
		}
		found, err := parseObjects([]byte(rendered.String()))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
		}
		objects = append(objects, found...)
	}
	return objects, nil
}

// awaitControlPlane waits until the control plane serves the API by itself: two of three machines are enough, as they are
// for the real one (wait-for-ha-api.sh).
func (b *bootkube) awaitControlPlane(ctx context.Context) error {
	way, err := b.admin()
	if err != nil {
		return err
	}
	client := b.host.ownAPI(way)
	defer client.Close()
	settings := &tls.Config{RootCAs: way.roots, ServerName: "api-int." + b.facts.Domain, MinVersion: tls.VersionTLS12}
	wanted := min(b.facts.ControlPlane, 2)
	return until(ctx, pollEvery, b.host.log, "waiting for the control plane", func() (bool, error) {
		seen, err := client.List(ctx, kube.Nodes)
		if err != nil {
			return false, err
		}
		renewed, err := renewals(ctx, client)
		if err != nil {
			return false, err
		}
		count := answering(ctx, settings, b.host.network, readyAddresses(controlPlaneNodes(seen, renewed, time.Now())))
		return count >= wanted, fmt.Errorf("%d of %d API servers of the control plane answer, %d are needed", count, b.facts.ControlPlane, wanted)
	})
}

// reportProgress says in the cluster, through its own API, that bootstrapping is complete: progress.service's part.
func (b *bootkube) reportProgress(ctx context.Context) error {
	way, err := b.admin()
	if err != nil {
		return err
	}
	client := way.bootstrapper(b.host.network)
	defer client.Close()
	b.host.log.Print("Reporting install progress...")
	return complete(ctx, client, b.host.log)
}

// complete makes the ConfigMap that says so, again and again until it is there.
func complete(ctx context.Context, client *kube.Client, logger *log.Logger) error {
	return until(ctx, retryEvery, logger, "saying that bootstrapping is complete", func() (bool, error) {
		err := client.Do(ctx, http.MethodPost, kube.ConfigMaps, bootstrapObject("complete"), nil)
		return err == nil || kube.Code(err) == http.StatusConflict, err
	})
}

// leaveIgnition writes what a single node's disk gets: the control plane's configuration from this machine's own machine
// config server, with what bootkube has made. It is bootstrap-in-place.sh's part, and cluster-bootstrap's.
func (b *bootkube) leaveIgnition(ctx context.Context) error {
	address := cmp.Or(b.host.network.Source, "localhost")
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(address, "22624")+"/config/master", nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", "application/vnd.coreos.ignition+json;version=3.2.0")
	var original []byte
	err = until(ctx, retryEvery, b.host.log, "waiting for the machine config server", func() (done bool, err error) {
		original, err = answerTo(request)
		return err == nil, err
	})
	if err != nil {
		return err
	}
	config, err := b.inPlaceConfig(original)
	if err != nil {
		return err
	}
	b.host.log.Print("Adding bootstrap control plane to master ignition")
	return os.WriteFile(filepath.Join(b.assets, "master.ign"), config, 0o600)
}

// answerTo is the whole of what a server answers.
func answerTo(request *http.Request) ([]byte, error) {
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, errors.New(answer.Status)
	}
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	return data, nil
}

// inPlaceConfig follows bootstrap-in-place/master-update.fcc, as far as the lab's machines need it.
func (b *bootkube) inPlaceConfig(original []byte) ([]byte, error) {
	files := []cluster.File{}
	keys, err := filepath.Glob(filepath.Join(b.assets, "tls/*"))
	if err != nil {
		return nil, err
	}
	slices.Sort(keys)
	sources := map[string]string{
		bootstrapSecrets + "/kubeconfig":                   "auth/kubeconfig-loopback",
		"/opt/openshift/original_cvo_overrides.patch":      "original_cvo_overrides.patch",
		"/usr/local/bin/bootstrap-in-place-post-reboot.sh": "bootstrap-in-place/bootstrap-in-place-post-reboot.sh",
		"/usr/local/bin/installer-gather.sh":               "/usr/local/bin/installer-gather.sh",
		"/usr/local/bin/installer-masters-gather.sh":       "/usr/local/bin/installer-masters-gather.sh",
	}
	for _, key := range keys {
		sources[bootstrapSecrets+"/"+filepath.Base(key)] = "tls/" + filepath.Base(key)
	}
	for target, source := range sources {
		data, err := os.ReadFile(b.path(source))
		if err != nil {
			return nil, err
		}
		mode := 0o600
		if strings.HasSuffix(target, ".sh") {
			mode = 0o555
		}
		files = append(files, cluster.NewFile(target, mode, data))
	}
	slices.SortFunc(files, func(x, y cluster.File) int { return strings.Compare(x.Path, y.Path) })
	config := cluster.Ignition{
		Ignition: cluster.Section{Version: "3.2.0", Config: &cluster.Merge{Merge: []cluster.Resource{cluster.Data(original)}}},
		Storage:  &cluster.Storage{Files: files},
		Systemd:  &cluster.Systemd{Units: []cluster.Unit{{Name: "bootkube.service", Enabled: true, Contents: postRestartUnit}}},
	}
	return json.Marshal(config)
}

// postRestartUnit is the one of master-update.fcc.
const postRestartUnit = `[Unit]
Description=Bootkube - bootstrap in place post reboot
Wants=kubelet.service
After=kubelet.service
ConditionPathExists=/etc/kubernetes/bootstrap-secrets/kubeconfig
[Service]
Type=oneshot
ExecStart=/usr/local/bin/bootstrap-in-place-post-reboot.sh
RestartSec=5s
[Install]
WantedBy=multi-user.target
`

// afterRestart is what bootstrap-in-place-post-reboot.sh does: it serves the API until the node has one of its own, says
// that bootstrapping is complete, approves the node's requests, and takes the secrets away.
func afterRestart(ctx context.Context, host machine) error {
	place, err := readFacility(host.root)
	if err != nil {
		return err
	}
	secrets := filepath.Join(host.root, bootstrapSecrets)
	files := assets{tls: secrets, kubeconfig: filepath.Join(secrets, "kubeconfig")}
	serving, endAPI := context.WithCancel(ctx)
	defer endAPI()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		apiFromAssets(place, host, files, nil).runOncePortIsFree(serving) // the kubelet may have it, for the node's own API server
	}()
	way, _, _, err := readKubeconfig(files.kubeconfig)
	if err != nil {
		return err
	}
	client := host.ownAPI(way)
	defer client.Close()
	if err := complete(ctx, client, host.log); err != nil {
		return err
	}
	if err := approveUntilReady(ctx, client, host); err != nil {
		return err
	}
	endAPI()
	<-ended
	host.log.Print("node is ready")
	return os.RemoveAll(secrets)
}

// approveUntilReady approves whatever asks until the node of the control plane is ready, as the real one does.
func approveUntilReady(ctx context.Context, client *kube.Client, host machine) error {
	return until(ctx, retryEvery, host.log, "Approving csrs ...", func() (bool, error) {
		nodes, err := client.List(ctx, kube.Nodes)
		if err != nil {
			return false, err
		}
		renewed, err := renewals(ctx, client)
		if err != nil {
			return false, err
		}
		for _, node := range controlPlaneNodes(nodes, renewed, time.Now()) {
			if kube.Is(node.Status.Conditions, "Ready", "True") {
				return true, nil
			}
		}
		return false, approveAll(ctx, client)
	})
}

func approveAll(ctx context.Context, all *kube.Client) error {
	requests, err := all.List(ctx, kube.CSRs)
	if err != nil {
		return err
	}
	for _, object := range requests {
		if status, _ := object["status"].(kube.Object); len(status) > 0 {
			continue
		}
		key := kube.CSRs + "/" + fmt.Sprint(metadata(object)["name"])
		err := all.Update(ctx, key, "approval", func(current kube.Object) (kube.Object, error) {
			approved := condition("Approved", "KubectlApprove", "This CSR was approved by the bootstrap of a single node.", time.Now())
			return withStatus(current, "conditions", []kube.Condition{approved}), nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
