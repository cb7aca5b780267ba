package cluster

import (
	"encoding/base64"
	"encoding/json"
	"maps"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"gitrollout.dev/gitrollout/rollout"
)

type desired struct {
	ref    rollout.Ref
	gvk    schema.GroupVersionKind
	object map[string]any
	digest string // digest without LabelApplied
	once   bool   // rollout.Object.CreateOnly
	kind   *kind  // nil if the same Apply creates the CRD
}

// prepare adds gitrollout's labels and annotations. Pod templates and selectors stay unchanged: a changed template
// would start a release, and selectors are immutable.
func (c *Client) prepare(app string, o rollout.Object) (*desired, error) {
	d := &desired{ref: o.Ref(), gvk: kindOfObject(o), object: maps.Clone(map[string]any(o)), once: o.CreateOnly()}
	if d.gvk.Version == "" || d.gvk.Kind == "" || d.ref.Name == "" {
		return nil, &Error{Ref: d.ref, Reason: Invalid, Msg: "has no apiVersion, no kind or no name"}
	}
	delete(d.object, "status") // the controller writes status

	metadata := without(o.Map("metadata"),
		"creationTimestamp", "managedFields", "resourceVersion", "uid", "generation", "selfLink")
	labels := with(o.Map("metadata", "labels"), rollout.LabelApp, app)
	annotations := with(o.Map("metadata", "annotations"), rollout.AnnotationCluster, c.opts.Cluster)
	delete(labels, LabelApplied)
	metadata["labels"], metadata["annotations"] = labels, annotations
	d.object["metadata"] = metadata
	if d.ref.Group == "" && d.ref.Kind == "Secret" {
		encodeStringData(d.object)
	}

	d.digest = rollout.Digest(d.body(), 16)
	labels[LabelApplied] = d.digest
	return d, nil
}

// body encodes late, because most objects need no apply. JSON can encode all values of a render.
func (d *desired) body() []byte {
	raw, _ := json.Marshal(d.object)
	return raw
}

func with(m map[string]any, name, value string) map[string]any {
	out := make(map[string]any, len(m)+2)
	maps.Copy(out, m)
	out[name] = value
	return out
}

// encodeStringData moves stringData to data. If the API server moved stringData, keys that leave Git would stay.
func encodeStringData(object map[string]any) {
	plain, ok := object["stringData"].(map[string]any)
	if !ok {
		return
	}
	data := map[string]any{}
	maps.Copy(data, rollout.Object(object).Map("data"))
	for name, value := range plain {
		if text, ok := value.(string); ok {
			data[name] = base64.StdEncoding.EncodeToString([]byte(text))
		}
	}
	delete(object, "stringData")
	object["data"] = data
}

func (d *desired) omitsReplicas() bool {
	spec, ok := d.object["spec"].(map[string]any)
	return ok && spec["replicas"] == nil
}
