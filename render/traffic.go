package render

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/traffic"
)

const gatewayPlugin = "argoproj-labs/gatewayAPI"

const trafficPath = canaryPath + ".trafficRouting"

// readTraffic omits the routers' blocks. routersOf reads these when all objects' names are known.
func (d *document) readTraffic(form *trafficForm) {
	t := &form.Traffic
	d.spec.Canary.Traffic = t
	for i, m := range form.ManagedRoutes {
		name := fmt.Sprintf("%s.managedRoutes[%d].name", trafficPath, i)
		switch {
		case m.Name == rollout.MatchRoute || m.Name == "canary":
			d.Fail(name, "use another name", "%q is a reserved name", m.Name)
		case slices.Contains(t.ManagedRoutes, m.Name):
			d.Fail(name, "list it once", "%q is listed twice", m.Name)
		}
		t.ManagedRoutes = append(t.ManagedRoutes, m.Name)
	}
	if s := t.Sticky; s != nil {
		if s.Cookie = cmp.Or(s.Cookie, "gitrollout-"+d.ref.Name); len(s.Cookie) > 100 {
			d.Fail(trafficPath+".sticky.cookie", "name a shorter one", "%q is not a valid cookie name", s.Cookie)
		}
		if s.MaxAge < time.Second {
			d.Fail(trafficPath+".sticky.maxAge", "write at least 1s", "%s is too short", s.MaxAge)
		}
	}
	d.readRouters(form)
	if len(d.routers) == 0 {
		d.Fail(trafficPath, "give one of "+strings.Join(traffic.Kinds(), ", "), "names no router")
	}
}

func (d *document) readRouters(form *trafficForm) {
	d.routers = map[string]block{}
	for _, kind := range slices.Sorted(maps.Keys(form.Routers)) {
		at := trafficPath + "." + kind
		switch known := slices.Contains(traffic.Kinds(), kind); {
		case !known:
			fix := "use one of " + strings.Join(traffic.Kinds(), ", ") + "; object is for any other router"
			if near, is := rollout.Find(traffic.Kinds(), func(k string) bool { return strings.EqualFold(k, kind) }); is {
				fix = "write " + near
			}
			d.Fail(at, fix, "is not a router that gitrollout knows")
		case form.Routers[kind] == nil:
			continue
		case d.Argo && kind == "gatewayAPI":
			d.Fail(at, "write plugins: {"+gatewayPlugin+": …}, or use apiVersion "+rollout.APIVersion,
				"is not a field of Argo Rollouts")
		case d.Argo && kind == "object":
			d.Fail(at, "use apiVersion "+rollout.APIVersion, "is not a field of Argo Rollouts")
		}
		d.routers[kind] = block{at, form.Routers[kind]}
	}
	if form.Plugins == nil || form.Plugins.GatewayAPI == nil {
		return
	}
	at := trafficPath + ".plugins." + gatewayPlugin
	if _, both := d.routers["gatewayAPI"]; both {
		d.Fail(at, "keep only one", "conflicts with gatewayAPI")
	}
	d.routers["gatewayAPI"] = block{at, form.Plugins.GatewayAPI}
}

func (d *document) checkPingPong() {
	c := d.spec.Canary
	switch p := c.PingPong; {
	case p == nil:
	case p.PingService == p.PongService:
		d.Fail(canaryPath+".pingPong.pongService", "name another Service", "%q is also the pingService", p.PongService)
	case c.StableService != "" || c.CanaryService != "":
		d.Fail(canaryPath+".pingPong", "leave stableService and canaryService out: the two Services take turns",
			"conflicts with stableService or canaryService")
	case c.Traffic == nil:
		d.Fail(canaryPath+".pingPong", "name a router in trafficRouting, or use stableService and canaryService",
			"needs trafficRouting: only a router can send requests from one Service to the other")
	}
}

func (a *assembly) routersOf(d *document) error {
	renamed := func(kind, name string) string { return a.renamed(d.ref, kind, name) }
	for _, kind := range slices.Sorted(maps.Keys(d.routers)) {
		router, err := traffic.Parse(kind, d.routers[kind].raw, renamed)
		if err != nil {
			return a.blameTraffic(err, d)
		}
		t := d.spec.Canary.Traffic
		t.Routers = append(t.Routers, router)
	}
	return nil
}

func (a *assembly) blameTraffic(err error, d *document) error {
	if invalid := new(rollout.InvalidError); errors.As(err, &invalid) && invalid.About == (rollout.Ref{}) {
		field := invalid.Field
		invalid.Below(trafficPath)
		for kind, block := range d.routers {
			if rest, ok := strings.CutPrefix(field, kind); ok && (rest == "" || rest[0] == '.' || rest[0] == '[') {
				invalid.Field = block.path + rest
			}
		}
	}
	return a.blame(err, d.ref)
}

// checkTraffic writes all routes into copies of the objects, to find errors before a release.
func (a *assembly) checkTraffic() error {
	all, made := traffic.NewObjects(a.Objects), map[rollout.Ref]*document{}
	for _, d := range a.documents {
		spec := d.spec
		for _, s := range d.services() {
			service := rollout.Ref{Kind: "Service", Namespace: d.ref.Namespace, Name: *s.name}
			if err := all.Claim(service, "spec.selector", traffic.Route{Name: d.ref.Name}); err != nil {
				return a.blame(err, d.ref)
			}
		}
		if spec.Canary == nil || spec.Canary.Traffic == nil {
			continue
		}
		if err := a.checkRouters(d); err != nil {
			return err
		}
		routes := traffic.Stages(spec)
		for _, route := range routes {
			laid := traffic.NewObjects(a.Objects)
			if err := traffic.Overlay(laid, spec.Canary.Traffic.Routers, route); err != nil {
				return a.blameTraffic(err, d)
			}
			if err := a.checkMade(laid, d, made); err != nil {
				return err
			}
		}
		// All Rollouts use the same copies, so that Overlay finds two Rollouts that write to one field.
		if err := traffic.Overlay(all, spec.Canary.Traffic.Routers, routes[0]); err != nil {
			return a.blameTraffic(err, d)
		}
	}
	a.Generated = slices.SortedFunc(maps.Keys(made), rollout.Ref.Compare)
	return nil
}

func (a *assembly) checkMade(laid *traffic.Objects, d *document, made map[rollout.Ref]*document) error {
	for _, object := range laid.List() {
		if object.Annotation(rollout.AnnotationGenerated) == "" {
			continue
		}
		ref := object.Ref()
		if other := made[ref]; other != nil && other != d {
			return a.invalid(d.ref, "metadata.name", "rename one Rollout, or the object that the name comes from",
				"%s would be generated for a release of this Rollout and for a release of %s", shortRef(ref), shortRef(other.ref))
		}
		made[ref] = d
	}
	return nil
}

func (a *assembly) checkRouters(d *document) error {
	c := d.spec.Canary
	for _, router := range c.Traffic.Routers {
		for i, step := range c.Steps {
			if why := traffic.Lacks(router.Kind, "requestHeaderModifier"); step.Headers != nil && why != "" {
				return a.invalid(d.ref, stepPath(i)+".requestHeaderModifier", "name a router that supports it", "%s", why)
			}
			if why := traffic.Lacks(router.Kind, "experiment"); step.Experiment.Weight("") > 0 && why != "" {
				return a.invalid(d.ref, stepPath(i)+".experiment", "name a router that supports it", "%s", why)
			}
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
				fix := "match something that the router supports, or name another router"
				if field == "" {
					fix = "leave it out, or name a router that supports it"
				}
				return a.invalid(d.ref, fmt.Sprintf("%s.%s%s", stepPath(i), name, field), fix, "%s", why)
			}
		}
		if why := traffic.Lacks(router.Kind, "sticky"); c.Traffic.Sticky != nil && why != "" {
			return a.invalid(d.ref, trafficPath+".sticky", "leave it out, or name a router that supports it", "%s", why)
		}
		if why := traffic.Lacks(router.Kind, "maxTrafficWeight"); c.Traffic.MaxWeight != 100 && why != "" {
			return a.invalid(d.ref, trafficPath+".maxTrafficWeight", "leave it out: the weights then add up to 100", "%s", why)
		}
		if traffic.NeedsServices(router) && c.PingPong == nil {
			for _, service := range []serviceField{{"stableService", &c.StableService}, {"canaryService", &c.CanaryService}} {
				if *service.name == "" {
					return a.invalid(d.ref, canaryPath+"."+service.field, "name the Service",
						"is missing, but %s splits requests between two Services", router.Kind)
				}
			}
		}
	}
	return nil
}
