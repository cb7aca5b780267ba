package simulate

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/memgit"
)

func (u *universe) actor(name string) *actor {
	a, _ := rollout.Find(u.procs, func(a *actor) bool { return a.Process != nil && a.Name == name })
	return a
}

// people makes a user push, promote, revert or make a mistake.
func (u *universe) people() {
	i := u.rng.IntN(len(u.head().apps))
	if u.chaos.decays && u.oracle.states[u.head().apps[i].name].Watch != nil && u.rng.IntN(8) > 0 {
		return // most watches end without a push
	}
	if u.chaos.humans && u.rng.IntN(2) == 0 {
		u.human(i)
		return
	}
	if u.chaos.pushes && u.rng.IntN(4) > 0 {
		for range 1 + u.rng.IntN(4) {
			u.pushOrRevert(i)
			u.follow()
		}
		return
	}
	name := u.head().apps[i].name
	if s := u.oracle.states[name].Stable; u.chaos.restarts && s != nil && s.Hash != "" && u.rng.IntN(3) == 0 {
		at := rollout.Second(u.kube.Now.Add(time.Duration(u.rng.IntN(3)) * 20 * time.Second))
		p := &rollout.Promotion{Release: s.Hash, Decision: rollout.Restart, RestartAt: at}
		u.editApp(i, "a restart", func(a *appSource) { a.promotion = p })
		return
	}
	app := func(what string, change func(*appSource)) { u.editApp(i, what, change) }
	if hooks := u.head().apps[i].hooks; len(hooks) > 0 && u.rng.IntN(8) == 0 {
		app("another hook", func(a *appSource) {
			a.hooks = slices.Clone(a.hooks)
			a.hooks[u.rng.IntN(len(a.hooks))].edition = u.rng.IntN(3)
		})
		return
	}
	switch n := u.rng.IntN(100); {
	case n < 30:
		app("a version", func(a *appSource) {
			for j := range a.workloads {
				if j == 0 || u.rng.IntN(2) == 0 {
					a.workloads[j].version = u.nextVersion()
				}
			}
		})
	case n < 36:
		app("configuration", func(a *appSource) { a.config++ })
	case n < 48:
		u.revert(i)
	case n < 53:
		app("other steps", func(a *appSource) { otherSteps(u.rng, u.chaos, &a.workloads[u.rng.IntN(len(a.workloads))]) })
	case n < 55 && !u.chaos.plain:
		app("the Rollout document (toggled)", func(a *appSource) { u.toggleDocument(&a.workloads[u.rng.IntN(len(a.workloads))]) })
	case n < 57 && len(u.head().apps[i].workloads) > 1:
		app("a workload (toggled)", func(a *appSource) { a.workloads[1].gone = !a.workloads[1].gone })
	case n < 61:
		app("an error (toggled)", func(a *appSource) {
			a.broken, a.emptied = !a.broken, u.serial%2 == 1 && len(u.oracle.states[name].Inventory) > 0
		})
	case n < 64:
		app("paused (toggled)", func(a *appSource) { a.workloads[0].paused = !a.workloads[0].paused })
	case n < 67 && u.chaos.scales:
		app("replicas", func(a *appSource) {
			if w := &a.workloads[0]; w.replicas != nil {
				w.replicas = new(sizes[u.rng.IntN(len(sizes))])
			}
		})
	case n < 80:
		u.merge("gitrollout/promote/"+testCluster+"/"+name, i)
	case n < 94:
		p := u.promotion(name)
		app(fmt.Sprintf("%s %s through %s", p.Decision, p.Release, p.Through), func(a *appSource) { a.promotion = p })
	case n < 96 && u.chaos.rewrites:
		u.rewrite()
	default:
		app("no promotion file", func(a *appSource) { a.promotion = nil })
	}
}

// pushOrRevert pushes a new version, or an earlier version, of all workloads of an app.
func (u *universe) pushOrRevert(i int) {
	a := u.head().apps[i]
	u.played["push or revert while "+string(u.oracle.states[a.name].Phase)]++
	if u.rng.IntN(3) > 0 {
		u.pushAll(i, "others are pushed")
	} else {
		u.revert(i)
	}
}

// revert pushes the versions and the configuration that an app had in a random earlier commit.
func (u *universe) revert(i int) {
	old := u.sources[u.history[u.rng.IntN(len(u.history))]].clone()
	u.editApp(i, "a revert", func(a *appSource) { a.workloads, a.config = old.apps[i].workloads, old.apps[i].config })
}

// follow runs some passes and some steps of the controllers before the next push.
func (u *universe) follow() {
	for range u.rng.IntN(3) {
		a := u.procs[u.rng.IntN(len(u.procs))]
		if u.isAway() {
			return
		}
		if !a.running {
			u.begin(a)
		}
		for a.running {
			u.step(a)
		}
		for range u.rng.IntN(6) {
			u.kube.Micro()
		}
	}
}

func otherSteps(rng *rand.Rand, c chaos, w *workloadSource) {
	if w.canary == nil {
		return
	}
	steps := randomSteps(rng, w.canary["scaling"].(string))
	if w.policy != "" {
		steps = batches(rng)
	}
	if w.isRouted() {
		steps = routedSteps(rng, steps)
	}
	if c.experiments {
		steps = randomExperiments(rng, w.canary, steps)
	}
	w.setSteps(steps)
	if c.analyses {
		randomAnalyses(rng, w)
	}
	if c.decays {
		randomWatch(rng, w)
	}
}

// merge merges an app's proposal unchanged, if the app has a proposal.
func (u *universe) merge(branch string, i int) {
	if id := u.git.Head(branch); id != "" {
		if p := u.proposalIn(id, branch, u.head().apps[i].name); p != nil {
			u.edit("merge of "+branch, func(s *source) { s.apps[i].promotion = p })
		}
	}
}

// rewrite force-pushes main back to an older commit.
func (u *universe) rewrite() {
	if len(u.history) < 2 {
		return
	}
	keep := 1 + u.rng.IntN(len(u.history)-1)
	u.note("PEOPLE force main back by %d", len(u.history)-keep)
	u.history = u.history[:keep]
	u.git.Set("Ann", testBranch, u.history[keep-1])
	u.promises.asked()
}

func (u *universe) nextVersion() string {
	u.serial++
	v := fmt.Sprintf("v%d", u.serial+1)
	if u.chaos.bad && u.rng.IntN(3) == 0 {
		u.bad[v] = true
	}
	return v
}

// promotion returns a random decision of a user, mostly about the release in flight.
func (u *universe) promotion(app string) *rollout.Promotion {
	u.serial++
	p := &rollout.Promotion{Release: "h1-stale", Through: rollout.Full, At: fmt.Sprint(u.serial)}
	state, head := u.oracle.states[app], u.oracle.at(app, u.git.Head(testBranch))
	switch n := u.rng.IntN(10); {
	case n < 6 && state.Release != nil:
		p.Release = state.Release.Hash
	case n < 9 && head != nil && head.Release() != "":
		p.Release = head.Release()
	}
	verbs := []rollout.Verb{rollout.Promote, rollout.Promote, rollout.Promote, rollout.Hold, rollout.Abort, rollout.Abort, rollout.Retry}
	p.Decision = verbs[u.rng.IntN(len(verbs))]
	if p.Decision == rollout.Promote {
		if u.rng.IntN(3) > 0 {
			p.Through = []string{"0", "1", "2", "3", "4", "first", "99"}[u.rng.IntN(7)]
		} else {
			u.oracle.full[p.Release] = true
		}
	}
	return p
}

// meddle edits, moves or deletes the state branch by hand, or edits or deletes an object.
func (u *universe) meddle() {
	state := u.git.Head(stateBranch)
	switch n := u.rng.IntN(6); {
	case n == 0:
		u.note("MEDDLE: the state branch is deleted")
		u.git.Set("Eve", stateBranch, "")
	case n == 1 && state != "" && u.git.Commits[state].Parent != "":
		for range 1 + u.rng.IntN(4) {
			if parent := u.git.Commits[state].Parent; parent != "" {
				state = parent
			}
		}
		u.note("MEDDLE: the state branch is rolled back")
		u.git.Set("Eve", stateBranch, state)
	case n == 2 && state != "":
		name := u.head().apps[0].name
		u.note("MEDDLE: the state of %s is garbage", name)
		u.editState("Eve", "by hand", map[string][]byte{rollout.StatePath(name): []byte("garbage")})
	case n == 3 && state != "":
		u.note("MEDDLE: a file on the state branch")
		u.editState("Eve", "by hand", map[string][]byte{"README": fmt.Append(nil, u.moves)})
	default:
		u.meddleWithObjects()
	}
}

// editState commits edits to the state branch, as a user.
func (u *universe) editState(author, message string, edits map[string][]byte) {
	u.git.Commit(memgit.Change{Branch: stateBranch, Author: author, Message: message, When: u.kube.Now, Edits: edits})
}

func (u *universe) meddleWithObjects() {
	all := u.cluster.Objects()
	if len(all) == 0 {
		return
	}
	ref := all[u.rng.IntN(len(all))]
	if u.rng.IntN(4) == 0 {
		u.note("MEDDLE: %s is deleted", ref)
		u.cluster.Delete(ref)
		return
	}
	u.note("MEDDLE: %s is edited", ref)
	err := u.cluster.Edit(ref, func(o rollout.Object) {
		if o.Kind() == "Deployment" {
			o.Map("spec")["minReadySeconds"] = int64(u.rng.IntN(5))
			delete(o.Map("spec"), "progressDeadlineSeconds")
		}
	})
	if err != nil {
		u.fail("edit %s: %v", ref, err)
	}
}

// start deploys the first version without faults, and waits until each app is healthy.
func (u *universe) start() {
	u.calm = true
	u.rest()
	u.letGo()
	for _, w := range u.workloads() {
		if spec, ok := u.oracle.specOf(w); ok && spec.Replicas == nil {
			u.scaleTo(w, sizes[u.rng.IntN(len(sizes))])
		}
	}
	rounds := 40
	if u.chaos.sets != nil {
		rounds = 80 // a StatefulSet's pods are created one at a time
	}
	for range rounds {
		u.advance()
		u.rest()
		if u.healthy() || u.failure != "" {
			u.oracle.quiet()
			u.calm = false
			return
		}
	}
	u.fail("the first deployment does not end: %s", u.where())
}

// letGo checks that each app with an object of another controller is held for this reason. Then it removes these controllers as owners.
func (u *universe) letGo() {
	if len(u.cluster.foreign) == 0 {
		return
	}
	u.note("LET GO of %v", u.cluster.foreign)
	u.played["another controller at first"]++
	for ref := range u.cluster.foreign {
		w, _ := rollout.WorkloadOf(ref)
		if s := u.oracle.states[u.oracle.appOf(w)]; s.Held == nil || s.Held.Reason != rollout.HeldForeign {
			u.fail("foreign: another controller has %s, and its app is not held for that: %s, held %+v", ref, s.Phase, s.Held)
		}
	}
	u.cluster.foreign = nil
	u.kube.Now = u.kube.Now.Add(time.Hour)
	u.changed("another controller lets go")
	u.rest()
}

// healthy reports whether each app is Healthy with the version in Git. It ignores an app whose kind cannot be watched.
func (u *universe) healthy() bool {
	for _, a := range u.head().apps {
		if a.name == u.unread {
			continue
		}
		s, head := u.oracle.states[a.name], u.oracle.at(a.name, u.git.Head(testBranch))
		isAtRest := s.Phase == rollout.Healthy && s.Held == nil && s.Release == nil && s.Draining == nil
		if head == nil || !isAtRest || s.Stable != nil && s.Stable.Hash != head.Release() {
			return false
		}
	}
	return true
}

func (u *universe) where() string {
	text := ""
	for _, a := range u.head().apps {
		s := u.oracle.states[a.name]
		text += fmt.Sprintf("%s is %s %s, held %+v, progress %s; ", a.name, s.Phase, s.Reason, s.Held, dump(s.Progress))
	}
	for _, a := range u.procs {
		if a.err != nil {
			text += fmt.Sprintf("%s: %v; ", a.Name, a.err)
		}
	}
	return text
}

// settle repairs all faults, and checks the end: the version in Git serves, no Service is pinned, and no process writes any more.
func (u *universe) settle() {
	if u.failure != "" {
		return
	}
	u.note("SETTLE")
	u.calm, u.away = true, time.Time{}
	if u.chaos.sets != nil {
		u.changed("the API server answers") // wakes processes that would wait before they repeat refused writes
	}
	for _, a := range u.procs {
		for a.running {
			u.step(a)
		}
		u.watch(a, false)
		a.skew = 0
	}
	u.bad, u.weak = map[string]bool{}, map[string]int{}
	for _, d := range u.kube.Deployments {
		for _, rs := range d.Sets {
			for _, p := range rs.Pods {
				p.Never = false
			}
		}
	}
	if head := u.git.Head(stateBranch); u.chaos.meddling && head != "" {
		u.repair(head)
	}
	u.edit("everything is put right", func(s *source) {
		s.slip, s.isFrozen = "", false
		for i := range s.apps {
			a := &s.apps[i]
			a.broken, a.promotion = false, nil
			u.document(a.workloads)
		}
	})
	u.commitAgain()
	for i := range 150 {
		if !u.rest() && i > 20 && u.unread == "" {
			u.fail("the world does not come to rest: %s", u.where())
		}
		if u.unread != "" && (u.healthy() || i == 100) {
			if !u.healthy() {
				u.promises.fail(lawApart, "other apps wait while the kind of %s cannot be watched: %s", u.unread, u.where())
			}
			u.unread = ""
			u.changed("all kinds can be watched")
		}
		if u.failure != "" {
			return
		}
		u.oracle.quiet()
		u.checkProposals()
		if u.healthy() && !u.nextDue().After(u.kube.Now) {
			u.checkEnd()
			return
		}
		if i%4 == 3 {
			u.insist(i)
		}
		u.stride(i)
	}
	u.fail("the world does not become healthy: %s", u.where())
}

// document gives each workload a Rollout document that is not paused. If chaos.plain is set, it removes the documents instead.
func (u *universe) document(all []workloadSource) {
	for i := range all {
		all[i].plain, all[i].paused = u.chaos.plain, false
	}
}

// leaveAlone runs the world without users and faults until no event is due. For three more days, no process may change anything.
func (u *universe) leaveAlone() {
	u.note("NOBODY does anything")
	faults := u.chaos
	u.chaos.crashes, u.chaos.git, u.chaos.api, u.gitDown, u.pushDown = false, false, false, time.Time{}, time.Time{}
	u.apiDown, u.away = time.Time{}, time.Time{}
	defer func() { u.chaos.crashes, u.chaos.git, u.chaos.api = faults.crashes, faults.git, faults.api }()
	for _, a := range u.procs {
		for a.running {
			u.step(a)
		}
		u.watch(a, false)
	}
	for range 60 {
		if u.failure != "" || !u.rest() {
			return
		}
		u.promises.atRest()
		due := u.nextDue()
		if !due.After(u.kube.Now) {
			u.promises.checkWedged()
			u.restForDays("on a day without a change")
			u.startAnew()
			return
		}
		u.kube.Now = due
	}
}

// nextDue returns when the next event is due: a change of a pod, or the end of a timer or measurement.
func (u *universe) nextDue() time.Time {
	due := u.kube.NextDue()
	sooner := func(at time.Time) {
		if at.After(u.kube.Now) && (!due.After(u.kube.Now) || at.Before(due)) {
			due = at
		}
	}
	for _, a := range u.procs {
		sooner(a.NextDue())
	}
	for _, l := range u.labs {
		for _, t := range l.tasks {
			sooner(t.due)
		}
	}
	return due
}

// strides are the durations by which the clock advances while a world settles and no event is due.
var strides = []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 20 * time.Minute}

// stride advances the clock to the next event or, if no event is due, by the entry of strides for round i.
func (u *universe) stride(i int) {
	if due := u.nextDue(); due.After(u.kube.Now) {
		u.kube.Now = due
	} else {
		u.kube.Now = u.kube.Now.Add(strides[i%len(strides)])
	}
}

// insist pushes a user's decision for each app that is not healthy: a retry after a rejection or a failed hook, else a full promotion.
func (u *universe) insist(i int) {
	for j, a := range u.head().apps {
		s, head := u.oracle.states[a.name], u.oracle.at(a.name, u.git.Head(testBranch))
		if head == nil || head.Release() == "" || (s.Phase == rollout.Healthy && s.Held == nil) {
			continue
		}
		p := &rollout.Promotion{Release: head.Release(), Decision: rollout.Promote, Through: rollout.Full, At: fmt.Sprint("settle ", i)}
		if s.Phase == rollout.Degraded || s.Held != nil && (s.Held.Reason == rollout.HeldHookFailed ||
			s.Held.Reason == rollout.HeldNoStable && strings.HasPrefix(s.Held.Message, "hook ")) {
			p.Decision, p.At = rollout.Retry, rollout.Second(u.kube.Now).Format(time.RFC3339)
		}
		u.oracle.full[p.Release] = true
		u.edit(fmt.Sprintf("%s of %s", p.Decision, a.name), func(x *source) { x.apps[j].promotion = p })
	}
}

// repair acts as a user after the state branch was moved back or edited by hand. It deletes unreadable records. If the cluster has a higher
// serial number than a record, repair raises the record's number.
func (u *universe) repair(head string) {
	edits := map[string][]byte{}
	for path, content := range u.git.Files(head) {
		if !strings.HasPrefix(path, "apps/") {
			continue
		}
		s, err := rollout.ParseEditedState(path, []byte(content))
		if err != nil {
			edits[path] = nil
			continue
		}
		if live := u.liveSerial(s.App); live > s.Serial {
			s.Serial, s.Held = live, nil
			if edits[path], err = s.Encode(); err != nil {
				u.fail("repair %s: %v", path, err)
			}
		}
	}
	if len(edits) > 0 {
		u.editState("Eve", "repaired", edits)
	}
}

// liveSerial returns the highest serial number on an app's workloads in the cluster.
func (u *universe) liveSerial(app string) int {
	seen := u.kube.Observe()
	maps.DeleteFunc(seen.Workloads, func(w rollout.Workload, _ rollout.ObservedWorkload) bool { return u.oracle.appOf(w) != app })
	return seen.Serial()
}

// listed reports whether, at main's head, any app's render has the object.
func (u *universe) listed(ref rollout.Ref) bool {
	return slices.ContainsFunc(u.head().apps, func(a appSource) bool {
		return hasObject(u.oracle.at(a.name, u.git.Head(testBranch)), ref)
	})
}

func hasObject(r *rollout.Render, ref rollout.Ref) bool {
	return slices.ContainsFunc(r.Objects, func(o rollout.Object) bool { return o.Ref() == ref })
}

// checkProposals checks, when no event is due, that each proposal merges into main without conflicts and changes at least one file.
func (u *universe) checkProposals() {
	for _, prefix := range rollout.ProposalBranches(testCluster, "") {
		for _, branch := range u.git.Branches(prefix) {
			if m := u.git.Merge(u.git.Head(branch), u.git.Head(testBranch)); !m.Clean || len(m.Edits) == 0 {
				u.fail("%s cannot be merged: clean %t, %d files", branch, m.Clean, len(m.Edits))
			}
		}
	}
}

// checkEnd checks that the cluster has the versions in Git, that no Service is pinned, and that further passes change nothing.
func (u *universe) checkEnd() {
	observed := u.kube.Observe()
	for _, a := range u.head().apps {
		for w, hash := range u.oracle.at(a.name, u.git.Head(testBranch)).Templates {
			if live := observed.Workloads[w]; live.Hash != hash || !live.Complete {
				u.fail("%s is at %s, complete %t, Git asks for %s", w, live.Hash, live.Complete, hash)
			}
		}
	}
	for ref, pin := range u.kube.Pins {
		// After a user deleted a record, a Service that left Git may stay pinned.
		o := u.cluster.objects[ref]
		isLeft := o != nil && !u.listed(ref) && (u.promises.isLeft(ref, o.app) || u.removed[o.app])
		if pin != "" && !isLeft && (u.listed(ref) || !u.chaos.meddling) {
			u.fail("%s still selects %s", ref, pin)
		}
	}
	u.checkRoutes()
	u.promises.checkGone()
	u.restForDays("at rest")
	u.startAnew()
}

// startAnew starts new processes, and checks that they write nothing.
func (u *universe) startAnew() {
	if u.chaos.meddling || u.hasLost() {
		return // new processes undo edits by hand at once, and cannot use a commit that left main's history
	}
	for _, a := range u.procs {
		u.crash(a)
	}
	u.restForDays("for a new process")
}

// commitAgain acts as a user after a rewrite of main. It restores the files of lost stable commits in one commit, and then main's own files
// in another commit.
func (u *universe) commitAgain() {
	if !u.hasLost() {
		return
	}
	want := u.head().clone()
	u.edit("the files of what is stable, again", func(s *source) {
		for i := range s.apps {
			for _, name := range slices.Sorted(maps.Keys(u.oracle.states)) { // also the records under earlier names of the apps
				state := u.oracle.states[name]
				if u.ids[name] != s.apps[i].id || state.Stable == nil || !u.isLost(state) || u.appIn(state.Stable.Commit, name) == nil {
					continue
				}
				s.apps[i].workloads = slices.Clone(u.appIn(state.Stable.Commit, name).workloads)
			}
		}
	})
	for i := range 40 {
		u.rest()
		u.stride(i)
	}
	u.push(want, "what was asked for")
	for _, name := range slices.Sorted(maps.Keys(u.oracle.states)) {
		isIt := func(a appSource) bool { return a.name == name }
		if s := u.oracle.states[name]; u.isLost(s) && !slices.ContainsFunc(want.apps, isIt) {
			u.note("REMOVE %s", name) // the app's message suggests this command if Git no longer lists the app
			u.removed[name] = true
			u.editState("Ann", "remove "+name, map[string][]byte{rollout.StatePath(name): nil})
		}
	}
}

// hasLost reports whether a record names a commit that left main's history. A new process does not use such a commit.
func (u *universe) hasLost() bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(u.oracle.states)), u.isLost)
}

func (u *universe) isLost(s rollout.State) bool {
	named := map[string]bool{s.Source: s.Source != ""}
	if s.Stable != nil {
		named[s.Stable.Commit] = true
	}
	for at := u.git.Head(testBranch); at != ""; at = u.git.Commits[at].Parent {
		delete(named, at)
	}
	delete(named, "")
	return len(named) > 0
}

// restForDays advances the clock by three days, with a pass each day, and checks that no process writes.
func (u *universe) restForDays(when string) {
	moves, writes := u.moves, u.cluster.writes
	for range 3 {
		u.kube.Now = u.kube.Now.Add(24 * time.Hour)
		for _, a := range u.procs {
			a.commits = map[string]int{}
			if err := a.Pass(u.now(a), true); err != nil {
				u.fail("a pass %s of %s: %v", when, a.Name, err)
			}
		}
		if u.kube.Micro() || u.moves != moves || u.cluster.writes != writes {
			u.fail("something moves %s: %d branches, %d objects", when, u.moves-moves, u.cluster.writes-writes)
			return
		}
	}
}
