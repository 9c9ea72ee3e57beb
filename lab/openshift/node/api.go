package node

import (
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"metal-ipi.test/lab/openshift/cluster"
	"metal-ipi.test/lab/openshift/kube"
)

// KubernetesVersion is what /version says.
const KubernetesVersion = "v1.34.2+lab"

// server is one small API server: the handlers and what they need.
type server struct {
	store   store
	clients *x509.CertPool // whose client certificates are accepted
	now     func() time.Time
	log     *log.Logger
}

// resource is a kind of objects that is served.
type resource struct {
	plural string
	kind   string
	group  string // with version, as apiVersion says
	path   string
}

var served = []resource{
	{"nodes", "Node", "v1", kube.Nodes},
	{"configmaps", "ConfigMap", "v1", kube.ConfigMaps},
	{"certificatesigningrequests", "CertificateSigningRequest", "certificates.k8s.io/v1", kube.CSRs},
	{"clusterversions", "ClusterVersion", "config.openshift.io/v1", kube.ClusterVersions},
	{"clusteroperators", "ClusterOperator", "config.openshift.io/v1", kube.ClusterOperators},
}

// apiError is a failure as the API tells it.
type apiError struct {
	code    int
	reason  string
	message string
}

func (e *apiError) Error() string { return e.message }

func fail(code int, reason, format string, args ...any) error {
	return &apiError{code, reason, fmt.Sprintf(format, args...)}
}

// Handler serves the API.
func (s *server) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, path := range []string{"/healthz", "/livez", "/readyz"} {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	}
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) {
		s.answer(w, http.StatusOK, map[string]string{
			"major": "1", "minor": "34", "gitVersion": KubernetesVersion, "gitTreeState": "stand-in", "platform": "linux/amd64",
		})
	})
	for _, item := range served {
		mux.HandleFunc("GET "+item.path, s.handle(item, "list", s.list))
		mux.HandleFunc("POST "+item.path, s.handle(item, "create", s.create))
		mux.HandleFunc("GET "+item.path+"/{name}", s.handle(item, "get", s.get))
		mux.HandleFunc("PUT "+item.path+"/{name}", s.handle(item, "update", s.update("")))
		mux.HandleFunc("DELETE "+item.path+"/{name}", s.handle(item, "delete", s.remove))
		mux.HandleFunc("PUT "+item.path+"/{name}/status", s.handle(item, "update/status", s.update("status")))
		mux.HandleFunc("PUT "+item.path+"/{name}/approval", s.handle(item, "update/approval", s.update("status")))
		for _, rest := range []string{"", "/{name}", "/{name}/{subresource}"} {
			mux.HandleFunc(item.path+rest, s.handle(item, "other", notImplemented))
		}
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		s.answerError(w, fail(http.StatusNotFound, "NotFound", "the server could not find the requested resource"))
	})
	return mux
}

// nameSelector begins the only selector of objects that is implemented, of one by its name.
const nameSelector = "metadata.name="

type handler func(resource, user, *http.Request) (int, any, error)

// handle checks who asks, then serves; what is not implemented says so with 501.
func (s *server) handle(item resource, verb string, serve handler) http.HandlerFunc {
	return func(w http.ResponseWriter, request *http.Request) {
		who, ok := s.authenticate(request)
		if !ok {
			s.answerError(w, fail(http.StatusUnauthorized, "Unauthorized", "Unauthorized"))
			return
		}
		if !who.may(verb, item.plural, request.PathValue("name")) {
			s.answerError(w, fail(http.StatusForbidden, "Forbidden", "%s %q is forbidden: User %q cannot %s resource %q",
				item.plural, request.PathValue("name"), who.name, verb, item.plural))
			return
		}
		answer, query := serve, request.URL.Query()
		byName := verb == "list" && strings.HasPrefix(query.Get("fieldSelector"), nameSelector)
		if query.Has("watch") || query.Has("labelSelector") || query.Has("fieldSelector") && !byName || query.Has("dryRun") {
			answer = notImplemented
		}
		code, object, err := answer(item, who, request)
		if err != nil {
			s.answerError(w, err)
			return
		}
		s.answer(w, code, object)
	}
}

func (s *server) list(item resource, _ user, request *http.Request) (int, any, error) {
	items, err := s.store.List(item.path)
	if err != nil {
		return 0, nil, err
	}
	if name, found := strings.CutPrefix(request.URL.Query().Get("fieldSelector"), nameSelector); found {
		items = slices.DeleteFunc(items, func(each kube.Object) bool { return metadata(each)["name"] != name })
	}
	return http.StatusOK, kube.Object{
		"apiVersion": item.group, "kind": item.kind + "List", "items": items,
		"metadata": kube.Object{"resourceVersion": strconv.FormatInt(s.now().UnixNano(), 10)},
	}, nil
}

func (s *server) get(item resource, _ user, request *http.Request) (int, any, error) {
	object, err := s.store.Get(item.path + "/" + request.PathValue("name"))
	if object == nil && err == nil {
		err = notFound(item, request)
	}
	return http.StatusOK, object, err
}

func (s *server) create(item resource, who user, request *http.Request) (int, any, error) {
	object, err := body(request)
	if err != nil {
		return 0, nil, err
	}
	meta := kube.Object{}
	maps.Copy(meta, metadata(object))
	name, _ := meta["name"].(string)
	if prefix, ok := meta["generateName"].(string); ok && name == "" {
		name = prefix + strings.ToLower(rand.Text()[:5])
	}
	if name == "" || strings.ContainsAny(name, "/ ") {
		return 0, nil, fail(http.StatusUnprocessableEntity, "Invalid", "%s is invalid: metadata.name: %q", item.kind, name)
	}
	if node, isNode := who.node(); isNode && item.plural == "nodes" && node != name {
		return 0, nil, fail(http.StatusForbidden, "Forbidden", "nodes %q is forbidden: node %q is not allowed to modify node %q", name, node, name)
	}
	meta["name"], meta["uid"], meta["creationTimestamp"] = name, cluster.UUID(), kube.Time(s.now())
	object["metadata"], object["apiVersion"], object["kind"] = meta, item.group, item.kind
	if item.plural == "certificatesigningrequests" {
		if object, err = s.admitCSR(object, who); err != nil {
			return 0, nil, err
		}
	}
	created, err := s.store.Update(item.path+"/"+name, func(current kube.Object) (kube.Object, error) {
		if current != nil {
			return nil, fail(http.StatusConflict, "AlreadyExists", "%s %q already exists", item.plural, name)
		}
		return object, nil
	})
	return http.StatusCreated, created, err
}

// update replaces an object, or one part of it.
func (s *server) update(part string) handler {
	return func(item resource, _ user, request *http.Request) (int, any, error) {
		object, err := body(request)
		if err != nil {
			return 0, nil, err
		}
		updated, err := s.store.Update(item.path+"/"+request.PathValue("name"), func(current kube.Object) (kube.Object, error) {
			if current == nil {
				return nil, notFound(item, request)
			}
			if err := checkVersion(item, object, current); err != nil {
				return nil, err
			}
			if part != "" {
				current[part] = object[part]
				return current, nil
			}
			meta := metadata(current)
			for key, value := range metadata(object) {
				if key != "uid" && key != "creationTimestamp" && key != "name" {
					meta[key] = value
				}
			}
			if status, ok := current["status"]; ok {
				object["status"] = status
			}
			object["metadata"], object["apiVersion"], object["kind"] = meta, item.group, item.kind
			return object, nil
		})
		return http.StatusOK, updated, err
	}
}

func (s *server) remove(item resource, _ user, request *http.Request) (int, any, error) {
	_, err := s.store.Update(item.path+"/"+request.PathValue("name"), func(current kube.Object) (kube.Object, error) {
		if current == nil {
			return nil, notFound(item, request)
		}
		return nil, nil
	})
	return http.StatusOK, kube.Status{APIVersion: "v1", Kind: "Status", Status: "Success", Code: http.StatusOK}, err
}

func (s *server) answer(w http.ResponseWriter, code int, object any) {
	data, err := json.Marshal(object)
	if err != nil {
		s.log.Printf("cannot encode an answer: %v", err)
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(append(data, '\n')) // the client may be gone
}

func (s *server) answerError(w http.ResponseWriter, err error) {
	problem := &apiError{http.StatusInternalServerError, "InternalError", err.Error()}
	errors.As(err, &problem)
	s.answer(w, problem.code, kube.Status{
		APIVersion: "v1", Kind: "Status", Status: "Failure", Message: problem.message, Reason: problem.reason, Code: problem.code,
	})
}

func notImplemented(_ resource, _ user, request *http.Request) (int, any, error) {
	return 0, nil, fail(http.StatusNotImplemented, "NotImplemented", "the lab's API server does not implement %s %s", request.Method, request.URL)
}

func notFound(item resource, request *http.Request) error {
	return fail(http.StatusNotFound, "NotFound", "%s %q not found", item.plural, request.PathValue("name"))
}

// checkVersion refuses a write that did not see the object's last state, if the writer says which one it saw.
func checkVersion(item resource, object, current kube.Object) error {
	seen, _ := metadata(object)["resourceVersion"].(string)
	if seen != "" && seen != metadata(current)["resourceVersion"] {
		return fail(http.StatusConflict, "Conflict", "Operation cannot be fulfilled on %s %q: the object has been modified; "+
			"please apply your changes to the latest version and try again", item.plural, metadata(current)["name"])
	}
	return nil
}

func body(request *http.Request) (kube.Object, error) {
	object := kube.Object{}
	if err := json.NewDecoder(io.LimitReader(request.Body, 3<<20)).Decode(&object); err != nil {
		return nil, fail(http.StatusBadRequest, "BadRequest", "the body is not a JSON object: %v", err)
	}
	return object, nil
}
