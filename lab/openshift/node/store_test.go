package node

import (
	"errors"
	"testing"
	"time"

	"metal-ipi.test/lab/openshift/kube"
)

func fixed(t time.Time) func() time.Time { return func() time.Time { return t } }

func thing(value string) func(kube.Object) (kube.Object, error) {
	return func(kube.Object) (kube.Object, error) {
		return kube.Object{"metadata": kube.Object{"name": "a"}, "value": value}, nil
	}
}

func mustUpdate(t *testing.T, store *Store, key string, change func(kube.Object) (kube.Object, error)) kube.Object {
	t.Helper()
	object, err := store.Update(key, change)
	if err != nil {
		t.Fatal(err)
	}
	return object
}

func TestLaterWriteWinsThoughItsClockIsBehind(t *testing.T) {
	ahead, behind := NewStore(fixed(time.Unix(2000, 0))), NewStore(fixed(time.Unix(1000, 0)))
	mustUpdate(t, ahead, "/x/a", thing("first"))
	entries, _ := ahead.Since(0)
	behind.Merge(entries)
	mustUpdate(t, behind, "/x/a", thing("second"))
	entries, _ = behind.Since(0)
	ahead.Merge(entries)
	if got := ahead.Get("/x/a")["value"]; got != "second" {
		t.Fatalf("value = %v", got)
	}
}

func TestMergeInAnyOrderEndsAlike(t *testing.T) {
	one, two := NewStore(fixed(time.Unix(1, 0))), NewStore(fixed(time.Unix(1, 0)))
	mustUpdate(t, one, "/x/a", thing("one"))
	mustUpdate(t, two, "/x/a", thing("two"))
	first, _ := one.Since(0)
	second, _ := two.Since(0)
	one.Merge(second)
	two.Merge(first)
	if one.Get("/x/a")["value"] != two.Get("/x/a")["value"] {
		t.Fatalf("%v and %v", one.Get("/x/a"), two.Get("/x/a"))
	}
}

func TestDeletedObjectIsNotBroughtBack(t *testing.T) {
	one, two := NewStore(fixed(time.Unix(1, 0))), NewStore(fixed(time.Unix(1, 0)))
	mustUpdate(t, one, "/x/a", thing("here"))
	old, _ := one.Since(0)
	two.Merge(old)
	mustUpdate(t, one, "/x/a", func(kube.Object) (kube.Object, error) { return nil, nil })
	one.Merge(old)
	if one.Get("/x/a") != nil || len(one.List("/x")) != 0 {
		t.Fatal("the deleted object is back")
	}
	gone, _ := one.Since(0)
	two.Merge(gone)
	if two.Get("/x/a") != nil {
		t.Fatal("the peer did not hear of the deletion")
	}
}

func TestSinceTellsOnlyWhatIsNew(t *testing.T) {
	store := NewStore(time.Now)
	mustUpdate(t, store, "/x/a", thing("1"))
	_, seq := store.Since(0)
	changed := store.Changed()
	mustUpdate(t, store, "/x/b", thing("2"))
	select {
	case <-changed:
	default:
		t.Fatal("no sign of the change")
	}
	entries, _ := store.Since(seq)
	if len(entries) != 1 || entries[0].Key != "/x/b" {
		t.Fatalf("entries = %v", entries)
	}
	before, _ := store.Since(0)
	store.Merge(before)
	if again, _ := store.Since(seq); len(again) != 1 {
		t.Fatal("merging what is known counts as a change: peers would never be quiet")
	}
}

func TestFailedUpdateChangesNothing(t *testing.T) {
	store := NewStore(time.Now)
	mustUpdate(t, store, "/x/a", thing("1"))
	_, err := store.Update("/x/a", func(current kube.Object) (kube.Object, error) {
		current["value"] = "2"
		metadata(current)["name"] = "b"
		return nil, errors.New("no")
	})
	if object := store.Get("/x/a"); err == nil || object["value"] != "1" || metadata(object)["name"] != "a" {
		t.Fatalf("%v, %v", err, object)
	}
}
