package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"metal-ipi.test/lab/openshift/kube"
)

const (
	manifestDirectory = "/etc/kubernetes/manifests"
	podsEvery         = 300 * time.Millisecond
	podRetry          = 2 * time.Second
	stopLimit         = 5 * time.Second
	// machineConfigServer listens on fixed ports of all addresses: on simulated machines, which share them, it is given
	// others, and what arrives at the machine's own is carried there.
	machineConfigServerName = "machine-config-server"
)

// pods is what the kubelet is for pods: it runs those whose manifests lie in the manifest directory, and those that the
// API has for this node, and ends what is in neither any more.
type pods struct {
	root      string
	addresses []string // of a machine that shares its kernel with others; else the empty one
	wire      *wire    // what pods of the API have for a network there; nil: the machine's
	log       *log.Logger
	// assigned is the API's pods for this node, by name, ready to run; nil where there is no API to ask.
	assigned func(ctx context.Context) map[string]podManifest
	running  map[string]*pod
	refused  map[string]string // why a pod was last refused
}

// pod is one that was started. All of it is written by the one goroutine that runs it, but for what ends it.
type pod struct {
	manifest podManifest
	cancel   context.CancelFunc
	ended    chan struct{}
	failed   error
}

// podManifest is the part of a Pod that is understood.
type podManifest struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	Spec podSpec `json:"spec"`

	text  []byte            // tells a changed manifest from the one that runs
	files map[string]string // of a pod of the API: directories that stand for volumes which come from there, by volume
	// started tells the API that the pod runs; nil for a static one.
	started func(ctx context.Context) error
}

type podSpec struct {
	HostNetwork    bool        `json:"hostNetwork"`
	NodeName       string      `json:"nodeName"`
	ServiceAccount string      `json:"serviceAccountName"`
	InitContainers []container `json:"initContainers"`
	Containers     []container `json:"containers"`
	Volumes        []volume    `json:"volumes"`
}

type container struct {
	Name            string     `json:"name"`
	Image           string     `json:"image"`
	Command         []string   `json:"command"`
	Args            []string   `json:"args"`
	Env             []variable `json:"env"`
	SecurityContext struct {
		Privileged bool `json:"privileged"`
	} `json:"securityContext"`
	VolumeMounts []volumeMount `json:"volumeMounts"`
}

type volumeMount struct {
	Name      string `json:"name"`
	MountPath string `json:"mountPath"`
	ReadOnly  bool   `json:"readOnly"`
}

type variable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	From  struct {
		Field struct {
			Path string `json:"fieldPath"`
		} `json:"fieldRef"`
	} `json:"valueFrom"`
}

type volume struct {
	Name     string `json:"name"`
	HostPath struct {
		Path string `json:"path"`
	} `json:"hostPath"`
	Secret struct {
		Name string `json:"secretName"`
	} `json:"secret"`
	ConfigMap struct {
		Name string `json:"name"`
	} `json:"configMap"`
	Projected *struct{} `json:"projected"` // the token of its service account, and what it verifies the API by
}

// parsePod reads a manifest, JSON or YAML.
func parsePod(data []byte) (podManifest, error) {
	var tree any
	if err := yaml.Unmarshal(data, &tree); err != nil {
		return podManifest{}, fmt.Errorf("not a manifest: %w", err)
	}
	encoded, err := json.Marshal(tree)
	if err != nil {
		return podManifest{}, fmt.Errorf("not a manifest: %w", err)
	}
	told := podManifest{text: data}
	if err := json.Unmarshal(encoded, &told); err != nil {
		return podManifest{}, fmt.Errorf("not a manifest: %w", err)
	}
	if told.Kind != "Pod" || !told.Spec.HostNetwork || len(told.Spec.Containers) == 0 {
		return podManifest{}, fmt.Errorf("the lab's kubelet runs pods with hostNetwork, and this is none")
	}
	return told, nil
}

// Run keeps the pods as their manifests say until the context ends; then it ends them all.
func (p *pods) Run(ctx context.Context) {
	p.running, p.refused = map[string]*pod{}, map[string]string{}
	for ctx.Err() == nil {
		p.step(ctx)
		sleep(ctx, podsEvery)
	}
	for name := range p.running {
		p.stop(name)
	}
}

func (p *pods) step(ctx context.Context) {
	wanted := p.static()
	if p.assigned != nil {
		maps.Copy(wanted, p.assigned(ctx))
	}
	for name, it := range p.running {
		if told, found := wanted[name]; !found || !bytes.Equal(told.text, it.manifest.text) {
			p.stop(name)
		}
	}
	for name, told := range wanted {
		if it := p.running[name]; it != nil {
			select {
			case <-it.ended:
				if errors.Is(it.failed, fs.ErrNotExist) || errors.Is(it.failed, errNoKeepalived) {
					p.refuse(name, it.failed) // the lab has no such image, and will not have it
					continue
				}
				p.log.Printf("pod %s ended: %v; starting it again", name, it.failed)
				sleep(ctx, podRetry)
			default:
				continue
			}
		}
		p.start(ctx, name, told)
	}
}

// static is the manifests of this machine's directory, by file.
func (p *pods) static() map[string]podManifest {
	found := map[string]podManifest{}
	paths, _ := filepath.Glob(filepath.Join(p.root, manifestDirectory, "[^.]*")) // the pattern is good
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			continue // it was taken away
		}
		name := filepath.Base(path)
		if it := p.running[name]; it != nil && bytes.Equal(it.manifest.text, data) {
			found[name] = it.manifest
			continue
		}
		told, err := parsePod(data)
		if err != nil {
			p.refuse(name, err)
			continue
		}
		found[name] = told
	}
	return found
}

// refuse says why a pod does not run, once.
func (p *pods) refuse(name string, err error) {
	if p.refused[name] != err.Error() {
		p.refused[name] = err.Error()
		p.log.Printf("pod %s: %v", name, err)
	}
}

func (p *pods) start(ctx context.Context, name string, told podManifest) {
	ctx, cancel := context.WithCancel(ctx)
	it := &pod{manifest: told, cancel: cancel, ended: make(chan struct{})}
	p.running[name] = it
	go func() {
		defer close(it.ended)
		defer cancel()
		it.failed = p.run(ctx, name, told)
	}()
}

func (p *pods) stop(name string) {
	it := p.running[name]
	delete(p.running, name)
	it.cancel()
	<-it.ended
	p.log.Printf("pod %s: stopped", name)
}

// run is the life of a pod: its first containers one after the other, then the others together until one of them ends.
func (p *pods) run(ctx context.Context, name string, told podManifest) error {
	if isPlatformPod(told) {
		return p.keepAddresses(ctx, told)
	}
	for _, it := range told.Spec.InitContainers {
		command, ended, err := p.launch(ctx, name, it, told)
		if err != nil {
			return err
		}
		select {
		case err := <-ended:
			if err != nil {
				return fmt.Errorf("%s: %w", it.Name, err)
			}
		case <-ctx.Done():
			_ = command.Process.Kill()
			<-ended
			return ctx.Err()
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	finished := make(chan struct{}, len(told.Spec.Containers))
	started := 0
	for _, it := range told.Spec.Containers {
		command, ended, err := p.launch(ctx, name, it, told)
		if err != nil {
			cancel(err)
			break
		}
		started++
		go func() {
			over := make(chan struct{})
			go func() {
				cancel(fmt.Errorf("%s: %v", it.Name, <-ended))
				close(over)
			}()
			<-ctx.Done()
			stop(command, over)
			finished <- struct{}{}
		}()
	}
	if told.started != nil && ctx.Err() == nil {
		_ = until(ctx, podRetry, p.log, "pod "+name+": its status", func() (bool, error) { // it ends with the context
			err := told.started(ctx)
			return err == nil || kube.Code(err) == http.StatusNotFound, err
		})
	}
	<-ctx.Done()
	for range started {
		<-finished
	}
	return context.Cause(ctx)
}

// launch starts one container; how it ended comes from the channel.
func (p *pods) launch(ctx context.Context, pod string, it container, told podManifest) (*exec.Cmd, <-chan error, error) {
	mounts, err := p.mounts(it, told)
	if err != nil {
		return nil, nil, err
	}
	from, err := pull(ctx, p.root, it.Image)
	if err != nil {
		return nil, nil, err
	}
	wanted, arguments := "", it.Args
	if len(it.Command) > 0 {
		wanted, arguments = it.Command[0], append(slices.Clone(it.Command[1:]), it.Args...)
	}
	program, err := from.program(ctx, wanted)
	if err != nil {
		return nil, nil, err
	}
	carried, err := p.carry(ctx, filepath.Base(program))
	if err != nil {
		return nil, nil, err
	}
	arguments = append(expand(arguments, it.Env), carried...)
	its := box{
		Root: from.root, Command: append([]string{program}, arguments...), Environment: environment(it.Env), Mounts: mounts,
	}
	if p.wire != nil && told.files != nil && len(carried) == 0 {
		if its.network, err = p.wire.open(p.root); err != nil {
			return nil, nil, fmt.Errorf("the network of this machine's pods: %w", err)
		}
		its.Mounts = append(its.Mounts, bind{Source: filepath.Join(p.root, realProc), Target: "/proc"})
	}
	command, err := its.start(&lines{log: p.log, prefix: it.Name + ": "})
	if err != nil {
		return nil, nil, err
	}
	p.log.Printf("pod %s: started %s of %s", pod, filepath.Base(program), it.Image)
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	return command, ended, nil
}

// mounts is what a container sees of the machine.
func (p *pods) mounts(it container, told podManifest) ([]bind, error) {
	result := []bind{}
	for _, mount := range it.VolumeMounts {
		at := slices.IndexFunc(told.Spec.Volumes, func(each volume) bool { return each.Name == mount.Name })
		if at < 0 {
			return nil, fmt.Errorf("there is no volume %s", mount.Name)
		}
		path := told.Spec.Volumes[at].HostPath.Path
		source := filepath.Join(p.root, path)
		switch {
		case told.files[mount.Name] != "":
			source = told.files[mount.Name] // made on this machine for the pod, and labelled so
		case path == "":
			return nil, fmt.Errorf("volume %s is of a kind that the lab's kubelet does not know", mount.Name)
		case !it.SecurityContext.Privileged:
			return nil, fmt.Errorf("SELinux keeps %s from container %s, which is not privileged", path, it.Name)
		}
		result = append(result, bind{Source: source, Target: mount.MountPath, ReadOnly: mount.ReadOnly})
	}
	return result, nil
}

// carry gives a program that would listen on all addresses of a shared kernel other ports, and carries there what
// arrives at this machine's own, until the context ends. The result is further arguments.
func (p *pods) carry(ctx context.Context, program string) ([]string, error) {
	if len(p.addresses) == 0 || p.addresses[0] == "" || program != machineConfigServerName {
		return nil, nil
	}
	arguments := []string{}
	for option, port := range map[string]string{"--secure-port": machinePort, "--insecure-port": "22624"} {
		other, err := freePort()
		for _, address := range p.addresses {
			if err == nil {
				err = relay(ctx, net.JoinHostPort(address, port), "127.0.0.1:"+strconv.Itoa(other))
			}
		}
		if err != nil {
			return nil, fmt.Errorf("port %s: %w", port, err)
		}
		arguments = append(arguments, option, strconv.Itoa(other))
	}
	return arguments, nil
}

// lines writes each line of a pod's output to the log. The machine config programs print whole configurations, secrets
// included: of what they write in klog's form only the lines that begin an entry are kept, and none that is too long.
type lines struct {
	log    *log.Logger
	prefix string
	rest   []byte
	skips  bool // the rest of a line that is too long
	klog   bool // whether the program writes klog's form
}

const longest = 400

var klogEntry = regexp.MustCompile(`^[IWEF]\d{4} `)

func (l *lines) Write(data []byte) (int, error) {
	l.rest = append(l.rest, data...)
	for {
		line, rest, found := bytes.Cut(l.rest, []byte("\n"))
		if !found {
			if len(l.rest) > longest {
				l.rest, l.skips = nil, true
			}
			return len(data), nil
		}
		entry := klogEntry.Match(line)
		l.klog = l.klog || entry
		if l.rest = rest; l.skips || len(line) > longest || (l.klog && !entry) {
			l.skips = false
			continue
		}
		l.log.Print(l.prefix + strings.TrimRight(string(line), "\r"))
	}
}
