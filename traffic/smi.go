package traffic

import (
	"cmp"
	"fmt"
	"slices"

	"gitrollout.dev/gitrollout/rollout"
)

// smi is the Service Mesh Interface, which Linkerd and others implement: a
// TrafficSplit shares the requests to a root Service out to others
// (https://github.com/servicemeshinterface/smi-spec/blob/main/apis/traffic-split/v1alpha2/traffic-split.md).
// It is made for the time of a release; one that is in Git gets the weights
// instead. Weights are whole numbers, shares of their sum.
var smi = router{
	kind: "smi", title: "SMI (Linkerd and others)", since: "v1alpha1",
	features: features{Weight: yes, AnyWeight: yes},
	config:   func() editor { return &smiConfig{} },
}

const smiGroup = "split.smi-spec.io"

// smiConfig has the fields of Argo Rollouts' trafficRouting.smi, and apiVersion.
type smiConfig struct {
	RootService      string `json:"rootService,omitempty"`      // which clients call; default: the stable Service
	TrafficSplitName string `json:"trafficSplitName,omitempty"` // default: the Rollout's name
	APIVersion       string `json:"apiVersion,omitempty"`       // of a TrafficSplit that is made; default split.smi-spec.io/v1alpha2
}

func (c *smiConfig) names(visit func(kind string, name *string)) {
	visit("Service", &c.RootService)
	visit("TrafficSplit", &c.TrafficSplitName)
}

func (c *smiConfig) watched(string) []rollout.Ref { return nil }

func (c *smiConfig) overlay(o *Objects, r Route) error {
	root := rollout.Ref{Kind: "Service", Namespace: r.Namespace, Name: cmp.Or(c.RootService, r.Stable)}
	if _, ok := o.Find(root); !ok {
		return missing("rootService", "Service", root.Namespace, root.Name)
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
		return misfit("apiVersion", "%q is no version of a TrafficSplit", c.APIVersion).
			fix("%s", "use "+smiGroup+"/v1alpha2, or leave it out")
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
		map[string]any{"service": r.Stable, "weight": int64(r.Rest())},
	}, "spec", "backends")
	return o.Generate(object, root, r)
}

// smiWeights sets the weights of a TrafficSplit that is in Git.
func smiWeights(o *Objects, object rollout.Object, ref rollout.Ref, r Route) error {
	if err := o.Claim(ref, "spec.backends", r); err != nil {
		return err
	}
	backends := list(object.Map("spec")["backends"])
	find := func(service string) int {
		return slices.IndexFunc(backends, func(b any) bool { return text(mapping(b)["service"]) == service })
	}
	stable, canary := find(r.Stable), find(r.Canary)
	if stable < 0 {
		return wrong(ref, "spec.backends", "does not have the stable Service %s", r.Stable).
			fix("add it, or take the TrafficSplit out of Git: it is made when it is needed")
	}
	for i, b := range backends {
		if weight, given := number(mapping(b)["weight"]); i != stable && i != canary && !(given && weight == 0) {
			return wrong(ref, fmt.Sprintf("spec.backends[%d]", i),
				"is a third backend (%s), so that the weights of stable and canary would not add up to all requests", text(mapping(b)["service"])).
				fix("give it a TrafficSplit of its own, or weight: 0")
		}
	}
	mapping(backends[stable])["weight"] = int64(r.Rest())
	if canary < 0 && r.Weight > 0 {
		canary, backends = len(backends), append(backends, map[string]any{"service": r.Canary})
	}
	if canary >= 0 {
		mapping(backends[canary])["weight"] = int64(r.Weight)
	}
	set(object, backends, "spec", "backends")
	return nil
}
