package node

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"metal-ipi.test/lab/openshift/kube"
)

// assigned is the API's pods for a node.
type assigned struct {
	host      machine
	agent     *agent
	authority []byte        // who signs the API's certificates, PEM
	every     time.Duration // how often the API is asked

	mu      sync.Mutex
	member  *kube.Client // as the node; nil before it joined
	client  *kube.Client // the same; nil where the API keeps no pods
	routes  sync.Once    // users are served from then on
	pods    map[string]podManifest
	asked   time.Time
	problem string // why they were not known when they were last asked for
}

// joined says as whom to ask from now on.
func (a *assigned) joined(ctx context.Context, client *kube.Client) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.member, a.client = client, client
	a.routes.Do(func() { go a.serveIngress(ctx) })
}

// assignedPods is the API's pods for this node, with what they mount; what was known before, where nobody answers.
func (a *assigned) assignedPods(ctx context.Context) map[string]podManifest {
	a.mu.Lock()
	client, known, asked := a.client, a.pods, a.asked
	a.mu.Unlock()
	if client == nil || time.Since(asked) < a.every {
		return known
	}
	found, err := a.readPods(ctx, client, known)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = time.Now()
	if err == nil {
		a.pods, a.problem = found, ""
	} else if kube.Code(err) == http.StatusNotFound {
		a.client = nil // a small API server keeps no pods
	} else if text := err.Error(); text != a.problem {
		a.problem = text
		a.host.log.Printf("this node's pods are not known: %s", text)
	}
	return a.pods
}

func (a *assigned) readPods(ctx context.Context, client *kube.Client, known map[string]podManifest) (map[string]podManifest, error) {
	pods, err := assignedTo(ctx, client, a.host.name)
	if err != nil {
		return nil, err
	}
	result := map[string]podManifest{}
	for _, object := range pods {
		meta := metadata(object)
		if meta["deletionTimestamp"] != nil {
			continue // the agent buries it
		}
		name := fmt.Sprint(meta["namespace"], "/", meta["name"])
		if before, ok := known[name]; ok && string(before.text) == fmt.Sprint(meta["uid"]) {
			result[name] = before
			continue
		}
		told, err := a.prepare(ctx, client, object)
		if err != nil {
			a.host.log.Printf("pod %s: %v", name, err)
			continue
		}
		result[name] = told
	}
	return result, nil
}

// prepare has on this machine what a pod mounts from the API: its secrets, and the token of its service account.
func (a *assigned) prepare(ctx context.Context, client *kube.Client, object kube.Object) (podManifest, error) {
	object = with(object, "kind", "Pod") // lists leave it out
	data, err := json.Marshal(object)
	if err != nil {
		return podManifest{}, err
	}
	told, err := parsePod(data)
	if err != nil {
		return told, err
	}
	meta := metadata(object)
	uid, space := fmt.Sprint(meta["uid"]), fmt.Sprint(meta["namespace"])
	told.text, told.files = []byte(uid), map[string]string{}
	server, err := url.Parse(a.agent.access.server)
	if err != nil {
		return told, err
	}
	address, err := a.podAddress()
	if err != nil {
		return told, err
	}
	fields := map[string]string{
		"metadata.name": fmt.Sprint(meta["name"]), "metadata.namespace": space, "spec.nodeName": a.host.name,
		"status.hostIP": address, "status.podIP": address,
	}
	for i := range told.Spec.Containers {
		it := &told.Spec.Containers[i]
		for j, each := range it.Env {
			if path := each.From.Field.Path; path != "" {
				value, found := fields[path]
				if !found {
					return told, fmt.Errorf("variable %s is of %q, which the lab's kubelet does not know", each.Name, path)
				}
				it.Env[j].Value = value
			}
		}
		it.Env = append(it.Env, variable{Name: "KUBERNETES_SERVICE_HOST", Value: server.Hostname()}, variable{Name: "KUBERNETES_SERVICE_PORT", Value: server.Port()})
	}
	volumes := filepath.Join(a.host.root, "/var/lib/kubelet/pods", uid, "volumes")
	for _, each := range told.Spec.Volumes {
		var files map[string][]byte
		switch {
		case each.Projected != nil:
			files, err = a.identity(ctx, client, told, object)
		case each.Secret.Name != "":
			files, err = readData[[]byte](ctx, client, space, "secret", each.Secret.Name)
		case each.ConfigMap.Name != "":
			files, err = readData[string](ctx, client, space, "configmap", each.ConfigMap.Name)
		}
		if err != nil {
			return told, err
		}
		if files != nil {
			told.files[each.Name] = filepath.Join(volumes, each.Name)
			if err := putFiles(told.files[each.Name], files); err != nil {
				return told, err
			}
		}
	}
	told.started = func(ctx context.Context) error {
		return reportStarted(ctx, client, space, fields["metadata.name"], address)
	}
	return told, nil
}

// podAddress is where this node's pods are: all of them have the network of the machine.
func (a *assigned) podAddress() (string, error) {
	if own := wireFromEnv(); own != nil {
		return own.address.Addr().String(), nil
	}
	return a.agent.address()
}

// reportStarted writes down that a pod runs. It is not looked at again: one that ends is started anew.
func reportStarted(ctx context.Context, client *kube.Client, space, name, address string) error {
	now := kube.Time(time.Now())
	status := kube.Object{
		"phase": "Running", "hostIP": address, "podIP": address, "podIPs": []any{kube.Object{"ip": address}}, "startTime": now,
		"conditions": []any{kube.Object{"type": "Ready", "status": "True", "lastTransitionTime": now}},
	}
	return client.Merge(ctx, "/api/v1/namespaces/"+space+"/pods/"+name+"/status", kube.Object{"status": status})
}

// readData is what a Secret or a ConfigMap holds; an error as long as it is empty.
func readData[T string | []byte](ctx context.Context, client *kube.Client, space, kind, name string) (map[string][]byte, error) {
	var object struct {
		Data map[string]T `json:"data"`
	}
	if err := client.Do(ctx, http.MethodGet, "/api/v1/namespaces/"+space+"/"+kind+"s/"+name, nil, &object); err != nil {
		return nil, err
	}
	if len(object.Data) == 0 {
		return nil, fmt.Errorf("%s %s is empty still", kind, name)
	}
	files := map[string][]byte{}
	for key, value := range object.Data {
		files[key] = []byte(value)
	}
	return files, nil
}

// identity is what a pod asks the API as: a token of its service account, which is bound to it.
func (a *assigned) identity(ctx context.Context, client *kube.Client, told podManifest, object kube.Object) (map[string][]byte, error) {
	meta := metadata(object)
	spec := kube.Object{"boundObjectRef": kube.Object{"kind": "Pod", "apiVersion": "v1", "name": meta["name"], "uid": meta["uid"]}}
	token, err := accountToken(ctx, client, fmt.Sprint(meta["namespace"]), told.Spec.ServiceAccount, spec)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		"token": token, "ca.crt": a.authority, "namespace": []byte(fmt.Sprint(meta["namespace"])),
	}, nil
}

// accountToken asks for a token of a service account.
func accountToken(ctx context.Context, client *kube.Client, space, account string, spec kube.Object) ([]byte, error) {
	request := kube.Object{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
	var answer struct {
		Status struct {
			Token string `json:"token"`
		} `json:"status"`
	}
	path := "/api/v1/namespaces/" + space + "/serviceaccounts/" + account + "/token"
	err := client.Do(ctx, http.MethodPost, path, request, &answer)
	return []byte(answer.Status.Token), err
}

func putFiles(directory string, files map[string][]byte) error {
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return err
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(directory, filepath.Base(name)), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}
