package node

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"path"
	"time"

	"metal-ipi.test/lab/openshift/kube"
)

// errUnchanged is what a change returns that finds nothing to do.
var errUnchanged = errors.New("nothing to change")

// objects is what the control loops work on: the objects of a real API server, or those of this machine's own store.
type objects interface {
	// Get is the object at a path; nil if there is none.
	Get(ctx context.Context, key string) (kube.Object, error)
	// List is the objects right under a path.
	List(ctx context.Context, prefix string) ([]kube.Object, error)
	// Update replaces the object at a path by what `change` makes of it, or makes it; `part` is the subresource that
	// changes, empty for the object itself; what is made has no other than its status. `change` may be asked again, and
	// must not change what it is given.
	Update(ctx context.Context, key, part string, change func(kube.Object) (kube.Object, error)) error
}

// stored is the objects of a store.
type stored struct{ *Store }

func (s stored) Get(_ context.Context, key string) (kube.Object, error) { return s.Store.Get(key), nil }

func (s stored) List(_ context.Context, prefix string) ([]kube.Object, error) {
	return s.Store.List(prefix), nil
}

func (s stored) Update(_ context.Context, key, _ string, change func(kube.Object) (kube.Object, error)) error {
	_, err := s.Store.Update(key, func(current kube.Object) (kube.Object, error) {
		wanted, err := change(current)
		if err == nil && current == nil {
			meta := kube.Object{"uid": uuid(), "creationTimestamp": kube.Time(s.now())}
			maps.Copy(meta, metadata(wanted))
			wanted["metadata"] = meta
		}
		return wanted, err
	})
	if errors.Is(err, errUnchanged) {
		return nil
	}
	return err
}

// attempts is how often a change is tried that others come before.
const attempts = 5

// remote is the objects of an API server.
type remote struct{ client *kube.Client }

func (r remote) Get(ctx context.Context, key string) (kube.Object, error) {
	object := kube.Object{}
	err := r.client.Do(ctx, http.MethodGet, key, nil, &object)
	if kube.Code(err) == http.StatusNotFound {
		return nil, nil
	}
	return object, err
}

func (r remote) List(ctx context.Context, prefix string) ([]kube.Object, error) {
	var list struct {
		Items []kube.Object `json:"items"`
	}
	err := r.client.Do(ctx, http.MethodGet, prefix, nil, &list)
	return list.Items, err
}

func (r remote) Update(ctx context.Context, key, part string, change func(kube.Object) (kube.Object, error)) error {
	var err error
	for range attempts {
		if err = r.update(ctx, key, part, change); kube.Code(err) != http.StatusConflict {
			break
		}
	}
	if errors.Is(err, errUnchanged) {
		return nil
	}
	return err
}

func (r remote) update(ctx context.Context, key, part string, change func(kube.Object) (kube.Object, error)) error {
	current, err := r.Get(ctx, key)
	if err != nil {
		return err
	}
	wanted, err := change(current)
	if err != nil {
		return err
	}
	if current == nil {
		created := kube.Object{}
		if err := r.client.Do(ctx, http.MethodPost, path.Dir(key), wanted, &created); err != nil || part == "" {
			return err
		}
		wanted = with(created, part, wanted[part]) // what the server has added stays
	}
	if part != "" {
		key += "/" + part
	}
	return r.client.Do(ctx, http.MethodPut, key, wanted, nil)
}

// with is an object with one of its fields replaced; the one given stays as it is.
func with(object kube.Object, field string, value any) kube.Object {
	changed := maps.Clone(object)
	if changed == nil {
		changed = kube.Object{}
	}
	changed[field] = value
	return changed
}

// withStatus is an object with one field of its status replaced.
func withStatus(object kube.Object, field string, value any) kube.Object {
	status, _ := object["status"].(kube.Object)
	return with(object, "status", with(status, field, value))
}

// condition is a condition that begins to be so now.
func condition(kind, reason, message string, now time.Time) kube.Condition {
	return kube.Condition{
		Type: kind, Status: "True", Reason: reason, Message: message,
		LastUpdateTime: kube.Time(now), LastTransitionTime: kube.Time(now),
	}
}
