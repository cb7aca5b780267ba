package strategies_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/internal/guard"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/kube"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/strategies/plan"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

// sim is a simulation with a random seed, whose invariants are checked after each small step.
type sim struct {
	*loop
	rng       *rand.Rand
	chaos     chaos
	trace     []string // only with verbose
	verbose   bool
	failure   string
	watched   map[rollout.Workload]*watched
	bad       map[string]bool // versions whose pods never become ready
	mayGoBack bool            // users may return to a version older than the newest stable version, after a revert or a rejection
	overtaken bool            // a user promoted a release fully during the rollback of another release
	written   rollout.Phase   // the phase of the state applied last
	flights   int             // commits of the state branch since the last change by the cluster or a user
	serial    int             // the number of the newest version or promotion file
	crashes   int
	files     map[string]*fileSeen
}

// chaos lists the faults that a simulation has besides releases. The strictest invariants apply to simulations without faults.
type chaos struct {
	kills   bool // pods die or become unready
	scales  bool // replicas change
	crashes bool // the process stops and pushes fail
	bad     bool // some versions never become ready
	lag     bool // controllers see each other's writes late

	experiments bool // steps have experiments
	settings    bool // commits change other fields than steps during releases, and proposals are merged
}

// watched holds the values of one workload that the invariants need at later steps.
type watched struct {
	guard.Guard
	forward
	unwell

	release, plan     string // the release and its plan, for which leastOld and mostNew are valid
	leastOld, mostNew int    // the fewest stable and the most new pods of the steps so far
	limited, onHold   bool
	base              int  // pods of the release's version that started before the release
	baseStable        int  // pods of stable's version that started before the rollback
	whole             bool // the rollback began with all stable pods
	disturbed         bool // pods died or replicas changed during the release
	scaling           rollout.Scaling
	scalingChanged    bool
}

func newSim(seed uint64, c chaos, first source, verbose bool) *sim {
	rng := rand.New(rand.NewPCG(seed, 1))
	k := kube.New(rng, noon)
	s := &sim{
		loop: newLoop(newHistory(first), k), rng: rng, chaos: c,
		watched: map[rollout.Workload]*watched{}, bad: map[string]bool{}, verbose: verbose,
	}
	k.Lag, s.noisy, s.serials = c.lag, true, true
	k.OnChange = func(what string) {
		s.note("    %s", what)
		s.checkPods()
	}
	k.Fate = func(version string) kube.Lifetime {
		return kube.Lifetime{Never: s.bad[version], Ready: time.Duration(rng.IntN(4)) * time.Second}
	}
	s.loop.between = func() {
		for range rng.IntN(3) {
			k.Micro()
		}
	}
	s.loop.decided, s.loop.wrote, s.loop.commits = s.checkDecision, s.checkWrite, s.checkCommit
	s.loop.applied = s.checkExperiments
	s.loop.fails = func(string) bool { return c.crashes && rng.IntN(8) == 0 }
	return s
}

func (s *sim) note(format string, args ...any) {
	if !s.verbose {
		return
	}
	s.trace = append(s.trace, fmt.Sprintf(format, args...))
}

func (s *sim) fail(format string, args ...any) {
	if s.failure == "" {
		s.failure = fmt.Sprintf(format, args...)
		s.note("VIOLATION: %s", s.failure)
	}
}

func (s *sim) watch(w rollout.Workload) *watched {
	if s.watched[w] == nil {
		s.watched[w] = &watched{}
	}
	return s.watched[w]
}

// specOf returns a workload's spec at State.Source, or false for plain Deployments.
func (s *sim) specOf(w rollout.Workload) (rollout.Spec, bool) { return s.specAt(s.state.Source, w) }

// checkPods checks the invariants of pods after each small step of Kubernetes.
func (s *sim) checkPods() {
	for w, d := range s.kube.Deployments {
		spec, ok := s.specOf(w)
		if !ok || s.state.Stable == nil {
			s.watch(w).Up = false
			s.watch(w).Follow(s.kube, d, spec)
			continue
		}
		x := s.watch(w)
		x.unwell.seen(d)
		trouble := x.Trouble(s.kube, d, spec, guard.Leave{Retreating: s.written == rollout.Aborting, Lag: s.chaos.lag, Overtaken: s.overtaken})
		if trouble != "" {
			s.fail("%s", trouble)
		}
		s.checkForward(w, d, spec, x)
		x.disturbed = x.disturbed || s.isMadeRight(w, d)
		if !x.Up {
			continue
		}
		if x.limited && !s.chaos.scales && !s.chaos.lag && !x.scalingChanged {
			s.checkCounts(w, d, x)
		}
	}
}

// isMadeRight reports whether gitrollout is reducing a share of new pods that became too large: the Deployment has the stable template and
// pods of the release. Some of these pods start again later.
func (s *sim) isMadeRight(w rollout.Workload, d *kube.Deployment) bool {
	if s.state.Release == nil || rollout.Hash(d.Annotations[rollout.AnnotationHash]) != s.state.StableHash(w) {
		return false
	}
	return slices.ContainsFunc(d.Sets, func(rs *kube.ReplicaSet) bool {
		return rs.Replicas > 0 && rollout.Hash(rs.Annotations[rollout.AnnotationHash]) == s.state.Release.Templates[w]
	})
}

func (s *sim) checkCounts(w rollout.Workload, d *kube.Deployment, x *watched) {
	for _, rs := range d.Sets {
		switch rollout.Hash(rs.Annotations[rollout.AnnotationHash]) {
		case s.state.StableHash(w):
			if rs.Replicas < x.leastOld-1 { // the repair of a share that is too large first removes one stable pod (ADR 0017)
				s.fail("%s: %d stable pods are left, the step keeps %d", w, rs.Replicas, x.leastOld)
			}
		case s.releaseHash(w):
			if rs.Replicas > x.mostNew || len(rs.Live()) > x.mostNew {
				s.fail("%s: %d canary pods, the step asks for %d", w, rs.Replicas, x.mostNew)
			}
		}
	}
}

func (s *sim) releaseHash(w rollout.Workload) rollout.Hash {
	if s.state.Release == nil {
		return "none"
	}
	return s.state.Release.Templates[w]
}

func (s *sim) checkWrite(state rollout.State, objects []rollout.Object) {
	s.written = state.Phase
	for _, o := range objects {
		w := rollout.Workload{Namespace: o.Namespace(), Name: o.Name()}
		if o.Ref() != w.Ref() {
			continue
		}
		if err := kube.New(nil, noon).Apply(o); err != nil {
			s.fail("the API server refuses Deployment %s: %v", w, err)
		}
		s.checkHold(state, o, w)
	}
	if s.rng.IntN(8) > 0 {
		return
	}
	again, err := json.Marshal(s.desired(state))
	first, err2 := json.Marshal(objects)
	if err != nil || err2 != nil || string(first) != string(again) {
		s.fail("Desired is not deterministic:\n%s\n%s", first, again)
	}
}

// checkExperiments checks after an apply that an experiment's objects exist only during its step.
func (s *sim) checkExperiments(state rollout.State, objects []rollout.Object) {
	wanted := map[rollout.Ref]bool{}
	for _, o := range objects {
		if o.Map("metadata", "labels")[rollout.LabelExperiment] != nil {
			wanted[o.Ref()] = true
		}
	}
	leaves := slices.ContainsFunc(state.Progress, func(p rollout.Progress) bool { return p.Available != nil && p.Routed != nil })
	if len(wanted) > 0 && (!workloads.IsHeld(state) || state.Phase == rollout.Aborting && !leaves || state.Release.Fast) {
		s.fail("a state in phase %s asks for experiments: %v", state.Phase, wanted)
	}
	s.checkShares(objects)
	for w := range s.kube.Deployments {
		listed := slices.Contains(state.Inventory, w.Ref())
		if strings.Count(w.Name, "-") == 3 && !wanted[w.Ref()] { // such as web-0123456789-1-canary
			s.fail("%s is left of an experiment in phase %s (listed: %t)", w, state.Phase, listed)
		}
	}
}

// checkShares checks after an apply that a route names a Service of an experiment only while the Service and its ready pods exist.
func (s *sim) checkShares(objects []rollout.Object) {
	made := map[string]*kube.Deployment{}
	for _, o := range objects {
		if o.Kind() == "Service" && o.Map("metadata", "labels")[rollout.LabelExperiment] != nil {
			name, _ := o.Map("spec", "selector")[rollout.LabelExperiment].(string)
			made[o.Name()] = s.kube.Deployments[rollout.Workload{Namespace: o.Namespace(), Name: name}]
		}
	}
	isReady := func(rs *kube.ReplicaSet) bool { return rs.Ready() > 0 }
	for _, o := range objects {
		for _, rule := range kube.Backends(o) {
			for _, b := range rule {
				if d := made[b.Service]; strings.Count(b.Service, "-") == 3 && (d == nil || !s.chaos.lag && !slices.ContainsFunc(d.Sets, isReady)) {
					s.fail("%s sends %d to Service %s, which has no ready pod: %t", o.Ref(), b.Weight, b.Service, d == nil)
				}
			}
		}
	}
}

// checkLeft checks each commit of the state branch: an experiment ends only when proxies know that the experiment's pods get no requests.
func (s *sim) checkLeft(was, is rollout.State) {
	if !workloads.IsHeld(was) || s.overtaken {
		return
	}
	for _, m := range workloads.All(was, s.git.at(was.Source).Specs, s.kube.Observe(), s.plans) {
		_, has := s.git.at(is.Source).Spec(m.Workload)
		next, _ := is.ProgressOf(m.Workload)
		isKept := workloads.IsHeld(is) && next.Step == m.Step && next.Available != nil
		if !has || isKept || !strategies.MayShare(m) || m.Routed == nil || m.N == 0 {
			continue
		}
		ended := m.Routed.At
		if was.Rollback != nil {
			ended = was.Rollback.Routed
		} else if m.Routed.Shares {
			ended = s.kube.Now
		}
		if s.kube.Now.Before(ended.Add(m.Routing.Settle)) {
			s.fail("the experiment of %s ends at %s, and its requests at %s", m.Workload, s.kube.Now, ended)
		}
	}
}

func (s *sim) checkHold(state rollout.State, o rollout.Object, w rollout.Workload) {
	x := s.watch(w)
	onHold := o.Map("spec")["minReadySeconds"] == int64(workloads.HoldMinReadySeconds)
	if !onHold {
		x.disturbed = x.disturbed || (x.onHold && workloads.IsHeld(state)) // a step without canary pods follows a step with canary pods
		x.limited, x.onHold = false, false
		return
	}
	x.onHold = true
	if !workloads.IsHeld(state) && state.Draining == nil {
		s.fail("%s: the hold is on in phase %s", w, state.Phase)
	}
	if state.Draining != nil {
		state.Progress, state.Release = state.Draining.Progress, state.Stable
	}
	p, _ := state.ProgressOf(w)
	spec, _ := s.git.at(state.Source).Spec(w)
	c := plan.Compile(spec).CountsAt(p.Step, s.kube.Deployments[w].Replicas)
	if id := releaseID(state); x.release != id {
		x.leastOld, x.mostNew = c.Stable, c.Canary
		x.release, x.plan = id, p.Plan
	}
	// After a change of the steps, the limits do not apply, because pods of the old steps may still become ready.
	x.limited = x.plan == p.Plan
	x.leastOld, x.mostNew = min(x.leastOld, c.Stable), max(x.mostNew, c.Canary)
}

func releaseID(state rollout.State) string {
	if state.Release == nil {
		return ""
	}
	return string(state.Release.Hash) + state.Release.Since.String() + state.Release.Commit
}

// checkClosed checks that only a verified version advances while the calendar is closed. An app that waits for the calendar must be
// requeued for the calendar's opening.
func (s *sim) checkClosed(in strategies.Input, d strategies.Decision) {
	shut, is := in.Calendar.ShutAt(in.Now)
	was, now := in.State, d.State
	if !is || in.Head.Render == nil || now.Release == nil || now.Release.Fast || now.Phase == rollout.Aborting {
		return
	}
	if was.Release == nil || was.Release.Hash != now.Release.Hash {
		s.fail("release %s began while %s shuts", now.Release.Hash, shut.Cause())
		return
	}
	for _, p := range now.Progress {
		before, _ := was.ProgressOf(p.Workload)
		if spec, ok := in.Head.Render.Spec(p.Workload); ok && before.Plan == p.Plan && p.Step > before.Step &&
			before.Step < plan.Compile(spec).PromotionStep() {
			s.fail("%s went from step %d to %d while %s shuts", p.Workload, before.Step, p.Step, shut.Cause())
		} else if before.Plan != p.Plan && p.Weight > before.Weight {
			s.fail("%s went from %d to %d with other steps while %s shuts", p.Workload, before.Weight, p.Weight, shut.Cause())
		}
	}
	if shut.Exact && strings.Contains(d.Waiting, shut.Cause()) && (d.Requeue.IsZero() || d.Requeue.After(shut.Until)) {
		s.fail("waits for %s, and looks again at %s", d.Waiting, d.Requeue)
	}
}

func (s *sim) checkDecision(in strategies.Input, d strategies.Decision) {
	s.checkClosed(in, d)
	s.allowBack(in, d)
	s.checkGates(in, d)
	if in.Pending != nil && !d.Rollback && !d.Stale {
		s.fail("%q follows a rollback that is not recorded", d.Subject)
	}
	if in.Pending == nil && d.State.Equal(&in.State) != (d.Subject == "") {
		s.fail("the subject is %q although the states are equal: %t", d.Subject, d.Subject != "")
	}
	if d.State.Phase == rollout.Aborting && in.State.Phase != rollout.Aborting && !d.Rollback {
		s.fail("a rollback waits for Git: %s", d.Subject)
	}
	if d.Rollback && d.State.Phase != rollout.Aborting {
		s.fail("an advance to %s is applied before it is recorded", d.State.Phase)
	}
	if releaseID(in.State) == releaseID(d.State) {
		for _, p := range d.State.Progress {
			was, ok := in.State.ProgressOf(p.Workload)
			if !ok || was.Plan != p.Plan || was.Suspended { // a workload without pods follows the others
				continue
			}
			full := in.Promotion.OpensAll(d.State.Release.Hash)
			if p.Step < was.Step || (p.Step > was.Step+1 && !full) {
				s.fail("%s: from step %d to step %d in one pass", p.Workload, was.Step, p.Step)
			}
		}
	}
	if s.rng.IntN(8) > 0 {
		return
	}
	before := dump(in)
	again := strategies.Decide(in)
	strategies.Explain(in)
	strategies.Gate(in)
	if dump(in) != before {
		s.fail("Decide changed its input")
	}
	if dump(again) != dump(d) {
		s.fail("two decisions from one input:\n%s\n%s", dump(d), dump(again))
	}
}

func dump(v any) string {
	if in, is := v.(strategies.Input); is { // the errors in Answers cannot be encoded as JSON
		a := in.Answers
		v = struct {
			strategies.Input
			Answers string
		}{in, fmt.Sprint(a.Healed != nil, a.IsHealed(), a.Foreign, a.Adoptable, a.Endpoints, a.Accepted)}
	}
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // two failed encodings would compare as equal
	}
	return string(raw)
}

func (s *sim) checkCommit(was, is rollout.State, subject string) {
	if s.verbose {
		s.note("  COMMIT %s [%s %s]", subject, is.Phase, dump(is.Progress))
	}
	// Two states with the same mark (State.Mark) must have the same objects, so that a process with the older state undoes nothing.
	if was.Source != "" && is.Mark() == was.Mark() && dump(s.desired(was)) != dump(s.desired(is)) {
		s.fail("the mark %d is kept, and other objects are asked for: %s", is.Mark(), subject)
	}
	if s.rng.IntN(8) == 0 {
		data, err := is.Encode()
		if err != nil {
			s.fail("a state cannot be written: %v", err)
		}
		if _, err := rollout.ParseState("state", data); err != nil {
			s.fail("a state that is written cannot be read: %v\n%s", err, data)
		}
	}
	if was.Phase == rollout.Aborting && is.Phase == rollout.Promoting {
		s.overtaken = true
	} else if is.Phase == rollout.Healthy {
		s.overtaken = false
	}
	s.checkLeft(was, is)
	if s.flights++; s.flights > 60 {
		s.fail("%d commits without a change of the world", s.flights)
	}
	for w, d := range s.kube.Deployments {
		s.followRelease(w, d, was, is)
	}
}

// quiet checks the health of the workloads. Once a workload has enough serving pods again, quiet resets the number of excused missing pods.
func (s *sim) quiet() {
	s.checkHealth()
	for w, d := range s.kube.Deployments {
		if x := s.watch(w); s.serving(w, d) >= x.Floor {
			x.Excused = 0
		}
	}
}

// serving returns how many pods of a workload have been ready for minReadySeconds.
func (s *sim) serving(w rollout.Workload, d *kube.Deployment) int {
	spec, _ := s.specOf(w)
	n := 0
	for _, rs := range d.Sets {
		n += rs.Serving(s.kube.Now, plan.MinReady(spec))
	}
	return n
}

// kill removes a ready pod, or makes it unready for a while.
func (s *sim) kill() {
	for _, w := range sortedWorkloads(s.kube.Deployments) {
		d := s.kube.Deployments[w]
		for _, i := range s.rng.Perm(len(d.Sets)) {
			for _, p := range d.Sets[i].Live() {
				if p.Ready && s.rng.IntN(3) == 0 {
					s.watch(w).Excused++
					p.Ready, p.Due = false, s.kube.Now.Add(time.Duration(s.rng.IntN(10))*time.Second)
					p.Terminating = s.rng.IntN(2) == 0
					s.note("KILL %s (terminating %t)", p.Name, p.Terminating)
					return
				}
			}
		}
	}
}

func sortedWorkloads[V any](m map[rollout.Workload]V) []rollout.Workload {
	return slices.SortedFunc(maps.Keys(m), func(a, b rollout.Workload) int { return a.Ref().Compare(b.Ref()) })
}
