package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"metal-ipi.test/lab/openshift/kube"
)

func set(t *testing.T, all store, key string, object kube.Object) kube.Object {
	t.Helper()
	return must(all.Update(key, func(kube.Object) (kube.Object, error) { return object, nil }))
}

func get(t *testing.T, all store, key string) kube.Object {
	t.Helper()
	return must(all.Get(key))
}

func named(name string) kube.Object { return kube.Object{"metadata": kube.Object{"name": name}} }

func TestAStoreThatIsOpenedAgainHoldsWhatItHeld(t *testing.T) {
	directory := t.TempDir()
	set(t, store{directory}, "/x/a", named("a"))
	set(t, store{directory}, "/x/b", named("b"))
	set(t, store{directory}, "/x/b", nil)
	set(t, store{directory}, "/x/y/c", named("c"))
	// A server that was killed while it wrote leaves this.
	check(t, os.WriteFile(filepath.Join(directory, "x/d.json.new"), []byte(`{"meta`), 0o600))
	again := store{directory}
	listed, err := again.List("/x")
	if err != nil || len(listed) != 1 || metadata(listed[0])["name"] != "a" {
		t.Errorf("%v %v", listed, err)
	}
	if get(t, again, "/x/b") != nil || get(t, again, "/x/y/c") == nil || get(t, again, "/x/y") != nil {
		t.Error("what was deleted is there, or what was kept is not")
	}
	if listed, err = again.List("/nothing"); err != nil || len(listed) != 0 {
		t.Errorf("%v %v", listed, err)
	}
}

// All API servers of a cluster write to one directory.
func TestNoChangeIsLost(t *testing.T) {
	directory := t.TempDir()
	set(t, store{directory}, "/x/a", kube.Object{"metadata": kube.Object{}, "count": 0.0})
	var group sync.WaitGroup
	for range 20 {
		group.Add(1)
		go func() {
			defer group.Done()
			_, err := store{directory}.Update("/x/a", func(current kube.Object) (kube.Object, error) {
				return with(current, "count", current["count"].(float64)+1), nil
			})
			if err != nil {
				t.Error(err)
			}
		}()
	}
	group.Wait()
	if object := get(t, store{directory}, "/x/a"); fmt.Sprint(object["count"]) != "20" {
		t.Errorf("%v", object)
	}
}

func TestEachChangeHasALaterVersion(t *testing.T) {
	all := store{t.TempDir()}
	last := ""
	for range 50 {
		version := metadata(set(t, all, "/x/a", named("a")))["resourceVersion"].(string)
		if version <= last {
			t.Fatalf("%s after %s", version, last)
		}
		last = version
	}
	if next := nextVersion(kube.Object{"metadata": kube.Object{"resourceVersion": "9000000000000000000"}}); next != "9000000000000000001" {
		t.Error(next)
	}
}

func TestFailedUpdateChangesNothing(t *testing.T) {
	all := store{t.TempDir()}
	set(t, all, "/x/a", named("a"))
	_, err := all.Update("/x/a", func(current kube.Object) (kube.Object, error) {
		metadata(current)["name"] = "b"
		return nil, errors.New("no")
	})
	if object := get(t, all, "/x/a"); err == nil || metadata(object)["name"] != "a" {
		t.Fatalf("%v, %v", err, object)
	}
}
