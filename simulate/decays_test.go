package simulate

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// randomWatch gives most workloads a watch that follows the promotion.
func randomWatch(rng *rand.Rand, w *workloadSource) {
	strategy := &w.canary
	if w.blueGreen != nil {
		strategy = &w.blueGreen
	}
	*strategy = maps.Clone(*strategy)
	if delete(*strategy, "watch"); rng.IntN(5) > 0 {
		(*strategy)["watch"] = map[string]any{"for": []string{"2m", "4m", "10m"}[rng.IntN(3)],
			"templates": []any{map[string]any{"templateName": "after"}}}
	}
}

func (w workloadSource) isWatched() bool {
	return w.canary["watch"] != nil || w.blueGreen["watch"] != nil
}

// wayBack reports whether a record begins the rollback of a stable version because the version's watch failed.
func wayBack(was, is rollout.State) bool {
	return was.Release == nil && is.Release != nil && is.Phase == rollout.Aborting && strings.HasPrefix(is.Reason, "after the promotion")
}

// checkWatch checks each rollback that a watch begins. A watch must begin at most one rollback, and only after a failed measurement. The
// deciding process must know no newer version.
func (p *promises) checkWatch(by *actor, app string, was, is rollout.State) {
	if !wayBack(was, is) || p.u.chaos.meddling {
		return
	}
	if was.Watch == nil {
		p.fail(lawWatch, "%s: %s goes back without a watch: %s", app, is.Release.Hash, is.Reason)
		return
	}
	p.u.played["went back after the promotion"]++
	watch := p.u.ids[app] + string(is.Release.Hash) + was.Watch.Until.String()
	if p.watches[watch] {
		p.fail(lawWatch, "%s: the watch of %s goes back twice", app, is.Release.Hash)
	}
	p.watches[watch] = true
	if !p.hasDecayed(was) {
		p.fail(lawWatch, "%s: %s goes back, and no measurement has failed since its promotion", app, is.Release.Hash)
	}
	if by == nil || p.u.chaos.pumps || !is.Rollback.Routed.Equal(rollout.Second(by.visits)) {
		return // the decision may be older than the process's newest fetch
	}
	if r := p.u.oracle.at(app, by.seen); r != nil && by.seen == by.Clone.Main && r.Release() != was.Stable.Hash {
		p.fail(lawWatch, "%s: the watch of %s acts, although Git has %s", app, was.Stable.Hash, r.Release())
	}
}

// hasDecayed reports whether a measurement of a record's watch has failed, which permits a rollback of the stable version.
func (p *promises) hasDecayed(s rollout.State) bool {
	return s.Watch != nil && slices.ContainsFunc(p.bad, func(m strategies.Measured) bool {
		return m.Phase == rollout.AnalysisFailed && m.Release == s.Stable.Hash && !m.Started.Before(s.Stable.Since)
	})
}

// checkWatched checks, when no event is due, that no watch continues after a push of another version.
func (p *promises) checkWatched() {
	head := p.u.git.Head(testBranch)
	isAway := func(a *actor) bool { return a.err != nil }
	if slices.ContainsFunc(p.u.procs, isAway) || p.u.kube.Now.Before(p.u.gitDown) || p.u.kube.Now.Before(p.u.pushDown) {
		return
	}
	for _, a := range p.u.head().apps {
		s, r := p.u.oracle.states[a.name], p.u.oracle.at(a.name, head)
		if s.Watch != nil && r != nil && r.Release() != s.Stable.Hash {
			p.fail(lawWatch, "%s: the watch of %s outlives a push of %s", a.name, s.Stable.Hash, r.Release())
		}
	}
}

// isWatching reports whether a measurement belongs to the present watch of a record.
func isWatching(s rollout.State, m strategies.Measure) bool {
	return s.Watch != nil && s.Stable.Hash == m.Release && !m.Started.Before(s.Stable.Since)
}

// blinkered is a mutation that renders newer commits as the watched version, so that the watch continues.
func blinkered(p starting, app string, r *rollout.Render) {
	s := p.u.oracle.states[app]
	if s.Watch == nil || s.Release != nil {
		return
	}
	commits := p.u.history
	if seen := p.u.oracle.at(app, s.Source); seen != nil && slices.Index(commits, r.Commit.ID) > slices.Index(commits, s.Source) {
		commit := r.Commit
		*r = *seen
		r.Commit = commit
	}
}

// TestWatchesGoBack checks that some watches of the world Decays begin a rollback. Otherwise, checkWatch would check nothing.
func TestWatchesGoBack(t *testing.T) {
	at, back := slices.IndexFunc(worlds, func(w world) bool { return w.name == "Decays" }), 0
	for seed := range uint64(30) {
		back += seedRun{at, seed + 1}.outcome().played["went back after the promotion"]
	}
	if back == 0 {
		t.Error("no watch goes back in 30 runs")
	}
}
