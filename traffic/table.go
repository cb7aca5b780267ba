package traffic

import (
	"reflect"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// table has all that trafficRouting can name, in the order of the docs.
var table = []router{gatewayAPI, nginx, alb, traefik, istio, smi, ambassador, apisix, anyObject}

// router is what is known of one kind of router.
type router struct {
	kind     string   // the field of trafficRouting
	title    string   // for people
	since    string   // the oldest version that has what is used here
	features features //
	config   func() editor
	list     bool // a mapping alone stands for a list of one
}

// name is the router in a sentence.
func (r router) name() string {
	if r.kind == anyObject.kind {
		return "a router described by paths"
	}
	return r.title
}

// editor is the configuration of one router, decoded from JSON. It is made anew for each use and keeps nothing.
type editor interface {
	// names shows each name of an object of the app, so that it can follow what kustomize has made of it.
	names(visit func(kind string, name *string))
	// overlay lays a route over the objects.
	overlay(*Objects, Route) error
}

// visitAll shows the names of several objects of one kind.
func visitAll(visit func(kind string, name *string), kind string, names []string) {
	for i := range names {
		visit(kind, &names[i])
	}
}

// reporter is an editor that knows objects whose status says whether the router has taken them.
type reporter interface {
	watched(namespace string) []rollout.Ref
	verify(rollout.Ref, rollout.ObservedRoute) Verdict
}

// feature is something that a router can do or not.
type feature string

// The features, in the order of the docs' table.
const (
	splits   feature = "weight" // an exact share of the requests
	byHeader feature = "header" // match steps …
	byCookie feature = "cookie"
	byQuery  feature = "query"
	byPath   feature = "path"
	byMethod feature = "method"
	bySource feature = "source"
	mirrors  feature = "mirror"           // copies of requests
	anyTotal feature = "maxTrafficWeight" // weights of another total than 100
	sticks   feature = "sticky"           // a user who was sent to the canary stays there
	reports  feature = "verify"           // it says whether it has taken the routes
)

// comparison says in which ways a feature is there: for matches, the comparisons.
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

// Kinds are the names of all routers, in the order of the docs.
func Kinds() []string {
	return rollout.Mapped(table, func(r router) string { return r.kind })
}

func find(kind string) (router, bool) {
	i := slices.IndexFunc(table, func(r router) bool { return r.kind == kind })
	if i < 0 {
		return router{}, false
	}
	return table[i], true
}

// Types are the configurations of all routers, by kind, for the schemas that
// editors check documents by. A list stands for a mapping or a list of them.
func Types() map[string]reflect.Type {
	types := map[string]reflect.Type{}
	for _, r := range table {
		types[r.kind] = reflect.TypeOf(r.config()).Elem()
	}
	return types
}
