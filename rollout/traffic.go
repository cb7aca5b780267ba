package rollout

import (
	"slices"
	"time"
)

// Traffic configures routers, like Argo Rollouts' trafficRouting.
type Traffic struct {
	Routers       []Router // at least one, ordered by kind; all get the same weight
	ManagedRoutes []string // names of routes, highest precedence first

	// MaxWeight is the weight of all requests.
	MaxWeight int `json:"maxTrafficWeight" default:"100" min:"1" max:"1000000"`
	// Settle is how long proxies need to learn new endpoints or routes. Most proxies watch the API server and need well
	// under a second. Traefik collects changes for 2s (providersThrottleDuration).
	Settle time.Duration `json:"settle" own:"" default:"3s"`
	// Sticky is nil if the weight decides anew for each request.
	Sticky *Sticky `json:"sticky" own:""`
}

// Router is an entry of trafficRouting. Its object names are the names in Kustomize's output.
type Router struct {
	Kind   string // as in package traffic: gatewayAPI, nginx, istio …
	Config any    // has a type of package traffic; immutable
}

// Sticky configures a cookie that keeps users on the canary after the canary's first answer.
type Sticky struct {
	Cookie string        `json:"cookie" is:"cookie"` // default gitrollout-<Rollout's name>
	MaxAge time.Duration `json:"maxAge" default:"24h"`
}

// PingPong names two Services that swap roles at each release, so that no Service changes its selector while it gets
// requests.
type PingPong struct {
	PingService string `json:"pingService" needs:"name a Service"` // stable before the first release
	PongService string `json:"pongService" needs:"name a Service"`
}

// ManagedRoute sends matching requests (with Mirror, only copies) to the canary until a step removes the route.
type ManagedRoute struct {
	Name    string  `json:"name"`
	Matches []Match `json:"matches,omitempty"` // alternatives: one must hold
	Mirror  *int    `json:"mirror,omitempty"`  // percentage of copied requests; nil: no copies
}

// MatchRoute is the name of the route that the step "match" sets.
const MatchRoute = "match"

// Match is a condition on a request. All set fields must hold.
type Match struct {
	_           any          `some:"name headers, cookies, queryParams, path, method or source"`
	Headers     []NamedMatch `json:"headers,omitempty"`
	Cookies     []NamedMatch `json:"cookies,omitempty"`
	QueryParams []NamedMatch `json:"queryParams,omitempty"`
	Path        *StringMatch `json:"path,omitempty"`
	Method      *StringMatch `json:"method,omitempty"`
	Source      *StringMatch `json:"source,omitempty"` // the client's address: exact, or a prefix such as 10.1.0.0/16
}

// NamedMatch is a condition on a header, cookie or query parameter.
type NamedMatch struct {
	Name string `json:"name" needs:"name it"`
	StringMatch
}

// StringMatch is a condition on a text. Exactly one field is set.
type StringMatch struct {
	_      any    `one:"exact prefix regex"`
	Exact  string `json:"exact,omitempty"`
	Prefix string `json:"prefix,omitempty"`
	Regex  string `json:"regex,omitempty"` // RE2; must match the whole text
}

// HeaderModifier changes requests' headers, like the Gateway API's HTTPHeaderFilter.
type HeaderModifier struct {
	_      any      `some:"give set, add or remove"`
	Set    []Header `json:"set,omitempty" max:"16"` // replaces a header's values
	Add    []Header `json:"add,omitempty" max:"16"` // adds a value to a header
	Remove []string `json:"remove,omitempty" max:"16" is:"header"`
}

// Names returns the changed headers' names.
func (m *HeaderModifier) Names() []string {
	name := func(h Header) string { return h.Name }
	return slices.Concat(Mapped(m.Set, name), Mapped(m.Add, name), m.Remove)
}

// Header is a header of a request.
type Header struct {
	Name  string `json:"name" needs:"name the header" is:"header"`
	Value string `json:"value" needs:"give the header's value" is:"headerValue"`
}

// Routing is a release's newest weight and routes.
type Routing struct {
	Step   int       `json:"step"`             // step whose routes are in force
	Weight int       `json:"weight"`           // the new version's weight, out of Traffic.MaxWeight
	At     time.Time `json:"at"`               // when the routes began; proxies know the routes after Traffic.Settle
	Shares bool      `json:"shares,omitempty"` // pods of the step's experiment get their templates' weights
}
