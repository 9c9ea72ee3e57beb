package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// box is a program with the files that it can see: those of its image, and of the machine what is mounted. It runs as a
// process on the machine, in a mount namespace of its own; there is no container runtime on the lab's nodes. Pods that
// run so have the machine's network anyway.
type box struct {
	Root        string   `json:"root"`
	Command     []string `json:"command"`
	Environment []string `json:"environment"`
	Mounts      []bind   `json:"mounts"`
	Joins       bool     `json:"joins"` // whether it has another network than the machine's

	network *os.File // the namespace of that network; nil: the machine's
}

// bind is a file or directory of the machine, and where the program sees it.
type bind struct {
	Source   string `json:"source"`
	Target   string `json:"target"`
	ReadOnly bool   `json:"readOnly"`
}

const (
	// boxFile is where the process that becomes the program finds its box: not on its command line, which everybody reads.
	boxFile = 3
	// networkFile is where it finds its network, if it joins one.
	networkFile = 4
	// realProc is where a simulated machine has the kernel's /proc; its own says what its own kernel would.
	realProc = "/run/simulated/proc"
)

// shared is what every program sees of the machine, where the machine has it.
var shared = []bind{
	{Source: "/proc", Target: "/proc"}, {Source: "/sys", Target: "/sys"}, {Source: "/dev", Target: "/dev"},
	{Source: realProc, Target: realProc},
	{Source: "/etc/resolv.conf", Target: "/etc/resolv.conf", ReadOnly: true},
	{Source: "/etc/hosts", Target: "/etc/hosts", ReadOnly: true},
	{Source: "/etc/nsswitch.conf", Target: "/etc/nsswitch.conf", ReadOnly: true},
}

// start runs the program; what it prints goes to `output`, line by line.
func (b box) start(output *lines) (*exec.Cmd, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	command := exec.Command(os.Args[0], "container") // units name the program by its whole path
	command.Env = b.Environment
	command.ExtraFiles = []*os.File{read}
	if b.Joins = b.network != nil; b.Joins {
		command.ExtraFiles = append(command.ExtraFiles, b.network)
	}
	command.Stdout, command.Stderr = output, output
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	err = errors.Join(command.Start(), read.Close()) // now only the process reads: once it is gone, writing fails
	if err == nil {
		if err = json.NewEncoder(write).Encode(b); err != nil {
			_ = command.Process.Kill() // it may have ended
			_ = command.Wait()
		}
	}
	return command, errors.Join(err, write.Close())
}

// run runs the program to its end.
func (b box) run(ctx context.Context, output *lines) error {
	command, err := b.start(output)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = command.Process.Kill() }) // it may have ended
	defer stop()
	if err := command.Wait(); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(b.Command[0]), err)
	}
	return nil
}

// Container becomes the program of the box that this process was given; it returns an exit code only if it cannot.
func Container() int {
	var it box
	file := os.NewFile(boxFile, "box")
	err := json.NewDecoder(file).Decode(&it)
	if err = errors.Join(err, file.Close()); err == nil {
		err = it.become()
	}
	fmt.Fprintln(os.Stderr, "container:", err)
	return 125
}

func (b box) become() error {
	if b.Joins {
		runtime.LockOSThread() // a network is a thread's, until the program is another one
		if err := unix.Setns(networkFile, unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("joining the network of this machine's pods: %w", err)
		}
		unix.CloseOnExec(networkFile)
	}
	// What is mounted here is no business of the machine's. On one that shares its kernel / is no mount point, and private.
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil && err != syscall.EINVAL {
		return err
	}
	for _, each := range append(append([]bind{}, shared...), b.Mounts...) {
		if err := each.mount(b.Root); err != nil {
			return err
		}
	}
	if err := syscall.Chroot(b.Root); err != nil {
		return err
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	return syscall.Exec(b.Command[0], b.Command, os.Environ())
}

func (m bind) mount(root string) error {
	info, err := os.Stat(m.Source)
	if errors.Is(err, fs.ErrNotExist) && isShared(m) {
		return nil
	}
	if err != nil {
		return err
	}
	target := filepath.Join(root, m.Target)
	if err := place(target, info.IsDir()); err != nil {
		return err
	}
	if err := syscall.Mount(m.Source, target, "", syscall.MS_BIND|syscall.MS_REC, ""); err != nil {
		return fmt.Errorf("mounting %s: %w", m.Source, err)
	}
	if !m.ReadOnly {
		return nil
	}
	// Best effort: what a user namespace has locked may not be mounted anew.
	_ = syscall.Mount("", target, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, "")
	return nil
}

func isShared(m bind) bool {
	for _, each := range shared {
		if each == m {
			return true
		}
	}
	return false
}

// place makes what something can be mounted over.
func place(path string, directory bool) error {
	if directory {
		return os.MkdirAll(path, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDONLY, 0o644)
	if err != nil {
		return err
	}
	return file.Close()
}

// stop ends a program, the patient way first.
func stop(command *exec.Cmd, ended <-chan struct{}) {
	_ = command.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-ended:
	case <-time.After(stopLimit):
		_ = command.Process.Kill()
		<-ended
	}
}

// environment is the variables of a container's specification, with what every process has.
func environment(told []variable) []string {
	result := []string{
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root",
		// Programs in Go collect their garbage when they need the memory: on an emulated processor that takes seconds.
		"GOGC=off", "GOMEMLIMIT=512MiB",
	}
	for _, each := range told {
		result = append(result, each.Name+"="+each.Value)
	}
	return result
}

// expand replaces $(NAME) in arguments by the variable of that name, as Kubernetes does.
func expand(arguments []string, told []variable) []string {
	pairs := []string{}
	for _, each := range told {
		pairs = append(pairs, "$("+each.Name+")", each.Value)
	}
	replacer := strings.NewReplacer(pairs...)
	result := make([]string, len(arguments))
	for i, argument := range arguments {
		result[i] = replacer.Replace(argument)
	}
	return result
}
