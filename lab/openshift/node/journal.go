package node

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// storeFile is where an API server's objects outlive its process, as etcd's do on a machine's disk.
const storeFile = "/var/lib/lab-openshift/store.json"

// journal writes down every change as one line, so that a kill at any moment loses at most a change that nobody was
// told of. It is written anew when most of its lines are of the past.
type journal struct {
	path  string
	file  *os.File
	lines int
}

// OpenStore is a store with what the file holds, which keeps what changes there.
func OpenStore(path string, store *Store) error {
	entries, err := readJournal(path)
	if err != nil {
		return err
	}
	store.Merge(entries)
	kept := &journal{path: path}
	store.mu.Lock()
	defer store.mu.Unlock()
	if err := kept.rewrite(store.entries); err != nil {
		return err
	}
	store.journal = kept
	return nil
}

// readJournal reads up to the first line that was not written whole.
func readJournal(path string) ([]Entry, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	entries := []Entry{}
	for decoder := json.NewDecoder(bufio.NewReader(file)); ; {
		var entry Entry
		if decoder.Decode(&entry) != nil {
			return entries, nil
		}
		entries = append(entries, entry)
	}
}

// add notes one change; `all` is everything, this change included.
func (j *journal) add(entry Entry, all map[string]record) error {
	if j.lines > 1000+4*len(all) {
		return j.rewrite(all)
	}
	line, err := json.Marshal(entry)
	if err != nil {
		return err
	}
	j.lines++
	_, err = j.file.Write(append(line, '\n'))
	return err
}

func (j *journal) rewrite(all map[string]record) error {
	if err := os.MkdirAll(filepath.Dir(j.path), 0o700); err != nil {
		return err
	}
	fresh, err := os.OpenFile(j.path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(fresh)
	for _, item := range all {
		if err := encoder.Encode(item.Entry); err != nil {
			return errors.Join(err, fresh.Close())
		}
	}
	if err := os.Rename(j.path+".new", j.path); err != nil {
		return errors.Join(fmt.Errorf("keeping the API server's objects: %w", err), fresh.Close())
	}
	if j.file != nil {
		j.file.Close()
	}
	j.file, j.lines = fresh, len(all)
	return nil
}
