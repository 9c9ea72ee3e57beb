package node

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// registryOf serves these files; the result counts the requests.
func registryOf(t *testing.T, serve func(path string, w http.ResponseWriter)) *atomic.Int32 {
	t.Helper()
	var count atomic.Int32
	serveRegistry(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		count.Add(1)
		serve(strings.TrimPrefix(r.URL.Path, "/"), w)
	}))
	return &count
}

func TestAnImageIsPulledOnceForAllWhoAsk(t *testing.T) {
	files := archive(t, map[string]string{"etc/told": "hello"})
	count := registryOf(t, func(path string, w http.ResponseWriter) {
		time.Sleep(20 * time.Millisecond)
		if path == "registry.test/one:v1/files.tar" {
			_, _ = w.Write(files)
			return
		}
		_, _ = w.Write([]byte("program of " + path))
	})
	root := t.TempDir()
	var group sync.WaitGroup
	for range 5 {
		group.Add(1)
		go func() {
			defer group.Done()
			it, err := pull(context.Background(), root, "registry.test/one:v1")
			if err != nil {
				t.Error(err)
				return
			}
			program, err := it.program(context.Background(), "/usr/bin/run")
			if text := readOr(filepath.Join(it.root, program), ""); err != nil || program != "/usr/bin/run" || text != "program of registry.test/one:v1/bin/run" {
				t.Errorf("%s %q %v", program, text, err)
			}
			if text := readOr(filepath.Join(it.root, "etc/told"), ""); text != "hello" {
				t.Errorf("%q", text)
			}
		}()
	}
	group.Wait()
	if count.Load() != 2 {
		t.Errorf("asked %d times", count.Load())
	}
}

func TestAnImageThatIsCutOffIsPulledAgain(t *testing.T) {
	files := archive(t, map[string]string{"etc/told": strings.Repeat("hello", 1000)})
	cut := true
	registryOf(t, func(_ string, w http.ResponseWriter) {
		if cut {
			w.Header().Set("Content-Length", "100000")
			_, _ = w.Write(files[:2000])
			return
		}
		_, _ = w.Write(files)
	})
	root := t.TempDir()
	if _, err := pull(context.Background(), root, "one"); err == nil || !strings.Contains(err.Error(), "pulling one: ") {
		t.Fatal(err)
	}
	if it := (image{name: "one", root: filepath.Join(root, imageDirectory, "one")}); exists(filepath.Join(it.root, ".complete")) {
		t.Fatal("it is said to be complete")
	} else if _, err := it.program(context.Background(), "run"); err == nil || exists(filepath.Join(it.root, "usr/bin/run")) {
		t.Fatalf("half a program is there: %v", err)
	}
	cut = false
	it, err := pull(context.Background(), root, "one")
	if text := readOr(filepath.Join(it.root, "etc/told"), ""); err != nil || len(text) != 5000 {
		t.Fatalf("%d %v", len(text), err)
	}
}

func TestWhatTheRegistryAnswers(t *testing.T) {
	registryOf(t, func(path string, w http.ResponseWriter) {
		if strings.HasPrefix(path, "broken/") {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		w.WriteHeader(http.StatusNotFound)
	})
	ctx, root := context.Background(), t.TempDir()
	if _, err := pull(ctx, root, "broken"); err == nil || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "502 Bad Gateway") {
		t.Error(err)
	}
	it := must(pull(ctx, root, "bare")) // it has nothing but programs
	if _, err := it.program(ctx, "run"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestAnArchiveStaysInItsImage(t *testing.T) {
	for _, name := range []string{"../outside", "/outside", "etc/../../outside"} {
		root := filepath.Join(t.TempDir(), "image")
		if err := unpack(bytes.NewReader(archive(t, map[string]string{name: "x"})), root); err == nil {
			t.Errorf("%s was unpacked", name)
		}
	}
	var data bytes.Buffer
	writer := tar.NewWriter(&data)
	check(t, errors.Join(writer.WriteHeader(&tar.Header{Name: "run", Mode: 0o755}), writer.Close()))
	root := t.TempDir()
	check(t, unpack(&data, root))
	if info, err := os.Stat(filepath.Join(root, "run")); err != nil || info.Mode().Perm() != 0o755 {
		t.Error(info, err)
	}
}

func TestExpand(t *testing.T) {
	told := []variable{{Name: "A", Value: "one"}, {Name: "B", Value: "two"}}
	got := expand([]string{"$(A)-$(B)", "$(C)", "$A", "plain"}, told)
	if !slices.Equal(got, []string{"one-two", "$(C)", "$A", "plain"}) {
		t.Errorf("%q", got)
	}
	if all := environment(told); !slices.Contains(all, "A=one") || !strings.HasPrefix(all[0], "PATH=") {
		t.Errorf("%q", all)
	}
}

// A process that ends before it reads its box must not be waited for, and must not be left over.
func TestAContainerThatCannotStartLeavesNothing(t *testing.T) {
	before := os.Args[0]
	os.Args[0] = "/bin/true"
	defer func() { os.Args[0] = before }()
	its := box{Command: []string{"/run", strings.Repeat("x", 1<<20)}} // more than a pipe holds
	over := make(chan error, 1)
	go func() {
		_, err := its.start(&lines{log: log.New(&told{}, "", 0)})
		over <- err
	}()
	select {
	case err := <-over:
		if err == nil {
			t.Error("it was started")
		}
	case <-time.After(10 * time.Second):
		t.Fatal("it is waited for")
	}
	children := readOr("/proc/self/task/"+filepath.Base(readLink(t, "/proc/thread-self"))+"/children", "")
	if strings.TrimSpace(children) != "" {
		t.Errorf("processes are left: %s", children)
	}
}

func readLink(t *testing.T, path string) string {
	t.Helper()
	return must(os.Readlink(path))
}

func TestLinesKeepsConfigurationsOutOfTheLog(t *testing.T) {
	for name, each := range map[string]struct{ text, logged string }{
		"plain":           {"one\ntwo\r\n", "p: one\np: two\n"},
		"klog":            {"I0101 begins\n  secret: abc\nE0101 ends\n", "p: I0101 begins\np: E0101 ends\n"},
		"too long":        {strings.Repeat("x", 2*longest) + "\nnext\n", "p: next\n"},
		"not ended":       {"one\ntwo", "p: one\n"},
		"in small pieces": {"I0101 a\n", "p: I0101 a\n"},
	} {
		heard := &told{}
		to := &lines{log: log.New(heard, "", 0), prefix: "p: "}
		for _, part := range slices.Collect(slices.Chunk([]byte(each.text), 7)) {
			if n, err := to.Write(part); n != len(part) || err != nil {
				t.Errorf("%s: %d %v", name, n, err)
			}
		}
		if heard.String() != each.logged {
			t.Errorf("%s: %q", name, heard.String())
		}
	}
}

// A pod that is started anew while its port is not free yet must not listen on that port of all addresses instead.
func TestAPodWhosePortIsTakenIsNotStarted(t *testing.T) {
	const address = "127.61.0.9"
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	it := &pods{addresses: []string{address}, log: log.New(&told{}, "", 0)}
	arguments, err := it.carry(ctx, machineConfigServerName)
	if err != nil || len(arguments) != 4 || !slices.Contains(arguments, "--secure-port") || !slices.Contains(arguments, "--insecure-port") {
		t.Fatalf("%q %v", arguments, err)
	}
	if _, err := it.carry(ctx, machineConfigServerName); err == nil || !strings.Contains(err.Error(), "port 22") {
		t.Fatal(err)
	}
	for _, other := range []*pods{{addresses: []string{address}}, {}} {
		if arguments, err := other.carry(ctx, map[bool]string{true: "other", false: machineConfigServerName}[len(other.addresses) > 0]); err != nil || len(arguments) != 0 {
			t.Errorf("%q %v", arguments, err)
		}
	}
}
