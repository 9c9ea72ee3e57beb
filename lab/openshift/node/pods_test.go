package node

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const shoutImage = "registry.test/shout:v1"

// TestMain is also what the programs of this package's containers are. Their images have no libraries, so the tests are
// built with CGO_ENABLED=0: a program that is linked dynamically does not start there (status 125). Some want privileges
// of a user namespace's: CGO_ENABLED=0 unshare -Urm go test ./...
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == "container":
		os.Exit(Container())
	case len(os.Args) > 2 && os.Args[1] == "wired":
		os.Exit(wired(os.Args[2]))
	case filepath.Base(os.Args[0]) == "shout":
		os.Exit(shout())
	case filepath.Base(os.Args[0]) == "render", filepath.Base(os.Args[0]) == "machine-config-operator":
		os.Exit(renderAssets())
	}
	os.Exit(m.Run())
}

// shout says hello, what its volume holds, and bye; with EXIT in its environment it ends at once.
func shout() int {
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	fmt.Println("hello", os.Getenv("WHO"), os.Args[1:])
	config, err := os.ReadFile("/etc/inside")
	fmt.Printf("config %q %v\n", config, err)
	if os.Getenv("EXIT") != "" {
		return 3
	}
	<-asked
	fmt.Println("bye", os.Getenv("WHO"))
	return 0
}

// haveRegistry serves the image shout, which has a file beside its program.
func haveRegistry(t *testing.T) {
	t.Helper()
	self := must(os.Executable())
	mux := http.NewServeMux()
	mux.HandleFunc("/"+shoutImage+"/bin/shout", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, self) })
	mux.HandleFunc("/"+shoutImage+"/entrypoint", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "/bin/shout") })
	serveRegistry(t, mux)
}

// runPods keeps the pods of a new machine's directory until the test ends, or until it is asked to end.
func runPods(t *testing.T, root string) (heard *told, end func()) {
	t.Helper()
	heard = &told{}
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Add(1)
	go func() { defer group.Done(); (&pods{root: root, log: log.New(heard, "", 0)}).Run(ctx) }()
	end = sync.OnceFunc(func() { cancel(); group.Wait() })
	t.Cleanup(end)
	return heard, end
}

// told collects what is logged.
type told struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *told) Write(data []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(data)
}

func (j *told) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func (j *told) await(t *testing.T, text string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if strings.Contains(j.String(), text) {
			return
		}
	}
	t.Fatalf("%q was not logged:\n%s", text, j.String())
}

func manifestOf(variable, value, config string, privileged bool) string {
	return fmt.Sprintf(`{"kind": "Pod", "spec": {"hostNetwork": true, "containers": [{"name": "shout", "image": %q,
		"args": ["I am $(%[2]s)"], "env": [{"name": %[2]q, "value": %[3]q}], "securityContext": {"privileged": %[5]t},
		"volumeMounts": [{"name": "config", "mountPath": "/etc/inside", "readOnly": true}]}],
		"volumes": [{"name": "config", "hostPath": {"path": %[4]q}}]}}`, shoutImage, variable, value, config, privileged)
}

// runPod keeps one pod of a machine with /config.
func runPod(t *testing.T, name, manifest string) (heard *told, end func()) {
	t.Helper()
	haveRegistry(t)
	root := t.TempDir()
	put(t, filepath.Join(root, "config"), "", 0o644)
	put(t, filepath.Join(root, manifestDirectory, name), manifest, 0o600)
	return runPods(t, root)
}

func put(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	check(t, os.MkdirAll(filepath.Dir(path), 0o755))
	check(t, os.WriteFile(path+".tmp", []byte(text), mode))
	check(t, os.Rename(path+".tmp", path))
}

func TestStaticPodsFollowTheirManifests(t *testing.T) {
	haveRegistry(t)
	root := t.TempDir()
	manifest := filepath.Join(root, manifestDirectory, "shout.json")
	put(t, filepath.Join(root, "etc/metal-ipi/config"), "the config", 0o644)
	heard, end := runPods(t, root)

	put(t, manifest, manifestOf("WHO", "one", "/etc/metal-ipi/config", true), 0o600)
	heard.await(t, "shout: hello one [I am one]")
	heard.await(t, `shout: config "the config" <nil>`)
	put(t, manifest, manifestOf("WHO", "two", "/etc/metal-ipi/config", true), 0o600)
	heard.await(t, "shout: bye one")
	heard.await(t, "shout: hello two")
	put(t, filepath.Join(filepath.Dir(manifest), ".hidden.json"), "not a manifest", 0o600)
	put(t, filepath.Join(filepath.Dir(manifest), "wrong.json"), `{"kind": "Deployment"}`, 0o600)
	heard.await(t, "pod wrong.json: the lab's kubelet runs pods with hostNetwork, and this is none")
	check(t, os.Remove(manifest))
	heard.await(t, "shout: bye two")
	put(t, manifest, manifestOf("WHO", "three", "/etc/metal-ipi/config", true), 0o600)
	heard.await(t, "shout: hello three")
	end()
	heard.await(t, "shout: bye three")
	if strings.Contains(heard.String(), "hidden") {
		t.Fatal("a hidden file was taken for a manifest")
	}
}

func TestAPodThatEndsIsStartedAgain(t *testing.T) {
	heard, _ := runPod(t, "shout.json", manifestOf("EXIT", "yes", "/config", true))
	heard.await(t, "pod shout.json ended: shout: exit status 3; starting it again")
}

// On a node SELinux keeps the machine's files from containers: only privileged ones have the label that may read them.
func TestTheMachinesFilesAreForPrivilegedContainers(t *testing.T) {
	heard, _ := runPod(t, "shout.json", manifestOf("WHO", "one", "/config", false))
	heard.await(t, "SELinux keeps /config from container shout, which is not privileged")
}

func TestAnImageThatTheRegistryDoesNotHaveIsSaidOnce(t *testing.T) {
	text := strings.ReplaceAll(manifestOf("WHO", "one", "/config", true), shoutImage, "registry.test/other")
	heard, end := runPod(t, "other.json", text)
	heard.await(t, "pod other.json: ")
	sleep(context.Background(), 3*podsEvery)
	end()
	if count := strings.Count(heard.String(), "file does not exist"); count != 1 {
		t.Fatalf("said %d times:\n%s", count, heard.String())
	}
}
