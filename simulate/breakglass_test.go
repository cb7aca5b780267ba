package simulate

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/kube"
	"gitrollout.dev/gitrollout/simulate/memgit"
)

// breakGlass annotates a random workload with a request to abort its release. Most requests name the version in the cluster.
func (u *universe) breakGlass() {
	all := u.workloads()
	if len(all) == 0 {
		return
	}
	w := all[u.rng.IntN(len(all))]
	live, exists := u.kube.Observe().Workloads[w]
	if !exists {
		return
	}
	u.serial++
	b := rollout.BreakGlass{Release: live.Hash, Serial: live.Serial, By: "ann", Reason: fmt.Sprint(u.serial), At: u.kube.Now}
	switch u.rng.IntN(8) {
	case 0:
		b.Release = "h1-other"
	case 1:
		b.Serial -= 1 + u.rng.IntN(3)
	case 2:
		b.Serial += 1 + u.rng.IntN(3)
	}
	value := b.Encode()
	if u.rng.IntN(8) == 0 {
		value = "by hand"
	}
	u.annotate(w, b, value)
	u.played["break glass"]++
}

func (u *universe) annotate(w rollout.Workload, b rollout.BreakGlass, value string) {
	u.note("BREAK GLASS on %s: %s", w, value)
	u.kube.Deployments[w].BreakGlass = value
	u.kube.OnChange("break glass")
	u.promises.brokeGlass(w, b)
}

// userName is the name of the process in which a user runs "abort --break-glass --now".
const userName = "user"

// userCommand is the last "abort --break-glass --now" of a user: the app, and the branches of the user's clone.
type userCommand struct {
	app   string
	heads rollout.Heads
}

// userClone is a user's clone. It has all commits of its branches, and cannot push.
type userClone struct {
	*memgit.Clone
	heads rollout.Heads
}

func (c userClone) Fetch(context.Context) (rollout.Heads, error) {
	c.Main = c.heads.Main
	c.Local[c.heads.Main], c.Local[c.heads.State] = true, true
	return c.heads, nil
}

func (c userClone) Bring(_ context.Context, ids []string) (gone []string, err error) {
	for _, id := range ids {
		if c.Local[id] = c.Server.Commits[id] != nil; !c.Local[id] {
			gone = append(gone, id)
		}
	}
	return gone, nil
}

func (c userClone) Push(context.Context, []rollout.Update) (map[string]string, error) {
	return nil, fmt.Errorf("%w: a user's clone takes no pushes", rollout.ErrUnreachable)
}

// boldClone reports each push as successful, although nothing is pushed.
type boldClone struct{ userClone }

func (c boldClone) Push(_ context.Context, updates []rollout.Update) (map[string]string, error) {
	made := map[string]string{}
	for _, u := range updates {
		made[u.Branch] = u.Old
	}
	return made, nil
}

// breakGlassNow starts "abort --break-glass --now" of a random app in a process beside the reconcilers. The user's clone is up to date, or
// misses some events. Like the command, breakGlassNow does nothing if the clone's record has no release in flight, or a lower serial
// number than the workload.
func (u *universe) breakGlassNow() {
	u.clones = append(u.clones, rollout.Heads{Main: u.git.Head(testBranch), State: u.git.Head(stateBranch)})
	heads := u.clones[max(0, len(u.clones)-1-u.rng.IntN(3))]
	all := u.workloads()
	if len(all) == 0 {
		return
	}
	w := all[u.rng.IntN(len(all))]
	app := u.oracle.appOf(w)
	live, exists := u.kube.Observe().Workloads[w]
	s := u.oracle.read(heads.State)[app]
	if !exists || live.Serial == 0 || s.Serial < live.Serial || s.Stable == nil || s.Release == nil && s.Draining == nil {
		return
	}
	u.serial++
	b := rollout.BreakGlass{Release: live.Hash, Serial: live.Serial, By: "bob", Reason: fmt.Sprint(u.serial), At: u.kube.Now}
	u.annotate(w, b, b.Encode())
	u.endUser()
	u.user = userCommand{app, heads}
	u.note("USER aborts %s from state %s", app, rollout.ShortID(heads.State))
	a := &actor{}
	u.restart(a, userName)
	u.procs = append(u.procs, a)
	u.played["break glass now"]++
}

// endUser kills the process of "abort --break-glass --now", if there is one.
func (u *universe) endUser() {
	u.procs = slices.DeleteFunc(u.procs, func(a *actor) bool {
		if a.Name == userName {
			a.Kill()
		}
		return a.Name == userName
	})
}

// asUser gives a new process the clone and the app of the user's command.
func (u *universe) asUser(p *Process, o *reconciler.Options) {
	c := userClone{p.Clone, u.user.heads}
	o.Repository, o.Past, o.Only = c, c, []string{u.user.app}
}

// checkUser checks that "abort --break-glass --now" writes only objects of its app. The command may change pods only to a stable version,
// even if the record has a step that was never applied.
func (o *oracle) checkUser(a *actor, app string, object rollout.Object) {
	s := o.read(o.u.user.heads.State)[app]
	to := o.takenBackBy(a, app, s)
	if s.Stable != nil {
		to = append(to, s.Stable.Commit)
	}
	if s.Draining != nil {
		to = append(to, s.Draining.Release.Commit)
	}
	if s.Rollback != nil {
		to = append(to, s.Rollback.To)
	}
	w, runsPods := o.u.kube.WorkloadOf(object.Ref())
	d, hasNone := o.u.kube.Deployments[w], func(b kube.Backend) bool { return b.Weight == 0 }
	switch {
	case app != o.u.user.app:
		o.u.promises.fail(lawNow, "abort --now of %s writes %s of %s", o.u.user.app, name(object), app)
	case len(slices.DeleteFunc(slices.Concat(kube.Backends(object)...), hasNone)) > 1:
		o.u.promises.fail(lawNow, "abort --now writes %s, which splits the requests: %s", name(object), kube.Split(object))
	case runsPods && d != nil && o.brings(object) != kube.VersionOf(d.Template) && !o.explains(app, rollout.State{}, object, to...):
		o.u.promises.fail(lawNow, "abort --now writes %s with %s, which is not stable", name(object), o.brings(object))
	}
}

// brokeGlass notes a request to abort. If the app has a release, users may get an older version from now on.
func (p *promises) brokeGlass(w rollout.Workload, b rollout.BreakGlass) {
	p.glass[b.Text()] = b
	app := p.u.oracle.appOf(w)
	s := p.u.oracle.states[app]
	r := s.Release
	if s.Draining != nil {
		r = s.Stable // the previous stable version still has pods, so an abort returns to this version
	}
	if r == nil {
		return
	}
	for served := range p.served {
		if p.u.oracle.appOf(served) == app {
			p.excuse(served)
		}
	}
}

// isAsked reports whether any workload of an app has a request to abort the release in flight. It reads workloads from the cluster, because
// Git may have renamed them.
func (p *promises) isAsked(s rollout.State) bool {
	if s.Draining != nil && s.Release == nil {
		s.Release, s.Stable = s.Stable, &s.Draining.Release
	}
	return slices.ContainsFunc(p.u.workloads(), func(w rollout.Workload) bool {
		b, err := rollout.ParseBreakGlass(p.u.kube.Deployments[w].BreakGlass)
		return err == nil && isRequested(s, w, b)
	})
}

// isRequested reports whether a request on a workload can abort the release in flight. A request on an experiment's Deployment cannot.
func isRequested(s rollout.State, w rollout.Workload, b rollout.BreakGlass) bool {
	return s.Release != nil && s.Stable != nil && s.Release.Templates[w]+s.StableHash(w) != "" && isNamed(s, b)
}

// checkGlass checks that an abort by break glass aborts only the release and the attempt that the user named. A process that has seen the
// request must not advance this attempt.
func (p *promises) checkGlass(by *actor, app string, was, is rollout.State) {
	pr, goesOn := advances(was, is)
	for w, d := range p.u.kube.Deployments {
		b, err := rollout.ParseBreakGlass(d.BreakGlass)
		isSeen := err == nil && by != nil && b.At.Before(by.visits)
		if isSeen && goesOn && is.Phase != rollout.Aborting && isRequested(was, w, b) && b.Serial <= was.Serial {
			p.fail(lawGlass, "%s: %s goes on to step %d despite %s", app, pr.Workload, pr.Step, b.Encode())
		}
	}
	b, isGlass := p.glass[is.Reason]
	if isGlass && is.Phase == rollout.Aborting && was.Phase != rollout.Aborting && is.Release != nil && !isNamed(is, b) {
		p.fail(lawGlass, "%s: release %s, which began at serial %d, was aborted by %s", app, is.Release.Hash, is.Release.Serial, b.Encode())
	}
}

// isNamed reports whether a user's request to abort names the release in flight, and a serial that is not lower than the attempt's.
func isNamed(s rollout.State, b rollout.BreakGlass) bool {
	named := append(slices.Collect(maps.Values(s.Release.Templates)), s.Release.Hash)
	if s.Stable != nil { // at a step without new pods, requests name the stable version
		named = slices.AppendSeq(named, maps.Values(s.Stable.Templates))
	}
	return slices.Contains(named, b.Release) && b.Serial >= s.Release.Serial
}

// weight is the weight of an experiment in a route.
type weight struct {
	settle time.Duration
	until  time.Time // when all proxies know that the weight ended; zero until it ends
}

// checkWeights checks that all pods of an experiment are ready while proxies may send them users' requests.
func (p *promises) checkWeights() {
	on := map[rollout.Workload]bool{}
	for ref, route := range p.u.kube.Routes {
		_, source := p.onRecord(rollout.Workload{Namespace: ref.Namespace, Name: ref.Name})
		for _, b := range slices.Concat(kube.Backends(route)...) {
			w := rollout.Workload{Namespace: ref.Namespace, Name: b.Service} // an experiment's Service has its Deployment's name
			if b.Weight > 0 && source != nil && source.isRouted() && !slices.Contains(source.services, b.Service) {
				on[w] = true
				p.weights[w] = &weight{settle: durationOf(source.canary["trafficRouting"].(map[string]any)["settle"])}
			}
		}
	}
	for w, share := range p.weights {
		if !on[w] && share.until.IsZero() {
			share.until = p.u.kube.Now.Add(share.settle)
		}
		switch d := p.u.kube.Deployments[w]; {
		case !on[w] && !p.u.kube.Now.Before(share.until):
			delete(p.weights, w)
		case p.u.chaos.processes > 1 || p.u.oracle.stale[p.u.oracle.appOf(w)]: // an older record may decide
		case d == nil || p.u.oracle.serving(w) < d.Replicas:
			p.fail(lawWeights, "%s: proxies may send requests to this experiment until %s, and not all its pods are ready", w, share.until)
		}
	}
}

// anyGlass is a mutation that changes each abort request (break glass), so that the request names the version in the cluster.
func anyGlass(_ starting, _ string, live *rollout.ObservedWorkload) {
	if b, err := rollout.ParseBreakGlass(live.BreakGlass); err == nil {
		b.Release, b.Serial = live.Hash, live.Serial
		live.BreakGlass = b.Encode()
	}
}
