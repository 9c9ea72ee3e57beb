package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"
)

// watched is an API of one kind, which says what changes to who watches.
type watched struct {
	mu     sync.Mutex
	lists  int
	events chan string // what a watch is told; closed: the server's time is over
	code   int         // what a watch is answered with
	froms  []string    // the versions that were watched from
}

func (s *watched) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	if !r.URL.Query().Has("watch") {
		s.lists++
		_, _ = fmt.Fprintf(w, `{"metadata":{"resourceVersion":"%d"},"items":[%s]}`, s.lists*10, named("a", "0"))
		s.mu.Unlock()
		return
	}
	s.froms = append(s.froms, r.URL.Query().Get("resourceVersion"))
	events := s.events
	s.mu.Unlock()
	w.WriteHeader(s.code)
	w.(http.Flusher).Flush()
	for {
		select {
		case event, open := <-events:
			if !open {
				return
			}
			_, _ = w.Write([]byte(event))
			w.(http.Flusher).Flush()
		case <-r.Context().Done():
			return
		}
	}
}

func (s *watched) asked() (int, []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists, slices.Clone(s.froms)
}

func named(name, version string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q,"resourceVersion":%q}}`, name, version)
}

func event(kind, name, version string) string {
	return fmt.Sprintf(`{"type":%q,"object":%s}`, kind, named(name, version))
}

// following is a client of the API, and what it says is there.
func following(t *testing.T, api *watched) func() []string {
	t.Helper()
	server := httptest.NewServer(api)
	client := NewClient(server.URL, nil, Network{}, time.Second)
	t.Cleanup(server.Close)
	t.Cleanup(client.Close)
	return func() []string {
		t.Helper()
		objects, err := client.Follow(context.Background(), "/api/v1/nodes")
		if err != nil {
			t.Fatal(err)
		}
		names := []string{}
		for _, each := range objects {
			names = append(names, fmt.Sprint(meta(each)["name"]))
		}
		return names
	}
}

func await(t *testing.T, what string, so func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); !so(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not seen: %s", what)
		}
	}
}

func TestWhatIsFollowedIsListedOnce(t *testing.T) {
	api := &watched{code: http.StatusOK, events: make(chan string, 9)}
	seen := following(t, api)
	if found := seen(); !slices.Equal(found, []string{"a"}) {
		t.Fatal(found)
	}
	api.events <- event("ADDED", "c", "11")
	api.events <- event("ADDED", "b", "12")
	await(t, "what was added, by name", func() bool { return slices.Equal(seen(), []string{"a", "b", "c"}) })
	api.events <- event("DELETED", "a", "13")
	await(t, "what was deleted is gone", func() bool { return slices.Equal(seen(), []string{"b", "c"}) })
	if lists, froms := api.asked(); lists != 1 || !slices.Equal(froms, []string{"10"}) {
		t.Errorf("listed %d times, watched from %q", lists, froms)
	}
}

func TestOneObjectIsFollowedByItsNameUntilItIsLeft(t *testing.T) {
	api := &watched{code: http.StatusOK, events: make(chan string, 9)}
	queries := make(chan string, 9)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		queries <- r.URL.Query().Get("fieldSelector")
		api.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	client := NewClient(server.URL, nil, Network{}, time.Second)
	t.Cleanup(client.Close)
	version := func() any {
		t.Helper()
		found, err := client.FollowOne(context.Background(), "/api/v1/nodes", "a")
		if err != nil {
			t.Fatal(err)
		}
		return meta(found)["resourceVersion"]
	}
	if found := version(); found != "0" {
		t.Fatal(found)
	}
	api.events <- event("ADDED", "b", "11")
	api.events <- event("MODIFIED", "a", "12")
	await(t, "its change", func() bool { return version() == "12" })
	if lists, froms := api.asked(); lists != 1 || !slices.Equal(froms, []string{"10"}) {
		t.Errorf("listed %d times, watched from %q", lists, froms)
	}
	for range 2 {
		if selector := <-queries; selector != "metadata.name=a" {
			t.Error(selector)
		}
	}
	client.Leave("/api/v1/nodes", "a")
	version()
	if lists, _ := api.asked(); lists != 2 {
		t.Errorf("what was left is still known: %d lists", lists)
	}
}

func TestAWatchGoesOnWhereItEnded(t *testing.T) {
	first := make(chan string, 1)
	api := &watched{code: http.StatusOK, events: first}
	seen := following(t, api)
	seen()
	first <- event("ADDED", "b", "17")
	await(t, "what was added", func() bool { return len(seen()) == 2 })
	api.mu.Lock()
	api.events = make(chan string)
	api.mu.Unlock()
	close(first)
	await(t, "another watch", func() bool { _, froms := api.asked(); return slices.Equal(froms, []string{"10", "17"}) })
	if lists, _ := api.asked(); lists != 1 || len(seen()) != 2 {
		t.Errorf("listed %d times", lists)
	}
}

func TestAfterAWatchThatFailedItListsAnew(t *testing.T) {
	api := &watched{code: http.StatusOK, events: make(chan string, 1)}
	seen := following(t, api)
	seen()
	api.events <- `{"type":"ERROR","object":{"code":410,"message":"too old resource version"}}`
	await(t, "another list", func() bool { seen(); lists, _ := api.asked(); return lists == 2 })
}

func TestAServerThatDoesNotWatchIsListed(t *testing.T) {
	api := &watched{code: http.StatusNotImplemented, events: make(chan string)}
	close(api.events)
	seen := following(t, api)
	seen()
	await(t, "a list each time", func() bool { seen(); lists, _ := api.asked(); return lists > 3 })
	if _, froms := api.asked(); len(froms) != 1 {
		t.Errorf("watched from %q", froms)
	}
}

func TestAClosedClientFollowsNothing(t *testing.T) {
	began, gone := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !r.URL.Query().Has("watch") {
			_ = json.NewEncoder(w).Encode(Object{"metadata": Object{"resourceVersion": "1"}})
			return
		}
		w.(http.Flusher).Flush()
		close(began)
		<-r.Context().Done()
		close(gone)
	}))
	defer server.Close()
	client := NewClient(server.URL, nil, Network{}, time.Second)
	if _, err := client.Follow(context.Background(), "/api/v1/nodes"); err != nil {
		t.Fatal(err)
	}
	<-began
	client.Close()
	select {
	case <-gone:
	case <-time.After(5 * time.Second):
		t.Error("the watch goes on")
	}
}
