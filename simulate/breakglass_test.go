package simulate

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/kube"
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

// userClone is a user's clone. It has all commits of its branches, and takes no pushes.
type userClone struct {
	*Clone
	heads rollout.Heads
}

func (c userClone) Fetch(context.Context) (rollout.Heads, error) {
	c.main = c.heads.Main
	c.local[c.heads.Main], c.local[c.heads.State] = true, true
	return c.heads, nil
}

func (c userClone) Bring(_ context.Context, ids []string) (gone []string, err error) {
	for _, id := range ids {
		if c.local[id] = c.server.commits[id] != nil; !c.local[id] {
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

// breakGlassNow starts "abort --break-glass --now" of a random app in a process beside the reconcilers. The user's clone is new, or older
// than some events. Like the command, it does nothing if the clone's record is older than the cluster or has no release in flight.
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

// asUser turns a new process into one of "abort --break-glass --now".
func (u *universe) asUser(p *Process, o *reconciler.Options) {
	c := userClone{p.Clone, u.user.heads}
	o.Repository, o.Past, o.Only = c, c, []string{u.user.app}
}

// checkUser checks that "abort --break-glass --now" writes only objects of its app, and brings no version except the stable one, even if a
// step is recorded and was never applied.
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
	d := o.u.kube.Deployments[w]
	switch {
	case app != o.u.user.app:
		o.u.promises.fail(lawNow, "abort --now of %s writes %s of %s", o.u.user.app, name(object), app)
	case runsPods && d != nil && o.brings(object) != kube.VersionOf(d.Template) && !o.explains(app, rollout.State{}, object, to...):
		o.u.promises.fail(lawNow, "abort --now writes %s with %s, which is not stable", name(object), o.brings(object))
	}
}

// brokeGlass notes that users of an app may get an older version, if the request of the user can abort a release.
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

// isAsked reports whether a request to abort on a workload names a serial, or a later serial that a record reaches only now.
func (p *promises) isAsked(w rollout.Workload, serial int) bool {
	b, err := rollout.ParseBreakGlass(p.u.kube.Deployments[w].BreakGlass)
	return err == nil && b.Serial >= serial
}

// checkGlass checks that a recorded abort by break glass is of the release and the attempt that the user named.
func (p *promises) checkGlass(app string, was, is rollout.State) {
	b, isGlass := p.glass[is.Reason]
	r := is.Release
	if !isGlass || is.Phase != rollout.Aborting || was.Phase == rollout.Aborting || r == nil {
		return
	}
	named := append(slices.Collect(maps.Values(r.Templates)), r.Hash)
	if is.Stable != nil { // at a step without new pods, users see the stable version
		named = slices.AppendSeq(named, maps.Values(is.Stable.Templates))
	}
	if !slices.Contains(named, b.Release) || b.Serial < r.Serial {
		p.fail(lawGlass, "%s: release %s, which began at serial %d, was aborted by %s", app, r.Hash, r.Serial, b.Encode())
	}
}

// anyGlass is a mutation that changes each abort request (break glass), so that the request names the version in the cluster.
func anyGlass(_ starting, _ string, live *rollout.ObservedWorkload) {
	if b, err := rollout.ParseBreakGlass(live.BreakGlass); err == nil {
		b.Release, b.Serial = live.Hash, live.Serial
		live.BreakGlass = b.Encode()
	}
}
