package rollout

import (
	"slices"
	"time"
)

// Traffic configures how routers split requests, as trafficRouting of Argo Rollouts.
type Traffic struct {
	Routers       []Router // at least one, ordered by kind; all routers get the same weight
	ManagedRoutes []string // names of header and mirror routes, in the order of precedence

	// MaxWeight is the weight at which a version gets all requests.
	MaxWeight int `json:"maxTrafficWeight" default:"100" min:"1" max:"1000000"`
	// Settle is the time within which all proxies learn new endpoints or routes. Most proxies watch the API server and
	// need well under a second. Traefik collects changes for 2s (providersThrottleDuration).
	Settle time.Duration `json:"settle" own:"" default:"3s"`
	// Sticky configures a cookie. If nil, each request is sent to a version by the weight alone.
	Sticky *Sticky `json:"sticky" own:""`
}

// Router is one router in trafficRouting, with object names from Kustomize's output. See traffic.Parse.
type Router struct {
	Kind   string // the name of a router in package traffic: gatewayAPI, nginx, istio …
	Config any    // the settings, in a type of package traffic for this kind; immutable
}

// Sticky configures a cookie that keeps a user on the canary after the canary's first answer.
type Sticky struct {
	Cookie string        `json:"cookie" is:"cookie"` // name of the cookie; default gitrollout-<Rollout's name>
	MaxAge time.Duration `json:"maxAge" default:"24h"`
}

// PingPong names two Services that swap roles at each release, so that a Service in use keeps its selector.
type PingPong struct {
	PingService string `json:"pingService" needs:"name a Service"` // the stable Service before the first release
	PongService string `json:"pongService" needs:"name a Service"`
}

// ManagedRoute sends matching requests, with Mirror only copies, to the canary until a step removes the route.
type ManagedRoute struct {
	Name    string  `json:"name"`
	Matches []Match `json:"matches,omitempty"` // alternatives: a request must satisfy at least one Match
	// percentage of matching requests that are copied to the canary; nil: the requests themselves go to the canary
	Mirror *int `json:"mirror,omitempty"`
}

// MatchRoute is the name of the route that the step "match" creates.
const MatchRoute = "match"

// Match is a condition on a request; all set fields must hold.
type Match struct {
	_           any          `some:"name headers, cookies, queryParams, path, method or source"`
	Headers     []NamedMatch `json:"headers,omitempty"`
	Cookies     []NamedMatch `json:"cookies,omitempty"`
	QueryParams []NamedMatch `json:"queryParams,omitempty"`
	Path        *StringMatch `json:"path,omitempty"`
	Method      *StringMatch `json:"method,omitempty"`
	Source      *StringMatch `json:"source,omitempty"` // the client's address: exact, or a prefix such as 10.1.0.0/16
}

// NamedMatch is a condition on one header, cookie or query parameter of a request.
type NamedMatch struct {
	Name string `json:"name" needs:"name it"`
	StringMatch
}

// StringMatch is a condition on a text. Exactly one field is set.
type StringMatch struct {
	_      any    `one:"exact prefix regex"`
	Exact  string `json:"exact,omitempty"`
	Prefix string `json:"prefix,omitempty"`
	Regex  string `json:"regex,omitempty"` // in RE2 syntax; it must match the whole text
}

// HeaderModifier changes requests' headers, as the Gateway API's HTTPHeaderFilter.
type HeaderModifier struct {
	_      any      `some:"give set, add or remove"`
	Set    []Header `json:"set,omitempty" max:"16"` // replaces a header
	Add    []Header `json:"add,omitempty" max:"16"` // adds a value to a header
	Remove []string `json:"remove,omitempty" max:"16" is:"header"`
}

// Names returns the names of the changed headers.
func (m *HeaderModifier) Names() []string {
	name := func(h Header) string { return h.Name }
	return slices.Concat(Mapped(m.Set, name), Mapped(m.Add, name), m.Remove)
}

// Header is a header of a request.
type Header struct {
	Name  string `json:"name" needs:"name the header" is:"header"`
	Value string `json:"value" needs:"give the header's value" is:"headerValue"`
}

// Routing is the newest weight and routes of a release.
type Routing struct {
	Step   int       `json:"step"`             // index of the step whose routes are in force
	Weight int       `json:"weight"`           // the new version's weight, out of Traffic.MaxWeight
	At     time.Time `json:"at"`               // start of this routing; all proxies know it after Traffic.Settle
	Shares bool      `json:"shares,omitempty"` // the pods of the step's experiment get their templates' weights
}
