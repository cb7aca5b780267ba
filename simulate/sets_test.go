package simulate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/kube"
)

// setTrouble scales a workload, kills pods, stops all processes, or makes the API server refuse requests.
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

// refuse makes the API server refuse all requests until the returned time.
func (u *universe) refuse() (until time.Time) {
	u.apiDown = u.kube.Now.Add(time.Duration(10+u.rng.IntN(300)) * time.Second)
	u.note("API refuses everything until %s", u.apiDown.Format(time.TimeOnly))
	return u.apiDown
}

// arrive advances the clock until no pod will become ready or available any more.
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

// stayAway kills all processes. The new processes do not run until the returned time.
func (u *universe) stayAway() (until time.Time) {
	u.away = u.kube.Now.Add(time.Duration(10+u.rng.IntN(300)) * time.Second)
	u.note("GITROLLOUT is away until %s", u.away.Format(time.TimeOnly))
	for _, a := range u.procs {
		u.crash(a)
	}
	return u.away
}

// isAway reports whether all processes are stopped now.
func (u *universe) isAway() bool { return u.kube.Now.Before(u.away) }

// scaleSet sets the replicas of a random workload, in Git or by hand.
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

// anySet returns a random workload, if possible a workload whose release is at a step.
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

// scaleToZeroAndUp scales a workload by hand to 0 and up again, without a pass of gitrollout in between.
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

// smallerLater returns steps with the weight 100 and then a smaller weight, each followed by a pause.
func smallerLater(rng *rand.Rand) []any {
	pause := func() any { return map[string]any{"pause": map[string]any{}} }
	return []any{map[string]any{"setWeight": 100, "name": "first"}, pause(), map[string]any{"setWeight": 1 + rng.IntN(60)}, pause()}
}

// came returns how many pods may be new after a scale-up during the release: the steps' share of the workload's smallest size during the
// release, and all pods added to this size. Before gitrollout sees a scale-up, Kubernetes creates the added pods with the new version.
// After a scale to 0, came returns 0, because only the step limits the number.
func (t *try) came(d *kube.Deployment, legs []leg, step int) int {
	low, known := t.low[d.Workload]
	if !known || d.Replicas <= low {
		return 0
	}
	pods, _ := most(legs, step, low)
	return d.Replicas - low + max(pods, t.kept[d.Workload])
}

// keep stores how many new pods the steps of the previous record allowed. A StatefulSet keeps these pods if an edit makes the step smaller.
func (p *promises) keep(id, app string, was rollout.State) {
	t := p.tries[id]
	if t == nil || was.Release == nil || t.id != tryID(was) {
		return
	}
	for _, pr := range was.Progress {
		w := pr.Workload
		if s, d := p.u.appIn(was.Source, app).find(w), p.u.kube.Deployments[w]; s != nil && s.policy != "" && d != nil {
			pods, _ := most(s.legs(), at(s, s.legs(), pr), d.Replicas)
			t.kept[w] = max(t.kept[w], pods, t.came(d, s.legs(), at(s, s.legs(), pr)))
		}
	}
}

// nodesOf has the changes of a DaemonSet's nodes since a release attempt began.
type nodesOf struct {
	now, most int // the current and the largest number of nodes
	came      int // pods that got the newest template without a step: on nodes that joined or had no pod, or in place of deleted pods
	let       int // the most new pods that the present or earlier steps have allowed
}

// taken returns how many pods of a DaemonSet may be new: the steps' share of the largest number of nodes, and the
// pods that Kubernetes created for other reasons. At a step, no pod returns to the old version.
func (t *try) taken(d *kube.Deployment, legs []leg, step int) int {
	n := t.nodes[d.Workload]
	pods, _ := most(legs, step, n.most)
	n.let = max(n.let, pods)
	return n.let + n.came
}

// replaced notes that something other than gitrollout deleted a pod of a workload.
func (p *promises) replaced(w rollout.Workload) {
	if t := p.tries[p.u.ids[p.u.oracle.appOf(w)]]; t != nil && t.nodes[w] != nil {
		t.nodes[w].came++
	}
}

// scaled notes the fewest pods of a workload since a release attempt began, and the changes of nodes. A scale to 0
// resets t.low and t.kept, because Kubernetes then uses the new template for all pods.
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
		if d.Replicas == 0 { // a scale to 0 is complete only when no pod remains
			fewest += len(rs.Live())
		}
	}
	low, known := t.low[d.Workload]
	switch {
	case fewest == 0 && d.Base() == kube.VersionOf(d.Template): // if the base is an older version, the partition still applies
		delete(t.low, d.Workload)
		delete(t.kept, d.Workload)
	case !known || fewest < low:
		t.low[d.Workload] = fewest
	}
}

// checkSet checks, when no event is due, that a StatefulSet has no new pods if only the old version is requested. With the field rebalance,
// the StatefulSet must not exceed the step's number of new pods. checkSet ignores a StatefulSet with an unready old pod, which blocks
// Kubernetes. After a change of routes, new pods may stay until proxies know the new routes.
func (p *promises) checkSet(w rollout.Workload) {
	s, source := p.onRecord(w)
	pr, moves := s.ProgressOf(w)
	d := p.u.kube.Deployments[w]
	if source == nil || source.policy == "" || s.Stable == nil || s.Held != nil || d.Replicas == 0 {
		return
	}
	stable := p.u.appIn(s.Stable.Commit, s.App).find(w)
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
			p.fail(lawOld, "%s: it is %s, want only pods of %s, and %d pods are of another version", w, s.Phase, stable.version, others)
		}
		return
	}
	legs := source.legs()
	step := at(source, legs, pr)
	if !moves || s.Phase == rollout.Promoting || step >= len(legs) || source.version == stable.version {
		return
	}
	own, rebalances := legs[step].pods(d.Replicas), source.canary["rebalance"] == true && p.mayRebalance(d, legs, step, source)
	if others > own && (own == 0 && !(pr.Routed != nil && source.isRouted() && p.isUnderWay(source)) || rebalances) {
		p.fail(lawOld, "%s: %d of %d pods are of %s, and step %d asks for %d", w, others, d.Replicas, source.version, step, own)
	}
}

// mayRebalance reports whether all pods are ready, and no step up to the current step updates all pods.
func (p *promises) mayRebalance(d *kube.Deployment, legs []leg, step int, source *workloadSource) bool {
	serving := 0
	for _, rs := range d.Sets {
		serving += rs.Serving(p.u.kube.Now, time.Duration(source.minReady)*time.Second)
	}
	return serving == d.Replicas && !slices.ContainsFunc(legs[:step+1], func(l leg) bool { return l.pods(d.Replicas) >= d.Replicas })
}
