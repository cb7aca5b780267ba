package traffic

import (
	"reflect"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// table is in the order of the docs.
var table = []router{gatewayAPI, nginx, alb, traefik, istio, smi, ambassador, apisix, anyObject}

type router struct {
	kind     string // key in trafficRouting
	title    string
	since    string   // oldest version with the features that the overlay uses
	features features //
	config   func() editor
	list     bool // the configuration is a list, or a single entry as a mapping
}

func (r router) name() string {
	if r.kind == anyObject.kind {
		return "trafficRouting.object"
	}
	return r.title
}

// editor is a router's configuration. Its fields are Argo Rollouts' fields where possible. A field with the tag
// object:"Kind" names an object, which kustomize may rename.
type editor interface {
	overlay(*Objects, Route) error
}

type reporter interface {
	watched(namespace string) []rollout.Ref
	verify(rollout.Ref, rollout.ObservedRoute) Verdict
}

type feature string

// These features are in the order of the docs.
const (
	splits   feature = "weight" // an exact share
	byHeader feature = "header" // byHeader to bySource: the part of a request that a match compares
	byCookie feature = "cookie"
	byQuery  feature = "query"
	byPath   feature = "path"
	byMethod feature = "method"
	bySource feature = "source"
	mirrors  feature = "mirror"
	anyTotal feature = "maxTrafficWeight" // totals other than 100
	sticks   feature = "sticky"
	modifies feature = "requestHeaderModifier"
	weighs   feature = "experiment" // an experiment's templates get a share
	reports  feature = "verify"
)

// comparison is a set of comparisons. A feature without comparisons, such as mirrors, has the value "can".
type comparison uint8

const (
	can comparison = 1 << iota
	exact
	prefix
	regex

	anyText = exact | prefix | regex
)

// String returns "exact, regex", or "yes".
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

// Kinds returns routers' names.
func Kinds() []string {
	return rollout.Mapped(table, func(r router) string { return r.kind })
}

func find(kind string) (router, bool) {
	return rollout.Find(table, func(r router) bool { return r.kind == kind })
}

// Types returns the types of configurations by kind, for JSON Schemas. If a type is a list, a single mapping is valid
// too.
func Types() map[string]reflect.Type {
	types := map[string]reflect.Type{}
	for _, r := range table {
		types[r.kind] = reflect.TypeOf(r.config()).Elem()
	}
	return types
}
