// Package kube is the little of Kubernetes' API that the stand-in speaks: its objects and a client.
package kube

import "time"

// Object is any API object, kept as it came: a server must not lose fields that it does not know.
type Object = map[string]any

// Meta is an object's metadata.
type Meta struct {
	Name              string            `json:"name,omitempty"`
	GenerateName      string            `json:"generateName,omitempty"`
	Namespace         string            `json:"namespace,omitempty"`
	UID               string            `json:"uid,omitempty"`
	ResourceVersion   string            `json:"resourceVersion,omitempty"`
	CreationTimestamp string            `json:"creationTimestamp,omitempty"`
	Labels            map[string]string `json:"labels,omitempty"`
	Annotations       map[string]string `json:"annotations,omitempty"`
}

// Condition serves every kind that has conditions.
type Condition struct {
	Type               string `json:"type"`
	Status             string `json:"status"`
	Reason             string `json:"reason,omitempty"`
	Message            string `json:"message,omitempty"`
	LastHeartbeatTime  string `json:"lastHeartbeatTime,omitempty"`
	LastTransitionTime string `json:"lastTransitionTime,omitempty"`
	LastUpdateTime     string `json:"lastUpdateTime,omitempty"`
}

type ConfigMap struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   Meta              `json:"metadata"`
	Data       map[string]string `json:"data"`
}

type Node struct {
	APIVersion string     `json:"apiVersion"`
	Kind       string     `json:"kind"`
	Metadata   Meta       `json:"metadata"`
	Spec       NodeSpec   `json:"spec"`
	Status     NodeStatus `json:"status"`
}

type NodeSpec struct {
	Taints        []Taint `json:"taints,omitempty"`
	Unschedulable bool    `json:"unschedulable,omitempty"`
}

type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value,omitempty"`
	Effect string `json:"effect"`
}

type NodeStatus struct {
	Addresses  []NodeAddress     `json:"addresses,omitempty"`
	Conditions []Condition       `json:"conditions,omitempty"`
	NodeInfo   map[string]string `json:"nodeInfo,omitempty"`
}

type NodeAddress struct {
	Type    string `json:"type"`
	Address string `json:"address"`
}

type CSR struct {
	APIVersion string    `json:"apiVersion"`
	Kind       string    `json:"kind"`
	Metadata   Meta      `json:"metadata"`
	Spec       CSRSpec   `json:"spec"`
	Status     CSRStatus `json:"status"`
}

type CSRSpec struct {
	Request    []byte   `json:"request"`
	SignerName string   `json:"signerName"`
	Usages     []string `json:"usages"`
	Username   string   `json:"username,omitempty"`
	Groups     []string `json:"groups,omitempty"`
}

type CSRStatus struct {
	Conditions  []Condition `json:"conditions,omitempty"`
	Certificate []byte      `json:"certificate,omitempty"`
}

type ClusterVersion struct {
	APIVersion string               `json:"apiVersion"`
	Kind       string               `json:"kind"`
	Metadata   Meta                 `json:"metadata"`
	Status     ClusterVersionStatus `json:"status"`
}

type ClusterVersionStatus struct {
	Desired            map[string]string   `json:"desired"`
	Conditions         []Condition         `json:"conditions"`
	AvailableUpdates   []map[string]string `json:"availableUpdates"`
	ObservedGeneration int                 `json:"observedGeneration"`
	VersionHash        string              `json:"versionHash"`
}

// Status is what the API answers when there is no object to answer with.
type Status struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   Meta   `json:"metadata"`
	Status     string `json:"status"`
	Message    string `json:"message,omitempty"`
	Reason     string `json:"reason,omitempty"`
	Code       int    `json:"code"`
}

// Paths of the resources.
const (
	Nodes            = "/api/v1/nodes"
	ConfigMaps       = "/api/v1/namespaces/kube-system/configmaps"
	Leases           = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
	CSRs             = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
	ClusterVersions  = "/apis/config.openshift.io/v1/clusterversions"
	ClusterOperators = "/apis/config.openshift.io/v1/clusteroperators"
)

// The signers of the certificates of nodes: those that they use as clients, and as servers.
const (
	KubeletSigner = "kubernetes.io/kube-apiserver-client-kubelet"
	ServingSigner = "kubernetes.io/kubelet-serving"
)

// Time is how Kubernetes writes a time.
func Time(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// MicroTime is how Kubernetes writes the times of leases.
func MicroTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z07:00") }

// Find is the condition of that type, or nil.
func Find(conditions []Condition, kind string) *Condition {
	for i := range conditions {
		if conditions[i].Type == kind {
			return &conditions[i]
		}
	}
	return nil
}

// Is says whether there is a condition of that type with that status.
func Is(conditions []Condition, kind, status string) bool {
	condition := Find(conditions, kind)
	return condition != nil && condition.Status == status
}
