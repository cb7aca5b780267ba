package traffic

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// traefik splits requests in a weighted TraefikService
// (https://doc.traefik.io/traefik/reference/routing-configuration/kubernetes/crd/http/traefikservice/). Requests that a
// step matches get routes in the IngressRoutes. The source of Traefik v3.7 shows (pkg/provider/kubernetes/crd,
// pkg/server/service/loadbalancer/wrr):
//
//   - An entry with weight 0 gets no requests, not even from users with a cookie for the entry.
//   - Without allowEmptyServices, one entry without endpoints breaks the whole TraefikService.
//   - A sticky cookie also keeps users at the stable version, so the weight is the canary's share of new users.
var traefik = router{
	kind: "traefik", title: "Traefik", since: "v2.0 (matches: v3.0)",
	features: features{
		splits: can, anyTotal: can, mirrors: can, sticks: can,
		byHeader: anyText, byCookie: anyText, byQuery: anyText, byPath: anyText,
		byMethod: exact, bySource: exact | prefix,
	},
	config: func() editor { return &traefikConfig{} },
}

const (
	traefikGroup = "traefik.io"
	traefikOld   = "traefik.containo.us" // API group before v3
)

// traefikConfig is Argo Rollouts' trafficRouting.traefik with the additional field ingressRoutes.
type traefikConfig struct {
	WeightedTraefikServiceName string   `json:"weightedTraefikServiceName" object:"TraefikService"`
	IngressRoutes              []string `json:"ingressRoutes,omitempty" object:"IngressRoute"`
}

type traefikEdit struct {
	*Objects
	Route
	weighted rollout.Object
	ref      rollout.Ref
	canary   map[string]any // entry of the TraefikService, without a weight
	mirrors  []rollout.Object
}

func (c *traefikConfig) overlay(o *Objects, r Route) error {
	if err := carried("traefik", r.Managed); err != nil {
		return err
	}
	const field = "weightedTraefikServiceName"
	weighted, err := traefikFind(o, field, "TraefikService", r.Namespace, c.WeightedTraefikServiceName)
	if err != nil {
		return err
	}
	e := &traefikEdit{Objects: o, Route: r, weighted: weighted, ref: weighted.Ref()}
	if err := o.Claim(e.ref, "spec.weighted", r); err != nil {
		return err
	}
	if err := e.split(); err != nil {
		return err
	}
	if len(r.Managed) > 0 && len(c.IngressRoutes) == 0 {
		return misfit("ingressRoutes", "is missing, but the steps have the route %s", r.Managed[0].Name).
			WithFix("name the IngressRoutes that lead to the TraefikService %s", e.ref.Name)
	}
	for i, name := range c.IngressRoutes {
		object, err := traefikFind(o, fmt.Sprintf("ingressRoutes[%d]", i), "IngressRoute", r.Namespace, name)
		if err != nil {
			return err
		}
		if err := e.routes(object); err != nil {
			return err
		}
	}
	return nil
}

func traefikFind(o *Objects, field, kind, namespace, name string) (rollout.Object, error) {
	for _, group := range []string{traefikGroup, traefikOld} {
		if object, ok := o.Edit(rollout.Ref{Group: group, Kind: kind, Namespace: namespace, Name: name}); ok {
			return object, nil
		}
	}
	return nil, missing(field, rollout.Ref{Kind: kind, Namespace: namespace, Name: name})
}

func (e *traefikEdit) is(entry any, kind, name string) bool {
	m := mapping(entry)
	return name != "" && text(m["name"]) == name && cmp.Or(text(m["kind"]), "Service") == kind &&
		cmp.Or(text(m["namespace"]), e.Namespace) == e.Namespace
}

func (e *traefikEdit) split() error {
	const place = "spec.weighted.services"
	services := list(e.weighted.Map("spec", "weighted")["services"])
	all := sharesOf(services, "name", e.Route, func(entry map[string]any) bool {
		return e.is(entry, "Service", text(entry["name"]))
	})
	if all.stable < 0 {
		return wrong(e.ref, place, "does not have the stable Service %s", e.Stable).WithFix("add it, with its port")
	}
	e.canary = all.forCanary(e.Route, 0)
	delete(e.canary, "weight")
	entries, err := all.weighed(e.ref, place, "service", "a TraefikService", e.Route)
	if err != nil {
		return err
	}
	if all.canary >= 0 && e.Active && e.Weight == 0 {
		entries = slices.Delete(entries, all.canary, all.canary+1)
	}
	set(e.weighted, entries, "spec", "weighted", "services")
	e.stick()
	return nil
}

// stick adds a cookie with a new name for each release, unless Git sets a cookie.
func (e *traefikEdit) stick() {
	if e.Sticky == nil || !e.Active || e.Weight == 0 || e.weighted.Map("spec", "weighted", "sticky", "cookie") != nil {
		return
	}
	set(e.weighted, map[string]any{
		"name": e.cookie(), "maxAge": int64(e.Sticky.MaxAge / time.Second), "httpOnly": true, "sameSite": "lax",
	}, "spec", "weighted", "sticky", "cookie")
}

func (e *traefikEdit) routes(object rollout.Object) error {
	ref := object.Ref()
	own := list(object.Map("spec")["routes"])
	var all []any
	found := false
	for i, item := range own {
		route, place := mapping(item), fmt.Sprintf("spec.routes[%d]", i)
		services := list(route["services"])
		j := slices.IndexFunc(services, func(s any) bool {
			return e.is(s, "TraefikService", e.ref.Name) || e.is(s, "Service", e.Stable)
		})
		if j < 0 {
			all = append(all, item)
			continue
		}
		found = true
		if len(services) > 1 {
			return wrong(ref, place+".services", "has %s and other services, so that "+
				"the steps' routes would also take requests of the other services", text(mapping(services[j])["name"])).
				WithFix("let the route lead only to the TraefikService %s", e.ref.Name)
		}
		if len(e.Managed) > 0 && (ref.Group == traefikOld || text(route["syntax"]) == "v2") {
			return wrong(ref, place,
				"is a rule of Traefik v2, and the steps' route %s needs the rules of v3", e.Managed[0].Name).
				WithFix("use apiVersion traefik.io/v1alpha1 and leave out syntax: v2")
		}
		for k := range e.Managed {
			added, err := e.managed(own, i, k, mapping(services[j]))
			if err != nil {
				return err
			}
			all = append(all, added)
		}
		all = append(all, item)
	}
	if !found {
		return wrong(ref, "spec.routes",
			"no route leads to the TraefikService %s or to the stable Service %s", e.ref.Name, e.Stable).
			WithFix("add one, or remove the IngressRoute from the Rollout's ingressRoutes")
	}
	set(object, all, "spec", "routes")
	return nil
}

func (e *traefikEdit) managed(own []any, i, k int, service map[string]any) (map[string]any, error) {
	route := e.Managed[k]
	out := copyMap(mapping(own[i]))
	out["match"], out["priority"] = traefikCopy(own, i, k, e.Managed)
	canary := e.canary
	if e.is(service, "Service", e.Stable) {
		canary = copyMap(service)
		delete(canary, "weight")
		canary["name"] = e.Canary
	}
	if route.Mirror == nil {
		out["services"] = []any{copyMap(canary)}
		return out, nil
	}
	name, err := e.mirror(route, service, canary)
	out["services"] = []any{map[string]any{"name": name, "kind": "TraefikService"}}
	return out, err
}

func (e *traefikEdit) mirror(route rollout.ManagedRoute, service, canary map[string]any) (string, error) {
	spec, to := copyMap(service), copyMap(canary)
	delete(spec, "weight")
	to["percent"] = int64(*route.Mirror)
	spec["mirrors"] = []any{to}
	name := ""
	for n := 0; ; n++ {
		name = numbered(e.Name+"-"+route.Name, n)
		i := slices.IndexFunc(e.mirrors, func(m rollout.Object) bool { return m.Name() == name })
		if i < 0 {
			break
		}
		if reflect.DeepEqual(e.mirrors[i].Map("spec", "mirroring"), spec) {
			return name, nil
		}
	}
	object := rollout.Object{
		"apiVersion": e.weighted.APIVersion(), "kind": "TraefikService",
		"metadata": map[string]any{"name": name, "namespace": e.Namespace},
		"spec":     map[string]any{"mirroring": spec},
	}
	e.mirrors = append(e.mirrors, object.Copy())
	return name, e.generate(object, e.after(e.ref), e.Route)
}

// traefikCopy returns the match and priority for a copy of route own[i] for the managed route k. The highest priority
// wins. The default priority is the length of the match in bytes (Traefik's pkg/muxer/http/mux.go, GetRulePriority).
// The last copy has the original's priority plus 1, and earlier copies have higher priorities. If another route has
// precedence over the original but not over the copy, the copy's match excludes the other route's requests.
//
//	Host(`shop`)                   own priority    12
//	(Host(`shop`)) && …            two copies  14, 13
//	Host(`shop`) && Path(`/api`)   another route   28: still first
func traefikCopy(own []any, i, k int, managed []rollout.ManagedRoute) (match string, priority int64) {
	route := mapping(own[i])
	first := traefikPriority(route)
	priority = first + int64(len(managed)-k)
	match = fmt.Sprintf("(%s) && %s", text(route["match"]), traefikRule(managed[k].Matches))
	for j, item := range own {
		if p := traefikPriority(mapping(item)); j != i && p > first && p <= priority {
			match += fmt.Sprintf(" && !(%s)", text(mapping(item)["match"]))
		}
	}
	return match, priority
}

func traefikPriority(route map[string]any) int64 {
	if p, ok := number(route["priority"]); ok && p != 0 {
		return p
	}
	return int64(len(text(route["match"])))
}

// traefikRule joins the matches with ||
// (https://doc.traefik.io/traefik/reference/routing-configuration/http/routing/rules-and-priority/).
func traefikRule(matches []rollout.Match) string {
	all := rollout.Mapped(matches, func(m rollout.Match) string {
		return "(" + strings.Join(traefikParts(m), " && ") + ")"
	})
	if len(all) == 1 {
		return all[0]
	}
	return "(" + strings.Join(all, " || ") + ")"
}

// traefikParts returns the matchers of a match. It anchors patterns, because Traefik does not. Traefik's PathPrefix
// compares text, not path elements.
func traefikParts(m rollout.Match) (all []string) {
	add := func(matcher string, args ...string) {
		for i, arg := range args {
			args[i] = traefikText(arg)
		}
		all = append(all, fmt.Sprintf("%s(%s)", matcher, strings.Join(args, ", ")))
	}
	compare := func(matcher string, named []rollout.NamedMatch) {
		for _, n := range named {
			if n.Exact != "" {
				add(matcher, n.Name, n.Exact)
			} else {
				add(matcher+"Regexp", n.Name, whole(pattern(n.StringMatch)))
			}
		}
	}
	compare("Header", m.Headers)
	for _, c := range m.Cookies {
		add("HeaderRegexp", "Cookie", whole(cookiePattern(c)))
	}
	compare("Query", m.QueryParams)
	if m.Method != nil {
		add("Method", m.Method.Exact)
	}
	if m.Source != nil {
		add("ClientIP", cmp.Or(m.Source.Exact, m.Source.Prefix))
	}
	switch p := m.Path; {
	case p == nil:
	case p.Exact != "":
		add("Path", p.Exact)
	case p.Regex != "":
		add("PathRegexp", whole(p.Regex))
	case strings.Trim(p.Prefix, "/") == "":
		add("PathPrefix", "/")
	default:
		path := strings.TrimSuffix(p.Prefix, "/")
		all = append(all, fmt.Sprintf("(Path(%s) || PathPrefix(%s))", traefikText(path), traefikText(path+"/")))
	}
	return all
}

// traefikText quotes a text for strconv.Unquote (github.com/vulcand/predicate).
func traefikText(s string) string {
	if strconv.CanBackquote(s) {
		return "`" + s + "`"
	}
	return strconv.Quote(s)
}
