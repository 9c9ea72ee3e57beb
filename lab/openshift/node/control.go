package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"path"
	"path/filepath"
	"sync"
	"time"

	"metal-ipi.test/lab/openshift/cluster"
	"metal-ipi.test/lab/openshift/kube"
)

const (
	// controlEvery is how often the loops look on a machine that is one of several, and has better things to do;
	// bootstrapEvery on the one machine that installations wait for.
	controlEvery   = 1500 * time.Millisecond
	bootstrapEvery = 500 * time.Millisecond

	readyLimit = 4 * time.Second

	bootstrapName = kube.ConfigMaps + "/bootstrap"
	versionName   = kube.ClusterVersions + "/version"
)

// controller is the loops that keep a cluster's own objects true: kube-controller-manager's part, and the cluster
// version operator's. Every API server runs one, from the same facts.
type controller struct {
	objects   *kube.Client
	facts     cluster.Facts
	certifier certifier
	bootstrap *bootstrapper // nil but on the bootstrap machine
	every     time.Duration
	now       func() time.Time
	log       *log.Logger
}

// use says where the objects are.
func (c *controller) use(all *kube.Client) {
	c.objects, c.certifier.objects = all, all
	if c.bootstrap != nil {
		c.bootstrap.objects = all
	}
}

// Run looks again and again until the context ends.
func (c *controller) Run(ctx context.Context) {
	_ = until(ctx, c.every, c.log, "the cluster's loops", func() (bool, error) { return false, c.step(ctx) }) // it ends with the context
}

func (c *controller) step(ctx context.Context) error {
	requests, err := c.objects.Follow(ctx, kube.CSRs)
	if err != nil {
		return err
	}
	seen, err := c.objects.Follow(ctx, kube.Nodes)
	if err != nil {
		return err
	}
	renewed, err := renewals(ctx, c.objects)
	if err != nil {
		return err
	}
	problems := []error{c.certifier.step(ctx, requests), c.keepNodes(ctx, seen, renewed), c.spread(ctx, seen)}
	nodes := controlPlaneNodes(seen, renewed, c.now())
	if c.bootstrap != nil {
		problems = append(problems, c.bootstrap.step(ctx, nodes))
	}
	return errors.Join(append(problems, c.reconcileVersion(ctx, nodes))...)
}

// reconcileVersion keeps the ClusterVersion true: available once bootstrapping is complete and every control plane
// node is ready.
func (c *controller) reconcileVersion(ctx context.Context, nodes []kube.Node) error {
	ready := 0
	for _, node := range nodes {
		if kube.Is(node.Status.Conditions, "Ready", "True") {
			ready++
		}
	}
	status, err := bootstrapStatus(ctx, c.objects)
	if err != nil {
		return err
	}
	bootstrapped := status == "complete"
	available, progressing := "False", "True"
	message := fmt.Sprintf("Working towards %s: %d of %d control plane nodes are ready, bootstrapping is complete: %t",
		c.facts.Release, ready, c.facts.ControlPlane, bootstrapped)
	if bootstrapped && ready >= c.facts.ControlPlane {
		available, progressing, message = "True", "False", "Cluster version is "+c.facts.Release
	}
	return c.setConditions(ctx, []kube.Condition{
		{Type: "Available", Status: available, Message: message},
		{Type: "Failing", Status: "False"},
		{Type: "Progressing", Status: progressing, Message: message},
	})
}

// setConditions writes only when something differs, or API servers would write for ever.
func (c *controller) setConditions(ctx context.Context, wanted []kube.Condition) error {
	seen, err := follow(ctx, c.objects, versionName)
	if err != nil {
		return err
	}
	_, err = c.objects.UpdateFrom(ctx, versionName, "status", seen, func(object kube.Object) (kube.Object, error) {
		current, err := fromObject[kube.ClusterVersion](object)
		if err != nil {
			return nil, err
		}
		same := len(current.Status.Conditions) == len(wanted)
		for i := range wanted {
			wanted[i].LastTransitionTime = kube.Time(c.now())
			if old := kube.Find(current.Status.Conditions, wanted[i].Type); old != nil && old.Status == wanted[i].Status {
				wanted[i].LastTransitionTime = old.LastTransitionTime
				same = same && old.Message == wanted[i].Message
			} else {
				same = false
			}
		}
		if same {
			return nil, kube.ErrUnchanged
		}
		if object == nil {
			object = kube.Object{
				"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion", "metadata": kube.Object{"name": "version"},
				"spec": kube.Object{"clusterID": c.facts.ID},
			}
		}
		status, err := toObject(kube.ClusterVersionStatus{
			Desired: map[string]string{"version": c.facts.Release, "image": ""}, Conditions: wanted,
		})
		return with(object, "status", status), err
	})
	return err
}

func bootstrapStatus(ctx context.Context, all *kube.Client) (string, error) {
	object, err := follow(ctx, all, bootstrapName)
	if err != nil {
		return "", err
	}
	status, err := fromObject[kube.ConfigMap](object)
	return status.Data["status"], err
}

// follow is the object at a path as the client's watch has it: the loops ask for nothing while nothing changes.
func follow(ctx context.Context, all *kube.Client, name string) (kube.Object, error) {
	return all.FollowOne(ctx, path.Dir(name), path.Base(name))
}

// bootstrapper is what only the bootstrap machine does: it watches the control plane come up, and says when it is
// there.
type bootstrapper struct {
	objects *kube.Client
	facts   cluster.Facts
	config  *tls.Config
	network kube.Network
	root    string
	log     *log.Logger
	last    string // what was last reported
}

// step looks once.
func (b *bootstrapper) step(ctx context.Context, nodes []kube.Node) error {
	status, err := bootstrapStatus(ctx, b.objects)
	if status == "complete" || err != nil {
		return err
	}
	if len(nodes) == 0 {
		b.report("waiting for the first of %d control plane nodes", b.facts.ControlPlane)
		return nil
	}
	if status == "" {
		if err := b.write(ctx, bootstrapObject("progressing")); err != nil {
			return err
		}
	}
	addresses := readyAddresses(nodes)
	count := answering(ctx, b.config, b.network, addresses)
	b.report("%d of %d control plane nodes are ready, %d of their API servers answer", len(addresses), b.facts.ControlPlane, count)
	if count < b.facts.ControlPlane {
		return nil
	}
	if err := b.applyManifests(ctx); err != nil {
		return err
	}
	if err := finish(b.root, clusterFormed); err != nil {
		return err
	}
	if err := b.write(ctx, bootstrapObject("complete")); err != nil {
		return err
	}
	b.log.Print("bootstrap complete")
	return nil
}

// applyManifests has the user's manifests be there.
func (b *bootstrapper) applyManifests(ctx context.Context) error {
	paths, _ := filepath.Glob(filepath.Join(b.root, assetDirectory, "openshift", "*")) // the pattern is good
	objects, err := readObjects(paths, parseManifest)
	if err != nil || len(objects) == 0 {
		return err
	}
	return newApplier(b.objects, b.log).Apply(ctx, objects)
}

// write makes the status this.
func (b *bootstrapper) write(ctx context.Context, status kube.Object) error {
	return b.objects.Update(ctx, bootstrapName, "", func(current kube.Object) (kube.Object, error) {
		if current == nil {
			return status, nil
		}
		return with(current, "data", status["data"]), nil
	})
}

// answering counts the addresses whose API server says it is ready.
func answering(ctx context.Context, config *tls.Config, network kube.Network, addresses []string) int {
	var group sync.WaitGroup
	results := make([]error, len(addresses))
	for i, address := range addresses {
		group.Add(1)
		go func() {
			defer group.Done()
			client := kube.NewClient("https://"+net.JoinHostPort(address, apiPort), config, network, readyLimit)
			defer client.Close()
			var answer string
			results[i] = client.Do(ctx, http.MethodGet, "/readyz", nil, &answer)
		}()
	}
	group.Wait()
	count := 0
	for _, err := range results {
		if err == nil {
			count++
		}
	}
	return count
}

// bootstrapObject is the ConfigMap by which a cluster says how far its bootstrapping is.
func bootstrapObject(value string) kube.Object {
	return kube.Object{
		"apiVersion": "v1", "kind": "ConfigMap", "data": kube.Object{"status": value},
		"metadata": kube.Object{"name": "bootstrap", "namespace": "kube-system"},
	}
}

// report logs what changed.
func (b *bootstrapper) report(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); text != b.last {
		b.last = text
		b.log.Print(text)
	}
}
