package strategies

import (
	"fmt"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/plan"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

// adopt applies a commit that does not change the version. If the commit changes steps, the release continues at its
// present step or, if earlier, at the first changed step. If the commit changes the strategy or a routed Service, the
// release is rolled back.
func adopt(in Input) Decision {
	if keeps, unshares := keepsOldList(in); keeps {
		in.unshares = unshares
		if in.Head.Render = followed(in); workloads.IsPromoting(in.State) {
			return removeFormer(in)
		}
		return advance(in)
	}
	s := in.State
	s.Source = in.Head.Commit.ID
	s.Progress = slices.Clone(s.Progress)
	subject := fmt.Sprintf("%s follows %s during release %s", s.App, in.Head.Commit.Short(), s.Release.Hash)
	raises := false
	for _, m := range stagedIn(in) { // workloads that left Git are absent: the promotion removes them
		c := changeOf(m, in)
		switch {
		case c.restarts == "" || s.Stable == nil:
		case workloads.IsPromoting(s):
			// Kubernetes already replaces all pods. A Service switch would send all users to the first new pod, so the
			// old plan stays.
			in.Head.Render = in.Source
			return decidePromoting(in)
		default:
			return rollback(in, cause{to: s.Stable.Commit, reason: fmt.Sprintf("%s has %s since %s of %s, "+
				"so the release begins again at its first step",
				m.Workload, c.restarts, in.Head.Commit.Short(), in.Head.Commit.Author)})
		}
		next := resumed(m, in, c)
		s.Progress[indexOf(m, s)] = next
		if c.spends(in, m) {
			s.Spent = spend(in, s)
		}
		if !c.changes || workloads.IsPromoting(s) {
			continue
		}
		raises = raises || next.Weight > m.Weight
		s.Analyses = slices.DeleteFunc(slices.Clone(s.Analyses), func(r rollout.AnalysisRun) bool { return c.drops(m, r) })
		subject = fmt.Sprintf("%s steps changed by %s, continues at %s", s.App, in.Head.Commit.Short(), next.Name)
	}
	if raises && s.Stable != nil && !s.Release.Fast {
		if d, shut := waitForWindow(in, "the new list of steps"); shut {
			d.Requeue = rollout.Soonest(d.Requeue, heldUntil(in)) // the pods continue to change as in the old list of steps
			return d
		}
	}
	if !workloads.IsPromoting(s) && s.Stable != nil {
		s.Phase = phaseOf(in, s.Progress)
	}
	return Decision{State: s, Subject: subject}
}

type change struct {
	old      *plan.Compiled // nil if unreadable
	same     int            // number of unchanged first stages
	changes  bool           // a stage after these differs
	restarts string         // the change that requires a rollback to stable, or ""
}

// changeOf compares the plans of source and head, both compiled by this version of gitrollout.
func changeOf(m workloads.Staged, in Input) change {
	spec, known := in.Source.Spec(m.Workload)
	if !known { // the recorded digest shows only whether stages changed
		if m.Digest() != m.Plan {
			return change{changes: true}
		}
		return change{same: len(m.Stages)}
	}
	c := change{old: in.plans.Of(spec)}
	for c.same < min(len(c.old.Stages), len(m.Stages)) &&
		c.old.Stages[c.same].Meaning() == m.Stages[c.same].Meaning() {
		c.same++
	}
	c.changes = c.same < max(len(c.old.Stages), len(m.Stages))
	other := spec.Scaling != m.Spec.Scaling || (spec.BlueGreen == nil) != (m.Spec.BlueGreen == nil)
	main, side := m.Services(in.State)
	wasMain, wasSide := c.old.Services(in.State)
	switch {
	case workloads.IsPromoting(in.State) && !m.EndsAs(c.old):
		c.restarts = "another end of its steps"
	case c.old.HasMoved(m.Progress):
	case c.changes && other:
		c.restarts = "another strategy"
	case (m.Routing != nil || c.old.Routing != nil) && (main != wasMain || side != wasSide):
		c.restarts = "routes to other Services"
	}
	return c
}

// keepsOldList reports whether a release keeps the source's steps. keeps is true if all users have moved and the head's
// steps lack a switch. With these steps, the users' Service would select all pods again. While a changed experiment may
// get requests, both results are true.
func keepsOldList(in Input) (keeps, unshares bool) {
	s, source := in.State, in.Source
	if source == nil || source.Digest == in.Head.Render.Digest || s.Phase == rollout.Aborting ||
		source.Commit.ID != "" && source.Commit.ID != s.Source || s.Draining == nil && workloads.IsPromoting(s) {
		return false, false // a source from local files has no commit
	}
	all := workloads.All(s, in.Head.Render.Specs, in.Observed, in.plans)
	for _, m := range all {
		if old, known := source.Spec(m.Workload); known {
			was := m
			was.Compiled = in.plans.Of(old)
			keeps = keeps || was.HasMoved(m.Progress) && !m.HasSwitched(len(m.Stages)) && !m.Swaps()
			unshares = unshares || !endShares(in, was).done && changeOf(m, in).same <= m.Step
		}
	}
	isBack := func(m workloads.Staged) bool { return changeOf(m, in).restarts != "" }
	unshares = unshares && !keeps && !slices.ContainsFunc(all, isBack)
	return keeps || unshares, unshares
}

func (c change) spends(in Input, m workloads.Staged) bool {
	if workloads.IsPromoting(in.State) || isOpenFully(m, in) {
		return false
	}
	last, found := in.Promotion.Last(m.Workload, m.Names())
	if c.old == nil || c.changes && last >= c.same {
		return c.changes
	}
	was, knew := in.Promotion.Last(m.Workload, c.old.Names())
	return last != was || found != knew
}

// resumed returns where a workload continues after a change of plan. A changed stage begins anew. Once all users have
// moved, they do not return to stable. A verified or promoted release gets no new steps.
func resumed(m workloads.Staged, in Input, c change) rollout.Progress {
	step := min(m.Step, c.same)
	switch {
	case workloads.IsPromoting(in.State):
		step = len(m.Stages)
	case !c.changes:
	case in.State.Draining != nil: // the release is stable, so its analyses have ended
		at, _ := m.MovedAt()
		step = max(step, at)
	case in.State.Release.Fast:
		step = max(step, m.Passed)
	case c.old != nil && c.old.HasMoved(m.Progress):
		step = max(step, m.Moved())
	}
	next := m.Enter(step, in.Now)
	next.PodHash, next.StablePodHash = m.PodHash, m.StablePodHash
	next.Suspended, next.Left = m.Suspended, m.LeftServices(in.State, m.Left, c.old)
	if step == m.Step && (step < c.same || !c.changes) || workloads.IsPromoting(in.State) {
		next.Entered, next.Opened, next.Available = m.Entered, m.Opened, m.Available
	}
	if next.Routed = m.Routed; m.Routed != nil && m.Routed.Step >= c.same {
		// The new step's matches apply at once, but the routed weight changes later.
		next.Routed = &rollout.Routing{Step: next.Step, Weight: m.Routed.Weight, At: m.Routed.At}
		if c.old == nil || m.Routed.Shares || !c.old.RoutedAt(m.Routed.Step).RoutesAs(m.RoutedAt(next.Step)) {
			next.Routed.At = rollout.Second(in.Now) // old matches apply until proxies know the change
		}
	}
	return next
}

func (c change) drops(m workloads.Staged, r rollout.AnalysisRun) bool {
	if c.old == nil {
		return owns(m, r)
	}
	for i := c.same; i < len(c.old.Stages); i++ {
		name := runName(workloads.Staged{Compiled: c.old, Progress: rollout.Progress{Step: i}, Label: m.Label})
		if r.Name == name || strings.HasPrefix(r.Name, name+"/") {
			return true
		}
	}
	return false
}
