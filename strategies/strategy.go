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

// strategy compiles the specs that ask for it. A strategy is one file and one line of the table: the machine that walks
// a plan's stages and the overlay that turns a stage into objects know none of them.
type strategy interface {
	compiles(spec rollout.Spec) bool
	compile(spec rollout.Spec) plan
}

// table lists the strategies.
var table = []strategy{canary{}, blueGreen{}}

// Strategy names a strategy, for people and for machines.
type Strategy string

// The strategies. A canary without steps is the user's own rolling update.
const (
	StrategyCanary        Strategy = "canary"
	StrategyBlueGreen     Strategy = "blueGreen"
	StrategyRollingUpdate Strategy = "rollingUpdate"
)

// Role is what a version of a workload is to its users.
type Role string

// The roles. A left-over of an older release has none.
const (
	RoleStable  Role = "stable"
	RoleCanary  Role = "canary"
	RoleActive  Role = "active"
	RolePreview Role = "preview"
)

// plan is one workload's release as its strategy makes it of the spec.
type plan struct {
	spec       rollout.Spec
	strategy   Strategy
	stages     []stage
	passed     int           // so many stages a version passes at once that is promoted fully or was verified before
	main, side string        // the Service that users reach, and the new version's; "" for none
	pingPong   bool          // they change their roles with each release
	routing    *routing      // nil: weights are shares of pods
	abortDelay time.Duration // how long pods may stay whose requests an abort has taken away
	atOnce     bool          // an abort takes none away: pods serve until they are gone
	background *rollout.Analysis
	oldRole    Role // of the stable version
	freshRole  Role
	pins       []pinRow
	key        string // what digest returns, once it has
}

// routing is how the requests of a release are split, and not only its pods.
type routing struct {
	*rollout.Traffic
	dynamic bool // stable shrinks as its share of the traffic does
}

// stage is one entry of a plan. What it asks for holds until the next stage asks for something else.
type stage struct {
	name     string // the user's name for it, "" if none
	text     string // "setWeight 20", for people and for commit subjects
	weight   int    // asked for the new version: percent, or a share of Traffic.MaxWeight
	routes   []rollout.ManagedRoute
	counts   func(n int) counts
	scaled   bool // they are what it asks for, and not its weight
	wait     wait
	switched bool // the stable or active Service selects the new version
	keeps    bool // users are all on the new version, and only the old one's pods stay
	final    bool // it follows the decision to promote: it is finished, whatever the time is
}

// with returns a stage that asks for the same under another name.
func (s stage) with(name, text string, w wait) stage {
	s.name, s.text, s.wait = name, text, w
	return s
}

// counts is how many pods of each version a stage comes to rest at, for a given number of replicas.
type counts struct{ canary, stable int }

// plans are the specs that have been compiled already, so that one decision
// compiles each once. The zero value compiles each time.
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
	p := table[i].compile(spec) // a spec has a strategy
	p.spec = spec
	return &p
}

// names returns the stages' names, for promotions that say through: NAME.
func (p *plan) names() []string {
	return rollout.Mapped(p.stages, func(s stage) string { return s.name })
}

// digest identifies the list of stages, as this version of the program compiles it.
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

// meaning is what a stage asks for and what ends it, whatever the user calls it.
func (s stage) meaning() string {
	c, w := s.counts(100), s.wait.traits()
	text := fmt.Sprintf("%s|%d|%d|%d|%d|%s|%t\n%s",
		s.text, s.weight, c.canary, c.stable, w.number, w.duration, s.switched, w.more)
	if len(s.routes) > 0 {
		text += encoded(s.routes) + "\n"
	}
	return text
}

// encoded is the JSON of what is made of texts, numbers and JSON.
func encoded(v any) string {
	raw, _ := json.Marshal(v) // which always encode
	return string(raw)
}

// at returns a stage, false when there is none left.
func (p *plan) at(step int) (stage, bool) {
	if step < 0 || step >= len(p.stages) {
		return stage{}, false
	}
	return p.stages[step], true
}

// progress is what is recorded of a workload that enters a stage.
func (p *plan) progress(step int, now time.Time) rollout.Progress {
	step = min(step, len(p.stages)) // another version of this program may have compiled more of them
	pr := rollout.Progress{
		Workload: p.spec.Workload, Step: step, Of: len(p.stages), Plan: p.digest(), Entered: rollout.NextTenth(now),
		Name: "promote", Weight: 100,
	}
	if s, ok := p.at(step); ok {
		pr.Name, pr.Weight = s.text, s.weight
	}
	return pr
}

// handover is the first stage after the decision to promote, or the number of stages if there is none.
func (p *plan) handover() int {
	if i := slices.IndexFunc(p.stages, func(s stage) bool { return s.final }); i >= 0 {
		return i
	}
	return len(p.stages)
}

// moved is the first stage at which all users have the new version.
func (p *plan) moved() int {
	if i := slices.IndexFunc(p.stages, func(s stage) bool { return s.switched }); i >= 0 {
		return i
	}
	return p.handover()
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

// countsAt is what a step comes to rest at; after the last one, what the last
// one did. Without any, the pods are stable's until the others of its release are through.
func (p *plan) countsAt(step, n int) counts {
	if len(p.stages) == 0 {
		return counts{stable: n}
	}
	return p.stages[min(step, len(p.stages)-1)].counts(n)
}

// full is the weight that is everything.
func (p *plan) full() int {
	if p.routing != nil {
		return p.routing.MaxWeight
	}
	return 100
}

// isDynamic reports whether stable shrinks as its share of the traffic does.
func (p *plan) isDynamic() bool { return p.routing != nil && p.routing.dynamic }

// sharesPods reports whether routers send matched requests alone to the new version, and all others follow the pods:
// where these are replaced in place, those that are left could not bear what a weight leaves them.
func (p *plan) sharesPods() bool { return p.routing != nil && p.spec.Scaling == rollout.InPlace }

// routedWeight is what routers are asked for at a stage.
func (p *plan) routedWeight(s stage) int {
	if p.sharesPods() {
		return 0
	}
	return s.weight
}

// services returns the Service that users reach and the one for the new version.
func (p *plan) services(s rollout.State) (main, side string) {
	if p.pingPong && slices.Contains(s.Pong, p.spec.Workload) {
		return p.side, p.main
	}
	return p.main, p.side
}

func minReady(spec rollout.Spec) time.Duration {
	return time.Duration(spec.MinReadySeconds) * time.Second
}
