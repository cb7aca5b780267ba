package simulate

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/internal/guard"
	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/rollout"
)

// oracle checks the promises of the design. It reads only public facts: Git, the cluster, and what each process has read from them.
type oracle struct {
	u        *universe
	renderer reconciler.Renderer
	renders  map[string]*rollout.Render
	parsed   map[string]rollout.State
	states   map[string]rollout.State   // current records in Git, by app
	records  map[string][]rollout.State // all records so far, by app, oldest first
	full     map[rollout.Hash]bool      // releases that a user promoted fully
	guards   map[rollout.Workload]*guard.Guard
	back     map[string]bool                   // apps with a rollback that was applied but is not recorded yet
	astray   map[rollout.Ref]bool              // objects written from an older record, or for a release that had ended
	wrote    map[string]map[rollout.Ref]string // the process that wrote each object after the newest record, by app
	overtook map[string]bool                   // apps with a release that was rolled back before a record ended the release
	over     map[string]bool                   // apps that changed from Aborting to Promoting and are not Healthy yet
	// stale has the apps whose objects a process wrote without the newest information. An app leaves this map when it becomes Healthy.
	stale   map[string]bool
	written map[string]int // Cluster.writes at the last write, by process and app
	writes  int

	staleWrites int // writes from a record that was no longer the newest
}

func newOracle(u *universe, renderer reconciler.Renderer) *oracle {
	return &oracle{
		u: u, renderer: renderer, renders: map[string]*rollout.Render{}, parsed: map[string]rollout.State{},
		states: map[string]rollout.State{}, records: map[string][]rollout.State{}, full: map[rollout.Hash]bool{},
		guards: map[rollout.Workload]*guard.Guard{}, back: map[string]bool{}, over: map[string]bool{},
		stale: map[string]bool{}, written: map[string]int{},
		overtook: map[string]bool{}, astray: map[rollout.Ref]bool{}, wrote: map[string]map[rollout.Ref]string{},
	}
}

func (o *oracle) guard(w rollout.Workload) *guard.Guard {
	if o.guards[w] == nil {
		o.guards[w] = &guard.Guard{}
	}
	return o.guards[w]
}

// appOf returns the current name of the app to which a workload belongs.
func (o *oracle) appOf(w rollout.Workload) string {
	id, _, _ := strings.Cut(w.Name, "-")
	if a, known := rollout.Find(o.u.head().apps, func(a appSource) bool { return a.id == id }); known {
		return a.name
	}
	return id
}

// appAt returns an app with the folder that it has at a commit.
func (o *oracle) appAt(app, commit string) rollout.App {
	out := rollout.App{Name: app, Path: "apps/" + app, Namespace: namespace, Workloads: ownKindsText}
	for _, a := range o.u.sources[commit].apps {
		if a.id == o.u.ids[app] {
			out.Path = "apps/" + a.name
		}
	}
	return out
}

// at returns an app's render at a commit, nil if the commit is missing or cannot be rendered.
func (o *oracle) at(app, commit string) *rollout.Render {
	c := o.u.git.Commits[commit]
	if c == nil {
		return nil
	}
	key := app + "@" + commit
	if _, known := o.renders[key]; !known {
		o.renders[key], _ = o.renderer.Render(c, o.appAt(app, commit), c.Commit())
	}
	return o.renders[key]
}

// specOf returns a workload's Rollout spec at the commit that its app's record names. It returns false if there is no spec.
func (o *oracle) specOf(w rollout.Workload) (rollout.Spec, bool) {
	r := o.at(o.appOf(w), o.states[o.appOf(w)].Source)
	if r == nil {
		return rollout.Spec{}, false
	}
	return r.Spec(w)
}

// checkPods checks the pods of all workloads after each change in the cluster.
func (o *oracle) checkPods() {
	if o.u.chaos.meddling {
		return // users have edited records or objects, so nothing is guaranteed
	}
	for _, w := range o.u.workloads() {
		app := o.appOf(w)
		state, g := o.states[app], o.guard(w)
		spec, staged := o.specOf(w)
		if !staged || state.Stable == nil {
			g.Up = false
			g.Follow(o.u.kube, o.u.kube.Deployments[w], spec)
			continue
		}
		trouble := g.Trouble(o.u.kube, o.u.kube.Deployments[w], spec, guard.Leave{
			Retreating: state.Phase == rollout.Aborting || o.back[app] || o.u.chaos.clock,
			Lag:        o.u.chaos.lag, Clock: o.u.chaos.clock, Broken: o.u.chaos.spoils,
			Lost:      state.Phase == rollout.Aborting && o.u.isLost(state),
			Overtaken: o.over[app] || o.stale[app] || o.u.isByHand(o.u.kube.Deployments[w]), // pods of a third version may exist
		})
		if trouble != "" {
			o.u.fail("%s", trouble)
		}
	}
}

// quiet ends the guard's excuses for a workload if the guaranteed number of pods is ready. If a blue-green Service selects one version,
// a pod of this version must also be ready.
func (o *oracle) quiet() {
	for _, w := range o.u.workloads() {
		g, isReached := o.guard(w), true
		if spec, _ := o.specOf(w); spec.BlueGreen != nil {
			active := rollout.Ref{Kind: "Service", Namespace: w.Namespace, Name: spec.BlueGreen.ActiveService}
			isReached = g.Floor == 0 || o.u.kube.Deployments[w].Serves(o.u.kube.Pins[active])
		}
		if isReached && o.serving(w) >= g.Floor {
			g.Settle()
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

// checkState checks each move of the state branch.
func (o *oracle) checkState(by, from, to string) {
	a := o.u.actor(by)
	if a != nil && o.u.git.Commits[to].Parent != from {
		o.u.fail("%s rewrote the state branch: %s is not made on %s", by, rollout.ShortID(to), rollout.ShortID(from))
	}
	is := o.read(to)
	all := maps.Clone(o.states)
	maps.Copy(all, is)
	for _, app := range slices.Sorted(maps.Keys(all)) {
		was, now := o.states[app], is[app]
		if was.Equal(&now) {
			continue
		}
		o.states[app] = now
		o.records[app] = append(o.records[app], now)
		o.overtook[app] = o.back[app] && was.Release != nil && now.Release == nil
		o.back[app], o.wrote[app] = false, map[rollout.Ref]string{}
		if a != nil && !o.u.chaos.meddling {
			if a.commits[app]++; a.commits[app] > 1 {
				o.u.fail("%s: two transitions in one pass of %s", app, by)
			}
			o.checkTransition(a, app, was, now)
		}
		o.u.promises.recorded(a, app, was, now)
		switch {
		case was.Phase == rollout.Aborting && now.Phase == rollout.Promoting:
			o.over[app] = true
		case now.Phase == rollout.Healthy:
			o.over[app], o.stale[app] = false, false
			o.servesWell(app, now)
		}
	}
}

// servesWell notes which workloads of a healthy app have enough ready pods. From now on, checkPods checks these workloads.
func (o *oracle) servesWell(app string, now rollout.State) {
	for _, w := range o.u.workloads() {
		if o.appOf(w) != app || now.Stable == nil || now.StableHash(w) == "" {
			continue
		}
		g, d := o.guard(w), o.u.kube.Deployments[w]
		spec, staged := o.specOf(w)
		if !staged {
			continue // at the recorded commit, the workload has no Rollout document
		}
		if g.Replicas != d.Replicas {
			g.Scaled(o.u.kube.Now, d, spec)
			g.Excused = 0
		}
		g.Up = o.serving(w) >= g.Floor
	}
}

// read returns the records in a commit of the state branch, by app.
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

// checkTransition checks that a new record moves a release at most one step forward, and never back. A full promotion may skip steps.
func (o *oracle) checkTransition(by *actor, app string, was, is rollout.State) {
	if o.u.chaos.hooks {
		o.checkHooks(app, was, is)
	}
	if releaseID(was) == "" || releaseID(was) != releaseID(is) {
		return
	}
	if was.Phase == rollout.Aborting && is.Release.Since.Equal(rollout.Second(by.visits)) {
		return // the rollback may belong to an earlier attempt that began in the same second
	}
	for _, p := range is.Progress {
		before, ok := was.ProgressOf(p.Workload)
		if !ok || before.Plan != p.Plan {
			continue
		}
		if d := o.u.kube.Deployments[p.Workload]; d == nil || d.Replicas == 0 && len(is.Progress) > 1 {
			continue // a workload without pods skips its steps when the other workloads advance
		}
		if is.Phase == rollout.Aborting {
			continue // a rollback may start from a step whose record was never applied
		}
		if p.Step < before.Step || (p.Step > before.Step+1 && !o.full[is.Release.Hash]) {
			o.u.fail("%s: from step %d to step %d in one record", p.Workload, before.Step, p.Step)
		}
	}
	if was.Phase == rollout.Aborting && is.Phase != rollout.Aborting {
		o.u.fail("%s: a rollback became %s of the same release", app, is.Phase)
	}
}

func releaseID(s rollout.State) string {
	if s.Release == nil {
		return ""
	}
	return string(s.Release.Hash) + s.Release.Since.String() + s.Release.Commit
}

func dump(v any) string {
	raw, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}
