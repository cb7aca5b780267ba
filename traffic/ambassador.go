package traffic

import (
	"fmt"
	"maps"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// ambassador is Emissary-ingress, formerly Ambassador. A release creates a copy of a Mapping, and sets the canary's
// weight in the copy (Mapping.spec.weight, in percent). The original has no weight, and gets the other requests.
// Matched requests get a copy with more constraints, because such a copy is evaluated first
// (https://www.getambassador.io/docs/emissary/latest/topics/using/mappings). Query parameters need Ambassador 1.5.
var ambassador = router{
	kind: "ambassador", title: "Emissary-ingress (Ambassador)", since: "1.5",
	features: features{splits: can, byHeader: anyText, byCookie: anyText, byQuery: anyText, byMethod: anyText},
	config:   func() editor { return &ambassadorConfig{} },
}

const ambassadorGroup = "getambassador.io"

type ambassadorConfig struct {
	Mappings []string `json:"mappings" object:"Mapping"`
}

func (c *ambassadorConfig) overlay(o *Objects, r Route) error {
	if len(c.Mappings) == 0 {
		return misfit("mappings", "names no Mapping").WithFix("list the Mappings to the stable Service")
	}
	if r.Max != 100 {
		return misfit("mappings", "have weights in percent, and maxTrafficWeight is %d", r.Max).
			WithFix("leave out maxTrafficWeight")
	}
	for i, name := range c.Mappings {
		ref := rollout.Ref{Group: ambassadorGroup, Kind: "Mapping", Namespace: r.Namespace, Name: name}
		base, ok := o.Edit(ref)
		if !ok {
			return missing(fmt.Sprintf("mappings[%d]", i), ref)
		}
		if err := o.Claim(ref, "spec.service", r); err != nil {
			return err
		}
		if err := ambassadorMapping(o, ref, base, r); err != nil {
			return err
		}
	}
	return nil
}

// ambassadorMapping generates the copies. It also sets the Service of the original (base), because pingPong swaps the
// Services.
func ambassadorMapping(o *Objects, ref rollout.Ref, base rollout.Object, r Route) error {
	spec := base.Map("spec")
	service := text(spec["service"])
	stable, ok := ambassadorService(service, r, r.Stable)
	if !ok {
		return wrong(ref, "spec.service", "is %q and not the stable Service %s", service, r.Stable).
			WithFix("name the stable Service here, or list another Mapping")
	}
	canary, _ := ambassadorService(service, r, r.Canary)
	if weight, _ := number(spec["weight"]); weight != 0 {
		return wrong(ref, "spec.weight", "is %d, so that the weights would not add up to all requests", weight).
			WithFix("remove it: the release's Mapping has the canary's weight")
	}
	spec["service"] = stable
	after := ref
	generate := func(suffix string, change func(spec map[string]any)) error {
		object := base.Copy() // the labels stay, because Hosts select by label
		delete(object, "status")
		set(object, suffixed(base.Name(), suffix), "metadata", "name")
		object.Map("spec")["service"] = canary
		change(object.Map("spec"))
		err := o.generate(object, o.after(after), r)
		after = object.Ref()
		return err
	}
	// Ambassador 1.x (getambassador.io/v2) drops a weight of 0, so a canary with weight 0 would get half of the
	// requests.
	if r.Weight > 0 {
		if err := generate("canary", func(spec map[string]any) { spec["weight"] = int64(r.Weight) }); err != nil {
			return err
		}
	}
	for _, managed := range r.Managed {
		made := 0
		for _, m := range managed.Matches {
			both, possible, err := ambassadorMatch(ref, spec, m)
			if err != nil {
				return err
			}
			if !possible {
				continue
			}
			suffix := numbered(managed.Name, made)
			made++
			if err := generate(suffix, func(spec map[string]any) { maps.Copy(spec, both) }); err != nil {
				return err
			}
		}
	}
	return nil
}

func suffixed(base, suffix string) string {
	if room := 253 - 1 - len(suffix); len(base) > room {
		base = base[:max(room, 0)]
	}
	return base + "-" + suffix
}

// ambassadorService replaces the Service in an address such as https://shop.store:8443.
func ambassadorService(service string, r Route, to string) (string, bool) {
	_, rest, ok := strings.Cut(service, "://")
	if !ok {
		rest = service
	}
	host, _, _ := strings.Cut(rest, "/")
	host, _, _ = strings.Cut(host, ":")
	name, domain, qualified := strings.Cut(host, ".")
	namespace, _, _ := strings.Cut(domain, ".")
	if name == "" || name != r.Stable && name != r.Canary || qualified && namespace != r.Namespace {
		return "", false
	}
	return strings.TrimSuffix(service, rest) + to + rest[len(name):], true
}

func ambassadorMatch(ref rollout.Ref, spec map[string]any, m rollout.Match) (map[string]any, bool, error) {
	fields := map[string]any{}
	for _, field := range []string{"headers", "regex_headers", "query_parameters", "regex_query_parameters"} {
		if own := mapping(spec[field]); len(own) > 0 {
			fields[field] = copyMap(own)
		}
	}
	for _, named := range []struct {
		field string
		list  []rollout.NamedMatch
	}{{"headers", m.Headers}, {"headers", cookieHeaders(m.Cookies)}, {"query_parameters", m.QueryParams}} {
		for _, n := range named.list {
			if compares(fields, named.field, n.Name) || compares(fields, "regex_"+named.field, n.Name) {
				return nil, false, wrong(ref, "spec."+named.field,
					"would compare %s twice, which Emissary-ingress does not allow", n.Name).WithFix("match only one")
			}
			if n.Exact != "" {
				set(fields, n.Exact, named.field, n.Name)
			} else {
				set(fields, pattern(n.StringMatch), "regex_"+named.field, n.Name)
			}
		}
	}
	own, added := text(spec["method"]), len(m.Headers)+len(m.Cookies)+len(m.QueryParams) > 0
	switch {
	case m.Method == nil:
	case own != "" && spec["method_regex"] == true:
		return nil, false, wrong(ref, "spec.method", "%q is a pattern, so the step's method cannot be added", own).
			WithFix("leave out the method in the step")
	case own != "" && matches(*m.Method, own) && !added:
		return nil, false, wrong(ref, "spec.method", "is %s, so the step's match would cover all Mapping requests", own).
			WithFix("set the weight instead, or match a header too")
	case own != "":
		return fields, matches(*m.Method, own), nil
	case m.Method.Exact != "":
		fields["method"] = m.Method.Exact
	default:
		fields["method"], fields["method_regex"] = pattern(*m.Method), true
	}
	return fields, true, nil
}
