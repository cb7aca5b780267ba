package simulate

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/internal/guard"
	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// oracle knows what the design promises and watches that it is kept, with
// nothing but what anybody can see: Git, the cluster, and what a process was
// told by them.
type oracle struct {
	u        *universe
	renderer reconciler.Renderer
	renders  map[string]*rollout.Render
	parsed   map[string]rollout.State
	states   map[string]rollout.State   // what Git holds now, by app
	records  map[string][]rollout.State // all that it ever held, oldest first
	full     map[rollout.Hash]bool      // releases that somebody promoted fully
	pending  map[string]pending         // retreats that were applied and are not recorded, by process and app
	guards   map[rollout.Workload]*guard.Guard
	back     map[string]bool // a retreat was applied that is not recorded yet, by app
	over     map[string]bool // somebody promoted a release fully before the way back from another had ended
	stale    map[string]bool // a process that lacks the newest record has written since the app was healthy
	written  map[string]int  // the last write, by process and app
	writes   int

	staleWrites int // as of a record that was not the newest any more
}

type pending struct {
	records int // how many there were when it began
	state   rollout.State
}

func newOracle(u *universe, renderer reconciler.Renderer) *oracle {
	return &oracle{
		u: u, renderer: renderer, renders: map[string]*rollout.Render{}, parsed: map[string]rollout.State{},
		states: map[string]rollout.State{}, records: map[string][]rollout.State{}, full: map[rollout.Hash]bool{},
		pending: map[string]pending{}, guards: map[rollout.Workload]*guard.Guard{}, back: map[string]bool{}, over: map[string]bool{}, stale: map[string]bool{}, written: map[string]int{},
	}
}

func (o *oracle) guard(w rollout.Workload) *guard.Guard {
	if o.guards[w] == nil {
		o.guards[w] = &guard.Guard{}
	}
	return o.guards[w]
}

// appOf is the app that a workload is of.
func appOf(name string) string {
	app, _, _ := strings.Cut(name, "-")
	return app
}

// at returns an app as of a commit, nil if that cannot be had.
func (o *oracle) at(app, commit string) *rollout.Render {
	c := o.u.git.commits[commit]
	if c == nil {
		return nil
	}
	key := app + "@" + commit
	if _, known := o.renders[key]; !known {
		o.renders[key], _ = o.renderer.Render(snapshot{c}, rollout.App{Name: app, Path: "apps/" + app, Namespace: namespace}, c.Commit)
	}
	return o.renders[key]
}

// specOf returns the spec that Git's record names, false for plain Deployments.
func (o *oracle) specOf(w rollout.Workload) (rollout.Spec, bool) {
	r := o.at(appOf(w.Name), o.states[appOf(w.Name)].Source)
	if r == nil {
		return rollout.Spec{}, false
	}
	return r.Spec(w)
}

// checkPods holds after each change in the cluster.
func (o *oracle) checkPods() {
	if o.u.chaos.meddling {
		return // who rolls the record back or edits objects by hand gets what he asks for
	}
	for _, w := range o.u.workloads() {
		app := appOf(w.Name)
		state, g := o.states[app], o.guard(w)
		spec, staged := o.specOf(w)
		if !staged || state.Stable == nil {
			g.Up = false
			continue
		}
		trouble := g.Trouble(o.u.kube, o.u.kube.Deployments[w], spec, guard.Leave{
			Retreating: state.Phase == rollout.Aborting || o.back[app] || o.u.chaos.clock,
			Lag:        o.u.chaos.lag, Overtaken: o.over[app] || o.stale[app], Clock: o.u.chaos.clock,
		})
		if trouble != "" {
			o.u.fail("%s", trouble)
		}
	}
}

// quiet forgives nothing from now on where everything is in order again.
func (o *oracle) quiet() {
	for _, w := range o.u.workloads() {
		if g := o.guard(w); o.serving(w) >= g.Floor {
			g.Excused = 0
		}
	}
}

func (o *oracle) serving(w rollout.Workload) int {
	spec, _ := o.specOf(w)
	n := 0
	for _, rs := range o.u.kube.Deployments[w].Sets {
		n += rs.Serving(o.u.kube.Now, time.Duration(spec.MinReadySeconds)*time.Second)
	}
	return n
}

// checkState sees each move of the state branch.
func (o *oracle) checkState(by, from, to string) {
	a := o.u.actor(by)
	if a != nil && o.u.git.Parent(to) != from {
		o.u.fail("%s rewrote the state branch: %s is not made on %s", by, rollout.ShortID(to), rollout.ShortID(from))
	}
	is := o.read(to)
	apps := map[string]bool{}
	for app := range is {
		apps[app] = true
	}
	for app := range o.states {
		apps[app] = true
	}
	for _, app := range sorted(apps) {
		was, now := o.states[app], is[app]
		if was.Equal(&now) {
			continue
		}
		o.states[app] = now
		o.records[app] = append(o.records[app], now)
		o.back[app] = false
		if a != nil && !o.u.chaos.meddling {
			if a.commits[app]++; a.commits[app] > 1 {
				o.u.fail("%s: two transitions in one pass of %s", app, by)
			}
			o.checkTransition(app, was, now)
		}
		switch {
		case was.Phase == rollout.Aborting && now.Phase == rollout.Promoting:
			o.over[app] = true
		case now.Phase == rollout.Healthy:
			o.over[app], o.stale[app] = false, false
			o.servesWell(app, now)
		}
	}
}

// servesWell notes which workloads are up: from now on the promises hold.
func (o *oracle) servesWell(app string, now rollout.State) {
	for _, w := range o.u.workloads() {
		if appOf(w.Name) != app || now.Stable == nil || now.StableHash(w) == "" {
			continue
		}
		g, d := o.guard(w), o.u.kube.Deployments[w]
		spec, _ := o.specOf(w)
		if g.Replicas != d.Replicas {
			g.Scaled(o.u.kube.Now, d, spec)
			g.Excused = 0
		}
		g.Up = o.serving(w) >= g.Floor
	}
}

// read returns the states in a commit of the state branch.
func (o *oracle) read(commit string) map[string]rollout.State {
	states := map[string]rollout.State{}
	for path, content := range o.u.git.Files(commit) {
		if !strings.HasPrefix(path, "apps/") {
			continue
		}
		state, known := o.parsed[content]
		if !known {
			s, err := rollout.ParseState(path, []byte(content))
			if err != nil {
				if !o.u.chaos.meddling {
					o.u.fail("a state that was written cannot be read: %v", err)
				}
				continue
			}
			state = *s
			o.parsed[content] = state
		}
		states[state.App] = state
	}
	return states
}

// checkTransition: a release goes at most one step on with each record, and
// never back, unless somebody promotes it fully.
func (o *oracle) checkTransition(app string, was, is rollout.State) {
	if releaseID(was) == "" || releaseID(was) != releaseID(is) {
		return
	}
	for _, p := range is.Progress {
		before, ok := was.ProgressOf(p.Workload)
		if !ok || before.Plan != p.Plan {
			continue
		}
		if p.Step < before.Step || (p.Step > before.Step+1 && !o.full[is.Release.Hash]) {
			o.u.fail("%s: from step %d to step %d in one record", p.Workload, before.Step, p.Step)
		}
	}
	if was.Phase == rollout.Aborting && is.Phase != rollout.Aborting {
		o.u.fail("%s: a retreat became %s of the same release", app, is.Phase)
	}
}

func releaseID(s rollout.State) string {
	if s.Release == nil {
		return ""
	}
	return string(s.Release.Hash) + s.Release.Since.String() + s.Release.Commit
}

// input is what a process could decide on.
func (o *oracle) input(a *actor, app string, state rollout.State) strategies.Input {
	in := strategies.Input{
		Now: a.now, App: rollout.App{Name: app, Path: "apps/" + app, Namespace: namespace}, State: state,
		Observed: a.View.told, Source: o.at(app, state.Source),
	}
	main := o.u.git.commits[a.Clone.main]
	if main == nil {
		in.Head.Err = errors.New("nothing was fetched yet")
		return in
	}
	in.Head = strategies.Head{Commit: main.Commit, Render: o.at(app, main.ID)}
	if in.Head.Render == nil {
		in.Head.Err = errors.New("it cannot be rendered")
	}
	path := rollout.PromotionPath(testCluster, app)
	if f, found := main.files[path]; found {
		in.Promotion, _ = rollout.ParsePromotion(path, []byte(f.content))
		if in.Promotion != nil {
			in.Promotion.Author = main.Author
		}
	}
	return in
}

// desired is what a state asks for, as the process that was told so much sees
// it. Applied is since when it holds that the cluster routes what it should.
func (o *oracle) desired(a *actor, app string, s rollout.State, applied time.Time) []rollout.Object {
	v := strategies.View{Now: a.now, Applied: applied, Source: o.at(app, s.Source), Observed: a.View.told}
	if v.Source == nil {
		return nil
	}
	if strategies.NeedsStable(s, v) {
		v.Stable = o.at(app, s.Stable.Commit)
	}
	objects, err := strategies.Desired(s, v)
	if err != nil {
		o.u.fail("what a state asks for cannot be made: %v", err)
	}
	return objects
}

// checkWrite sees each write to the cluster before it happens: what it writes is
// what a record in Git asks for, or a way back.
func (o *oracle) checkWrite(v *View, app string, object rollout.Object) {
	a := o.u.actor(v.name)
	o.writes++
	for _, other := range o.u.procs {
		// The other one moved what this one has looked at, and it writes all the same.
		if other != a && o.written[other.Name+" "+app] > v.toldAt {
			o.stale[app] = true
		}
	}
	o.written[a.Name+" "+app] = o.u.cluster.writes + 1
	o.u.note("  %s writes %s of %s", v.name, name(object), app)
	asks := func(s rollout.State) bool {
		// A process that has not applied a route yet, or has just started, takes it for as new as can be.
		return slices.ContainsFunc(o.desired(a, app, s, time.Time{}), same(object)) || slices.ContainsFunc(o.desired(a, app, s, a.now), same(object))
	}
	records := o.records[app]
	if asks(o.states[app]) {
		return
	}
	key := a.Name + " " + app
	from, known := o.pending[key]
	if !known || from.records != len(records) {
		from = pending{records: len(records), state: o.states[app]}
	}
	// Another process of that name may have died with what it knew.
	for _, from := range []rollout.State{from.state, o.states[app]} {
		if back, ok := o.retreat(a, app, from, asks); ok {
			o.pending[key], o.back[app] = pending{records: len(records), state: back}, true
			return
		}
	}
	for i := len(records) - 1; i >= 0; i-- {
		_, back := o.retreat(a, app, records[i], asks)
		if back || asks(records[i]) {
			o.stale[app] = true
			o.staleWrites++
			if o.u.chaos.processes <= 1 && !o.u.chaos.git && !o.u.chaos.meddling {
				o.u.fail("%s writes %s as of an older record (%d of %d)", a.Name, name(object), i+1, len(records))
			}
			return
		}
	}
	o.u.fail("%s writes %s of %s, which no record in Git explains (%s)", a.Name, name(object), app, summary(object))
}

// retreat returns the way back from a state that explains a write.
func (o *oracle) retreat(a *actor, app string, from rollout.State, asks func(rollout.State) bool) (rollout.State, bool) {
	if from.Phase == rollout.Aborting && from.Retreat != nil {
		if asks(from) {
			return from, true
		}
		from.Source = from.Retreat.To
		return from, asks(from)
	}
	in := o.input(a, app, from)
	in.Observed = unmarked(in.Observed) // a newer mark may have arrived after it decided
	d := strategies.Decide(in)
	if !d.Retreat {
		return from, false
	}
	if asks(d.State) {
		return d.State, true
	}
	d.State.Source = d.State.Retreat.To
	return d.State, asks(d.State)
}

// unmarked is an observation without the serials that the cluster carries.
func unmarked(seen rollout.Observed) rollout.Observed {
	out := rollout.Observed{Workloads: map[rollout.Workload]rollout.ObservedWorkload{}}
	for w, live := range seen.Workloads {
		live.Serial = 0
		out.Workloads[w] = live
	}
	return out
}

func same(as rollout.Object) func(rollout.Object) bool {
	ref, want := as.Ref(), dump(as)
	return func(o rollout.Object) bool { return o.Ref() == ref && dump(o) == want }
}

func summary(o rollout.Object) string {
	spec := o.Map("spec")
	return fmt.Sprint(o.Annotation(rollout.AnnotationHash), " ", o.Annotation(rollout.AnnotationStatus), " ", dump(spec["strategy"]), " ",
		spec["minReadySeconds"], " ", dump(spec["selector"]))
}

// remember notes a retreat that a process may have made without a write: what
// it asked for was there already, and Git did not record it.
func (o *oracle) remember(a *actor) {
	for _, s := range o.u.head().apps {
		key, records := a.Name+" "+s.name, len(o.records[s.name])
		if was, known := o.pending[key]; known && was.records == records {
			continue
		}
		in := o.input(a, s.name, o.states[s.name])
		in.Observed = unmarked(o.u.kube.Observe())
		if d := strategies.Decide(in); d.Retreat {
			o.pending[key] = pending{records: records, state: d.State}
		}
	}
}

// checkPass: when a pass ends that has seen a reason to go back, the cluster has
// been told so, whether Git could record it or not.
func (o *oracle) checkPass(a *actor) {
	if a.dead || a.Clone.main == a.seen || a.View.Stale || o.u.chaos.meddling || len(o.u.procs) > 1 {
		return // it saw nothing new, or not all there is
	}
	if !o.u.apiFault.IsZero() && o.u.kube.Now.Sub(o.u.apiFault) < 5*time.Minute {
		return // it may be waiting to try again
	}
	for _, s := range o.u.head().apps {
		state := o.states[s.name]
		if state.Release == nil || state.Stable == nil || state.Phase == rollout.Aborting || len(o.records[s.name]) != a.records[s.name] {
			continue
		}
		in := o.input(a, s.name, state)
		in.Observed = o.u.kube.Observe()
		d := strategies.Decide(in)
		if !d.Retreat || !a.Clone.local[state.Source] || !a.Clone.local[state.Stable.Commit] { // nobody goes back to what cannot be read
			continue
		}
		o.checkBack(a, s.name, d.State, in.Observed)
	}
}

// checkTurn: when visits end that were made on a look at Git which says that a release must go back, the cluster has been
// told so, whatever Git is at meanwhile.
func (o *oracle) checkTurn(a *actor) {
	if a.dead || a.View.Stale || o.u.chaos.meddling || len(o.u.procs) > 1 || a.known != o.u.git.Head(testBranch) {
		return
	}
	if !o.u.apiFault.IsZero() && o.u.kube.Now.Sub(o.u.apiFault) < 5*time.Minute {
		return // it may be waiting to try again
	}
	for _, s := range o.u.head().apps {
		state := o.states[s.name]
		if state.Release == nil || state.Stable == nil || state.Phase == rollout.Aborting ||
			!a.Clone.local[state.Source] || !a.Clone.local[state.Stable.Commit] {
			continue
		}
		in := o.input(a, s.name, state)
		in.Observed = o.u.kube.Observe()
		if d := strategies.Decide(in); d.Retreat {
			o.checkBack(a, s.name, d.State, in.Observed)
		}
	}
}

// checkBack compares the cluster with a state on its way back.
func (o *oracle) checkBack(a *actor, app string, back rollout.State, seen rollout.Observed) {
	for _, p := range back.Progress {
		live := seen.Workloads[p.Workload]
		canary, _ := live.Find(back.Release.Templates[p.Workload])
		if back.Source == back.Retreat.To && live.Hash != back.StableHash(p.Workload) {
			o.u.fail("%s: %s has seen why release %s must go back (%s), and %s still asks for it", app, a.Name, back.Release.Hash, back.Reason, p.Workload)
		}
		spec, ok := o.specOf(p.Workload)
		if !ok {
			continue
		}
		main := ""
		switch {
		case spec.BlueGreen != nil:
			main = spec.BlueGreen.ActiveService
		case spec.Canary != nil:
			main = spec.Canary.StableService
		}
		pin := o.u.kube.Pins[rollout.Ref{Kind: "Service", Namespace: p.Workload.Namespace, Name: main}]
		if main != "" && pin != "" && pin == canary.PodHash {
			o.u.fail("%s: %s has seen why release %s must go back, and Service %s still selects it", app, a.Name, back.Release.Hash, main)
		}
	}
}

func dump(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

func sorted(set map[string]bool) []string {
	var all []string
	for name := range set {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}
