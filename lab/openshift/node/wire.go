package node

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

const (
	facilityBridge = "facility0"
	// wireInterface is what Equinix Metal's machines call their bond.
	wireInterface = "bond0"
)

// wire is the network of the API's pods on a machine that shares its kernel, and the addresses of all machines, with
// others: a network stack on the facility's bridge with the machine's private address, which nothing else has. So what
// such a pod does is seen on the wire, and what is sent to the machine is the pod's to receive.
type wire struct {
	address netip.Prefix
	gateway netip.Addr

	mu   sync.Mutex
	file *os.File // the network namespace, once there is one
}

// wireFromEnv is what LAB_WIRE says ("address/prefix gateway"); nil on a machine with a kernel of its own.
func wireFromEnv() *wire {
	address, gateway, _ := strings.Cut(os.Getenv("LAB_WIRE"), " ")
	prefix, err := netip.ParsePrefix(address)
	router, wrong := netip.ParseAddr(gateway)
	if err != nil || wrong != nil {
		return nil
	}
	return &wire{address: prefix, gateway: router}
}

// open is the network's namespace, which is made for the first pod. It lasts as long as this process and the pods.
func (w *wire) open(root string) (*os.File, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file != nil {
		return w.file, nil
	}
	name := "p" + w.address.Addr().String()
	_ = ip("link delete " + name) // of a former process of this machine, if it is there still
	thread, plugged, done := make(chan int), make(chan struct{}), make(chan error)
	var file *os.File
	go func() {
		runtime.LockOSThread() // for good: the thread, which is in the new network, ends with this function
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			file, err = currentNetwork()
		}
		thread <- unix.Gettid()
		<-plugged
		if err == nil {
			err = os.WriteFile(filepath.Join(root, realProc, "sys/net/ipv4/ip_forward"), []byte("1"), 0)
		}
		if err == nil {
			err = ip("link set lo up", "link set "+wireInterface+" up", fmt.Sprintf("address add %s dev %s", w.address, wireInterface),
				fmt.Sprintf("route add default via %s dev %s onlink", w.gateway, wireInterface))
		}
		done <- err
	}()
	err := ip(
		fmt.Sprintf("link add %s type veth peer name %s netns %d", name, wireInterface, <-thread),
		fmt.Sprintf("link set %s master %s up", name, facilityBridge),
		fmt.Sprintf("address replace %s/%d dev %s", w.gateway, w.address.Bits(), facilityBridge),
		// Of all other addresses of machines the kernel is told that they are its own.
		fmt.Sprintf("route replace unicast %s dev %s table local", w.address.Addr(), facilityBridge),
	)
	close(plugged)
	if inside := <-done; err == nil {
		err = inside
	}
	if err != nil {
		if file != nil {
			_ = file.Close() // and with it what was made
		}
		return nil, err
	}
	w.file = file
	return file, nil
}

// currentNetwork is the namespace of this thread's network. Simulated machines have a /proc of their own, so it is asked
// of a socket.
func currentNetwork() (*os.File, error) {
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(socket)
	namespace, err := unix.IoctlRetInt(socket, unix.SIOCGSKNS)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(namespace), "network"), nil
}

// ip runs commands of iproute2 in this thread's network.
func ip(commands ...string) error {
	command := exec.Command("ip", "-batch", "-")
	command.Stdin = strings.NewReader(strings.Join(commands, "\n") + "\n")
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("ip: %w: %s", err, bytes.TrimSpace(output))
	}
	return nil
}
