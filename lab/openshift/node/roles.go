package node

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"metal-ipi.test/lab/openshift/cluster"
	"metal-ipi.test/lab/openshift/kube"
)

const (
	controlPlane = "node-role.kubernetes.io/control-plane"
	master       = "node-role.kubernetes.io/master"
	worker       = "node-role.kubernetes.io/worker"
)

// assignRoles labels nodes with what they are. A node may not say so itself (that is what admission plugin
// NodeRestriction is for); the credentials say it that its first certificate was asked for with.
func assignRoles(ctx context.Context, all objects, nodes, requests []kube.Object, facts cluster.Facts) error {
	var groups map[string][]string
	for _, node := range nodes {
		name, _ := metadata(node)["name"].(string)
		if hasRole(node) {
			continue
		}
		if groups == nil {
			groups = admitted(requests)
		}
		asked, known := groups[name]
		if !known {
			continue
		}
		labels := map[string]string{worker: ""}
		if slices.Contains(asked, cluster.ControlPlaneGroup) {
			labels = map[string]string{controlPlane: "", master: ""}
			if facts.Schedulable {
				labels[worker] = ""
			}
		}
		if err := label(ctx, all, name, labels); err != nil {
			return fmt.Errorf("role of node %s: %w", name, err)
		}
	}
	return nil
}

func hasRole(node kube.Object) bool {
	labels, _ := metadata(node)["labels"].(kube.Object)
	for _, role := range []string{controlPlane, worker} {
		if _, found := labels[role]; found {
			return true
		}
	}
	return false
}

// admitted is the groups of those who asked for a node's first certificate and got it, by the node's name.
func admitted(requests []kube.Object) map[string][]string {
	groups := map[string][]string{}
	for _, object := range requests {
		csr, err := fromObject[kube.CSR](object)
		if err != nil || csr.Spec.Username != cluster.BootstrapperName || csr.Status.Certificate == nil {
			continue
		}
		if name, isNode := nodeName(subject(csr)); isNode {
			groups[name] = append(groups[name], csr.Spec.Groups...)
		}
	}
	return groups
}

func label(ctx context.Context, all objects, name string, wanted map[string]string) error {
	return all.Update(ctx, kube.Nodes+"/"+name, "", func(current kube.Object) (kube.Object, error) {
		if current == nil || hasRole(current) {
			return nil, errUnchanged
		}
		present, _ := metadata(current)["labels"].(kube.Object)
		labels := kube.Object{}
		maps.Copy(labels, present)
		for key, value := range wanted {
			labels[key] = value
		}
		return with(current, "metadata", with(metadata(current), "labels", labels)), nil
	})
}
