package traffic

import (
	"reflect"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// table lists all routers of trafficRouting, in the order of the docs.
var table = []router{gatewayAPI, nginx, alb, traefik, istio, smi, ambassador, apisix, anyObject}

type router struct {
	kind     string   // the field of trafficRouting
	title    string   // name for users
	since    string   // the oldest version with the features that the overlay uses
	features features //
	config   func() editor
	list     bool // the configuration is a list, which users may write as a single mapping if it has one entry
}

func (r router) name() string {
	if r.kind == anyObject.kind {
		return "trafficRouting.object"
	}
	return r.title
}

// editor is one router's configuration. Fields tagged object:"Kind" have objects' names, which kustomize may rename.
type editor interface {
	overlay(*Objects, Route) error
}

// reporter is an editor whose router's status says whether the router accepts the object.
type reporter interface {
	watched(namespace string) []rollout.Ref
	verify(rollout.Ref, rollout.ObservedRoute) Verdict
}

type feature string

// The features, in the order of the docs.
const (
	splits   feature = "weight" // an exact share of the requests
	byHeader feature = "header" // byHeader to bySource: the part of a request that a match compares
	byCookie feature = "cookie"
	byQuery  feature = "query"
	byPath   feature = "path"
	byMethod feature = "method"
	bySource feature = "source"
	mirrors  feature = "mirror"           // copies of requests
	anyTotal feature = "maxTrafficWeight" // weights with a total other than 100
	sticks   feature = "sticky"           // a cookie keeps a user on the canary
	modifies feature = "requestHeaderModifier"
	weighs   feature = "experiment" // templates of an experiment get a share of the requests
	reports  feature = "verify"     // the status of objects says whether the router accepts them
)

// comparison is a set of comparisons. The flag "can" is for features without any, such as mirrors.
type comparison uint8

const (
	can comparison = 1 << iota
	exact
	prefix
	regex

	anyText = exact | prefix | regex
)

// String returns for example "exact, regex", or "yes" without comparisons.
func (h comparison) String() string {
	var parts []string
	for bit, name := range []string{"yes", "exact", "prefix", "regex"} { // in the order of the constants
		if h&(1<<bit) != 0 {
			parts = append(parts, name)
		}
	}
	return strings.Join(parts, ", ")
}

type features map[feature]comparison

// Kinds returns the names of all routers, in the order of the docs.
func Kinds() []string {
	return rollout.Mapped(table, func(r router) string { return r.kind })
}

func find(kind string) (router, bool) {
	return rollout.Find(table, func(r router) bool { return r.kind == kind })
}

// Types returns the configurations by kind, for JSON Schemas. A list also accepts one mapping.
func Types() map[string]reflect.Type {
	types := map[string]reflect.Type{}
	for _, r := range table {
		types[r.kind] = reflect.TypeOf(r.config()).Elem()
	}
	return types
}
