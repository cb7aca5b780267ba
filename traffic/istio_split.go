package traffic

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

type istioTarget struct {
	Route
	ref            rollout.Ref
	stable, canary istioVersion
	kept           []string // other subsets that keep their weights
}

type istioVersion struct{ host, subset string }

func (t istioTarget) name() string {
	if t.stable.subset != "" {
		return "the stable subset " + t.stable.subset
	}
	return "the stable Service " + t.Stable
}

func (t istioTarget) find(route map[string]any, want istioVersion) int {
	return slices.IndexFunc(list(route["route"]), func(d any) bool {
		destination := mapping(mapping(d)["destination"])
		return text(destination["subset"]) == want.subset && t.sameHost(text(destination["host"]), want.host)
	})
}

// sameHost reports whether two hosts are the same Service. The first host's default namespace is the VirtualService's
// (as in Istio), the second host's is the Rollout's.
func (t istioTarget) sameHost(host, other string) bool {
	full := func(host, namespace string) string {
		name, rest, _ := strings.Cut(host, ".")
		if rest == "" {
			return name + "." + namespace
		}
		rest, _, _ = strings.Cut(rest, ".svc")
		return name + "." + rest
	}
	return host != "" && full(host, t.ref.Namespace) == full(other, t.Namespace)
}

func (t istioTarget) split(o *Objects, section string, routes []any, chosen []int) (out []any, err error) {
	made := map[string]int{}
	for i, item := range routes {
		if !slices.Contains(chosen, i) {
			out = append(out, item)
			continue
		}
		route, place := mapping(item), fmt.Sprintf("spec.%s[%d]", section, i)
		if err := o.Claim(t.ref, place, t.Route); err != nil {
			return nil, err
		}
		if section == "http" {
			extra, err := t.matched(place, route, made)
			if err != nil {
				return nil, err
			}
			out = append(out, extra...)
		}
		if err := t.weights(section, place, route); err != nil {
			return nil, err
		}
		out = append(out, route)
	}
	return out, nil
}

func (t istioTarget) weights(section, place string, route map[string]any) error {
	destinations := list(route["route"])
	stable, canary := t.find(route, t.stable), t.find(route, t.canary)
	var kept int64
	for i, d := range destinations {
		destination := mapping(mapping(d)["destination"])
		weight, _ := number(mapping(d)["weight"])
		switch {
		case i == stable || i == canary || weight == 0:
		case slices.Contains(t.kept, text(destination["subset"])):
			kept += weight
		default:
			name := strings.TrimSuffix(text(destination["host"])+", subset "+text(destination["subset"]), ", subset ")
			return third(t.ref, fmt.Sprintf("%s.route[%d]", place, i), "destination", name, "a route")
		}
	}
	mapping(destinations[stable])["weight"] = max(0, int64(t.rest())-kept)
	if canary < 0 && t.Weight > 0 {
		canary, destinations = len(destinations), append(destinations, t.destination(route, t.canary))
	}
	if canary >= 0 {
		mapping(destinations[canary])["weight"] = int64(t.Weight)
		if section == "http" {
			t.modify(mapping(destinations[canary]))
		}
		if section == "http" && t.sticks() {
			if err := t.setCookie(fmt.Sprintf("%s.route[%d]", place, canary), mapping(destinations[canary])); err != nil {
				return err
			}
		}
	}
	for _, service := range slices.Sorted(maps.Keys(t.Shares)) {
		share := t.destination(route, istioVersion{host: service})
		share["weight"] = int64(t.Shares[service])
		destinations = append(destinations, share)
	}
	route["route"] = destinations
	return nil
}

func (t istioTarget) destination(route map[string]any, of istioVersion) map[string]any {
	destinations := list(route["route"])
	if i := t.find(route, of); i >= 0 {
		return copyMap(mapping(destinations[i]))
	}
	out := copyMap(mapping(destinations[t.find(route, t.stable)]))
	to := mapping(out["destination"])
	if of.subset != "" {
		to["subset"] = of.subset
		return out
	}
	delete(to, "subset")
	_, rest, qualified := strings.Cut(text(to["host"]), ".")
	to["host"] = of.host
	if qualified {
		to["host"] = of.host + "." + rest
	}
	return out
}

// sticks reports whether the canary's responses set a cookie. The cookie contains the pod hash, so that cookies of
// earlier releases do not match.
func (t istioTarget) sticks() bool {
	return t.Sticky != nil && t.Active && t.Weight > 0 && t.CanaryPods != ""
}

// modify adds the step's headers (HTTPRouteDestination.headers.request). Istio removes headers before it sets or adds
// headers. So modify deletes the step's headers from the destination's "set" and "add".
func (t istioTarget) modify(canary map[string]any) {
	if t.Headers == nil {
		return
	}
	for field, headers := range map[string][]rollout.Header{"set": t.Headers.Set, "add": t.Headers.Add} {
		own := rollout.Object(canary).Map("headers", "request", field)
		maps.DeleteFunc(own, func(name string, _ any) bool { return changes(t.Headers, name) })
		for _, h := range headers {
			set(canary, h.Value, "headers", "request", field, strings.ToLower(h.Name))
		}
	}
	for _, name := range t.Headers.Remove {
		removed := list(rollout.Object(canary).Map("headers", "request")["remove"])
		set(canary, append(removed, strings.ToLower(name)), "headers", "request", "remove")
	}
}

func (t istioTarget) setCookie(place string, destination map[string]any) error {
	add := rollout.Object(destination).Map("headers", "response", "add")
	for key := range add {
		if strings.EqualFold(key, "Set-Cookie") {
			return wrong(t.ref, place+".headers.response.add",
				"sets a cookie, so that the cookie of trafficRouting.sticky cannot be added").
				WithFix("set the existing cookie in the application, or remove sticky")
		}
	}
	cookie := fmt.Sprintf("%s=%s; Max-Age=%d; Path=/; HttpOnly; SameSite=Lax",
		t.Sticky.Cookie, t.CanaryPods, int(t.Sticky.MaxAge/time.Second))
	set(destination, cookie, "headers", "response", "add", "Set-Cookie")
	return nil
}
