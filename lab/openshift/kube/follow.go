package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// watchTime is how long the server keeps a watch open: the shortest time of Kubernetes' own clients
	// (client-go/tools/cache/reflector.go, minWatchTimeout). A connection ends earlier whose server is gone (keepAlive).
	watchTime  = 5 * time.Minute
	watchLimit = watchTime + 10*time.Second
)

// follower is what a client knows of the objects right under a path.
type follower struct {
	mu      sync.Mutex
	objects map[string]Object // by namespace and name
	sorted  []Object          // the same, in the API's order; nil: to be made again
	follows bool              // whether a watch tells what changes
	refused bool              // whether the server does not watch
	ctx     context.Context   // of the watch
	end     context.CancelFunc
}

// Follow is List for who asks again and again: after the first list the client watches, and answers from what it knows.
// It lists anew after a watch that failed, and each time where the server does not watch. Close ends the watches. Callers
// must not change the objects.
func (c *Client) Follow(ctx context.Context, path string) ([]Object, error) {
	f := c.follower(path)
	if known, follows := f.known(); follows {
		return known, nil
	}
	items, version, err := c.list(ctx, path)
	if err == nil && version != "" && f.begin(items) {
		go c.watch(f, path, version)
	}
	return items, err
}

// FollowOne is Get for who asks again and again, as Follow is List: nil if there is no such object. It lasts until Leave.
func (c *Client) FollowOne(ctx context.Context, collection, name string) (Object, error) {
	found, err := c.Follow(ctx, byName(collection, name))
	for _, each := range found {
		if meta(each)["name"] == name {
			return each, err
		}
	}
	return nil, err
}

// Leave ends what FollowOne began.
func (c *Client) Leave(collection, name string) {
	path := byName(collection, name)
	c.watches.mu.Lock()
	defer c.watches.mu.Unlock()
	if f := c.watches.of[path]; f != nil {
		f.end()
		delete(c.watches.of, path)
	}
}

func byName(collection, name string) string {
	return collection + "?fieldSelector=" + url.QueryEscape("metadata.name="+name)
}

func (c *Client) follower(path string) *follower {
	c.watches.mu.Lock()
	defer c.watches.mu.Unlock()
	if c.watches.of == nil {
		c.watches.of = map[string]*follower{}
		c.watches.ctx, c.watches.end = context.WithCancel(context.Background())
	}
	if c.watches.of[path] == nil {
		f := &follower{}
		f.ctx, f.end = context.WithCancel(c.watches.ctx)
		c.watches.of[path] = f
	}
	return c.watches.of[path]
}

// watches is what a client follows; a client with another token is another one.
type watches struct {
	mu  sync.Mutex
	of  map[string]*follower
	ctx context.Context
	end context.CancelFunc
}

func (w *watches) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.end != nil {
		w.end()
	}
	w.of, w.end = nil, nil
}

// watch keeps what is known true until a watch fails.
func (c *Client) watch(f *follower, path, version string) {
	var err error
	for err == nil {
		version, err = c.watchOnce(f.ctx, f, path, version)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.follows, f.refused = false, errors.Is(err, errNoWatch)
}

var errNoWatch = errors.New("the server does not watch")

// watchOnce follows until the server's time is over; the result is the version to go on from.
func (c *Client) watchOnce(ctx context.Context, f *follower, path, version string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, watchLimit)
	defer cancel()
	separator := "?"
	if strings.Contains(path, "?") {
		separator = "&"
	}
	query := fmt.Sprintf("%swatch=true&timeoutSeconds=%.0f&resourceVersion=%s", separator, watchTime.Seconds(), version)
	request, err := c.request(ctx, http.MethodGet, path+query, nil)
	if err != nil {
		return "", err
	}
	response, err := c.endless.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusNotImplemented {
		return "", errNoWatch
	}
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("watching %s: %s", path, response.Status)
	}
	events := json.NewDecoder(response.Body)
	for {
		var event struct {
			Type   string `json:"type"`
			Object Object `json:"object"`
		}
		switch err := events.Decode(&event); {
		case errors.Is(err, io.EOF):
			return version, nil
		case err != nil:
			return "", err
		case event.Type == "ERROR":
			return "", fmt.Errorf("watching %s: %v", path, event.Object["message"])
		}
		version, _ = meta(event.Object)["resourceVersion"].(string)
		f.change(event.Type, event.Object)
	}
}

func (f *follower) known() ([]Object, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.follows && f.sorted == nil {
		f.sorted = []Object{}
		for _, key := range slices.Sorted(maps.Keys(f.objects)) {
			f.sorted = append(f.sorted, f.objects[key])
		}
	}
	return slices.Clone(f.sorted), f.follows
}

// begin takes what was listed; false where no watch is to begin.
func (f *follower) begin(items []Object) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.follows || f.refused {
		return false
	}
	f.objects, f.sorted, f.follows = map[string]Object{}, nil, true
	for _, each := range items {
		f.objects[key(each)] = each
	}
	return true
}

func (f *follower) change(kind string, object Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch kind {
	case "ADDED", "MODIFIED":
		f.objects[key(object)], f.sorted = object, nil
	case "DELETED":
		delete(f.objects, key(object))
		f.sorted = nil
	}
}

func key(object Object) string {
	return fmt.Sprint(meta(object)["namespace"], "/", meta(object)["name"])
}

func meta(object Object) Object {
	found, _ := object["metadata"].(Object)
	return found
}
