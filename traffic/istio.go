package traffic

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// istio splits the routes of VirtualServices between two Services, or two subsets of a DestinationRule. The first route
// that matches a request wins, so a route for matched requests is inserted before its original
// (https://istio.io/latest/docs/reference/config/networking/virtual-service/). A weight is a share of the sum
// (HTTPRouteDestination.weight). In older versions, the sum must be 100. Istio writes a status since 1.6.
var istio = router{
	kind: "istio", title: "Istio", since: "1.6",
	features: features{
		splits: can, anyTotal: can, mirrors: can, sticks: can, reports: can, modifies: can, weighs: can,
		byHeader: anyText, byCookie: anyText, byQuery: anyText, byPath: anyText, byMethod: anyText,
	},
	config: func() editor { return &istioConfig{} },
}

const istioGroup = "networking.istio.io"

type istioConfig struct {
	VirtualService  *istioVirtualService  `json:"virtualService,omitempty"`
	VirtualServices []istioVirtualService `json:"virtualServices,omitempty"`
	DestinationRule *istioRule            `json:"destinationRule,omitempty"` // if nil, the split is between Services
}

// istioVirtualService needs no route name if the VirtualService has only one route.
type istioVirtualService struct {
	Name      string       `json:"name" object:"VirtualService"` // or NAME.NAMESPACE
	Routes    []string     `json:"routes,omitempty"`
	TLSRoutes []istioRoute `json:"tlsRoutes,omitempty"`
	TCPRoutes []istioRoute `json:"tcpRoutes,omitempty"`
}

// istioRoute selects a TLS or TCP route by its match, because such routes have no names.
type istioRoute struct {
	Port     int64    `json:"port,omitempty"`
	SNIHosts []string `json:"sniHosts,omitempty"`
}

type istioRule struct {
	Name             string `json:"name" object:"DestinationRule"`
	CanarySubsetName string `json:"canarySubsetName"`
	StableSubsetName string `json:"stableSubsetName"`

	// AdditionalSubsetNames are subsets that keep their weights. Stable's weight is reduced by these weights.
	AdditionalSubsetNames []string `json:"additionalSubsetNames,omitempty"`
}

func (c *istioConfig) all() (all []istioVirtualService) {
	if c.VirtualService != nil {
		all = append(all, *c.VirtualService)
	}
	return append(all, c.VirtualServices...)
}

func (c *istioConfig) bySubset() bool { return c.DestinationRule != nil }

func (c *istioConfig) watched(namespace string) (refs []rollout.Ref) {
	for _, v := range c.all() {
		refs = append(refs, v.refs(namespace)...)
	}
	if c.DestinationRule != nil {
		refs = append(refs, c.DestinationRule.ref(namespace))
	}
	return refs
}

// refs returns v.Name's possible objects: shop.edge can also mean shop in the namespace edge.
func (v istioVirtualService) refs(namespace string) []rollout.Ref {
	refs := []rollout.Ref{{Group: istioGroup, Kind: "VirtualService", Namespace: namespace, Name: v.Name}}
	if name, other, ok := strings.Cut(v.Name, "."); ok && !strings.Contains(other, ".") {
		refs = append(refs, rollout.Ref{Group: istioGroup, Kind: "VirtualService", Namespace: other, Name: name})
	}
	return refs
}

func (r *istioRule) ref(namespace string) rollout.Ref {
	return rollout.Ref{Group: istioGroup, Kind: "DestinationRule", Namespace: namespace, Name: r.Name}
}

func (c *istioConfig) overlay(o *Objects, r Route) error {
	services := c.all()
	if len(services) == 0 {
		return misfit("", "names no VirtualService").WithFix("give virtualService: {name: NAME}")
	}
	target := istioTarget{Route: r, stable: istioVersion{host: r.Stable}, canary: istioVersion{host: r.Canary}}
	if rule := c.DestinationRule; rule != nil {
		host, err := rule.label(o, r)
		if err != nil {
			return err
		}
		target.stable, target.canary = istioVersion{host, rule.StableSubsetName}, istioVersion{host, rule.CanarySubsetName}
		target.kept = rule.AdditionalSubsetNames
	} else if r.Stable == "" || r.Canary == "" {
		return misfit("", "has no two destinations to split between").
			WithFix("give stableService and canaryService, or a destinationRule with two subsets")
	}
	for i, v := range services {
		field := "virtualService.name"
		if n := i - len(services) + len(c.VirtualServices); n >= 0 {
			field = fmt.Sprintf("virtualServices[%d].name", n)
		}
		if err := v.overlay(o, field, target); err != nil {
			return err
		}
	}
	return nil
}

func (r *istioRule) label(o *Objects, route Route) (string, error) {
	ref := r.ref(route.Namespace)
	object, ok := o.Edit(ref)
	if !ok {
		return "", missing("destinationRule.name", ref)
	}
	for _, subset := range []struct{ field, name, pods string }{
		{"canarySubsetName", r.CanarySubsetName, route.CanaryPods},
		{"stableSubsetName", r.StableSubsetName, route.StablePods},
	} {
		if subset.name == "" {
			return "", misfit("destinationRule."+subset.field, "is missing").WithFix("name the subset")
		}
		subsets := list(object.Map("spec")["subsets"])
		i := slices.IndexFunc(subsets, func(s any) bool { return text(mapping(s)["name"]) == subset.name })
		if i < 0 {
			return "", wrong(ref, "spec.subsets", "has no subset %s", subset.name).WithFix("add {name: %s}", subset.name)
		}
		if err := o.Claim(ref, fmt.Sprintf("spec.subsets[%d]", i), route); err != nil {
			return "", err
		}
		key := cmp.Or(route.PodLabel, rollout.LabelPodHash)
		if subset.pods == "" {
			delete(mapping(mapping(subsets[i])["labels"]), key)
		} else {
			set(mapping(subsets[i]), subset.pods, "labels", key)
		}
	}
	return text(object.Map("spec")["host"]), nil
}

func (v istioVirtualService) overlay(o *Objects, field string, t istioTarget) error {
	refs := v.refs(t.Namespace)
	i := slices.IndexFunc(refs, func(ref rollout.Ref) bool { _, ok := o.Find(ref); return ok })
	if i < 0 {
		return missing(field, refs[0])
	}
	ref := refs[i]
	object, _ := o.Edit(ref)
	t.ref = ref
	found := map[string]bool{}
	for _, section := range []string{"http", "tls", "tcp"} {
		routes := list(object.Map("spec")[section])
		split, err := v.chosen(section, routes, t)
		if err != nil {
			return err
		}
		if len(split) == 0 {
			continue
		}
		found[section] = true
		out, err := t.split(o, section, routes, split)
		if err != nil {
			return err
		}
		set(object, out, "spec", section)
	}
	switch {
	case len(found) == 0:
		return wrong(ref, "spec", "no route has %s as a destination", t.name()).
			WithFix("add it to each route that is to be split")
	case !found["http"] && (len(t.Managed) > 0 || t.Headers != nil):
		return wrong(ref, "spec.http",
			"has no route to split, and only HTTP routes can match requests or change headers, as a step asks").
			WithFix("leave out match, setHeaderRoute, setMirrorRoute and requestHeaderModifier")
	}
	return nil
}

func (v istioVirtualService) chosen(section string, routes []any, t istioTarget) ([]int, error) {
	var split, possible []int
	for i, item := range routes {
		if t.find(mapping(item), t.stable) >= 0 {
			possible = append(possible, i)
		}
	}
	if section == "http" && len(routes) == 0 {
		return nil, nil // as in Argo Rollouts, v.Routes has no effect without HTTP routes
	}
	wanted := v.wanted(section)
	for _, w := range wanted {
		some := false
		for i, item := range routes {
			if !w.is(mapping(item)) {
				continue
			}
			if !slices.Contains(possible, i) {
				return nil, wrong(t.ref, fmt.Sprintf("spec.%s[%d]", section, i), "does not have %s as a destination", t.name()).
					WithFix("add it, or remove the route from the Rollout's list")
			}
			some, split = true, append(split, i)
		}
		if !some {
			return nil, wrong(t.ref, "spec."+section, "has no route %s", w.text).WithFix("correct the Rollout's list of routes")
		}
	}
	if len(wanted) == 0 {
		if len(possible) > 0 && len(routes) > 1 {
			field := section + "Routes: [{port: NUMBER}]"
			if section == "http" {
				field = "routes: [NAME]"
			}
			return nil, wrong(t.ref, "spec."+section,
				"has %d routes, and the Rollout does not name the route to split", len(routes)).
				WithFix("set %s for VirtualService %s in the Rollout", field, v.Name)
		}
		split = possible
	}
	slices.Sort(split)
	return slices.Compact(split), nil
}

type istioWanted struct {
	text string
	is   func(route map[string]any) bool
}

func (v istioVirtualService) wanted(section string) []istioWanted {
	ofRoute := func(r istioRoute) istioWanted { return istioWanted{r.String(), r.is} }
	switch section {
	case "http":
		return rollout.Mapped(v.Routes, func(name string) istioWanted {
			return istioWanted{name, func(route map[string]any) bool { return text(route["name"]) == name }}
		})
	case "tcp":
		return rollout.Mapped(v.TCPRoutes, ofRoute)
	}
	return rollout.Mapped(v.TLSRoutes, ofRoute)
}

func (r istioRoute) String() string {
	var parts []string
	if r.Port != 0 {
		parts = append(parts, "for port "+strconv.FormatInt(r.Port, 10))
	}
	if len(r.SNIHosts) > 0 {
		parts = append(parts, "for the hosts "+strings.Join(r.SNIHosts, ", "))
	}
	return strings.Join(parts, " ")
}

func (r istioRoute) is(route map[string]any) bool {
	// As in Argo Rollouts, all matches must have the same port. If r has SNI hosts, the matches must have exactly these
	// hosts.
	ports, hosts := map[int64]bool{}, map[string]bool{}
	for _, m := range list(route["match"]) {
		port, _ := number(mapping(m)["port"])
		ports[port] = true
		for _, host := range list(mapping(m)["sniHosts"]) {
			hosts[text(host)] = true
		}
	}
	want := map[string]bool{}
	for _, host := range r.SNIHosts {
		want[host] = true
	}
	return len(ports) <= 1 && (r.Port == 0 || ports[r.Port]) && (len(want) == 0 || maps.Equal(want, hosts))
}

// verify reads Istio's status, which is off by default (https://istio.io/latest/docs/reference/config/config-status/).
// Reconciled is False until each proxy has the object. An ERROR in validationMessages is a rejection.
func (*istioConfig) verify(_ rollout.Ref, route rollout.ObservedRoute) Verdict {
	if isOlder(route.Status, route) {
		return Verdict{Text: "is not yet seen by istiod"}
	}
	for _, message := range rollout.Object(route.Status).Maps("validationMessages") {
		if !strings.EqualFold(text(message["level"]), "error") {
			continue
		}
		code := cmp.Or(text(message["code"]), text(mapping(message["type"])["code"]))
		said := cmp.Or(text(message["message"]), text(message["documentationUrl"]))
		return Verdict{Rejected: true, Text: fmt.Sprintf("is rejected by istiod: %s", strings.TrimSpace(code+" "+said))}
	}
	for _, condition := range rollout.Object(route.Status).Maps("conditions") {
		if text(condition["type"]) == "Reconciled" && text(condition["status"]) == "False" {
			return Verdict{Text: "has not reached every proxy: " + cmp.Or(text(condition["message"]), text(condition["reason"]))}
		}
	}
	return Verdict{Taken: true}
}

// isOlder reports whether a status is about an older generation of the object. Istio writes the generation as a string.
func isOlder(said map[string]any, route rollout.ObservedRoute) bool {
	seen, isNumber := number(said["observedGeneration"])
	if !isNumber {
		seen, _ = strconv.ParseInt(text(said["observedGeneration"]), 10, 64)
	}
	return seen != 0 && seen < route.Generation
}
