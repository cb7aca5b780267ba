package simulate

import (
	"fmt"
	"maps"
	"slices"

	"gitrollout.dev/gitrollout/rollout"
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
	u.note("BREAK GLASS on %s: %s", w, value)
	u.kube.Deployments[w].BreakGlass = value
	u.kube.OnChange("break glass")
	u.played["break glass"]++
	u.promises.brokeGlass(w, b)
}

// brokeGlass notes an abort request (break glass). If it can abort a release, users may get an older version from now on.
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

// checkGlass checks that a recorded abort by break glass concerns the release and the attempt that the user named.
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
