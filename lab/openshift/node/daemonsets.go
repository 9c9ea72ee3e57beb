package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"metal-ipi.test/lab/openshift/kube"
)

const (
	workloads = "/apis/apps/v1"
	allPods   = "/api/v1/pods"
)

// spreadSpaces is the namespaces whose pods are made in the lab: nothing reconciles the others.
var spreadSpaces = []string{operatorSpace, metalLB, "kube-system"}

// metalLB is the one that has a Deployment.
const metalLB = "metallb-system"

// spread has the pods of DaemonSets be there, one on each node that they are for, and no others; of a Deployment one, on
// a node that is ready. A small API server has neither.
func (c *controller) spread(ctx context.Context, nodes []kube.Object) error {
	sets, err := c.objects.Follow(ctx, workloads+"/daemonsets")
	if kube.Code(err) == http.StatusNotFound {
		return nil
	}
	sets = slices.DeleteFunc(sets, func(set kube.Object) bool { return !slices.Contains(spreadSpaces, space(set)) })
	if err != nil || len(sets) == 0 {
		return err
	}
	wanted := map[string]kube.Object{}
	for _, set := range sets {
		for _, node := range nodes {
			if pod := podOf("DaemonSet", set, node); pod != nil {
				wanted[pathOf(pod)] = pod
			}
		}
	}
	if slices.ContainsFunc(sets, func(set kube.Object) bool { return space(set) == metalLB }) {
		deployments, err := c.objects.Follow(ctx, workloads+"/namespaces/"+metalLB+"/deployments")
		if err != nil {
			return err
		}
		for _, each := range deployments {
			if pod := podOf("Deployment", each, firstReady(nodes)); pod != nil {
				wanted[pathOf(pod)] = pod
			}
		}
	}
	pods, err := c.objects.Follow(ctx, allPods)
	if err != nil {
		return err
	}
	var problems []error
	for _, pod := range pods {
		owners, _ := metadata(pod)["ownerReferences"].([]any)
		path := pathOf(pod)
		if wanted[path] == nil && len(owners) > 0 && slices.Contains(spreadSpaces, space(pod)) && metadata(pod)["deletionTimestamp"] == nil {
			problems = append(problems, ignoring(http.StatusNotFound, c.objects.Do(ctx, http.MethodDelete, path, nil, nil)))
		}
		delete(wanted, path)
	}
	for _, pod := range wanted {
		// Every API server has these loops: another one may have been first.
		err := c.objects.Do(ctx, http.MethodPost, "/api/v1/namespaces/"+space(pod)+"/pods", pod, nil)
		problems = append(problems, ignoring(http.StatusConflict, err))
	}
	return errors.Join(problems...)
}

func ignoring(code int, err error) error {
	if kube.Code(err) == code {
		return nil
	}
	return err
}

func space(object kube.Object) string { return fmt.Sprint(metadata(object)["namespace"]) }

func pathOf(pod kube.Object) string {
	return "/api/v1/namespaces/" + space(pod) + "/pods/" + fmt.Sprint(metadata(pod)["name"])
}

// firstReady is the node, of those that take any pod and are ready, whose name is the first; nil if there is none.
func firstReady(nodes []kube.Object) kube.Object {
	var first kube.Object
	for _, object := range nodes {
		node, err := fromObject[kube.Node](object)
		if err != nil || !kube.Is(node.Status.Conditions, "Ready", "True") || len(node.Spec.Taints) > 0 {
			continue
		}
		if first == nil || node.Metadata.Name < fmt.Sprint(metadata(first)["name"]) {
			first = object
		}
	}
	return first
}

// withIdentity gives a pod's containers the token of its service account, as the API's own admission does elsewhere.
func withIdentity(spec kube.Object) kube.Object {
	const name = "kube-api-access"
	token := kube.Object{"serviceAccountToken": kube.Object{"path": "token", "expirationSeconds": 3607}}
	present, _ := spec["volumes"].([]any)
	containers, _ := spec["containers"].([]any)
	mounted := []any{}
	for _, each := range containers {
		it, _ := each.(kube.Object)
		mounts, _ := it["volumeMounts"].([]any)
		mount := kube.Object{"name": name, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": true}
		mounted = append(mounted, with(it, "volumeMounts", append(slices.Clone(mounts), mount)))
	}
	own := kube.Object{"name": name, "projected": kube.Object{"sources": []any{token}}}
	return with(with(spec, "containers", mounted), "volumes", append(slices.Clone(present), own))
}

// podOf is the pod on a node of a set; nil if that is not one of those that the set selects.
func podOf(kind string, set, node kube.Object) kube.Object {
	if node == nil {
		return nil
	}
	spec, _ := set["spec"].(kube.Object)
	pattern, _ := spec["template"].(kube.Object)
	its, _ := pattern["spec"].(kube.Object)
	selected, _ := its["nodeSelector"].(kube.Object)
	labels, _ := metadata(node)["labels"].(kube.Object)
	for key, value := range selected {
		if labels[key] != value {
			return nil
		}
	}
	name := fmt.Sprint(metadata(node)["name"])
	digest := sha256.Sum256([]byte(name + fmt.Sprint(metadata(node)["uid"])))
	its = withIdentity(with(with(its, "nodeName", name), "tolerations", []any{kube.Object{"operator": "Exists"}}))
	owner := kube.Object{"apiVersion": "apps/v1", "kind": kind, "name": metadata(set)["name"], "uid": metadata(set)["uid"], "controller": true}
	meta := with(metadata(pattern), "name", fmt.Sprint(metadata(set)["name"], "-", hex.EncodeToString(digest[:])[:10]))
	meta = with(with(meta, "namespace", space(set)), "ownerReferences", []any{owner})
	return kube.Object{"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": its}
}
