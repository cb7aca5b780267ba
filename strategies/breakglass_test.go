package strategies_test

import (
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// TestBreakGlass checks which requests abort the release in flight, which are removed from the cluster, and which cause a warning that they
// have no effect.
func TestBreakGlass(t *testing.T) {
	b := rollout.BreakGlass{Release: "h1-2", Serial: 6, By: "ann", Reason: "v2 burns", At: noon}
	why := b.Text()
	with := func(change func(*rollout.BreakGlass)) string { other := b; change(&other); return other.Encode() }
	refused := []rollout.Rejection{{Hash: "h1-2", Reason: why}}
	aborting := func(in *strategies.Input) { in.State.Phase, in.State.Rejected = rollout.Aborting, refused }
	for name, c := range map[string]struct {
		value  string
		change func(*strategies.Input)
		aborts bool
		spent  bool
		warns  string
	}{
		"the release":        {b.Encode(), func(*strategies.Input) {}, true, false, "Git answers"},
		"its template":       {with(func(b *rollout.BreakGlass) { b.Release = "t2" }), func(*strategies.Input) {}, true, false, "Git answers"},
		"its first record":   {with(func(b *rollout.BreakGlass) { b.Serial = 5 }), func(*strategies.Input) {}, true, false, "Git answers"},
		"an earlier attempt": {with(func(b *rollout.BreakGlass) { b.Serial = 4 }), func(*strategies.Input) {}, false, false, "serial 4, but"},
		"a serial to come":   {with(func(b *rollout.BreakGlass) { b.Serial = 8 }), func(*strategies.Input) {}, false, false, "serial 8, but"},
		"another version": {with(func(b *rollout.BreakGlass) { b.Release = "h1-3" }), func(*strategies.Input) {}, false, false,
			"release h1-3"},
		"malformed":      {"v2 burns", func(*strategies.Input) {}, false, false, "is not valid"},
		"no release":     {b.Encode(), func(in *strategies.Input) { in.State.Release = nil }, false, false, "but this attempt is not in flight"},
		"none":           {"", func(*strategies.Input) {}, false, false, ""},
		"it is recorded": {b.Encode(), aborting, false, true, "Git answers"},
		"the app is at rest": {b.Encode(), func(in *strategies.Input) { in.State.Release, in.State.Rejected = nil, refused }, false, true,
			"Git answers"},
		"it is not recorded": {b.Encode(), func(in *strategies.Input) {
			in.State.Phase, in.State.Rejected, in.Pending = rollout.Aborting, refused, &strategies.Decision{}
		},
			false, false, "Git answers"},
		"it is being pushed": {b.Encode(), func(in *strategies.Input) { aborting(in); in.Handed = &in.State },
			false, false, "Git answers"},
		"a retry of the version": {with(func(b *rollout.BreakGlass) { b.Serial = 4 }),
			func(in *strategies.Input) { in.State.Rejected = refused }, false, true, "Git answers"},
		"stable's template, while new pods go": {
			with(func(b *rollout.BreakGlass) { b.Release = "t1" }), func(*strategies.Input) {}, true, false, "Git answers"},
		"a first deployment": {b.Encode(), func(in *strategies.Input) { in.State.Stable = nil }, false, false, "no effect on a first deployment"},
		"a void request, an hour later": {with(func(b *rollout.BreakGlass) { b.Serial = 4 }),
			func(in *strategies.Input) { in.Now = noon.Add(time.Hour + time.Second) }, false, true, "Git answers"},
		"a later serial, an hour later": {with(func(b *rollout.BreakGlass) { b.Serial = 8 }),
			func(in *strategies.Input) { in.Now = noon.Add(time.Hour + time.Second) }, false, false, "serial 8, but"},
		"the former version is kept": {b.Encode(), func(in *strategies.Input) {
			in.State.Draining = &rollout.Draining{Release: *in.State.Stable}
			in.State.Phase, in.State.Stable, in.State.Release = rollout.Healthy, in.State.Release, nil
		}, true, false, "Git answers"},
	} {
		t.Run(name, func(t *testing.T) {
			in := strategies.Input{
				Now: noon,
				State: rollout.State{Phase: rollout.Paused, Serial: 7,
					Stable:  &rollout.Release{Hash: "h1-1", Templates: map[rollout.Workload]rollout.Hash{web: "t1"}},
					Release: &rollout.Release{Hash: "h1-2", Serial: 5, Templates: map[rollout.Workload]rollout.Hash{web: "t2"}}},
				Observed: rollout.Observed{Workloads: map[rollout.Workload]rollout.ObservedWorkload{web: {BreakGlass: c.value}}},
			}
			c.change(&in)
			compare.CheckNamed(t, "aborts", c.aborts, in.State.Phase != rollout.Aborting && strategies.RequestedAbort(in) != "")
			compare.CheckNamed(t, "spent", c.spent, len(strategies.FinishedRequests(in)) > 0)
			if got := strings.Join(strategies.RequestWarnings(in), "; "); !strings.Contains(got, c.warns) || (c.warns == "") != (got == "") {
				t.Errorf("warnings %q, want %q", got, c.warns)
			}
		})
	}
}

// TestIsRolledBack checks when all pods have the stable version, which ends "abort --now".
func TestIsRolledBack(t *testing.T) {
	back := rollout.State{Phase: rollout.Aborting, Source: "old", Rollback: &rollout.Rollback{To: "old"}}
	delayed := back
	delayed.Source = "new"
	for name, c := range map[string]struct {
		recorded rollout.State
		pending  *strategies.Decision
		want     bool
	}{
		"not recorded":              {rollout.State{Phase: rollout.Paused, Source: "new"}, &strategies.Decision{State: back}, true},
		"not recorded, decided now": {rollout.State{Phase: rollout.Paused, Source: "new"}, nil, false},
		"not recorded, pods go now": {rollout.State{Phase: rollout.Paused, Source: "new"}, &strategies.Decision{State: delayed}, false},
		"recorded, and a hook runs": {back, nil, true},
		"recorded, pods go now":     {delayed, nil, false},
	} {
		in := strategies.Input{State: c.recorded, Pending: c.pending, Source: &rollout.Render{}}
		compare.CheckNamed(t, name, c.want, strategies.IsRolledBack(in, strategies.Decision{State: back}))
	}
}

// TestAbortAgain checks a rollback by break glass when Git may lack the record of an earlier rollback, and when the head renames the
// Deployment. The rollback applies the stable commit at once only if the cluster has no template and no pod of the release.
func TestAbortAgain(t *testing.T) {
	surge := func(s *rollout.Spec) {
		s.Scaling, s.Canary.StableService, s.Canary.AbortScaleDownDelaySeconds = rollout.Surge, "web", 30
	}
	for name, c := range map[string]struct {
		fresh int    // pods of the new version
		live  string // the commit with the live template
		want  string // the commit of the objects that the rollback applies
	}{
		"a step with new pods":                 {2, commitID(1), commitID(1)},
		"a step that was applied just now":     {0, commitID(1), commitID(1)},
		"a step that removes some of its pods": {2, commitID(0), commitID(1)},
		"a release that was never applied":     {0, commitID(0), commitID(0)},
	} {
		for _, deployment := range []string{"web", "shop"} {
			h := twoVersions(surge)
			in := inFlight(h, 0, set(h, commitID(0), 10, 10), set(h, commitID(1), c.fresh, c.fresh))
			in.State.Serial, in.State.Release.Serial = 1, 1
			changeLive(&in, web, func(live *rollout.ObservedWorkload) {
				live.Hash = h.at(c.live).Templates[web]
				live.BreakGlass = rollout.BreakGlass{Release: in.State.Release.Hash, Serial: 1, At: noon}.Encode()
			})
			h.push(func(x *source) { x.workloads[0].spec.Workload.Name = deployment })
			in.Head = h.headInput()
			d := strategies.Decide(in)
			compare.CheckNamed(t, name+" of "+deployment, string(rollout.Aborting)+" "+c.want, string(d.State.Phase)+" "+d.State.Source)
		}
	}
}
