package strategies

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

const watchRun = "/watch"

// watchedIn returns the release that a watch may follow: the stable release, even while old pods stay. It returns nil
// during a later release or a rollback.
func watchedIn(s rollout.State) *rollout.Release {
	switch s = workloads.Reopened(s); {
	case s.Phase == rollout.Aborting:
		return nil
	case s.Draining != nil:
		return s.Release
	case s.Release == nil:
		return s.Stable
	}
	return nil
}

// unwatched returns the input as if the watched release were still promoting.
func unwatched(in Input) (Input, bool) {
	s, w := &in.State, in.State.Watch
	release := watchedIn(*s)
	if w == nil || release == nil {
		return in, false
	}
	again, former := *release, w.Former
	again.Since = w.Began
	s.Release, s.Stable, s.Draining, s.Progress, s.Phase = &again, &former, nil, nil, rollout.Promoting
	for _, spec := range releaseSpecs(in) {
		if was := former.Templates[spec.Workload]; was != "" && was != again.Templates[spec.Workload] {
			p := in.plans.Of(spec)
			s.Progress = append(s.Progress, p.Enter(len(p.Stages), in.Now))
		}
	}
	return in, true
}

func watchRuns(in Input) (runs []runOf) {
	was, is := unwatched(in)
	if !is {
		return nil
	}
	for _, m := range stagedIn(was) {
		if a := m.Spec.Watched(); a != nil && in.Now.Before(watchedIn(in.State).Since.Add(a.For)) {
			runs = append(runs, runOf{Staged: m, name: m.Label + watchRun, analysis: a, before: in.State.Watch.Began})
		}
	}
	return runs
}

// withWatch begins and ends watches. A release of a verified version has no watch, because the previous version may be
// worse.
func withWatch(in, _ Input, d Decision) Decision {
	s, was, release := &d.State, in.State, watchedIn(d.State)
	switch {
	case d.Stale:
		return d
	case was.Watch == nil:
		if release == nil || was.Release == nil || was.Stable == nil || was.Draining != nil || was.Release.Fast ||
			in.HeadErr() != nil || in.Head.Render.Release() != release.Hash {
			return d
		}
		in.State = *s
		in.State.Watch = &rollout.Watch{Until: in.Now, Began: was.Release.Since, Former: *was.Stable}
		for _, w := range watchRuns(in) {
			s.Watch = in.State.Watch
			s.Watch.Until = rollout.Later(s.Watch.Until, release.Since.Add(w.analysis.For))
		}
		if s.Watch == nil {
			return d
		}
	case release == nil || release.Hash != watchedIn(was).Hash:
		s.Watch = nil
		return d
	default:
		if why := watchEnd(in); why != "" {
			s.Watch = nil
			d.Subject = cmp.Or(d.Subject, fmt.Sprintf("%s watch of %s ended: %s", s.App, release.Hash, why))
			return d
		}
		in.State = *s
	}
	for _, w := range watchRuns(in) {
		d.Requeue = rollout.Soonest(d.Requeue, release.Since.Add(w.analysis.For))
	}
	d.Waiting = cmp.Or(d.Waiting, fmt.Sprintf("the end of the watch, until %s (if an analysis fails: back to %s)",
		s.Watch.Until.Format(time.RFC3339), s.Watch.Former.Hash))
	return d
}

func watchEnd(in Input) string {
	w, head, release, runs := in.State.Watch, in.Head.Render, watchedIn(in.State), watchRuns(in)
	goesOn := func(r runOf) bool {
		is, found := rollout.Find(Runs(in), r.isRun)
		return !found || !is.Phase.Done() || is.Phase == rollout.AnalysisFailed
	}
	switch {
	case in.Promotion.Says(rollout.Abort, release.Hash):
		return abortedBy(in.Promotion)
	case head != nil && head.Release() != release.Hash:
		return "Git has another version"
	case !in.Now.Before(w.Until):
		return "no analysis has failed"
	case head != nil && len(runs) == 0:
		return "Git no longer has a watch"
	case in.Left == nil && !in.Unread:
		return fmt.Sprintf("commit %s of %s cannot be read any more", rollout.ShortID(w.Former.Commit), w.Former.Hash)
	case len(runs) > 0 && !slices.ContainsFunc(runs, goesOn):
		return "all analyses have ended"
	}
	return ""
}

func watchFailed(in Input) string {
	runs := watchRuns(in)
	for _, r := range Runs(in) {
		isOurs := slices.ContainsFunc(runs, func(w runOf) bool { return w.isRun(r) })
		if isOurs && r.Phase == rollout.AnalysisFailed && watchEnd(in) == "" {
			return fmt.Sprintf("after the promotion, analysis %s failed: %s", r.Name, evidence(r))
		}
	}
	return ""
}

func wayBack(in Input) (Decision, bool) {
	reason := watchFailed(in)
	was, is := unwatched(in)
	if !is || reason == "" {
		return Decision{}, false
	}
	was.State.Watch = nil
	d := rollback(was, cause{reason: reason, to: was.State.Stable.Commit, reject: true})
	d.State.Verified = remember(d.State.Verified, was.State.Stable.Hash)
	return d, true
}
