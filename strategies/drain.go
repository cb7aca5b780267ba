package strategies

import (
	"fmt"
	"slices"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/plan"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

// A strategy that moves all users together may keep old pods for a while. The record then shows the release as stable,
// but Decide and Desired treat the release as in flight. Reopened and withDraining convert between the two forms.
//
// 	              on record                   in Decide and Desired
// 	Phase         Healthy                     Paused: old pods stay; Promoting: old pods stop
// 	Stable        the new version             the old version
// 	Release       –                           the new version
// 	Draining      old version and progress    not nil

// withDraining records a release as stable while old pods are kept. In a rollback, the release stays in flight.
func withDraining(_, _ Input, d Decision) Decision {
	switch s := &d.State; {
	case s.Draining == nil || s.Release == nil:
	case s.Phase == rollout.Aborting:
		s.Draining, s.Verified = nil, remember(s.Verified, s.Stable.Hash)
	default:
		s.Draining = &rollout.Draining{Release: *s.Stable, Progress: s.Progress}
		s.Stable = s.Release
		*s = s.AtRest(rollout.Healthy, "")
	}
	return d
}

// areMoved reports whether all requests go to the release. Each workload needs one ready new pod. A workload with 0
// replicas must not wait for a promotion, analysis or experiment.
func areMoved(in Input, progress []rollout.Progress) bool {
	if in.State.Stable == nil || len(progress) == 0 {
		return false
	}
	moved := false
	for _, spec := range releaseSpecs(in) {
		hash := in.State.Release.Templates[spec.Workload]
		i := slices.IndexFunc(progress, func(pr rollout.Progress) bool { return pr.Workload == spec.Workload })
		if i < 0 && hash != in.State.StableHash(spec.Workload) && !serves(in, spec, hash) {
			return false
		} else if i < 0 {
			continue
		}
		m := workloads.New(in.State, in.plans.Of(spec), progress[i], in.Observed)
		at, moves := m.MovedAt()
		switch {
		case m.N == 0 && m.Step >= m.PromotionStep() && isFree(m, in, at):
		case hasArrived(m, in) && !workloads.IsPromoting(in.State): // a promotion must not change a Service's selector again
		case !moves || m.Step < at || m.Fresh.Ready() < min(m.N, 1):
			return false
		}
		moved = moved || moves && m.Step >= at
	}
	return moved
}

func hasArrived(m workloads.Staged, in Input) bool {
	return m.Routing == nil && m.IsThrough() && isAllOn(in, m.Spec, in.State.Release.Templates[m.Workload])
}

// isMoving reports whether all requests already go to the release, and no analysis step remains. Such a release
// completes before the next starts.
func isMoving(in Input) bool {
	moving := false
	for _, m := range stagedIn(in) {
		at, _ := m.MovedAt()
		if m.N == 0 && isFree(m, in, at) || hasArrived(m, in) {
			continue
		}
		isJudged := slices.ContainsFunc(m.Stages[min(m.Step, at):at], func(s plan.Stage) bool {
			_, is := s.Wait.(plan.AnalysisWait)
			return is
		})
		if isJudged || !m.HasMoved(m.Progress) || m.Fresh.Ready() == 0 {
			return false
		}
		moving = true
	}
	return in.Source != nil && moving
}

func settled(in Input, d Decision) Decision {
	s := &d.State
	if s.Draining != nil || s.Phase == rollout.Aborting || !areMoved(in, s.Progress) {
		return d
	}
	if hooks, waits := afterwards(in); waits {
		if d.Subject == "" {
			return hooks
		}
		return d
	}
	stable := stableOf(in)
	s.Hooks = pastHooks(s.Hooks)
	in.State = *s
	s.Release, s.Draining, s.Verified = &stable, &rollout.Draining{}, remember(s.Verified, stable.Hash)
	s.Analyses, s.Spent = endedRuns(in), spend(in, *s)
	d.Subject = healthyText(s.App, stable)
	return d
}

func keepFormer(in Input) Decision {
	isNext := isAwaited(in)
	if in.Source == nil {
		return Decision{State: in.State, Waiting: "the app's recorded commit to be read"}
	}
	in.Head.Render = followed(in)
	if workloads.IsPromoting(in.State) {
		return removeFormer(in)
	}
	if !isNext {
		return advance(in)
	}
	d := Decision{State: in.State, Waiting: "the pods of the old version to go"}
	d.State.Progress = nil
	for _, m := range stagedIn(in) {
		next := m.Enter(len(m.Stages), in.Now)
		next.Left = m.Left
		d.State.Progress = append(d.State.Progress, next)
	}
	d.State.Phase, d.Subject = rollout.Promoting, formerGoes(in.State)
	return d
}

func removeFormer(in Input) Decision {
	s := in.State
	for _, m := range stagedIn(in) {
		d := Decision{State: s, Waiting: "the pods of the old version to go"}
		if m.Routing != nil {
			d.Requeue = laterOnly(m.Entered.Add(m.Routing.Settle), in.Now)
		}
		if !d.Requeue.IsZero() || !runsOnly(m.Live, s.Release.Templates[m.Workload]) {
			return d
		}
	}
	s.Pong, s.Stable, s.Draining = swapped(in), s.Release, nil
	s = s.AtRest(rollout.Healthy, s.Reason)
	return Decision{State: s, Subject: fmt.Sprintf("%s all pods are of %s", s.App, s.Stable.Hash)}
}

func formerGoes(s rollout.State) string {
	return fmt.Sprintf("%s removes the pods of %s", s.App, s.Stable.Hash)
}

func stableOf(in Input) rollout.Release {
	stable := *in.State.Release
	stable.Since, stable.Fast = rollout.Second(in.Now), false
	return stable
}

func healthyText(app string, stable rollout.Release) string {
	return fmt.Sprintf("%s healthy at %s (%s by %s)", app, stable.Hash, rollout.ShortID(stable.Commit), stable.Author)
}

func swapped(in Input) []rollout.Workload {
	pong := slices.Clone(in.State.Pong)
	for _, m := range stagedIn(in) {
		if !m.Swaps() {
			continue
		}
		if i := slices.Index(pong, m.Workload); i >= 0 {
			pong = slices.Delete(pong, i, i+1)
		} else {
			pong = append(pong, m.Workload)
		}
	}
	slices.SortFunc(pong, func(a, b rollout.Workload) int { return a.Ref().Compare(b.Ref()) })
	if len(pong) == 0 {
		return nil
	}
	return pong
}
