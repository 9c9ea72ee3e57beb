package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gopkg.in/yaml.v3"

	"metal-ipi.test/lab/openshift/kube"
)

const applyEvery = 500 * time.Millisecond

// errUnknownKind is what an object meets whose kind the API does not serve.
var errUnknownKind = errors.New("the API does not know this kind")

// applier has objects be in an API, whatever their kind. It is what the release's cluster-bootstrap does with manifests.
type applier struct {
	client *kube.Client
	log    *log.Logger
	kinds  map[string]map[string]apiKind // what a group and version has, by kind
	spaces map[string]bool               // namespaces that are there, or have a manifest of their own
}

// apiKind is how the API calls the objects of a kind.
type apiKind struct {
	Name       string `json:"name"`
	Kind       string `json:"kind"`
	Namespaced bool   `json:"namespaced"`
}

func newApplier(client *kube.Client, logger *log.Logger) *applier {
	return &applier{client: client, log: logger, kinds: map[string]map[string]apiKind{}, spaces: map[string]bool{}}
}

// readObjects reads the objects in files: all of them with parseObjects, the one that is made with parseManifest.
func readObjects(paths []string, parse func([]byte) ([]kube.Object, error)) ([]kube.Object, error) {
	objects := []kube.Object{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		found, err := parse(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
		}
		objects = append(objects, found...)
	}
	return objects, nil
}

// parseManifest reads one object, as cluster-bootstrap does: of further ones nothing is made, and a file that begins with
// an empty document is an error (library-go, pkg/assets/create/creater.go).
func parseManifest(data []byte) ([]kube.Object, error) {
	object := kube.Object{}
	if err := yaml.Unmarshal(data, &object); err != nil {
		return nil, err
	}
	if object["kind"] == nil {
		return nil, errors.New("Object 'Kind' is missing")
	}
	found, err := toObject(object)
	return []kube.Object{found}, err
}

// parseObjects reads any number of objects, YAML or JSON.
func parseObjects(data []byte) ([]kube.Object, error) {
	objects := []kube.Object{}
	for decoder := yaml.NewDecoder(bytes.NewReader(data)); ; {
		var tree any
		err := decoder.Decode(&tree)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		encoded, err := json.Marshal(tree)
		if err != nil {
			return nil, err
		}
		object := kube.Object{}
		if err := json.Unmarshal(encoded, &object); err != nil {
			return nil, err
		}
		if len(object) > 0 {
			objects = append(objects, object)
		}
	}
}

// Apply has all objects be there, definitions first, and what is of their kinds last; an object of a kind that nothing
// defines is left out, and said. It tries again until everything else is there, or the context ends.
func (a *applier) Apply(ctx context.Context, objects []kube.Object) error {
	definitions, known, others := []kube.Object{}, []kube.Object{}, []kube.Object{}
	defined := map[string]bool{}
	for _, object := range objects {
		if groupKind(object) == "v1/Namespace" { // never made for what is in it: it would lack its labels
			a.spaces[fmt.Sprint(metadata(object)["name"])] = true
		}
		if kind := definedKind(object); kind != "" {
			defined[kind] = true
			definitions = append(definitions, object)
		}
	}
	for _, object := range objects {
		switch {
		case definedKind(object) != "":
		case defined[groupKind(object)]:
			others = append(others, object)
		default:
			known = append(known, object)
		}
	}
	slices.SortStableFunc(known, func(x, y kube.Object) int { return rank(x) - rank(y) })
	// The API takes a while with each definition, and takes that for all at once. What needs none, such as the leave to join,
	// does not wait for it; cluster-bootstrap tries all again and again (library-go, pkg/assets/create/creater.go).
	for _, some := range [][]kube.Object{definitions, known} {
		if err := a.all(ctx, some, defined); err != nil {
			return err
		}
	}
	for _, definition := range definitions {
		if err := a.established(ctx, definition); err != nil {
			return err
		}
	}
	return a.all(ctx, others, defined)
}

// all has objects be there in their order, as far as the API takes them at once.
func (a *applier) all(ctx context.Context, objects []kube.Object, defined map[string]bool) error {
	last := ""
	for len(objects) > 0 && ctx.Err() == nil {
		var missing []kube.Object
		var problem error
		for _, object := range objects {
			err := a.one(ctx, object)
			switch {
			case errors.Is(err, errUnknownKind) && !defined[groupKind(object)]:
				a.log.Printf("left out: %s", describe(object))
			case err != nil:
				missing, problem = append(missing, object), fmt.Errorf("%s: %w", describe(object), err)
			}
		}
		objects = missing
		if problem != nil && problem.Error() != last {
			last = problem.Error()
			a.log.Printf("applying manifests, trying again: %v", problem)
		}
		if len(objects) > 0 {
			sleep(ctx, applyEvery)
		}
	}
	return ctx.Err()
}

// rank is the order: what others need comes first.
func rank(object kube.Object) int {
	switch object["kind"] {
	case "Namespace", "ClusterRole":
		return 0
	}
	return 1
}

func describe(object kube.Object) string {
	meta := metadata(object)
	return fmt.Sprintf("%v %v", object["kind"], strings.TrimPrefix(fmt.Sprintf("%v/%v", meta["namespace"], meta["name"]), "<nil>/"))
}

func (a *applier) one(ctx context.Context, object kube.Object) error {
	path, err := a.path(ctx, object)
	if err != nil {
		return err
	}
	status := object["status"]
	wanted := with(object, "metadata", cleaned(metadata(object)))
	delete(wanted, "status")
	// Created and not patched: fields that the definitions do not have are dropped then, and no error.
	err = a.client.Do(ctx, http.MethodPost, path[:strings.LastIndex(path, "/")], wanted, nil)
	if err != nil && kube.Code(err) != http.StatusConflict {
		return err
	}
	if told, ok := status.(kube.Object); !ok || len(told) == 0 {
		return nil
	}
	told := kube.Object{"apiVersion": object["apiVersion"], "kind": object["kind"], "status": status}
	err = a.client.Merge(ctx, path+"/status", told)
	if kube.Code(err) == http.StatusNotFound { // a kind without this part
		return nil
	}
	return err
}

// cleaned is metadata without what the renderers leave empty, and without owners, whom they cannot know.
func cleaned(meta kube.Object) kube.Object {
	result := kube.Object{}
	for key, value := range meta {
		if value != nil && key != "ownerReferences" {
			result[key] = value
		}
	}
	return result
}

// path is where an object is; its namespace is made if need be.
func (a *applier) path(ctx context.Context, object kube.Object) (string, error) {
	version, _ := object["apiVersion"].(string)
	kind, _ := object["kind"].(string)
	base := "/apis/" + version
	if !strings.Contains(version, "/") {
		base = "/api/" + version
	}
	known, err := a.kind(ctx, base, kind)
	if err != nil {
		return "", err
	}
	meta := metadata(object)
	name, _ := meta["name"].(string)
	if !known.Namespaced {
		return base + "/" + known.Name + "/" + name, nil
	}
	space, _ := meta["namespace"].(string)
	if space == "" {
		space = "default"
	}
	if !a.spaces[space] {
		namespace := kube.Object{"apiVersion": "v1", "kind": "Namespace", "metadata": kube.Object{"name": space}}
		err := a.client.Do(ctx, http.MethodPost, "/api/v1/namespaces", namespace, nil)
		if err != nil && kube.Code(err) != http.StatusConflict {
			return "", err
		}
		a.spaces[space] = true
	}
	return base + "/namespaces/" + space + "/" + known.Name + "/" + name, nil
}

// kind asks what the API calls a kind; what it does not know now it may know later.
func (a *applier) kind(ctx context.Context, base, kind string) (apiKind, error) {
	if found, ok := a.kinds[base][kind]; ok {
		return found, nil
	}
	var list struct {
		Resources []apiKind `json:"resources"`
	}
	err := a.client.Do(ctx, http.MethodGet, base, nil, &list)
	if kube.Code(err) == http.StatusNotFound {
		return apiKind{}, errUnknownKind
	}
	if err != nil {
		return apiKind{}, err
	}
	a.kinds[base] = map[string]apiKind{}
	for _, each := range list.Resources {
		if !strings.Contains(each.Name, "/") {
			a.kinds[base][each.Kind] = each
		}
	}
	if found, ok := a.kinds[base][kind]; ok {
		return found, nil
	}
	return apiKind{}, errUnknownKind
}

// established waits until the kind that a definition defines is served; what the API does not answer is asked again.
func (a *applier) established(ctx context.Context, definition kube.Object) error {
	path, err := a.path(ctx, definition)
	if err != nil {
		return err
	}
	return until(ctx, 50*time.Millisecond, a.log, "waiting for "+describe(definition), func() (bool, error) {
		var seen struct {
			Status struct {
				Conditions []kube.Condition `json:"conditions"`
			} `json:"status"`
		}
		err := a.client.Do(ctx, http.MethodGet, path, nil, &seen)
		return err == nil && kube.Is(seen.Status.Conditions, "Established", "True"), err
	})
}

// needed leaves out definitions of kinds that no other object has.
func needed(objects []kube.Object) []kube.Object {
	kinds := map[string]bool{}
	for _, object := range objects {
		kinds[groupKind(object)] = true
	}
	return slices.DeleteFunc(slices.Clone(objects), func(object kube.Object) bool {
		defined := definedKind(object)
		return defined != "" && !kinds[defined]
	})
}

// groupKind is what an object is, whatever the version.
func groupKind(object kube.Object) string {
	group, _, _ := strings.Cut(fmt.Sprint(object["apiVersion"]), "/")
	return group + "/" + fmt.Sprint(object["kind"])
}

// definedKind is what objects a definition defines; empty for anything else.
func definedKind(object kube.Object) string {
	if object["kind"] != "CustomResourceDefinition" {
		return ""
	}
	spec, _ := object["spec"].(kube.Object)
	names, _ := spec["names"].(kube.Object)
	return fmt.Sprint(spec["group"]) + "/" + fmt.Sprint(names["kind"])
}
