package node

import (
	"encoding/json"
	"log"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"metal-ipi.test/lab/openshift/kube"
)

// Entry is one object as API servers exchange it. Deleted objects stay as tombstones, or a peer would bring
// them back.
type Entry struct {
	Key     string      `json:"key"` // the object's API path
	Version int64       `json:"version"`
	Deleted bool        `json:"deleted,omitempty"`
	Object  kube.Object `json:"object,omitempty"`
}

// Store holds an API server's objects in memory, and in a file once it was opened with one. Versions are times, but
// always later than the one replaced, so that "last writer wins" needs no clocks that agree. Objects in it are never
// changed, only replaced.
type Store struct {
	mu      sync.Mutex
	entries map[string]record
	seq     uint64
	changed chan struct{}
	now     func() time.Time
	journal *journal // nil: nothing is kept
}

type record struct {
	Entry
	seq uint64
}

// NewStore makes an empty store.
func NewStore(now func() time.Time) *Store {
	return &Store{entries: map[string]record{}, changed: make(chan struct{}), now: now}
}

// Get is the object at a path, with its resource version; nil if there is none.
func (s *Store) Get(key string) kube.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.entries[key].object()
}

// List is the objects right under a path, by name.
func (s *Store) List(prefix string) []kube.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := []string{}
	for key, item := range s.entries {
		if strings.HasPrefix(key, prefix+"/") && !item.Deleted {
			keys = append(keys, key)
		}
	}
	sort.Strings(keys)
	objects := make([]kube.Object, 0, len(keys))
	for _, key := range keys {
		objects = append(objects, s.entries[key].object())
	}
	return objects
}

// Update replaces the object at a path by what `change` makes of it, in one step; nil means no object, before and
// after. An error leaves all as it was.
func (s *Store) Update(key string, change func(kube.Object) (kube.Object, error)) (kube.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	object, err := change(s.entries[key].object())
	if err != nil {
		return nil, err
	}
	s.put(Entry{Key: key, Version: s.next(key), Deleted: object == nil, Object: object})
	return s.entries[key].object(), nil
}

// Propose is an entry that would replace the one at a path, for peers to have before this store does.
func (s *Store) Propose(key string, object kube.Object) Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Entry{Key: key, Version: s.next(key), Object: object}
}

// Merge takes over what is newer than what is here.
func (s *Store) Merge(entries []Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, entry := range entries {
		current, known := s.entries[entry.Key]
		if !known || entry.Version > current.Version || entry.Version == current.Version && later(entry, current.Entry) {
			s.put(entry)
		}
	}
}

// Since is what changed after that point of this store's own history, and the point now reached.
func (s *Store) Since(seq uint64) ([]Entry, uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	entries := []Entry{}
	for _, item := range s.entries {
		if item.seq > seq {
			entries = append(entries, item.Entry)
		}
	}
	return entries, s.seq
}

// Changed is closed at the next change.
func (s *Store) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

func (s *Store) next(key string) int64 {
	return max(s.now().UnixNano(), s.entries[key].Version+1)
}

func (s *Store) put(entry Entry) {
	s.seq++
	s.entries[entry.Key] = record{Entry: entry, seq: s.seq}
	if s.journal != nil {
		if err := s.journal.add(entry, s.entries); err != nil {
			log.Fatalf("keeping the API server's objects: %v", err) // as etcd without its disk
		}
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// object is a copy, deep enough to carry the resource version.
func (r record) object() kube.Object {
	if r.Object == nil || r.Deleted {
		return nil
	}
	object := make(kube.Object, len(r.Object))
	for key, value := range r.Object {
		object[key] = value
	}
	meta := kube.Object{}
	for key, value := range metadata(r.Object) {
		meta[key] = value
	}
	meta["resourceVersion"] = strconv.FormatInt(r.Version, 10)
	object["metadata"] = meta
	return object
}

// later decides between two writers of the same nanosecond: all must decide alike.
func later(a, b Entry) bool {
	first, _ := json.Marshal(a) // maps of JSON values always encode
	second, _ := json.Marshal(b)
	return string(first) > string(second)
}

func metadata(object kube.Object) kube.Object {
	meta, _ := object["metadata"].(kube.Object)
	return meta
}

// toObject and fromObject change between an object and its typed form.
func toObject(value any) (kube.Object, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	object := kube.Object{}
	return object, json.Unmarshal(data, &object)
}

func fromObject[T any](object kube.Object) (T, error) {
	var value T
	data, err := json.Marshal(object)
	if err != nil {
		return value, err
	}
	return value, json.Unmarshal(data, &value)
}
