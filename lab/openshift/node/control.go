package node

import (
	"context"
	"crypto/tls"
	"fmt"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"metal-ipi.test/lab/openshift/cluster"
	"metal-ipi.test/lab/openshift/kube"
)

const (
	// gracePeriod is how long a node may be silent before it counts as not ready; Kubernetes' own default.
	gracePeriod   = 40 * time.Second
	controlPlane  = "node-role.kubernetes.io/control-plane"
	bootstrapName = kube.ConfigMaps + "/bootstrap"
	versionName   = kube.ClusterVersions + "/version"
)

// observeNode tells of a node that stopped reporting that nothing is known of it.
func observeNode(object kube.Object, now time.Time) kube.Object {
	node, err := fromObject[kube.Node](object)
	if err != nil {
		return object
	}
	ready := kube.Find(node.Status.Conditions, "Ready")
	if ready == nil {
		return object
	}
	last, err := time.Parse(time.RFC3339, ready.LastHeartbeatTime)
	if err == nil && now.Sub(last) <= gracePeriod {
		return object
	}
	ready.Status, ready.Reason, ready.Message = "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status."
	if observed, err := toObject(node); err == nil {
		return observed
	}
	return object
}

// controlPlaneNodes is the nodes of the control plane that have registered.
func controlPlaneNodes(store *Store) []kube.Node {
	nodes := []kube.Node{}
	for _, object := range store.List(kube.Nodes) {
		labels, _ := metadata(object)["labels"].(kube.Object)
		if _, ok := labels[controlPlane]; !ok {
			continue
		}
		if node, err := fromObject[kube.Node](observeNode(object, store.now())); err == nil {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

func internalAddress(node kube.Node) string {
	for _, address := range node.Status.Addresses {
		if address.Type == "InternalIP" {
			return address.Address
		}
	}
	return ""
}

// reconcileVersion keeps the ClusterVersion true: available once bootstrapping is complete and every control plane
// node is ready. Every API server does it, from the same facts.
func reconcileVersion(store *Store, facts cluster.Facts) error {
	ready := 0
	for _, node := range controlPlaneNodes(store) {
		if kube.Is(node.Status.Conditions, "Ready", "True") {
			ready++
		}
	}
	bootstrapped := bootstrapStatus(store) == "complete"
	available, progressing := "False", "True"
	message := fmt.Sprintf("Working towards %s: %d of %d control plane nodes are ready, bootstrapping is complete: %t",
		facts.Release, ready, facts.ControlPlane, bootstrapped)
	if bootstrapped && ready >= facts.ControlPlane {
		available, progressing, message = "True", "False", "Cluster version is "+facts.Release
	}
	return setConditions(store, facts, []kube.Condition{
		{Type: "Available", Status: available, Message: message},
		{Type: "Failing", Status: "False"},
		{Type: "Progressing", Status: progressing, Message: message},
	})
}

// setConditions writes only when something differs, or API servers would write for ever.
func setConditions(store *Store, facts cluster.Facts, wanted []kube.Condition) error {
	current, err := fromObject[kube.ClusterVersion](store.Get(versionName))
	if err != nil {
		return err
	}
	same := len(current.Status.Conditions) == len(wanted)
	for i := range wanted {
		wanted[i].LastTransitionTime = kube.Time(store.now())
		if old := kube.Find(current.Status.Conditions, wanted[i].Type); old != nil && old.Status == wanted[i].Status {
			wanted[i].LastTransitionTime = old.LastTransitionTime
			same = same && old.Message == wanted[i].Message
		} else {
			same = false
		}
	}
	if same {
		return nil
	}
	meta := kube.Meta{Name: "version", UID: current.Metadata.UID, CreationTimestamp: current.Metadata.CreationTimestamp}
	if meta.UID == "" {
		meta.UID, meta.CreationTimestamp = uuid(), kube.Time(store.now())
	}
	object, err := toObject(kube.ClusterVersion{
		APIVersion: "config.openshift.io/v1", Kind: "ClusterVersion", Metadata: meta,
		Status: kube.ClusterVersionStatus{Desired: map[string]string{"version": facts.Release}, Conditions: wanted},
	})
	if err != nil {
		return err
	}
	_, err = store.Update(versionName, func(kube.Object) (kube.Object, error) { return object, nil })
	return err
}

func bootstrapStatus(store *Store) string {
	status, err := fromObject[kube.ConfigMap](store.Get(bootstrapName))
	if err != nil {
		return ""
	}
	return status.Data["status"]
}

// bootstrapper is what only the bootstrap machine does: it watches the control plane come up, and says when it is
// there.
type bootstrapper struct {
	store   *Store
	gossip  *gossip
	facts   cluster.Facts
	config  *tls.Config
	network kube.Network
	log     *log.Logger
	last    string // what was last reported
}

// step looks once. The status becomes `complete` here only after every control plane node has it: this machine may
// be removed the moment somebody reads it.
func (b *bootstrapper) step(ctx context.Context) error {
	status := bootstrapStatus(b.store)
	if status == "complete" {
		return nil
	}
	nodes := controlPlaneNodes(b.store)
	if len(nodes) == 0 {
		b.report("waiting for the first of %d control plane nodes", b.facts.ControlPlane)
		return nil
	}
	if status == "" {
		_, err := b.store.Update(bootstrapName, func(kube.Object) (kube.Object, error) { return b.status("progressing") })
		if err != nil {
			return err
		}
	}
	addresses := []string{}
	for _, node := range nodes {
		if kube.Is(node.Status.Conditions, "Ready", "True") {
			addresses = append(addresses, internalAddress(node))
		}
	}
	answering := b.answering(ctx, addresses)
	b.report("%d of %d control plane nodes are ready, %d of their API servers answer", len(addresses), b.facts.ControlPlane, answering)
	if answering < b.facts.ControlPlane {
		return nil
	}
	object, err := b.status("complete")
	if err != nil {
		return err
	}
	entry := b.store.Propose(bootstrapName, object)
	if err := b.gossip.Everywhere(ctx, addresses, entry); err != nil {
		return fmt.Errorf("telling the control plane that bootstrapping is complete: %w", err)
	}
	b.store.Merge([]Entry{entry})
	b.log.Print("bootstrap complete")
	return nil
}

// answering counts the addresses whose API server says it is ready.
func (b *bootstrapper) answering(ctx context.Context, addresses []string) int {
	var group sync.WaitGroup
	results := make([]error, len(addresses))
	for i, address := range addresses {
		group.Add(1)
		go func() {
			defer group.Done()
			client := kube.NewClient("https://"+net.JoinHostPort(address, apiPort), b.config, b.network, gossipLimit)
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

func (b *bootstrapper) status(value string) (kube.Object, error) {
	now := kube.Time(b.store.now())
	return toObject(kube.ConfigMap{
		APIVersion: "v1", Kind: "ConfigMap", Data: map[string]string{"status": value},
		Metadata: kube.Meta{Name: "bootstrap", Namespace: "kube-system", UID: uuid(), CreationTimestamp: now},
	})
}

// report logs what changed.
func (b *bootstrapper) report(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); text != b.last {
		b.last = text
		b.log.Print(text)
	}
}
