package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"metal-ipi.test/lab/openshift/kube"
)

const (
	// gracePeriod is how long a node may be silent before it counts as not ready: OpenShift's default (openshift/api,
	// config/v1/types_node.go, DefaultNodeMonitorGracePeriod).
	gracePeriod = 40 * time.Second
	notReady    = "node.kubernetes.io/not-ready"

	controlPlane = "node-role.kubernetes.io/control-plane"
	master       = "node-role.kubernetes.io/master"
	worker       = "node-role.kubernetes.io/worker"
	// nodeLabels is where a node says what the real kubelet writes into its own labels: a plain API server, which is not
	// OpenShift's, lets no node label itself with a role. The loops take it over.
	nodeLabels = "lab-openshift/node-labels"
)

// keepNodes keeps true what the API says of nodes: it gives them the labels that they say they have, writes down of those
// that stopped reporting that nothing is known of them, and takes from those that are ready the taint that every API
// server gives to new ones.
func (c *controller) keepNodes(ctx context.Context, nodes []kube.Object, renewed map[string]string) error {
	return errors.Join(
		c.changeNodes(ctx, nodes, "", withLabels),
		c.changeNodes(ctx, nodes, "status", func(node kube.Object) (kube.Object, bool) { return observeNode(node, renewed, c.now()) }),
		c.changeNodes(ctx, nodes, "", withoutTaint),
		c.changeNodes(ctx, nodes, "", func(node kube.Object) (kube.Object, bool) { return schedulable(node, c.facts.Schedulable) }),
	)
}

// changeNodes replaces nodes by what `change` makes of them, where it finds something to change; `part` is as for
// kube.Client.Update.
func (c *controller) changeNodes(ctx context.Context, nodes []kube.Object, part string, change func(kube.Object) (kube.Object, bool)) error {
	var problems []error
	for _, object := range nodes {
		if _, changes := change(object); !changes {
			continue
		}
		key := kube.Nodes + "/" + fmt.Sprint(metadata(object)["name"])
		problems = append(problems, c.objects.Update(ctx, key, part, func(current kube.Object) (kube.Object, error) {
			changed, changes := change(current)
			if !changes {
				return nil, kube.ErrUnchanged
			}
			return changed, nil
		}))
	}
	return errors.Join(problems...)
}

// withLabels is a node with the labels that it says it has; false if it has them all.
func withLabels(node kube.Object) (kube.Object, bool) {
	annotations, _ := metadata(node)["annotations"].(kube.Object)
	told, _ := annotations[nodeLabels].(string)
	present, _ := metadata(node)["labels"].(kube.Object)
	labels := kube.Object{}
	maps.Copy(labels, present)
	for _, item := range strings.FieldsFunc(told, func(r rune) bool { return r == ',' }) {
		name, value, _ := strings.Cut(item, "=")
		if _, found := present[name]; !found && !strings.Contains(item, "$") && name != "" {
			labels[name] = value
		}
	}
	return with(node, "metadata", with(metadata(node), "labels", labels)), len(labels) > len(present)
}

// withoutTaint is a node that is ready without the taint of one that is not; false if there is nothing to take away.
func withoutTaint(object kube.Object) (kube.Object, bool) {
	if status, _ := readiness(object); status != "True" {
		return object, false
	}
	spec, _ := object["spec"].(kube.Object)
	present, _ := spec["taints"].([]any)
	taints := slices.DeleteFunc(slices.Clone(present), func(taint any) bool {
		fields, _ := taint.(kube.Object)
		return fields["key"] == notReady
	})
	return with(object, "spec", with(spec, "taints", taints)), len(taints) < len(present)
}

// schedulable is a control plane node that takes pods, where the cluster wants that, as the machine config operator makes
// it (pkg/controller/node, reconcileMaster); false if there is nothing to change.
func schedulable(object kube.Object, wanted bool) (kube.Object, bool) {
	present, _ := metadata(object)["labels"].(kube.Object)
	_, isMaster := present[master]
	_, takesPods := present[worker]
	if !wanted || !isMaster || takesPods {
		return object, false
	}
	spec, _ := object["spec"].(kube.Object)
	taints, _ := spec["taints"].([]any)
	taints = slices.DeleteFunc(slices.Clone(taints), func(taint any) bool {
		fields, _ := taint.(kube.Object)
		return fields["key"] == master
	})
	labelled := with(object, "metadata", with(metadata(object), "labels", with(present, worker, "")))
	return with(labelled, "spec", with(spec, "taints", taints)), true
}

// renewals is when nodes renewed their leases, by their names; nothing from an API that has no leases.
func renewals(ctx context.Context, client *kube.Client) (map[string]string, error) {
	leases, err := client.Follow(ctx, kube.Leases)
	if kube.Code(err) == http.StatusNotFound {
		return nil, nil
	}
	renewed := map[string]string{}
	for _, lease := range leases {
		spec, _ := lease["spec"].(kube.Object)
		renewed[fmt.Sprint(metadata(lease)["name"])], _ = spec["renewTime"].(string)
	}
	return renewed, err
}

// observeNode tells of a node that stopped reporting, and does not renew its lease, that nothing is known of it, as
// Kubernetes does (pkg/controller/nodelifecycle/node_lifecycle_controller.go, tryUpdateNodeHealth); false if there is
// nothing to tell.
func observeNode(object kube.Object, renewed map[string]string, now time.Time) (kube.Object, bool) {
	status, heartbeat := readiness(object)
	if status == "" || status == "Unknown" {
		return object, false
	}
	for _, each := range []string{heartbeat, renewed[fmt.Sprint(metadata(object)["name"])]} {
		if last, err := time.Parse(time.RFC3339, each); err == nil && now.Sub(last) <= gracePeriod {
			return object, false
		}
	}
	node, err := fromObject[kube.Node](object)
	if err != nil {
		return object, false
	}
	for number := range node.Status.Conditions {
		each := &node.Status.Conditions[number]
		each.Status, each.Reason, each.Message = "Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status."
		each.LastTransitionTime = kube.Time(now)
	}
	return withStatus(object, "conditions", node.Status.Conditions), true
}

// readiness is whether a node says that it is ready, and when it last did; empty where it says nothing. The loops ask each
// node again and again: the typed form of all of them takes more time than all else that they do.
func readiness(object kube.Object) (status, heartbeat string) {
	its, _ := object["status"].(kube.Object)
	conditions, _ := its["conditions"].([]any)
	for _, each := range conditions {
		if condition, _ := each.(kube.Object); condition["type"] == "Ready" {
			status, _ = condition["status"].(string)
			heartbeat, _ = condition["lastHeartbeatTime"].(string)
		}
	}
	return status, heartbeat
}

// controlPlaneNodes is the nodes of the control plane that have registered.
func controlPlaneNodes(all []kube.Object, renewed map[string]string, now time.Time) []kube.Node {
	nodes := []kube.Node{}
	for _, object := range all {
		labels, _ := metadata(object)["labels"].(kube.Object)
		if _, ok := labels[controlPlane]; !ok {
			continue
		}
		observed, _ := observeNode(object, renewed, now)
		if node, err := fromObject[kube.Node](observed); err == nil {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// readyAddresses is where the nodes are that are ready.
func readyAddresses(nodes []kube.Node) []string {
	addresses := []string{}
	for _, node := range nodes {
		if kube.Is(node.Status.Conditions, "Ready", "True") {
			addresses = append(addresses, internalAddress(node))
		}
	}
	return addresses
}

func internalAddress(node kube.Node) string {
	for _, address := range node.Status.Addresses {
		if address.Type == "InternalIP" {
			return address.Address
		}
	}
	return ""
}
