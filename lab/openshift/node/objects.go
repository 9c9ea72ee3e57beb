package node

import (
	"encoding/json"
	"maps"
	"time"

	"metal-ipi.test/lab/openshift/kube"
)

// with is an object with one of its fields replaced; the one given stays as it is.
func with(object kube.Object, field string, value any) kube.Object {
	changed := maps.Clone(object)
	if changed == nil {
		changed = kube.Object{}
	}
	changed[field] = value
	return changed
}

// withStatus is an object with one field of its status replaced.
func withStatus(object kube.Object, field string, value any) kube.Object {
	status, _ := object["status"].(kube.Object)
	return with(object, "status", with(status, field, value))
}

// condition is a condition that begins to be so now.
func condition(kind, reason, message string, now time.Time) kube.Condition {
	return kube.Condition{
		Type: kind, Status: "True", Reason: reason, Message: message,
		LastUpdateTime: kube.Time(now), LastTransitionTime: kube.Time(now),
	}
}

func metadata(object kube.Object) kube.Object {
	meta, _ := object["metadata"].(kube.Object)
	return meta
}

// toObject and fromObject change between an object and its typed form.
func toObject(value any) (kube.Object, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	object := kube.Object{}
	return object, json.Unmarshal(data, &object)
}

func fromObject[T any](object kube.Object) (T, error) {
	var value T
	data, err := json.Marshal(object)
	if err != nil {
		return value, err
	}
	return value, json.Unmarshal(data, &value)
}
