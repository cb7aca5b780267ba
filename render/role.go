package render

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"

	"gitrollout.dev/gitrollout/rollout/experiment"
)

type podMetadata struct {
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

type metadataKey struct{ at, field, key string }

func (d *document) readRole(at string, m podMetadata) string {
	d.roles = append(d.roles, m.check(d, at)...)
	raw, _ := json.Marshal(m)
	return strings.TrimPrefix(string(raw), "{}")
}

func (m podMetadata) check(d *document, at string) (keys []metadataKey) {
	for _, of := range []struct {
		field, what string
		texts       map[string]string
	}{{"labels", "a label", m.Labels}, {"annotations", "an annotation", m.Annotations}} {
		for _, key := range slices.Sorted(maps.Keys(of.texts)) {
			k := metadataKey{at + "." + of.field + "[" + key + "]", of.field, key}
			switch value := of.texts[key]; {
			case slices.Contains(pins, key) || strings.HasPrefix(key, ownGroup+"/"):
				d.Fail(k.at, "leave it out", "is %s that only Kubernetes or gitrollout may set", of.what)
			case of.field == "labels" && len(content.IsLabelKey(key)) > 0, len(content.IsLabelKey(strings.ToLower(key))) > 0:
				d.Fail(k.at, "use letters, digits, -, _ and .; only a domain and / may come before the name",
					"%q is not a valid %s name", key, strings.TrimSuffix(of.field, "s"))
			case of.field == "labels" && len(content.IsLabelValue(value)) > 0:
				d.Fail(k.at, "use letters, digits, -, _ and ., at most 63", "%q is not a valid label value", value)
			}
			keys = append(keys, k)
		}
	}
	return keys
}

// checkRoles refuses role metadata that the pod template also sets. It refuses role labels that a selector uses,
// because a Service would then select other pods.
func (a *assembly) checkRoles() error {
	for _, d := range a.documents {
		template := experiment.Template{Spec: d.spec, From: a.deployments[d.workload], Others: a.Objects}
		for _, k := range d.roles {
			if by := template.Uses(k.field, k.key); by != "" {
				return a.invalid(d.ref, k.at, "use another name", "is also in %s", by)
			}
		}
	}
	return nil
}
