package strategies

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// strategy compiles specs to plans: one file and one line of the table. Walking stages does not depend on it.
type strategy interface {
	compiles(spec rollout.Spec) bool
	compile(spec rollout.Spec) plan
}

var table = []strategy{canary{}, blueGreen{}}

// Strategy names a strategy in texts and output.
type Strategy string

// The strategies. A canary without steps is the user's own rolling update.
const (
	StrategyCanary        Strategy = "canary"
	StrategyBlueGreen     Strategy = "blueGreen"
	StrategyRollingUpdate Strategy = "rollingUpdate"
)

// Role is a version's role for its users.
type Role string

// The roles. A ReplicaSet of an older release has none.
const (
	RoleStable  Role = "stable"
	RoleCanary  Role = "canary"
	RoleActive  Role = "active"
	RolePreview Role = "preview"
)

// plan is one workload's release, as its strategy compiles the spec.
type plan struct {
	spec       rollout.Spec
	strategy   Strategy
	stages     []stage
	passed     int           // the number of stages that a full promotion or a verified version skips
	main, side string        // the Service of users and the Service of the new version; "" for none
	pingPong   bool          // main and side swap with each release
	routing    *routing      // nil: weights are shares of pods
	abortDelay time.Duration // how long the new pods stay after an abort has removed their requests
	atOnce     bool          // an abort cannot remove requests: pods serve until they are gone
	background *rollout.Analysis
	oldRole    Role // of the stable version
	freshRole  Role
	pins       pins
	key        string // the cached digest
}

// pins is how the Services of users and of the new version select pods.
type pins int

// The ways to select pods.
const (
	canaryPins    pins = iota // weights are shares of pods
	blueGreenPins             // a preview Service that users do not reach
	routedPins                // routers send requests to both Services
	sharedPins                // in place, routers send only matched requests to the new Service
)

// routing splits the requests of a release, not only its pods.
type routing struct {
	*rollout.Traffic
	dynamic bool // stable shrinks with its share of the traffic
}

// stage is one entry of a plan. Its weight, routes and counts hold until the next stage.
type stage struct {
	name     string // the user's name for it, "" if none
	text     string // "setWeight 20", for output and commit subjects
	weight   int    // of the new version: percent, or a share of Traffic.MaxWeight
	routes   []rollout.ManagedRoute
	counts   func(n int) counts
	scaled   bool // the counts come from setCanaryScale, not from the weight
	wait     wait
	switched bool // the stable or active Service selects the new version
	keeps    bool // all users are on the new version, and pods of the old version are kept
	final    bool // it follows the decision to promote: windows and freezes do not stop it
}

// with returns the stage with another name, text and wait.
func (s stage) with(name, text string, w wait) stage {
	s.name, s.text, s.wait = name, text, w
	return s
}

// counts holds the pods of each version at the end of a stage, for a given number of replicas.
type counts struct{ canary, stable int }

// plans caches compiled specs for one decision. The zero value compiles each time.
type plans map[rollout.Spec]*plan

func (known plans) orNew() plans {
	if known == nil {
		return plans{}
	}
	return known
}

func (known plans) of(spec rollout.Spec) *plan {
	if p := known[spec]; p != nil {
		return p
	}
	p := compile(spec)
	if known != nil {
		known[spec] = p
	}
	return p
}

func compile(spec rollout.Spec) *plan {
	i := slices.IndexFunc(table, func(s strategy) bool { return s.compiles(spec) })
	p := table[i].compile(spec) // every spec has a strategy
	p.spec = spec
	return &p
}

// names returns the stages' names, for promotions with through: NAME.
func (p *plan) names() []string {
	return rollout.Mapped(p.stages, func(s stage) string { return s.name })
}

// digest returns a hash of the stages as this version of the program compiles them.
func (p *plan) digest() string {
	if p.key != "" {
		return p.key
	}
	var b strings.Builder
	for _, s := range p.stages {
		b.WriteString(s.name + "|" + s.meaning())
	}
	sum := sha256.Sum256([]byte(b.String()))
	p.key = hex.EncodeToString(sum[:4])
	return p.key
}

// meaning returns the stage's effect and wait as text, without the user's name for it.
func (s stage) meaning() string {
	c, w := s.counts(100), s.wait.traits()
	text := fmt.Sprintf("%s|%d|%d|%d|%d|%s|%t\n%s",
		s.text, s.weight, c.canary, c.stable, w.number, w.duration, s.switched, w.more)
	if len(s.routes) > 0 {
		text += encoded(s.routes) + "\n"
	}
	return text
}

// encoded returns a value of strings, numbers and JSON as JSON.
func encoded(v any) string {
	raw, _ := json.Marshal(v) // such values always encode
	return string(raw)
}

// at returns a stage, false when there is none left.
func (p *plan) at(step int) (stage, bool) {
	if step < 0 || step >= len(p.stages) {
		return stage{}, false
	}
	return p.stages[step], true
}

// progress returns the record of a workload that enters a stage.
func (p *plan) progress(step int, now time.Time) rollout.Progress {
	step = min(step, len(p.stages)) // another version of this program may have compiled more stages
	pr := rollout.Progress{
		Workload: p.spec.Workload, Step: step, Of: len(p.stages), Plan: p.digest(), Entered: rollout.NextTenth(now),
		Name: "promote", Weight: 100,
	}
	if s, ok := p.at(step); ok {
		pr.Name, pr.Weight = s.text, s.weight
	}
	return pr
}

// promotionStep returns the first stage after the decision to promote, or the number of stages if there is none.
func (p *plan) promotionStep() int {
	if i := slices.IndexFunc(p.stages, func(s stage) bool { return s.final }); i >= 0 {
		return i
	}
	return len(p.stages)
}

// moved returns the first stage at which all users have the new version.
func (p *plan) moved() int {
	if i := slices.IndexFunc(p.stages, func(s stage) bool { return s.switched }); i >= 0 {
		return i
	}
	return p.promotionStep()
}

// hasSwitched reports whether users reach the new version at a step.
func (p *plan) hasSwitched(step int) bool {
	return slices.ContainsFunc(p.stages[:min(step+1, len(p.stages))], func(s stage) bool { return s.switched })
}

// routesAt returns the managed routes of a step, none after the last one.
func (p *plan) routesAt(step int) []rollout.ManagedRoute {
	s, _ := p.at(step)
	return s.routes
}

// countsAt returns the pods at a step's end, later the last stage's. Without stages all stay stable until promoted.
func (p *plan) countsAt(step, n int) counts {
	if len(p.stages) == 0 {
		return counts{stable: n}
	}
	return p.stages[min(step, len(p.stages)-1)].counts(n)
}

// full returns the weight of all requests.
func (p *plan) full() int {
	if p.routing != nil {
		return p.routing.MaxWeight
	}
	return 100
}

// isDynamic reports whether stable shrinks with its share of the traffic.
func (p *plan) isDynamic() bool { return p.routing != nil && p.routing.dynamic }

// sharesPods reports whether routers send only matched requests to the new version. In place, the remaining stable
// pods could not serve the rest of a weight.
func (p *plan) sharesPods() bool { return p.routing != nil && p.spec.Scaling == rollout.InPlace }

// routedWeight returns the weight that routers get at a stage.
func (p *plan) routedWeight(s stage) int {
	if p.sharesPods() {
		return 0
	}
	return s.weight
}

// services returns the Service of users and the Service of the new version.
func (p *plan) services(s rollout.State) (main, side string) {
	if p.pingPong && slices.Contains(s.Pong, p.spec.Workload) {
		return p.side, p.main
	}
	return p.main, p.side
}

func minReady(spec rollout.Spec) time.Duration {
	return time.Duration(spec.MinReadySeconds) * time.Second
}
