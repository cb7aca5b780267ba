package render

import (
	"regexp"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/hook"
)

var generatedSuffix = regexp.MustCompile(`-[2456789bcdfghkmt]{10}$`)

// warnGenerated warns if a Rollout's pod template names a generated ConfigMap or Secret without the hash suffix. Such
// pods would not start. Kustomize adds the suffix in a Rollout only if the kustomization's "configurations" lists the
// Rollout's fields.
func (a *assembly) warnGenerated() {
	exists := map[rollout.Ref]bool{}
	generated := map[rollout.Ref]string{} // the full name for each name without the hash
	for _, object := range a.Objects {
		ref := object.Ref()
		if ref.Group != "" || ref.Kind != "ConfigMap" && ref.Kind != "Secret" {
			continue
		}
		exists[ref] = true
		if suffix := generatedSuffix.FindString(ref.Name); suffix != "" {
			ref.Name = strings.TrimSuffix(ref.Name, suffix)
			generated[ref] = object.Name()
		}
	}
	for _, d := range a.documents {
		if !d.inline || len(generated) == 0 {
			continue
		}
		seen := map[rollout.Ref]bool{}
		hook.EachReference(d.form.Template, func(_, kind, name string) {
			ref := rollout.Ref{Kind: kind, Namespace: d.ref.Namespace, Name: name}
			if full := generated[ref]; full != "" && !exists[ref] && !seen[ref] {
				seen[ref] = true
				a.warn("%s: the template names %s %s, which kustomize has generated as %s; "+
					"add `configurations` with a nameReference for Rollout", shortRef(d.ref), kind, name, full)
			}
		})
	}
}
