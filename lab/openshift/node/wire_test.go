package node

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const (
	wiredAddress = "203.0.113.7"
	wiredGateway = "203.0.113.6"
)

// wired is a process in a network of its own, the facility's: it opens the network of a machine's pods, runs a container
// there, and says what both see.
func wired(root string) int {
	err := ip("link set lo up", "link add "+facilityBridge+" type bridge", "link set "+facilityBridge+" up", "route add local 203.0.113.0/24 dev lo")
	own := wireFromEnv()
	var network *os.File
	if err == nil {
		network, err = own.open(root)
	}
	if err == nil {
		var again *os.File
		if again, err = own.open(root); again != network {
			err = errors.New("another one was made")
		}
	}
	if err == nil {
		its := box{Root: "/", Command: []string{must(exec.LookPath("ip")), "-brief", "address", "show"}, network: network}
		for _, each := range []string{"", "route"} {
			if each == "route" {
				its.Command = []string{its.Command[0], "route"}
			}
			err = errors.Join(err, its.run(context.Background(), &lines{log: log.New(os.Stdout, "", 0), prefix: "pods: "}))
		}
	}
	if err == nil {
		var output []byte
		output, err = exec.Command("ip", "route", "get", wiredAddress).CombinedOutput()
		fmt.Println("facility:", string(output))
	}
	if err == nil { // as a process that is started again does
		_, err = wireFromEnv().open(root)
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func TestPodsOfASharedKernelHaveTheMachinesPrivateAddressOnTheWire(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("it takes privileges of a user namespace's at least: unshare -Urm go test ./...")
	}
	root := t.TempDir()
	check(t, os.MkdirAll(filepath.Dir(filepath.Join(root, realProc)), 0o755))
	check(t, os.Symlink("/proc", filepath.Join(root, realProc)))
	command := exec.Command(must(os.Executable()), "wired", root)
	command.Env = append(os.Environ(), "LAB_WIRE="+wiredAddress+"/31 "+wiredGateway)
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET}
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	for _, wanted := range []string{wiredAddress + "/31", "pods: default via " + wiredGateway + " dev " + wireInterface, "facility: " + wiredAddress + " dev " + facilityBridge} {
		if !strings.Contains(string(output), wanted) {
			t.Errorf("%q is not in:\n%s", wanted, output)
		}
	}
}

func TestAMachineWithAKernelOfItsOwnHasNoWire(t *testing.T) {
	for _, told := range []string{"", "203.0.113.7/31", "nonsense 203.0.113.6"} {
		t.Setenv("LAB_WIRE", told)
		if own := wireFromEnv(); own != nil {
			t.Errorf("%q: %v", told, own)
		}
	}
}
