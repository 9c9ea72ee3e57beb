package node

import (
	"context"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"metal-ipi.test/lab/openshift/kube"
)

// must is a value whose error ends the test.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// check ends the test for an error.
func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// testMachine is a machine of its own directory; what it logs can be read.
func testMachine(t *testing.T) (machine, *told) {
	t.Helper()
	heard := &told{}
	return machine{name: "node0", root: t.TempDir(), network: kube.Network{}, log: log.New(heard, "", 0)}, heard
}

// haveProgram puts a shell script of that name before all other programs. It writes its arguments into a file; the result
// reads those of all its runs, a line each.
func haveProgram(t *testing.T, name, script string) func() []string {
	t.Helper()
	directory := t.TempDir()
	calls := filepath.Join(directory, "calls")
	put(t, filepath.Join(directory, name), "#!/bin/sh\necho \"$*\" >> "+calls+"\n"+script+"\n", 0o755)
	t.Setenv("PATH", directory+":"+os.Getenv("PATH"))
	return func() []string { return strings.FieldsFunc(readOr(calls, ""), func(r rune) bool { return r == '\n' }) }
}

// serveRegistry has machines pull their images from this handler until the test ends.
func serveRegistry(t *testing.T, handler http.Handler) {
	t.Helper()
	server := httptest.NewServer(handler)
	before := registry
	registry = server.URL + "/"
	t.Cleanup(func() { server.Close(); registry = before })
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func TestFirstBootRestartsTheMachineOnce(t *testing.T) {
	host, heard := testMachine(t)
	restarts := haveProgram(t, "systemctl", "")
	put(t, filepath.Join(host.root, encapsulated), "{}", 0o600)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- firstBoot(ctx, host) }()
	heard.await(t, "initiating reboot: Completing firstboot provisioning")
	select {
	case err := <-ended:
		t.Fatalf("it ended before the machine went down, so that the kubelet starts: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	cancel()
	check(t, <-ended)
	if exists(filepath.Join(host.root, encapsulated)) || !exists(filepath.Join(host.root, encapsulated+".bak")) {
		t.Error("the file is not renamed")
	}
	if err := firstBoot(context.Background(), host); err != nil { // after the restart it ends by itself
		t.Error(err)
	}
	if calls := restarts(); len(calls) != 1 || calls[0] != "reboot" {
		t.Errorf("systemctl %q", calls)
	}
}

func TestFirstBootFails(t *testing.T) {
	host, _ := testMachine(t)
	restarts := haveProgram(t, "systemctl", "echo no bus; exit 1")
	put(t, filepath.Join(host.root, encapsulated), "{}", 0o600)
	put(t, filepath.Join(host.root, liveMarker), "", 0o600)
	if err := firstBoot(context.Background(), host); err == nil || !strings.Contains(err.Error(), "runs from memory") {
		t.Error(err)
	}
	if !exists(filepath.Join(host.root, encapsulated)) || len(restarts()) > 0 {
		t.Error("a system that runs from memory was restarted")
	}
	check(t, os.Remove(filepath.Join(host.root, liveMarker)))
	if err := firstBoot(context.Background(), host); err == nil || !strings.Contains(err.Error(), "no bus") {
		t.Error(err)
	}
}

// fakeIP answers as `ip -json` does for a machine with one interface, and does nothing else.
const fakeIP = `
case "$*" in
"-json -4 route show default") echo '[{"dst":"default","gateway":"192.0.2.1","dev":"DEVICE","protocol":"dhcp","prefsrc":"192.0.2.10"}]' ;;
"-json address show dev DEVICE") echo '[{"ifname":"DEVICE","address":"52:54:00:00:00:01","addr_info":[
    {"family":"inet","local":"192.0.2.10","prefixlen":24,"scope":"global"},
    {"family":"inet","local":"192.0.2.30","prefixlen":32,"scope":"global"},
    {"family":"inet6","local":"fe80::1","prefixlen":64,"scope":"link"}]}]' ;;
"-json -4 route show dev DEVICE") echo '[{"dst":"default","gateway":"192.0.2.1","protocol":"dhcp","prefsrc":"192.0.2.10"},
    {"dst":"192.0.2.0/24","protocol":"kernel","scope":"link","prefsrc":"192.0.2.10"},
    {"dst":"198.51.100.0/24","gateway":"192.0.2.2","protocol":"static"}]' ;;
esac`

func TestTheBridgeTakesAddressesAndRoutes(t *testing.T) {
	host, heard := testMachine(t)
	calls := haveProgram(t, "ip", strings.ReplaceAll(fakeIP, "DEVICE", "eth0"))
	check(t, makeBridge(context.Background(), host))
	heard.await(t, "br-ex has the addresses of eth0 now")
	wanted := `link add br-ex address 52:54:00:00:00:01 type bridge
link set eth0 master br-ex
link set br-ex up
address del 192.0.2.10/24 dev eth0
address add 192.0.2.10/24 dev br-ex
address del 192.0.2.30/32 dev eth0
address add 192.0.2.30/32 dev br-ex
route replace default dev br-ex via 192.0.2.1 src 192.0.2.10
route replace 198.51.100.0/24 dev br-ex via 192.0.2.2`
	made := calls()
	for len(made) > 0 && strings.HasPrefix(made[0], "-json") {
		made = made[1:]
	}
	if text := strings.Join(made, "\n"); text != wanted {
		t.Errorf("%s", text)
	}
}

func TestTheBridgeIsMadeOnce(t *testing.T) {
	host, _ := testMachine(t)
	calls := haveProgram(t, "ip", strings.ReplaceAll(fakeIP, "DEVICE", "br-ex"))
	if err := makeBridge(context.Background(), host); err != nil || len(calls()) != 1 {
		t.Errorf("%v %q", err, calls())
	}
}

func TestTheBridgeCannotBeMade(t *testing.T) {
	for name, each := range map[string]struct{ script, problem string }{
		"no default route": {`echo '[]'`, "there is no default route"},
		"no JSON":          {`echo nonsense`, "ip -4 route show default: "},
		"ip fails":         {`exit 3`, "ip -4 route show default: exit status 3"},
		"a command fails":  {strings.ReplaceAll(fakeIP, "DEVICE", "eth0") + "\ncase \"$*\" in \"link set br-ex up\") echo not allowed; exit 2;; esac", "ip link set br-ex up: exit status 2: not allowed"},
	} {
		host, _ := testMachine(t)
		calls := haveProgram(t, "ip", each.script)
		if err := makeBridge(context.Background(), host); err == nil || !strings.Contains(err.Error(), each.problem) {
			t.Errorf("%s: %v", name, err)
		}
		if made := calls(); strings.Contains(strings.Join(made, "\n"), "address del") {
			t.Errorf("%s: it went on: %q", name, made)
		}
	}
}

func TestAMachineThatSharesItsKernelHasNoBridge(t *testing.T) {
	calls := haveProgram(t, "ip", "exit 1")
	t.Setenv("LAB_ADDRESS", "127.0.0.9")
	t.Setenv("LAB_ROOT", t.TempDir())
	if code := Bridge(); code != 0 || len(calls()) > 0 {
		t.Errorf("%d %q", code, calls())
	}
}
