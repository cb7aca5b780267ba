package traffic

import (
	"reflect"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// table holds all routers of trafficRouting, in the docs' order.
var table = []router{gatewayAPI, nginx, alb, traefik, istio, smi, ambassador, apisix, anyObject}

// router describes one kind of router.
type router struct {
	kind     string   // the field of trafficRouting
	title    string   // for people
	since    string   // the oldest version with the features used here
	features features //
	config   func() editor
	list     bool // a single mapping stands for a list of one
}

// name returns the router's name for a sentence.
func (r router) name() string {
	if r.kind == anyObject.kind {
		return "a router described by paths"
	}
	return r.title
}

// editor is one router's configuration, decoded for each use, without state.
type editor interface {
	// names visits names of the app's objects, to replace them by kustomize's.
	names(visit func(kind string, name *string))
	// overlay lays a route over the objects.
	overlay(*Objects, Route) error
}

// visitAll visits the names of several objects of one kind.
func visitAll(visit func(kind string, name *string), kind string, names []string) {
	for i := range names {
		visit(kind, &names[i])
	}
}

// reporter is an editor with objects whose status reports the router's acceptance.
type reporter interface {
	watched(namespace string) []rollout.Ref
	verify(rollout.Ref, rollout.ObservedRoute) Verdict
}

// feature is a feature that a router may support.
type feature string

// The features, in the docs' order.
const (
	splits   feature = "weight" // an exact share of the requests
	byHeader feature = "header" // match steps …
	byCookie feature = "cookie"
	byQuery  feature = "query"
	byPath   feature = "path"
	byMethod feature = "method"
	bySource feature = "source"
	mirrors  feature = "mirror"           // copies of requests
	anyTotal feature = "maxTrafficWeight" // weights with a total other than 100
	sticks   feature = "sticky"           // a user sent to the canary stays there
	reports  feature = "verify"           // its status reports whether it has accepted the routes
)

// comparison is a set of flags: a feature's support, for matches the comparisons.
type comparison uint8

const (
	can comparison = 1 << iota
	exact
	prefix
	regex

	anyText = exact | prefix | regex
)

// String returns "yes" or the comparisons: "exact, regex".
func (h comparison) String() string {
	var parts []string
	for _, c := range []struct {
		flag comparison
		name string
	}{{can, "yes"}, {exact, "exact"}, {prefix, "prefix"}, {regex, "regex"}} {
		if h&c.flag != 0 {
			parts = append(parts, c.name)
		}
	}
	return strings.Join(parts, ", ")
}

type features map[feature]comparison

// Kinds returns all routers' names, in the docs' order.
func Kinds() []string {
	return rollout.Mapped(table, func(r router) string { return r.kind })
}

func find(kind string) (router, bool) {
	return rollout.Find(table, func(r router) bool { return r.kind == kind })
}

// Types returns all routers' configuration types by kind, for editors. A list type stands for one or more mappings.
func Types() map[string]reflect.Type {
	types := map[string]reflect.Type{}
	for _, r := range table {
		types[r.kind] = reflect.TypeOf(r.config()).Elem()
	}
	return types
}
