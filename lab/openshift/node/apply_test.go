package node

import (
	"bytes"
	"context"
	"log"
	"net/http"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"metal-ipi.test/lab/openshift/kube"
)

const thingDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.lab.test}
spec: {group: lab.test, names: {kind: Thing, plural: things}}
`

// applied has the objects of a manifest be in the API; the result is what was logged.
func applied(t *testing.T, api *fakeAPI, manifest string) string {
	t.Helper()
	objects := must(parseObjects([]byte(manifest)))
	var heard bytes.Buffer
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := newApplier(api.serve(t), log.New(&heard, "", 0)).Apply(ctx, objects); err != nil {
		t.Fatalf("%v\n%s", err, heard.String())
	}
	return heard.String()
}

func TestParseObjects(t *testing.T) {
	for name, each := range map[string]struct {
		text  string
		kinds []string
		wrong bool
	}{
		"YAML":              {"kind: A\n", []string{"A"}, false},
		"JSON":              {`{"kind": "A"}`, []string{"A"}, false},
		"several":           {"kind: A\n---\nkind: B\n", []string{"A", "B"}, false},
		"empty documents":   {"---\n# nothing\n---\nkind: A\n---\n", []string{"A"}, false},
		"nothing":           {"", nil, false},
		"no object":         {"- kind: A\n", nil, true},
		"no YAML":           {"kind: [", nil, true},
		"the second is bad": {"kind: A\n---\nkind: [", nil, true},
	} {
		objects, err := parseObjects([]byte(each.text))
		var kinds []string
		for _, object := range objects {
			kinds = append(kinds, object["kind"].(string))
		}
		if (err != nil) != each.wrong || !slices.Equal(kinds, each.kinds) {
			t.Errorf("%s: %v %v", name, kinds, err)
		}
	}
}

func TestReadObjectsNamesTheFileThatIsWrong(t *testing.T) {
	path := t.TempDir() + "/wrong.yaml"
	put(t, path, "kind: [", 0o600)
	if _, err := readObjects([]string{path}, parseObjects); err == nil || !strings.Contains(err.Error(), "wrong.yaml") {
		t.Fatal(err)
	}
}

func TestApplyMakesWhatOthersNeedFirst(t *testing.T) {
	api := newFakeAPI()
	applied(t, api, `
apiVersion: lab.test/v1
kind: Thing
metadata: {name: one, creationTimestamp: null, ownerReferences: [{name: somebody}], labels: {a: b}}
spec: {size: 1}
status: {ready: true}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: told, namespace: made-for-it}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: told, namespace: own}
---
apiVersion: v1
kind: Namespace
metadata: {name: own, labels: {a: b}}
---`+thingDefinition)
	want := []string{ // one namespace has a manifest, the other one is made for what is in it
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "/api/v1/namespaces",
		"/api/v1/namespaces", "/api/v1/namespaces/made-for-it/configmaps", "/api/v1/namespaces/own/configmaps", "/apis/lab.test/v1/things",
	}
	if asked := api.requests(http.MethodPost); !slices.Equal(asked, want) {
		t.Errorf("asked %q", asked)
	}
	thing := api.get("/apis/lab.test/v1/things/one")
	meta := with(metadata(thing), "uid", "")
	if wanted := (kube.Object{"name": "one", "uid": "", "labels": kube.Object{"a": "b"}}); !reflect.DeepEqual(meta, wanted) {
		t.Errorf("metadata %v", meta)
	}
	if status, _ := thing["status"].(kube.Object); status["ready"] != true {
		t.Errorf("status %v", status)
	}
}

func TestApplyLeavesOutWhatNothingDefines(t *testing.T) {
	api := newFakeAPI()
	heard := applied(t, api, `
apiVersion: other.test/v1
kind: Strange
metadata: {name: one}
---
apiVersion: v1
kind: Strange
metadata: {name: two, namespace: lab}
---
apiVersion: v1
kind: Namespace
metadata: {name: lab}
`)
	if heard != "left out: Strange lab/two\nleft out: Strange one\n" && heard != "left out: Strange one\nleft out: Strange lab/two\n" {
		t.Errorf("logged %q", heard)
	}
	if api.get("/api/v1/namespaces/lab") == nil {
		t.Error("what is known is not there")
	}
}

func TestApplyTriesAgainAndSaysSoOnce(t *testing.T) {
	api := newFakeAPI()
	api.refuseToMake("/apis/rbac.authorization.k8s.io/v1/clusterroles", 3)
	heard := applied(t, api, `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: reader}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: told}
`)
	if api.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/reader") == nil || api.get("/api/v1/namespaces/default/configmaps/told") == nil {
		t.Error("not all is there")
	}
	if strings.Count(heard, "trying again") != 1 || !strings.Contains(heard, "ClusterRole reader: ") {
		t.Errorf("logged %q", heard)
	}
	if made := strings.Count(strings.Join(api.requests(http.MethodPost), " "), "configmaps"); made != 1 {
		t.Errorf("what was there was made %d times", made)
	}
}

// The API may be away for the moment in which a namespace of the manifests is to be made: objects within it must not
// have another one made that lacks its labels.
func TestANamespaceComesFromItsOwnManifest(t *testing.T) {
	api := newFakeAPI()
	api.refuseToMake("/api/v1/namespaces", 1)
	applied(t, api, `
apiVersion: v1
kind: Namespace
metadata: {name: own, labels: {a: b}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: told, namespace: own}
`)
	if labels, _ := metadata(api.get("/api/v1/namespaces/own"))["labels"].(kube.Object); labels["a"] != "b" {
		t.Errorf("labels %v", labels)
	}
	if api.get("/api/v1/namespaces/own/configmaps/told") == nil {
		t.Error("its object is not there")
	}
}

func TestApplyKeepsWhatIsThereButForItsStatus(t *testing.T) {
	api := newFakeAPI()
	api.set("/apis/config.openshift.io/v1/clusterversions/version", kube.Object{
		"metadata": kube.Object{"name": "version"}, "spec": kube.Object{"clusterID": "others"},
	})
	applied(t, api, `
apiVersion: config.openshift.io/v1
kind: ClusterVersion
metadata: {name: version}
spec: {clusterID: own}
status: {desired: {version: "1"}}
`)
	object := api.get("/apis/config.openshift.io/v1/clusterversions/version")
	spec, _ := object["spec"].(kube.Object)
	if spec["clusterID"] != "others" || object["status"] == nil {
		t.Errorf("%v", object)
	}
}

func TestApplyEndsWithItsContext(t *testing.T) {
	api := newFakeAPI()
	api.refuse = func(string, string) int { return http.StatusServiceUnavailable }
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	objects := []kube.Object{{"apiVersion": "v1", "kind": "Namespace", "metadata": kube.Object{"name": "own"}}}
	if err := newApplier(api.serve(t), log.New(&told{}, "", 0)).Apply(ctx, objects); err == nil {
		t.Fatal("all was said to be there")
	}
}

func TestOnlyNeededDefinitionsAreApplied(t *testing.T) {
	objects := must(parseObjects([]byte(thingDefinition + "---" + strings.ReplaceAll(strings.ReplaceAll(thingDefinition, "Thing", "Other"), "things", "others") + `---
apiVersion: lab.test/v1
kind: Thing
metadata: {name: one}
`)))
	var left []string
	for _, object := range needed(objects) {
		left = append(left, describe(object))
	}
	if !slices.Equal(left, []string{"CustomResourceDefinition things.lab.test", "Thing one"}) {
		t.Errorf("%q", left)
	}
}

func TestOneObjectIsMadeOfEachManifest(t *testing.T) {
	directory := t.TempDir()
	for name, text := range map[string]string{
		"a.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: one}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: two}\n",
		"b.json": `{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "three"}}`,
	} {
		put(t, filepath.Join(directory, name), text, 0o600)
	}
	paths := []string{filepath.Join(directory, "a.yaml"), filepath.Join(directory, "b.json")}
	names := []string{}
	for _, object := range must(readObjects(paths, parseManifest)) {
		names = append(names, describe(object))
	}
	if want := []string{"Namespace one", "ConfigMap three"}; !slices.Equal(names, want) {
		t.Fatalf("%v, not %v", names, want)
	}
	put(t, paths[0], "---\n# nothing\n---\nkind: Pod\n", 0o600)
	if _, err := readObjects(paths, parseManifest); err == nil || !strings.Contains(err.Error(), "a.yaml") {
		t.Fatalf("an empty document is %v", err)
	}
}
