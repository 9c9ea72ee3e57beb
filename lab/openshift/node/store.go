package node

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"metal-ipi.test/lab/openshift/kube"
)

const objectEnding = ".json"

// store is the objects of a cluster, each a file in a directory that all small API servers of the cluster share, named by
// the object's API path. Files are replaced in one step, so a reader sees whole objects only; who changes one holds the
// store's lock.
type store struct{ directory string }

func (s store) path(key string) string { return filepath.Join(s.directory, key) + objectEnding }

// Get is the object at a path; nil if there is none.
func (s store) Get(key string) (kube.Object, error) {
	data, err := os.ReadFile(s.path(key))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	object := kube.Object{}
	return object, json.Unmarshal(data, &object)
}

// List is the objects right under a path, by name.
func (s store) List(prefix string) ([]kube.Object, error) {
	entries, err := os.ReadDir(filepath.Join(s.directory, prefix))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	objects := []kube.Object{}
	for _, entry := range entries {
		name, found := strings.CutSuffix(entry.Name(), objectEnding)
		if !found {
			continue // it is being written
		}
		object, err := s.Get(prefix + "/" + name)
		if err != nil {
			return nil, err
		}
		if object != nil { // else it was just deleted
			objects = append(objects, object)
		}
	}
	return objects, nil
}

// Update replaces the object at a path by what `change` makes of it, in one step; nil means no object, before and after. An
// error leaves all as it was.
func (s store) Update(key string, change func(kube.Object) (kube.Object, error)) (kube.Object, error) {
	if err := os.MkdirAll(s.directory, 0o700); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(s.directory, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	defer lock.Close() // and with it the lock
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return nil, err
	}
	current, err := s.Get(key)
	if err != nil {
		return nil, err
	}
	version := nextVersion(current)
	object, err := change(current)
	if err != nil {
		return nil, err
	}
	if object == nil {
		return nil, os.Remove(s.path(key))
	}
	meta := maps.Clone(metadata(object))
	meta["resourceVersion"] = version
	object = with(object, "metadata", meta)
	data, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	return object, replaceFile(s.path(key), data, 0o600)
}

// nextVersion is a time, but always later than the version that is replaced.
func nextVersion(current kube.Object) string {
	text, _ := metadata(current)["resourceVersion"].(string)
	before, _ := strconv.ParseInt(text, 10, 64) // 0 where there is none
	return strconv.FormatInt(max(time.Now().UnixNano(), before+1), 10)
}
