package node

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

const (
	manifestDirectory = "/etc/kubernetes/manifests"
	podsEvery         = 300 * time.Millisecond
	stopLimit         = 5 * time.Second
)

// pods is what the kubelet is for static pods: it runs what lies in the manifest directory, and ends what no longer
// does. There is no container runtime on the lab's nodes. An image is one program, fetched from beside the node image;
// it runs as a process on the node, which a pod with host networking and NET_ADMIN nearly is anyway.
type pods struct {
	root    string
	log     *log.Logger
	running map[string]*pod // by manifest
}

type pod struct {
	manifest []byte
	command  *exec.Cmd
	ended    chan struct{}
	failed   error
}

// manifest is the part of a Pod that is understood; what else a container says is refused.
type manifest struct {
	Kind string `json:"kind"`
	Spec struct {
		HostNetwork bool        `json:"hostNetwork"`
		Containers  []container `json:"containers"`
		Volumes     []volume    `json:"volumes"`
	} `json:"spec"`
}

type container struct {
	Name  string   `json:"name"`
	Image string   `json:"image"`
	Args  []string `json:"args"`
	Env   []struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	} `json:"env"`
	VolumeMounts []struct {
		Name      string `json:"name"`
		MountPath string `json:"mountPath"`
	} `json:"volumeMounts"`
}

type volume struct {
	Name     string `json:"name"`
	HostPath struct {
		Path string `json:"path"`
	} `json:"hostPath"`
}

// Run keeps the static pods as their manifests say until the context ends; then it ends them all.
func (p *pods) Run(ctx context.Context) {
	p.running = map[string]*pod{}
	for ctx.Err() == nil {
		p.step(ctx)
		sleep(ctx, podsEvery)
	}
	for name := range p.running {
		p.stop(name)
	}
}

func (p *pods) step(ctx context.Context) {
	wanted := map[string][]byte{}
	found, _ := filepath.Glob(filepath.Join(p.root, manifestDirectory, "[^.]*")) // the pattern is good
	for _, path := range found {
		if data, err := os.ReadFile(path); err == nil {
			wanted[filepath.Base(path)] = data
		}
	}
	for name, it := range p.running {
		if !bytes.Equal(wanted[name], it.manifest) {
			p.stop(name)
		}
	}
	for name, data := range wanted {
		it := p.running[name]
		if it != nil {
			select {
			case <-it.ended:
				p.log.Printf("static pod %s ended: %v; starting it again", name, it.failed)
			default:
				continue
			}
		}
		started, err := p.start(ctx, name, data)
		if err != nil {
			p.log.Printf("static pod %s: %v", name, err)
			sleep(ctx, time.Second)
			continue
		}
		p.running[name] = started
	}
}

func (p *pods) start(ctx context.Context, name string, data []byte) (*pod, error) {
	var told manifest
	if err := json.Unmarshal(data, &told); err != nil {
		return nil, fmt.Errorf("not a manifest in JSON: %w", err)
	}
	if told.Kind != "Pod" || !told.Spec.HostNetwork || len(told.Spec.Containers) != 1 {
		return nil, fmt.Errorf("the lab's kubelet runs pods of one container with hostNetwork, and this is none")
	}
	it := told.Spec.Containers[0]
	program, err := pull(ctx, p.root, it.Image)
	if err != nil {
		return nil, err
	}
	if err := p.mount(it, told.Spec.Volumes); err != nil {
		return nil, err
	}
	command := exec.Command(program, it.Args...)
	command.Env = []string{"PATH=/usr/bin:/usr/sbin", "HOME=/root"}
	for _, variable := range it.Env {
		command.Env = append(command.Env, variable.Name+"="+variable.Value)
	}
	output := &lines{log: p.log, prefix: it.Name + ": "}
	command.Stdout, command.Stderr = output, output
	if err := command.Start(); err != nil {
		return nil, err
	}
	p.log.Printf("static pod %s: started %s", name, it.Image)
	result := &pod{manifest: data, command: command, ended: make(chan struct{})}
	go func() {
		result.failed = command.Wait()
		close(result.ended)
	}()
	return result, nil
}

func (p *pods) stop(name string) {
	it := p.running[name]
	delete(p.running, name)
	_ = it.command.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-it.ended:
	case <-time.After(stopLimit):
		_ = it.command.Process.Kill()
		<-it.ended
	}
	p.log.Printf("static pod %s: stopped", name)
}

// mount puts a host's file where the container would see it.
func (p *pods) mount(it container, volumes []volume) error {
	sources := map[string]string{}
	for _, volume := range volumes {
		sources[volume.Name] = volume.HostPath.Path
	}
	for _, mount := range it.VolumeMounts {
		source := sources[mount.Name]
		if source == "" {
			return fmt.Errorf("volume %s is no hostPath", mount.Name)
		}
		target := filepath.Join(p.root, mount.MountPath)
		if existing, err := os.Readlink(target); err == nil && existing == source {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		if err := os.Symlink(source, target); err != nil {
			return err
		}
	}
	return nil
}

// lines writes each line of a pod's output to the log.
type lines struct {
	log    *log.Logger
	prefix string
	rest   []byte
}

func (l *lines) Write(data []byte) (int, error) {
	l.rest = append(l.rest, data...)
	for {
		line, rest, found := bytes.Cut(l.rest, []byte("\n"))
		if !found {
			return len(data), nil
		}
		l.log.Print(l.prefix + string(line))
		l.rest = rest
	}
}
