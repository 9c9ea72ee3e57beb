package node

import (
	"context"
	"net/http"
	"net/url"

	"metal-ipi.test/lab/openshift/kube"
)

// bury does what the kubelet does last for a pod that is to be deleted: nothing of it runs here, so its object goes.
// An API server that keeps no pods has none.
func (a *agent) bury(ctx context.Context, client *kube.Client) error {
	var pods struct {
		Items []struct {
			Metadata struct {
				Name              string `json:"name"`
				Namespace         string `json:"namespace"`
				UID               string `json:"uid"`
				DeletionTimestamp string `json:"deletionTimestamp"`
			} `json:"metadata"`
		} `json:"items"`
	}
	here := "/api/v1/pods?fieldSelector=" + url.QueryEscape("spec.nodeName="+a.name)
	if err := client.Do(ctx, http.MethodGet, here, nil, &pods); err != nil {
		if kube.Code(err) == http.StatusNotFound {
			return nil
		}
		return err
	}
	for _, pod := range pods.Items {
		if pod.Metadata.DeletionTimestamp == "" {
			continue
		}
		now := map[string]any{
			"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0,
			"preconditions": map[string]any{"uid": pod.Metadata.UID},
		}
		path := "/api/v1/namespaces/" + pod.Metadata.Namespace + "/pods/" + pod.Metadata.Name
		err := client.Do(ctx, http.MethodDelete, path, now, nil)
		if code := kube.Code(err); err != nil && code != http.StatusNotFound && code != http.StatusConflict {
			return err
		}
	}
	return nil
}
