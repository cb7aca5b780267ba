package render

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/traffic"
)

// defaultSettle is how long proxies are given to learn of endpoints and routes.
// Most watch the API server and take well under a second; Traefik collects
// changes for 2s (providersThrottleDuration).
const defaultSettle = 3 * time.Second

// gatewayPlugin is what Argo Rollouts calls the Gateway API, which it has as a
// plugin.
const gatewayPlugin = "argoproj-labs/gatewayAPI"

// trafficRules are the fields of trafficRouting: the routers' and the common ones.
func trafficRules() map[string]fieldRule {
	rules := maps.Clone(trafficFields)
	for _, kind := range traffic.Kinds() {
		rules[kind] = fieldRule{}
	}
	return rules
}

// readTraffic reads trafficRouting. The routers' own blocks are read later, when
// the names of all objects are known.
func (d *document) readTraffic(v value) {
	rules := trafficRules()
	if given, ok := v.raw.(map[string]any); ok {
		for _, name := range sortedKeys(given) {
			if _, known := rules[name]; !known && nearest(name, rules) == "" {
				v.field(name).fail("use one of "+strings.Join(traffic.Kinds(), ", ")+"; object is for any other router", "is not a router that gitrollout knows")
			}
		}
	}
	if !v.object(rules) {
		return
	}
	t := &rollout.Traffic{MaxWeight: 100, Settle: defaultSettle}
	d.spec.Canary.Traffic = t
	if full := v.field("maxTrafficWeight"); full.given() {
		if t.MaxWeight = full.countOr(0); t.MaxWeight < 1 || t.MaxWeight > 1_000_000 {
			full.fail("", "%d is not within 1..1000000", t.MaxWeight)
		}
	}
	for _, m := range v.field("managedRoutes").list() {
		m.object(managedRouteFields)
		name := m.field("name")
		switch n := name.text(); {
		case !routeName.MatchString(n):
			name.fail("use lower-case letters, digits and -, at most 40", "%q is not a name for a route: objects are named after it", n)
		case n == rollout.MatchRoute || n == "canary":
			name.fail("use another name", "%q is the name of something else", n)
		case slices.Contains(t.ManagedRoutes, n):
			name.fail("list it once", "%q is listed twice", n)
		}
		t.ManagedRoutes = append(t.ManagedRoutes, name.text())
	}
	if settle := v.field("settle"); settle.given() && d.isNative(settle) {
		t.Settle = settle.span()
	}
	if sticky := v.field("sticky"); sticky.object(stickyFields) && d.isNative(sticky) {
		t.Sticky = &rollout.Sticky{Cookie: cmp.Or(sticky.field("cookie").text(), "gitrollout-"+d.ref.Name), MaxAge: 24 * time.Hour}
		if age := sticky.field("maxAge"); age.given() {
			if t.Sticky.MaxAge = age.span(); t.Sticky.MaxAge < time.Second {
				age.fail("write at least 1s", "%s is over at once", describe(age.raw))
			}
		}
		if !cookieName.MatchString(t.Sticky.Cookie) {
			sticky.field("cookie").fail("use letters, digits, - and _", "%q is not the name of a cookie", t.Sticky.Cookie)
		}
	}
	d.routers = d.readRouters(v)
	if len(d.routers) == 0 {
		v.fail("give one of "+strings.Join(traffic.Kinds(), ", "), "names no router")
	}
}

// readRouters returns the blocks of the routers.
func (d *document) readRouters(v value) map[string]value {
	routers := map[string]value{}
	for _, kind := range traffic.Kinds() {
		block := v.field(kind)
		switch {
		case !block.given():
			continue
		case d.argo && kind == "gatewayAPI":
			block.fail("write plugins: {"+gatewayPlugin+": …}, or use apiVersion "+rollout.APIVersion, "is not a field of Argo Rollouts")
		case kind == "object":
			d.isNative(block)
		}
		routers[kind] = block
	}
	plugins := v.field("plugins")
	if given, ok := plugins.raw.(map[string]any); ok {
		for _, name := range sortedKeys(given) {
			if name != gatewayPlugin {
				plugins.field(name).fail("use "+gatewayPlugin+", or describe the router in object", "is not a plugin that gitrollout knows")
			}
		}
	}
	if plugins.object(pluginFields) && plugins.field(gatewayPlugin).given() {
		block := plugins.field(gatewayPlugin)
		if _, both := routers["gatewayAPI"]; both {
			block.fail("keep one of them", "is given, and gatewayAPI too")
		}
		routers["gatewayAPI"] = block
	}
	return routers
}

var routeName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,38}[a-z0-9])?$`)

var cookieName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,100}$`)

// isNative refuses a field in a document of Argo Rollouts, which does not know
// it.
func (d *document) isNative(v value) bool {
	if d.argo {
		v.fail("use apiVersion "+rollout.APIVersion, "is not a field of Argo Rollouts")
	}
	return !d.argo
}

// span returns a duration of at least 0, such as 3s or 24h.
func (v value) span() time.Duration {
	if n, ok := v.raw.(int64); ok {
		return time.Duration(n) * time.Second
	}
	span, err := time.ParseDuration(v.text())
	if err != nil || span < 0 {
		v.fail("write a duration such as 3s or 1h", "%s is not a duration of at least 0", describe(v.raw))
	}
	return span
}

func (d *document) readPingPong(v value) {
	if !v.object(pingPongFields) {
		return
	}
	p := &rollout.PingPong{PingService: v.field("pingService").text(), PongService: v.field("pongService").text()}
	d.spec.Canary.PingPong = p
	switch {
	case p.PingService == "":
		v.field("pingService").fail("name a Service", "is missing")
	case p.PongService == "":
		v.field("pongService").fail("name a Service", "is missing")
	case p.PingService == p.PongService:
		v.field("pongService").fail("name another Service", "%q is the pingService too", p.PongService)
	case d.spec.Canary.StableService != "" || d.spec.Canary.CanaryService != "":
		v.fail("leave stableService and canaryService out: the two Services take turns", "is given, and stableService or canaryService too")
	case d.spec.Canary.Traffic == nil:
		v.fail("name a router in trafficRouting, or use stableService and canaryService", "needs trafficRouting: only a router can send requests from one Service to the other")
	}
}

// routersOf reads the routers' blocks, with the names that kustomize has made.
func (a *assembly) routersOf(d *document) error {
	for _, kind := range sortedKeys(d.routers) {
		router, err := traffic.Parse(kind, d.routers[kind].raw, func(kind, name string) string { return a.renamed(d.ref, kind, name) })
		if err != nil {
			return a.blameTraffic(err, d)
		}
		t := d.spec.Canary.Traffic
		t.Routers = append(t.Routers, router)
	}
	return nil
}

// blameTraffic says which document a router's error is about.
func (a *assembly) blameTraffic(err error, d *document) error {
	var invalid *traffic.Error
	switch {
	case !errors.As(err, &invalid):
		return err
	case invalid.About == (rollout.Ref{}):
		field := "spec.strategy.canary.trafficRouting." + invalid.Field
		for kind, block := range d.routers { // the Gateway API may be among the plugins
			if rest, ok := strings.CutPrefix(invalid.Field, kind); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
				field = block.path + rest
			}
		}
		return a.invalid(d.ref, field, invalid.Fix, "%s", invalid.Msg)
	default:
		return a.invalid(invalid.About, invalid.Field, invalid.Fix, "%s", invalid.Msg)
	}
}

// checkTraffic lays every route that a release will ask for over the objects,
// so that what cannot be done is known before anything is pushed.
func (a *assembly) checkTraffic() error {
	all, made := traffic.NewObjects(a.objects), map[rollout.Ref]*document{}
	for i, spec := range a.specs {
		d := a.documents[i] // stage appended one spec for each document, in order
		if spec.Canary == nil || spec.Canary.Traffic == nil {
			continue
		}
		if err := a.checkRouters(d); err != nil {
			return err
		}
		routes := traffic.Stages(spec)
		for _, route := range routes {
			laid := traffic.NewObjects(a.objects)
			if err := traffic.Overlay(laid, spec.Canary.Traffic.Routers, route); err != nil {
				return a.blameTraffic(err, d)
			}
			if err := a.checkMade(laid, d, made); err != nil {
				return err
			}
		}
		// The Rollouts of an app together: no two may write to one place.
		if err := traffic.Overlay(all, spec.Canary.Traffic.Routers, routes[0]); err != nil {
			return a.blameTraffic(err, d)
		}
	}
	return nil
}

// checkMade refuses that two Rollouts make one object for their releases.
func (a *assembly) checkMade(laid *traffic.Objects, d *document, made map[rollout.Ref]*document) error {
	for _, object := range laid.List() {
		if object.Annotation(rollout.AnnotationGenerated) == "" {
			continue
		}
		ref := object.Ref()
		if other := made[ref]; other != nil && other != d {
			return a.invalid(d.ref, "metadata.name", "rename one of the two Rollouts, or what the object is named after",
				"%s would be made for a release of this Rollout and of %s", shortRef(ref), shortRef(other.ref))
		}
		made[ref] = d
	}
	return nil
}

// checkRouters refuses what a router cannot do.
func (a *assembly) checkRouters(d *document) error {
	const at = "spec.strategy.canary."
	c := d.spec.Canary
	for _, router := range c.Traffic.Routers {
		for i, step := range c.Steps {
			if step.Route == nil {
				continue
			}
			name := "match"
			if step.Route.Mirror != nil {
				name = "setMirrorRoute"
			} else if step.Route.Name != rollout.MatchRoute {
				name = "setHeaderRoute"
			}
			if field, why := traffic.Unsupported(router.Kind, *step.Route); why != "" {
				return a.invalid(d.ref, fmt.Sprintf("%ssteps[%d].%s%s", at, i, name, field), "match something that it can, or name a router that can", "%s", why)
			}
		}
		if why := traffic.CannotStick(router.Kind); c.Traffic.Sticky != nil && why != "" {
			return a.invalid(d.ref, at+"trafficRouting.sticky", "leave it out, or name a router that can", "%s", why)
		}
		if why := traffic.NeedsHundred(router.Kind); c.Traffic.MaxWeight != 100 && why != "" {
			return a.invalid(d.ref, at+"trafficRouting.maxTrafficWeight", "leave it out: weights are then of 100", "%s", why)
		}
		if traffic.NeedsServices(router) && c.PingPong == nil {
			for _, service := range []struct{ field, name string }{{"stableService", c.StableService}, {"canaryService", c.CanaryService}} {
				if service.name == "" {
					return a.invalid(d.ref, at+service.field, "name the Service", "is missing, and %s splits requests between two Services", router.Kind)
				}
			}
		}
	}
	return nil
}
