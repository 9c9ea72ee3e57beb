package node

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"metal-ipi.test/lab/openshift/kube"
)

// fakeAPI is an API server that keeps objects by their path and writes down what it was asked.
type fakeAPI struct {
	mu      sync.Mutex
	objects map[string]kube.Object
	kinds   map[string][]apiKind // by the path of their group and version
	asked   []string             // "POST /api/v1/nodes"
	serial  int
	// refuse is the code that a request is answered with before anything is done; 0: it is served.
	refuse func(method, path string) int
	// created sees an object before it is kept.
	created func(object kube.Object)
}

func newFakeAPI() *fakeAPI {
	objects := map[string]kube.Object{}
	for _, name := range []string{"kube-system", "kube-node-lease"} {
		objects["/api/v1/namespaces/"+name] = kube.Object{"kind": "Namespace", "metadata": kube.Object{"name": name}}
	}
	return &fakeAPI{objects: objects, kinds: map[string][]apiKind{
		"/api/v1": {
			{"nodes", "Node", false}, {"nodes/status", "Node", false}, {"namespaces", "Namespace", false}, {"pods", "Pod", true},
			{"secrets", "Secret", true}, {"configmaps", "ConfigMap", true}, {"serviceaccounts", "ServiceAccount", true},
		},
		"/apis/apps/v1":                              {{"daemonsets", "DaemonSet", true}},
		"/apis/certificates.k8s.io/v1":               {{"certificatesigningrequests", "CertificateSigningRequest", false}},
		"/apis/coordination.k8s.io/v1":               {{"leases", "Lease", true}},
		"/apis/apiextensions.k8s.io/v1":              {{"customresourcedefinitions", "CustomResourceDefinition", false}},
		"/apis/rbac.authorization.k8s.io/v1":         {{"clusterroles", "ClusterRole", false}},
		"/apis/config.openshift.io/v1":               {{"clusterversions", "ClusterVersion", false}},
		"/apis/machineconfiguration.openshift.io/v1": {{"machineconfigs", "MachineConfig", false}},
	}}
}

// refuseWhere refuses some requests.
func (f *fakeAPI) refuseWhere(code int, it func(method, path string) bool) {
	f.refuse = func(method, path string) int {
		if it(method, path) {
			return code
		}
		return 0
	}
}

// refuseToMake is unavailable so many times to who makes an object there.
func (f *fakeAPI) refuseToMake(where string, times int) {
	f.refuseWhere(http.StatusServiceUnavailable, func(method, path string) bool {
		asked := method == http.MethodPost && path == where
		if asked {
			times--
		}
		return asked && times >= 0
	})
}

// serve has the API answer on a free port of loopback, without TLS.
func (f *fakeAPI) serve(t *testing.T) *kube.Client {
	t.Helper()
	client := kube.NewClient(f.address(t), nil, kube.Network{}, requestLimit)
	t.Cleanup(client.Close)
	return client
}

// address is the URL of the API, which it begins to serve.
func (f *fakeAPI) address(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return server.URL
}

func (f *fakeAPI) get(path string) kube.Object {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.objects[path]
}

func (f *fakeAPI) set(path string, object kube.Object) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.objects[path] = object
}

// requests is what was asked in that way, in order.
func (f *fakeAPI) requests(method string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	found := []string{}
	for _, each := range f.asked {
		if target, ok := strings.CutPrefix(each, method+" "); ok {
			found = append(found, target)
		}
	}
	return found
}

func (f *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, r.Method+" "+r.URL.Path)
	if f.refuse != nil {
		if code := f.refuse(r.Method, r.URL.Path); code != 0 {
			http.Error(w, "refused by the test", code)
			return
		}
	}
	var in kube.Object
	if data, _ := io.ReadAll(r.Body); len(data) > 0 {
		if err := json.Unmarshal(data, &in); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	code, out := f.answer(r.Method, r.URL.Path, in)
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(out) // the client may have gone
}

func (f *fakeAPI) answer(method, target string, in kube.Object) (int, any) {
	if kinds, found := f.kinds[target]; found {
		return http.StatusOK, kube.Object{"resources": kinds}
	}
	if target == "/readyz" {
		return http.StatusOK, "ok"
	}
	owner, part := target, ""
	if last := path.Base(target); last == "status" || last == "approval" || last == "token" {
		owner, part = path.Dir(target), last
	}
	if part == "token" {
		return http.StatusCreated, kube.Object{"status": kube.Object{"token": "token of " + path.Base(owner)}}
	}
	current := f.objects[owner]
	collection := f.serves(path.Base(target))
	switch {
	case method == http.MethodGet && collection:
		return http.StatusOK, kube.Object{"items": f.list(target)}
	case method == http.MethodPost && collection:
		return f.create(target, in)
	case current == nil:
		return http.StatusNotFound, kube.Object{"message": "not found"}
	case method == http.MethodGet:
		return http.StatusOK, current
	case method == http.MethodPut && part != "":
		f.objects[owner] = with(current, "status", in["status"])
	case method == http.MethodPut:
		f.objects[owner] = in
	case method == http.MethodPatch:
		f.objects[owner] = merged(current, in)
	case method == http.MethodDelete:
		delete(f.objects, owner)
	}
	return http.StatusOK, f.objects[owner]
}

func (f *fakeAPI) serves(name string) bool {
	for _, kinds := range f.kinds {
		if slices.ContainsFunc(kinds, func(each apiKind) bool { return each.Name == name }) {
			return true
		}
	}
	return false
}

// list is the objects right under a path; those of all namespaces for a path without one.
func (f *fakeAPI) list(target string) []kube.Object {
	items := []kube.Object{}
	for _, key := range slices.Sorted(maps.Keys(f.objects)) {
		all := strings.HasPrefix(key, path.Dir(target)+"/namespaces/") && path.Base(path.Dir(key)) == path.Base(target)
		if path.Dir(key) == target || all {
			items = append(items, f.objects[key])
		}
	}
	return items
}

func (f *fakeAPI) create(target string, object kube.Object) (int, any) {
	f.serial++
	meta := with(metadata(object), "uid", fmt.Sprint("uid-", f.serial))
	if meta["name"] == nil {
		meta["name"] = fmt.Sprint(meta["generateName"], f.serial)
	}
	key := target + "/" + fmt.Sprint(meta["name"])
	if _, rest, found := strings.Cut(target, "/namespaces/"); found {
		space, _, _ := strings.Cut(rest, "/")
		if f.objects["/api/v1/namespaces/"+space] == nil {
			return http.StatusNotFound, kube.Object{"message": "namespace " + space + " not found"}
		}
	}
	if f.objects[key] != nil {
		return http.StatusConflict, kube.Object{"message": "already exists"}
	}
	object = with(object, "metadata", meta)
	if object["kind"] == "CustomResourceDefinition" {
		f.define(object)
	}
	if f.created != nil {
		f.created(object)
	}
	f.objects[key] = object
	return http.StatusCreated, object
}

// define serves the kind of a definition.
func (f *fakeAPI) define(object kube.Object) {
	spec, _ := object["spec"].(kube.Object)
	names, _ := spec["names"].(kube.Object)
	base := fmt.Sprintf("/apis/%v/v1", spec["group"])
	f.kinds[base] = append(f.kinds[base], apiKind{Name: fmt.Sprint(names["plural"]), Kind: fmt.Sprint(names["kind"])})
	object["status"] = kube.Object{"conditions": []any{kube.Object{"type": "Established", "status": "True"}}}
}

// merged is an object changed as a merge patch says.
func merged(object, fields kube.Object) kube.Object {
	result := maps.Clone(object)
	if result == nil {
		result = kube.Object{}
	}
	for key, value := range fields {
		if inner, ok := value.(kube.Object); ok {
			before, _ := result[key].(kube.Object)
			value = merged(before, inner)
		}
		result[key] = value
	}
	return result
}
