package node

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"metal-ipi.test/lab/openshift/kube"
)

func opened(t *testing.T, path string) *Store {
	t.Helper()
	store := NewStore(time.Now)
	if err := OpenStore(path, store); err != nil {
		t.Fatal(err)
	}
	return store
}

func set(t *testing.T, store *Store, key, value string) {
	t.Helper()
	_, err := store.Update(key, func(kube.Object) (kube.Object, error) {
		if value == "" {
			return nil, nil
		}
		return kube.Object{"data": value}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAStoreThatIsOpenedAgainHoldsWhatItHeld(t *testing.T) {
	path := filepath.Join(t.TempDir(), "var", "store.json")
	store := opened(t, path)
	set(t, store, "/a", "1")
	set(t, store, "/b", "1")
	for range 5000 { // enough to be written anew
		set(t, store, "/a", "2")
	}
	set(t, store, "/b", "")

	again := opened(t, path)

	if got := again.Get("/a"); got == nil || got["data"] != "2" {
		t.Errorf("/a is %v", got)
	}
	if got := again.Get("/b"); got != nil {
		t.Errorf("/b came back: %v", got)
	}
	if info, err := os.Stat(path); err != nil || info.Size() > 4096 {
		t.Errorf("the journal is not written anew: %v %v", info, err)
	}
}

func TestAHalfWrittenLineIsForgotten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.json")
	set(t, opened(t, path), "/a", "1")
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = file.WriteString(`{"key":"/b","version":1,"obj`)
	if err := errors.Join(err, file.Close()); err != nil {
		t.Fatal(err)
	}

	store := opened(t, path)
	set(t, store, "/c", "1")

	again := opened(t, path)
	if again.Get("/a") == nil || again.Get("/b") != nil || again.Get("/c") == nil {
		t.Errorf("/a %v, /b %v, /c %v", again.Get("/a"), again.Get("/b"), again.Get("/c"))
	}
}
