package traffic

import (
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// routers are all that trafficRouting can name, in the order of the docs.
func routers() []router {
	return []router{
		gatewayAPI,
		nginx,
		alb,
		traefik,
		istio,
		smi,
		ambassador,
		apisix,
		anyObject,
	}
}

// router is what is known of one kind of router.
type router struct {
	kind     string   // the field of trafficRouting
	title    string   // for people
	since    string   // the oldest version that has what is used here
	features features //
	config   func() editor
	list     bool                                // a mapping alone stands for a list of one
	verify   func(rollout.ObservedRoute) Verdict // nil: it does not report
}

// name is the router in a sentence.
func (r router) name() string {
	if r.kind == anyObject.kind {
		return "a router described by paths"
	}
	return r.title
}

// editor is the configuration of one router, decoded from JSON. It is made anew
// for each use and keeps nothing.
type editor interface {
	// names shows each name of an object of the app, so that it can follow
	// what kustomize has made of it.
	names(visit func(kind string, name *string))
	// overlay lays a route over the objects.
	overlay(*Objects, Route) error
	// watched are the objects whose status says whether the router has taken them.
	watched(namespace string) []rollout.Ref
}

// Feature is something that a router can do or not.
type Feature string

// The features, in the order of the docs' table.
const (
	Weight    Feature = "weight" // an exact share of the requests
	Header    Feature = "header" // match steps …
	Cookie    Feature = "cookie"
	Query     Feature = "query"
	Path      Feature = "path"
	Method    Feature = "method"
	Source    Feature = "source"
	Mirror    Feature = "mirror"           // copies of requests
	AnyWeight Feature = "maxTrafficWeight" // weights of another total than 100
	Stick     Feature = "sticky"           // a user who was sent to the canary stays there
	Status    Feature = "verify"           // it says whether it has taken the routes
)

// Features lists all features in the order of the docs' table.
func Features() []Feature {
	return []Feature{Weight, AnyWeight, Header, Cookie, Query, Path, Method, Source, Mirror, Stick, Status}
}

// how says in which ways a feature is there: for matches, the comparisons.
type how uint8

const (
	yes how = 1 << iota
	exact
	prefix
	regex

	anyText = exact | prefix | regex
)

// String returns "yes" or the comparisons: "exact, regex".
func (h how) String() string {
	var parts []string
	for _, c := range []struct {
		flag how
		name string
	}{{yes, "yes"}, {exact, "exact"}, {prefix, "prefix"}, {regex, "regex"}} {
		if h&c.flag != 0 {
			parts = append(parts, c.name)
		}
	}
	return strings.Join(parts, ", ")
}

type features map[Feature]how

// Kinds are the names of all routers, in the order of the docs.
func Kinds() []string {
	var kinds []string
	for _, r := range routers() {
		kinds = append(kinds, r.kind)
	}
	return kinds
}

// Row is one line of the docs' table of routers.
type Row struct {
	Kind, Title, Since string
	Features           map[Feature]string // "" or absent: no
}

// Rows is the docs' table.
func Rows() []Row {
	var rows []Row
	for _, r := range routers() {
		row := Row{Kind: r.kind, Title: r.title, Since: r.since, Features: map[Feature]string{}}
		for f, h := range r.features {
			row.Features[f] = h.String()
		}
		rows = append(rows, row)
	}
	return rows
}

func find(kind string) (router, bool) {
	all := routers()
	i := slices.IndexFunc(all, func(r router) bool { return r.kind == kind })
	if i < 0 {
		return router{}, false
	}
	return all[i], true
}
