package plan

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

type strategy interface {
	Compiles(spec rollout.Spec) bool
	Compile(spec rollout.Spec) Compiled
}

// Table lists the strategies.
var Table = []strategy{canary{}, blueGreen{}}

// Strategy is the name of a strategy in texts and output.
type Strategy string

const (
	StrategyCanary        Strategy = "canary"
	StrategyBlueGreen     Strategy = "blueGreen"
	StrategyRollingUpdate Strategy = "rollingUpdate"
)

// Role is a version's role in a release, in output.
type Role string

const (
	RoleStable  Role = "stable"
	RoleCanary  Role = "canary"
	RoleActive  Role = "active"
	RolePreview Role = "preview"
)

// Compiled is the plan of one workload's release.
type Compiled struct {
	Spec       rollout.Spec
	Strategy   Strategy
	Stages     []Stage
	Passed     int           // number of stages that a full promotion or a verified version skips
	Main, Side string        // the Services of users and of the new version, or ""
	pingPong   bool          // the Services swap roles with each release
	Routing    *Routing      // nil if no router splits requests
	AbortDelay time.Duration // how long new pods stay without requests after an abort
	AtOnce     bool          // after an abort, new pods get requests until they stop, because the versions share a Service
	Background *rollout.Analysis
	OldRole    Role
	FreshRole  Role
	Pins       Pins
	key        string
}

// Pins determines how a workload's two Services select pods.
type Pins int

const (
	CanaryPins    Pins = iota // weights are shares of pods
	BlueGreenPins             // users do not reach the preview Service
	RoutedPins                // routers send requests to both Services
	SharedPins                // in place: the new version's Service gets only matched requests
)

// Routing describes how routers split requests.
type Routing struct {
	*rollout.Traffic
	dynamic bool // dynamicStableScale: stable pods decrease with their traffic
}

// Stage is one entry of a plan.
type Stage struct {
	Name     string // the user's name, or ""
	Text     string // for output and subjects, such as "setWeight 20"
	Weight   int    // the new version's weight, out of Compiled.Full
	Routes   []rollout.ManagedRoute
	Headers  *rollout.HeaderModifier // header changes of requests to the new version, or nil
	Counts   func(n int) Counts
	Scaled   bool // counts come from setCanaryScale, not from the weight
	Wait     Wait
	Switched bool // the stable or active Service selects the new version
	keeps    bool // all users moved, and old pods stay
	final    bool // the stage follows the promotion, so no window or freeze delays it
}

// With returns a copy of the stage with another name, text and wait.
func (s Stage) With(name, text string, w Wait) Stage {
	s.Name, s.Text, s.Wait = name, text, w
	return s
}

// Counts holds each version's pods at the end of a stage.
type Counts struct{ Canary, Stable int }

// Cache caches compiled specs for one decision. The zero value caches nothing.
type Cache map[rollout.Spec]*Compiled

// OrNew returns the cache, or an empty cache for nil.
func (known Cache) OrNew() Cache {
	if known == nil {
		return Cache{}
	}
	return known
}

// Of returns the spec's plan, from the cache if possible.
func (known Cache) Of(spec rollout.Spec) *Compiled {
	if p := known[spec]; p != nil {
		return p
	}
	p := Compile(spec)
	if known != nil {
		known[spec] = p
	}
	return p
}

// Compile returns a spec's plan, from the first matching strategy in Table.
func Compile(spec rollout.Spec) *Compiled {
	i := slices.IndexFunc(Table, func(s strategy) bool { return s.Compiles(spec) })
	p := Table[i].Compile(spec)
	p.Spec = spec
	return &p
}

// Names returns the stages' names, for "through: NAME".
func (p *Compiled) Names() []string {
	return rollout.Mapped(p.Stages, func(s Stage) string { return s.Name })
}

// Digest returns a hash of the stages as this version of gitrollout compiles them.
func (p *Compiled) Digest() string {
	if p.key != "" {
		return p.key
	}
	texts := rollout.Mapped(p.Stages, func(s Stage) string { return s.Name + "|" + s.Meaning() })
	p.key = rollout.Digest([]byte(strings.Join(texts, "")), 4)
	return p.key
}

// Meaning returns a text that identifies a stage's effect and wait.
func (s Stage) Meaning() string {
	c, w := s.Counts(100), s.Wait.Traits()
	text := fmt.Sprintf("%s|%d|%d|%d|%d|%s|%t\n%s",
		s.Text, s.Weight, c.Canary, c.Stable, w.Number, w.duration, s.Switched, w.more)
	if len(s.Routes) > 0 {
		text += encoded(s.Routes) + "\n"
	}
	if s.Headers != nil {
		text += encoded(s.Headers) + "\n"
	}
	return text
}

func encoded(v any) string {
	raw, _ := json.Marshal(v) // analyses, experiments and routes always encode
	return string(raw)
}

// At returns the stage at a step, or false after the last stage.
func (p *Compiled) At(step int) (Stage, bool) {
	if step < 0 || step >= len(p.Stages) {
		return Stage{}, false
	}
	return p.Stages[step], true
}

// Enter returns the progress of a workload that enters a stage now.
func (p *Compiled) Enter(step int, now time.Time) rollout.Progress {
	step = min(step, len(p.Stages)) // another version of gitrollout may have compiled more stages
	pr := rollout.Progress{
		Workload: p.Spec.Workload, Step: step, Of: len(p.Stages), Plan: p.Digest(), Entered: rollout.NextTenth(now),
		Name: "promote", Weight: 100,
	}
	if s, ok := p.At(step); ok {
		pr.Name, pr.Weight = s.Text, s.Weight
	}
	return pr
}

// PromotionStep returns the index of the first stage after the decision to promote, or len(Stages).
func (p *Compiled) PromotionStep() int {
	if i := slices.IndexFunc(p.Stages, func(s Stage) bool { return s.final }); i >= 0 {
		return i
	}
	return len(p.Stages)
}

// Moved returns the index of the stage that switches the users' Service, or PromotionStep without such a stage.
func (p *Compiled) Moved() int {
	if i := slices.IndexFunc(p.Stages, func(s Stage) bool { return s.Switched }); i >= 0 {
		return i
	}
	return p.PromotionStep()
}

// HasSwitched reports whether a step or an earlier step switches the users' Service.
func (p *Compiled) HasSwitched(step int) bool {
	return slices.ContainsFunc(p.Stages[:min(step+1, len(p.Stages))], func(s Stage) bool { return s.Switched })
}

// RoutedAt returns the stage whose routes are in force; zero after the last step.
func (p *Compiled) RoutedAt(step int) Stage {
	s, _ := p.At(step)
	return s
}

// CountsAt returns the pods at the end of a step. After the last stage, its counts stay. Without stages, no pod is new.
func (p *Compiled) CountsAt(step, n int) Counts {
	if len(p.Stages) == 0 {
		return Counts{Stable: n}
	}
	return p.Stages[min(step, len(p.Stages)-1)].Counts(n)
}

// Full returns the weight that means all requests: 100, or Traffic.MaxWeight.
func (p *Compiled) Full() int {
	if p.Routing != nil {
		return p.Routing.MaxWeight
	}
	return 100
}

// IsDynamic reports whether stable pods decrease with their traffic (dynamicStableScale).
func (p *Compiled) IsDynamic() bool { return p.Routing != nil && p.Routing.dynamic }

// SharesPods reports whether routers send only matched requests to the new version. This is so with in-place scaling,
// because the remaining stable pods could not serve a fixed share.
func (p *Compiled) SharesPods() bool { return p.Routing != nil && p.Spec.Scaling == rollout.InPlace }

// RoutedWeight returns the weight that routers apply: 0 if they send only matched requests.
func (p *Compiled) RoutedWeight(s Stage) int {
	if p.SharesPods() {
		return 0
	}
	return s.Weight
}

// Services returns the users' Service (main) and the new version's (side). State.Pong swaps ping-pong Services.
func (p *Compiled) Services(s rollout.State) (main, side string) {
	if p.pingPong && slices.Contains(s.Pong, p.Spec.Workload) {
		return p.Side, p.Main
	}
	return p.Main, p.Side
}

// MinReady returns how long a pod must be ready to be available.
func MinReady(spec rollout.Spec) time.Duration {
	return time.Duration(spec.MinReadySeconds) * time.Second
}

// MovedAt returns the index of the first stage after all users have moved and all analyses have ended, or len(Stages).
// It returns false if users move only as pods are replaced.
func (p *Compiled) MovedAt() (int, bool) {
	n := len(p.Stages)
	if n > 0 && p.Stages[n-1].keeps {
		n--
	}
	return n, p.HasSwitched(len(p.Stages)) || p.Swaps()
}

// RoleOf returns the role of a ReplicaSet's version, or "" for older versions.
func (p *Compiled) RoleOf(s rollout.State, r rollout.Revision) Role {
	switch w := p.Spec.Workload; {
	case r.Hash != "" && r.Hash == s.StableHash(w):
		return p.OldRole
	case r.Hash != "" && s.Release != nil && r.Hash == s.Release.Templates[w]:
		return p.FreshRole
	case r.Base && !r.Current && s.Release != nil && s.Stable != nil:
		return p.OldRole
	}
	return ""
}

// AsksAs reports whether two stages request the same weight, routes and Service, ignoring counts.
func (s Stage) AsksAs(o Stage) bool {
	return s.Weight == o.Weight && s.Scaled == o.Scaled && s.Switched == o.Switched && s.keeps == o.keeps &&
		s.RoutesAs(o)
}

// RoutesAs reports whether two stages have the same routes and header changes.
func (s Stage) RoutesAs(o Stage) bool {
	return reflect.DeepEqual(s.Routes, o.Routes) && reflect.DeepEqual(s.Headers, o.Headers)
}

// Swaps reports whether a release swaps the roles of both Services.
func (p *Compiled) Swaps() bool { return p.pingPong && len(p.Stages) > 0 }

// LeftServices returns the known Services and the old plan's Services, except Services with a role in this plan.
// Without a router, it also returns this plan's side Service if that Service was the main Service before.
func (p *Compiled) LeftServices(s rollout.State, known []string, old *Compiled) []string {
	if old == nil {
		return known
	}
	main, side := p.Services(s)
	wasMain, wasSide := old.Services(s)
	var all []string
	for _, name := range append(slices.Clone(known), wasMain, wasSide) {
		isSide := name == side && (p.Routing != nil || name == wasSide && !slices.Contains(known, name))
		if name != "" && name != main && !isSide && !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// EndsAs reports whether both plans treat the Services alike: switched, swapped or neither.
func (p *Compiled) EndsAs(other *Compiled) bool {
	return p.Swaps() == other.Swaps() && p.HasSwitched(len(p.Stages)) == other.HasSwitched(len(other.Stages))
}

// HasMoved reports whether all users are on the new version, by a Service switch or routed weight.
func (p *Compiled) HasMoved(pr rollout.Progress) bool {
	routed := p.Routing != nil && pr.Routed != nil && pr.Routed.Weight == p.Full()
	return p.HasSwitched(pr.Step) || routed && pr.Step >= p.PromotionStep()
}
