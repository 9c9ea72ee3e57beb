package node

import (
	"context"
	"fmt"
	"log"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	shoutImage = "registry.test/shout:v1"
	program    = "#!/bin/sh\ntrap 'echo bye $WHO; exit 0' TERM\necho hello $WHO $*\ncat \"$CONFIG\"\nwhile :; do sleep 0.05; done\n"
)

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

func (j *told) await(t *testing.T, text string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		j.mu.Lock()
		found := strings.Contains(j.text.String(), text)
		j.mu.Unlock()
		if found {
			return
		}
	}
	t.Fatalf("%q was not logged:\n%s", text, j.text.String())
}

func manifestOf(who, more string) string {
	return fmt.Sprintf(`{"kind": "Pod", "spec": {"hostNetwork": true, "containers": [{"name": "shout", "image": %q,
		"args": ["a"], "env": [{"name": "WHO", "value": %q}, {"name": "CONFIG", "value": "%s"}],
		"volumeMounts": [{"name": "config", "mountPath": "/etc/inside"}]}],
		"volumes": [{"name": "config", "hostPath": {"path": "%s"}}]}}`, shoutImage, who, more, more)
}

func put(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".tmp", []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		t.Fatal(err)
	}
}

func TestStaticPodsFollowTheirManifests(t *testing.T) {
	root := t.TempDir()
	manifests := filepath.Join(root, manifestDirectory)
	put(t, filepath.Join(root, imageDirectory, url.PathEscape(shoutImage)), program, 0o755)
	config := filepath.Join(root, "etc/metal-ipi/config")
	put(t, config, "the config\n", 0o644)
	var heard told
	static := &pods{root: root, log: log.New(&heard, "", 0)}
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Add(1)
	go func() { defer group.Done(); static.Run(ctx) }()

	put(t, filepath.Join(manifests, "shout.json"), manifestOf("one", config), 0o600)
	heard.await(t, "shout: hello one a")
	heard.await(t, "shout: the config")
	if source, err := os.Readlink(filepath.Join(root, "etc/inside")); err != nil || source != config {
		t.Fatalf("the volume is not there: %q, %v", source, err)
	}
	put(t, filepath.Join(manifests, "shout.json"), manifestOf("two", config), 0o600)
	heard.await(t, "shout: bye one")
	heard.await(t, "shout: hello two a")
	put(t, filepath.Join(manifests, ".hidden.json"), "not a manifest", 0o600)
	put(t, filepath.Join(manifests, "wrong.json"), `{"kind": "Deployment"}`, 0o600)
	heard.await(t, "static pod wrong.json: the lab's kubelet runs pods of one container")
	if err := os.Remove(filepath.Join(manifests, "shout.json")); err != nil {
		t.Fatal(err)
	}
	heard.await(t, "shout: bye two")
	put(t, filepath.Join(manifests, "shout.json"), manifestOf("three", config), 0o600)
	heard.await(t, "shout: hello three a")
	cancel()
	group.Wait()
	heard.await(t, "shout: bye three")
	if strings.Contains(heard.text.String(), "hidden") {
		t.Fatal("a hidden file was taken for a manifest")
	}
}

func TestAPodThatEndsIsStartedAgain(t *testing.T) {
	root := t.TempDir()
	put(t, filepath.Join(root, imageDirectory, url.PathEscape(shoutImage)), "#!/bin/sh\necho once more\nexit 3\n", 0o755)
	config := filepath.Join(root, "config")
	put(t, config, "", 0o644)
	put(t, filepath.Join(root, manifestDirectory, "shout.json"), manifestOf("one", config), 0o600)
	var heard told
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Add(1)
	go func() { defer group.Done(); (&pods{root: root, log: log.New(&heard, "", 0)}).Run(ctx) }()
	heard.await(t, "ended: exit status 3; starting it again")
	cancel()
	group.Wait()
}
