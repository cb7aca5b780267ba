package rollout

import "time"

// Traffic configures how requests are split between versions. Its fields come from trafficRouting of Argo Rollouts.
type Traffic struct {
	Routers       []Router // at least one, ordered by kind; all get the same weight
	ManagedRoutes []string // names of header and mirror routes, in the order of their precedence

	// MaxWeight is the weight that means all traffic.
	MaxWeight int `json:"maxTrafficWeight" default:"100" min:"1" max:"1000000"`
	// Settle is how long it takes until every proxy has new endpoints or routes. Most proxies watch the API server and
	// need well under a second. Traefik collects changes for 2s (providersThrottleDuration).
	Settle time.Duration `json:"settle" own:"" default:"3s"`
	// Sticky is nil if the weight applies to each request separately.
	Sticky *Sticky `json:"sticky" own:""`
}

// Router is one router's block of trafficRouting, after Kustomize's renamings. Only traffic.Parse makes a Router.
type Router struct {
	Kind   string // a name in the table of package traffic: gatewayAPI, nginx, istio …
	Config any    // its type is the router's type in package traffic; immutable
}

// Sticky configures a cookie. The cookie keeps a user on the canary after the user's first request there.
type Sticky struct {
	Cookie string        `json:"cookie" is:"cookie"` // name of the cookie; default gitrollout-<Rollout's name>
	MaxAge time.Duration `json:"maxAge" default:"24h"`
}

// PingPong names two Services that swap roles at each release, so that no Service with traffic changes its selector.
type PingPong struct {
	PingService string `json:"pingService" needs:"name a Service"` // the stable Service at first
	PongService string `json:"pongService" needs:"name a Service"`
}

// ManagedRoute sends matching requests to the canary until a step removes the route. With Mirror, it sends copies.
type ManagedRoute struct {
	Name    string  `json:"name"`
	Matches []Match `json:"matches,omitempty"` // at least one must match
	// percentage of matching requests to copy to the canary; nil: send the requests, do not copy them
	Mirror *int `json:"mirror,omitempty"`
}

// MatchRoute is the name of the route that a step "match" sets.
const MatchRoute = "match"

// Match is a condition on requests. All set fields must match.
type Match struct {
	_           any          `some:"name headers, cookies, queryParams, path, method or source"`
	Headers     []NamedMatch `json:"headers,omitempty"`
	Cookies     []NamedMatch `json:"cookies,omitempty"`
	QueryParams []NamedMatch `json:"queryParams,omitempty"`
	Path        *StringMatch `json:"path,omitempty"`
	Method      *StringMatch `json:"method,omitempty"`
	Source      *StringMatch `json:"source,omitempty"` // client address: exact, or a prefix such as 10.1.0.0/16
}

// NamedMatch compares one header, cookie or query parameter.
type NamedMatch struct {
	Name string `json:"name" needs:"name it"`
	StringMatch
}

// StringMatch compares a text. Exactly one field is set.
type StringMatch struct {
	_      any    `one:"exact prefix regex"`
	Exact  string `json:"exact,omitempty"`
	Prefix string `json:"prefix,omitempty"`
	Regex  string `json:"regex,omitempty"` // RE2, matching the whole text
}

// Routing is a release's newest traffic setting.
type Routing struct {
	Step   int       `json:"step"`   // index of the step whose routes are in force
	Weight int       `json:"weight"` // of the new version, out of Traffic.MaxWeight
	At     time.Time `json:"at"`     // start of the setting; all proxies have it after Traffic.Settle
}
