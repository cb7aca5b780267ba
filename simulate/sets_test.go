package simulate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/kube"
)

// setTrouble is what a StatefulSet suffers besides releases: other numbers of pods, pods that die, and nobody who may
// write while that happens.
func (u *universe) setTrouble() {
	switch u.rng.IntN(7) {
	case 0, 1:
		u.kill()
	case 2:
		u.scaleSet(sizes[u.rng.IntN(len(sizes))])
	case 3:
		u.refuse()
	case 4:
		u.stayAway()
	case 5:
		u.scaleToZeroAndUp()
	case 6:
		if i := u.rng.IntN(len(u.head().apps)); u.oracle.states[u.head().apps[i].name].Release == nil {
			u.editApp(i, "a version", func(a *appSource) { a.workloads[0].version = u.nextVersion() })
		}
		u.arrive()
		until := []func() time.Time{u.refuse, u.stayAway}[u.rng.IntN(2)]()
		if u.scaleToZeroAndUp(); u.rng.IntN(2) == 0 {
			u.kube.Now = until
			u.arrive()
		}
	}
}

// refuse has the API server refuse everything for a while.
func (u *universe) refuse() (until time.Time) {
	u.apiDown = u.kube.Now.Add(time.Duration(10+u.rng.IntN(300)) * time.Second)
	u.note("API refuses everything until %s", u.apiDown.Format(time.TimeOnly))
	return u.apiDown
}

// arrive lets time pass until no pod is on its way any more.
func (u *universe) arrive() {
	for range 20 {
		u.judge()
		due := u.kube.NextDue()
		if !due.After(u.kube.Now) || u.failure != "" {
			return
		}
		u.kube.Now = due
	}
}

// stayAway kills all processes, and none begins anew for a while.
func (u *universe) stayAway() (until time.Time) {
	u.away = u.kube.Now.Add(time.Duration(10+u.rng.IntN(300)) * time.Second)
	u.note("GITROLLOUT is away until %s", u.away.Format(time.TimeOnly))
	for _, a := range u.procs {
		u.crash(a)
	}
	return u.away
}

// isAway reports whether no process runs.
func (u *universe) isAway() bool { return u.kube.Now.Before(u.away) }

// scaleSet sets the number of pods of any workload by hand or, where it is Git's, by a commit.
func (u *universe) scaleSet(n int) {
	w, ok := u.anySet()
	if !ok {
		return
	}
	for i, a := range u.head().apps {
		j := slices.IndexFunc(a.workloads, func(s workloadSource) bool { return s.name == w.Name && s.replicas != nil })
		if j >= 0 && u.rng.IntN(2) == 0 {
			u.editApp(i, fmt.Sprintf("%d replicas", n), func(a *appSource) { a.workloads[j].replicas = &n })
			return
		}
	}
	u.scaleTo(w, n)
}

// anySet is any workload, one of a release that is at a step if there are such.
func (u *universe) anySet() (rollout.Workload, bool) {
	all := u.workloads()
	if len(all) == 0 {
		return rollout.Workload{}, false
	}
	atAStep := slices.DeleteFunc(slices.Clone(all), func(w rollout.Workload) bool {
		s := u.oracle.states[u.oracle.appOf(w)]
		pr, moves := s.ProgressOf(w)
		return !moves || s.Stable == nil || s.Phase == rollout.Aborting || pr.Step >= pr.Of
	})
	if len(atAStep) > 0 {
		all = atAStep
	}
	return all[u.rng.IntN(len(all))], true
}

// scaleToZeroAndUp takes all pods of a workload and starts some, by hand, faster than gitrollout looks or not.
func (u *universe) scaleToZeroAndUp() {
	w, ok := u.anySet()
	if !ok {
		return
	}
	for _, n := range []int{0, 1 + u.rng.IntN(10)} {
		u.scaleTo(w, n)
		for range u.rng.IntN(200) {
			u.kube.Micro()
		}
	}
	u.played["from 0 and up at once"]++
}

// smallerLater are steps that let all pods go before fewer.
func smallerLater(rng *rand.Rand) []any {
	pause := func() any { return map[string]any{"pause": map[string]any{}} }
	return []any{map[string]any{"setWeight": 100, "name": "first"}, pause(), map[string]any{"setWeight": 1 + rng.IntN(60)}, pause()}
}

// came is how many pods of a workload may be of the new version because its number of pods has grown since the release
// began: those that its steps let go of the fewest that it had, and all that came since, which Kubernetes makes of the
// new version before gitrollout knows. Not so of one that comes back from none: a step says how many of those are new.
func (t *try) came(d *kube.Deployment, legs []leg, step int) int {
	low, known := t.low[d.Workload]
	if !known || d.Replicas <= low {
		return 0
	}
	pods, _ := most(legs, step, low)
	return d.Replicas - low + pods
}

// nodesOf is what became of the nodes of a DaemonSet since a try began.
type nodesOf struct {
	now, most int // how many there are, and were at most
	came      int // nodes that joined, or had no pod, and pods that went by themselves: all have the newest template
	let       int // how many its steps have let go at most, those too that people have changed since
}

// taken is how many pods of a DaemonSet may be of the new version: what its steps let go of the most nodes that there were,
// and what Kubernetes makes of the new version by itself. None is taken back.
func (t *try) taken(d *kube.Deployment, legs []leg, step int) int {
	n := t.nodes[d.Workload]
	pods, _ := most(legs, step, n.most)
	n.let = max(n.let, pods)
	return n.let + n.came
}

// replaced notes that a pod goes by itself.
func (p *promises) replaced(w rollout.Workload) {
	if t := p.tries[p.u.ids[p.u.oracle.appOf(w)]]; t != nil && t.nodes[w] != nil {
		t.nodes[w].came++
	}
}

// scaled notes the fewest pods that a workload has had since a try began, or since Kubernetes took the template for that of all
// pods as there were none, and what became of nodes.
func (t *try) scaled(d *kube.Deployment) {
	n := t.nodes[d.Workload]
	if n == nil {
		n = &nodesOf{now: d.Replicas, came: d.Replicas}
		for _, rs := range d.Sets {
			n.came -= len(rs.Live())
		}
		n.came = max(0, n.came)
		t.nodes[d.Workload] = n
	}
	n.came += max(0, d.Replicas-n.now)
	n.now, n.most = d.Replicas, max(n.most, d.Replicas)
	fewest := d.Replicas
	for _, rs := range d.Sets {
		if d.Replicas == 0 { // on its way there: those that are left are what it has had
			fewest += len(rs.Live())
		}
	}
	low, known := t.low[d.Workload]
	switch {
	case fewest == 0 && d.Base() == kube.VersionOf(d.Template): // else it has its partition still
		delete(t.low, d.Workload)
	case !known || fewest < low:
		t.low[d.Workload] = fewest
	}
}

// checkSet holds for a StatefulSet at rest. Where the old version alone is asked for, no pod is of another one; and with
// rebalance as many are new as the step asks for itself. A pod of the old version that never becomes ready keeps
// Kubernetes from both.
func (p *promises) checkSet(w rollout.Workload) {
	app := p.u.oracle.appOf(w)
	s, d := p.u.oracle.states[app], p.u.kube.Deployments[w]
	pr, moves := s.ProgressOf(w)
	source := p.u.appIn(s.Source, app).find(w)
	if source == nil || source.policy == "" || s.Stable == nil || s.Held != nil || d.Replicas == 0 {
		return
	}
	stable := p.u.appIn(s.Stable.Commit, app).find(w)
	if stable == nil || p.u.isAway() {
		return
	}
	isOld := func(rs *kube.ReplicaSet) bool { return kube.VersionOf(rs.Template) == stable.version }
	others := 0
	for _, rs := range d.Sets {
		if isOld(rs) && rs.Ready() < len(rs.Live()) {
			return
		} else if !isOld(rs) {
			others += len(rs.Live())
		}
	}
	if s.Release == nil || s.Phase == rollout.Aborting {
		if others > 0 {
			p.fail(lawOld, "%s: it is %s, %s is what it is to run, and %d pods are of another version", w, s.Phase, stable.version, others)
		}
		return
	}
	legs := source.legs()
	step := at(source, legs, pr)
	if !moves || s.Phase == rollout.Promoting || step >= len(legs) || source.version == stable.version {
		return
	}
	if own := legs[step].pods(d.Replicas); others > own && (own == 0 || source.canary["rebalance"] == true && p.mayRebalance(d, legs, step, source)) {
		p.fail(lawOld, "%s: %d of %d pods are of %s, and step %d asks for %d", w, others, d.Replicas, source.version, step, own)
	}
}

// mayRebalance reports whether all pods serve, and no step has let all of them go.
func (p *promises) mayRebalance(d *kube.Deployment, legs []leg, step int, source *workloadSource) bool {
	serving := 0
	for _, rs := range d.Sets {
		serving += rs.Serving(p.u.kube.Now, time.Duration(source.minReady)*time.Second)
	}
	return serving == d.Replicas && !slices.ContainsFunc(legs[:step+1], func(l leg) bool { return l.pods(d.Replicas) >= d.Replicas })
}
