package rollout

import "time"

// Traffic says how requests, and not only pods, are split between the stable
// and the new version. Its names are those of Argo Rollouts' trafficRouting.
type Traffic struct {
	Routers       []Router      // at least one, ordered by kind; each is given the same weight
	MaxWeight     int           // the weight that is all traffic; default 100
	Settle        time.Duration // how long after a change of endpoints or routes every proxy has learnt of it; default 3s
	ManagedRoutes []string      // names of header and mirror routes, in the order of their precedence
	Sticky        *Sticky       // nil: each request is sent by the weight anew
}

// Router is one router's block of trafficRouting as package traffic has read
// it: known fields only, with the names that kustomize made.
type Router struct {
	Kind   string // a name out of traffic's table: gatewayAPI, nginx, istio …
	Config any
}

// Sticky keeps users who were sent to the canary there for the release, by a
// cookie.
type Sticky struct {
	Cookie string        `json:"cookie"` // its name; default gitrollout-<Rollout's name>
	MaxAge time.Duration `json:"maxAge"` // default 24h
}

// PingPong names two Services that change their roles with each release, so that
// no selector is switched under traffic.
type PingPong struct {
	PingService string // stable's at first
	PongService string
}

// ManagedRoute sends the requests that it matches to the canary, or a copy of
// them if Mirror is set. It lasts from its step to the end of the release, or
// until a step gives it no matches.
type ManagedRoute struct {
	Name    string  `json:"name"`
	Matches []Match `json:"matches,omitempty"` // one of them must match
	Mirror  *int    `json:"mirror,omitempty"`  // percent of the matching requests that are copied; nil: all matching requests are sent
}

// MatchRoute is the name of the route that a step's match makes.
const MatchRoute = "match"

// Match is what a request must have to match: all that is set.
type Match struct {
	Headers     []NamedMatch `json:"headers,omitempty"`
	Cookies     []NamedMatch `json:"cookies,omitempty"`
	QueryParams []NamedMatch `json:"queryParams,omitempty"`
	Path        *StringMatch `json:"path,omitempty"`
	Method      *StringMatch `json:"method,omitempty"`
	Source      *StringMatch `json:"source,omitempty"` // client address: exact, or a prefix such as 10.1.0.0/16
}

// NamedMatch compares one header, cookie or query parameter.
type NamedMatch struct {
	Name        string `json:"name"`
	StringMatch `json:",inline"`
}

// StringMatch compares a text. Exactly one of the fields is set.
type StringMatch struct {
	Exact  string `json:"exact,omitempty"`
	Prefix string `json:"prefix,omitempty"`
	Regex  string `json:"regex,omitempty"` // RE2, matching the whole text
}

// Routing is what the routers have been asked for in a release: which step's
// weight and routes, and since when.
type Routing struct {
	Step   int       `json:"step"`   // index of the step whose routes are in force
	Weight int       `json:"weight"` // of Traffic.MaxWeight, for the new version
	At     time.Time `json:"at"`     // since when: proxies have learnt of it Traffic.Settle later
}
