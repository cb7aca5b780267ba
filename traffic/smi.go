package traffic

import (
	"cmp"

	"gitrollout.dev/gitrollout/rollout"
)

// smi is the Service Mesh Interface of Linkerd and others. A TrafficSplit distributes a root Service's requests
// (https://github.com/servicemeshinterface/smi-spec/blob/main/apis/traffic-split/v1alpha2/traffic-split.md). If Git has
// no TrafficSplit, the overlay generates one. Each Service's share of requests is proportional to its integer weight.
var smi = router{
	kind: "smi", title: "SMI (Linkerd and others)", since: "v1alpha1",
	features: features{splits: can, anyTotal: can},
	config:   func() editor { return &smiConfig{} },
}

const smiGroup = "split.smi-spec.io"

// smiConfig is Argo Rollouts' trafficRouting.smi with the additional field apiVersion.
type smiConfig struct {
	RootService      string `json:"rootService,omitempty" object:"Service"`           // the Service that clients call; default: stable
	TrafficSplitName string `json:"trafficSplitName,omitempty" object:"TrafficSplit"` // default: the Rollout's name
	APIVersion       string `json:"apiVersion,omitempty"`                             // default: split.smi-spec.io/v1alpha2
}

func (c *smiConfig) overlay(o *Objects, r Route) error {
	root := rollout.Ref{Kind: "Service", Namespace: r.Namespace, Name: cmp.Or(c.RootService, r.Stable)}
	if _, ok := o.Find(root); !ok {
		return missing("rootService", root)
	}
	if err := o.Claim(root, "TrafficSplit", r); err != nil {
		return err
	}
	object := rollout.Object{
		"apiVersion": cmp.Or(c.APIVersion, smiGroup+"/v1alpha2"), "kind": "TrafficSplit",
		"metadata": map[string]any{"name": cmp.Or(c.TrafficSplitName, r.Name), "namespace": r.Namespace},
	}
	ref := object.Ref()
	if ref.Group != smiGroup {
		return misfit("apiVersion", "%q is not a version of a TrafficSplit", c.APIVersion).
			WithFix("%s", "use "+smiGroup+"/v1alpha2, or leave it out")
	}
	if users, ok := o.Edit(ref); ok {
		return smiWeights(o, users, ref, r)
	}
	if !r.Active {
		return nil
	}
	set(object, root.Name, "spec", "service")
	set(object, []any{
		map[string]any{"service": r.Canary, "weight": int64(r.Weight)},
		map[string]any{"service": r.Stable, "weight": int64(r.rest())},
	}, "spec", "backends")
	return o.generate(object, o.after(root), r)
}

func smiWeights(o *Objects, object rollout.Object, ref rollout.Ref, r Route) error {
	if err := o.Claim(ref, "spec.backends", r); err != nil {
		return err
	}
	backends := sharesOf(list(object.Map("spec")["backends"]), "service", r, nil)
	if backends.stable < 0 {
		return wrong(ref, "spec.backends", "does not have the stable Service %s", r.Stable).
			WithFix("add the Service, or remove the TrafficSplit from Git: gitrollout generates it for each release")
	}
	weighed, err := backends.weighed(ref, "spec.backends", "backend", "a TrafficSplit", r)
	if err != nil {
		return err
	}
	set(object, weighed, "spec", "backends")
	return nil
}
