package forge

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// TestPullRequestsHaveTheEvidence checks that pull requests quote measurements as code, even if a metrics server sends Markdown.
func TestPullRequestsHaveTheEvidence(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	s := rollout.State{
		App: "shop", Release: &rollout.Release{Hash: "h1-2", Commit: "c2"}, Stable: &rollout.Release{Hash: "h1-1", Commit: "c1"},
		Rejected: []rollout.Rejection{{Hash: "h1-2", Commit: "c2", Reason: "too many errors", At: at}},
		Analyses: []rollout.AnalysisRun{{Name: "web/step-2", Phase: rollout.AnalysisFailed, Metrics: []rollout.MetricProgress{{
			Metric: "errors", Phase: rollout.AnalysisFailed, Failed: 2, Condition: "successCondition: result < 0.01",
			Message: "`@everyone` <b>failed</b>", Evidence: &rollout.Sequential{Tests: []rollout.Test{{}}, Limit: 2000, Metrics: 1},
			Measurements: []rollout.Measurement{{At: at, Value: "0.2"}, {At: at.Add(time.Minute), Value: "0.3"}},
		}}}},
	}
	for _, kind := range []rollout.ProposalKind{rollout.ProposePromotion, rollout.ProposeRevert} {
		compare.Contains(t, describe(rollout.ForgeUpdate{Cluster: "prod", After: s}, rollout.Proposal{Kind: kind}).body,
			"- measured: `web/step-2 errors: Failed, 2 failed; successCondition: result < 0.01; '@everyone' <b>failed</b>; 0.2, "+
				"0.3 from 12:00:00 to 12:01:00 UTC; evidence 1 of 2,000`\n")
	}
}

// TestRetryIsAdvisedWhereItWorks checks that a proposal to revert advises a retry only if the rejected version can be retried.
func TestRetryIsAdvisedWhereItWorks(t *testing.T) {
	s := rollout.State{App: "shop", Rejected: []rollout.Rejection{{Hash: "h1-2", Commit: "c2", Reason: "too many errors"}}}
	for _, can := range []bool{true, false} {
		p := rollout.Proposal{Kind: rollout.ProposeRevert, Retries: can}
		body := describe(rollout.ForgeUpdate{Cluster: "prod", After: s}, p).body
		compare.CheckNamed(t, "it can be tried again, in:\n"+body, can, strings.Contains(body, "`gitrollout retry shop`"))
	}
}

// TestTextsOfPullRequests checks that a pull request's text has the changes, the release's state, and the effect of a merge.
func TestTextsOfPullRequests(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	s := rollout.State{
		App: "shop",
		Release: &rollout.Release{Hash: "h1-2", Commit: "2222222222", Author: "Ann <ann@example.com>",
			Subject: "Cheaper\n" + strings.Repeat("x", 120)},
		Stable: &rollout.Release{Hash: "h1-1", Commit: "1111111111", Subject: "Before"},
	}
	web, db := rollout.Workload{Namespace: "shop", Name: "web"}, rollout.Workload{Kind: "StatefulSet", Namespace: "shop", Name: "db"}
	changes := []rollout.Change{
		{Ref: rollout.Ref{Kind: "Namespace", Name: "shop"}, Verb: "added"},
		{Ref: rollout.Ref{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "web"}, Verb: "changed",
			Images: []rollout.ImageChange{{Container: "web", From: "v`1", To: "v2"}, {Container: "new", To: "v1"}, {Container: "old", From: "v1"}}},
	}
	p := rollout.Proposal{Kind: rollout.ProposePromotion, Gate: 1, Changes: changes, Standing: []rollout.Standing{
		{Progress: rollout.Progress{Workload: web, Step: 1, Of: 4, Name: "pause", Weight: 20, Entered: at.In(time.FixedZone("", 3600))}, Ready: 1,
			Replicas: 5, Problem: "CrashLoop"},
		{Progress: rollout.Progress{Workload: db, Step: 3, Of: 3, Name: "promote", Entered: at}, Ready: 3, Replicas: 3},
	}}
	got := describe(rollout.ForgeUpdate{Cluster: "prod", After: s}, p)
	want := text{"Promote shop in prod past step 2/4: Cheaper " + strings.Repeat("x", 111) + "…",
		"Merging this lets release `h1-2` of **shop** in **prod** continue past step 2 of 4.\n" +
			"\n### What changes\n\n- commit `2222222` by `Ann <ann@example.com>`: `Cheaper " + strings.Repeat("x", 120) + "`\n" +
			"- Namespace `shop` added\n- Deployment `shop/web` changed\n  - image of `web`: `v'1` → `v2`\n  - image of `new`: `none` → `v1`\n" +
			"  - image of `old`: `v1` → `none`\n" +
			"\n### Where it stands\n\n- `shop/web` is at step 2 of 4 (`pause`) since 2026-11-20T12:00:00Z, with a weight of 20 %.\n" +
			"  1 of 5 pods of the new version were ready when this was written.\n  A pod of the new version has a problem: `CrashLoop`.\n" +
			"- `StatefulSet/shop/db` is at step 3 of 3 (`promote`) since 2026-11-20T12:00:00Z, with a weight of 0 %.\n" +
			"  3 of 3 pods of the new version were ready when this was written.\n" +
			"- `h1-1` of commit `1111111` is the stable version: it serves the other traffic, and a rollback restores it.\n" +
			"\n### If you merge\n\nThe release continues with the next step. It changes only `.gitrollout/prod/promote/shop.yaml`. " +
			"This file names the release, so a late merge approves no other release. Squash, rebase and merge commits all work.\n" +
			"\n### If you do not\n\nThe release stays where it is. Closing this changes nothing.\n" +
			"\n### To undo\n\nBefore or after the merge, revert the commits of the release: `gitrollout undo shop` proposes that, " +
			"for this app alone. A merged revert returns traffic to stable. " +
			"To stop the release and keep the manifests: `gitrollout abort shop`.\n"}
	compare.CheckNamed(t, "a promotion", want, got)
	over := s
	over.Release = nil
	compare.CheckNamed(t, "a promotion after its end", text{"Promote shop in prod", "This promotion is no longer wanted.\n"},
		describe(rollout.ForgeUpdate{Cluster: "prod", After: over}, p))
	s.Rejected = []rollout.Rejection{{Hash: "h1-2", Commit: "2222222222", Reason: "too\nmany errors", At: at}}
	p = rollout.Proposal{Kind: rollout.ProposeRevert, Sharers: []string{"cart", "till"}, Retries: true}
	got = describe(rollout.ForgeUpdate{Cluster: "prod", After: s}, p)
	want = text{"Revert shop in prod to 1111111",
		"A release of **shop** in **prod** was rejected, and the stable version serves. Git still requests the rejected version; " +
			"merging this makes Git agree with the cluster. No pod changes.\n" +
			"\n### Why\n\n- `too many errors`\n- release `h1-2` of commit `2222222`, rejected at 2026-11-20T12:00:00Z\n" +
			"\n### What merging changes\n\n- the objects could not be compared\n- Afterwards Git requests `h1-1` of commit `1111111` again: " +
			"`Before`\n" +
			"\n**It also changes files of other apps: `cart, till`.** Look at their renders before you merge.\n" +
			"\n### Instead\n\nPush a fix: a new version is a new release. To try the same version again: `gitrollout retry shop`.\n"}
	compare.CheckNamed(t, "a revert", want, got)
	for n, more := range map[int]string{20: "", 21: "- and 1 more objects\n", 23: "- and 3 more objects\n"} {
		listed := markdown("changes", make([]rollout.Change, n))
		if lines := strings.Count(listed, "\n"); !strings.HasSuffix(listed, more) || lines != min(n, 21) {
			t.Errorf("of %d changes %d lines:\n%s", n, lines, listed)
		}
	}
	for why, want := range map[string]string{"": goneText + "\n", "merged": goneText + "\n\nWhat happened: `merged`\n"} {
		compare.CheckNamed(t, "gone", text{"t", want}, describeGone(pull{text: text{title: "t"}}, why))
	}
	compare.CheckNamed(t, "a long text", "`"+strings.Repeat("'", 299)+"…`", code(strings.Repeat("`", 301)))
}

// TestTextOfApprovals checks the text of a proposal that lets apps into a stage. The text names at most 20 apps.
func TestTextOfApprovals(t *testing.T) {
	p := rollout.Proposal{Kind: rollout.ProposePromotion, Enters: []string{"a0"},
		Approves: rollout.Commit{ID: "2222222222", Author: "Ann <ann@example.com>", Subject: "Faster @all"}}
	got := describe(rollout.ForgeUpdate{Cluster: "prod"}, p)
	compare.CheckNamed(t, "title", "Let a0 take 2222222 in prod", got.title)
	compare.Contains(t, got.body, "- commit `2222222` by `Ann <ann@example.com>`: `Faster @all`\n\n"+
		"The change is for these apps:\n\n- `a0`\n\n### If")
	for i := range 50 {
		p.Enters = append(p.Enters, fmt.Sprintf("b%d", i))
	}
	got = describe(rollout.ForgeUpdate{Cluster: "prod"}, p)
	compare.CheckNamed(t, "title", "Let 51 apps take 2222222 in prod", got.title)
	compare.Contains(t, got.body, "- `b17`\n- `b18`\n- and 31 others\n\n### If")
}

// TestStatusesOf checks, for each type of transition, the statuses and the commits that get them.
func TestStatusesOf(t *testing.T) {
	one, two := paused(sha("1"), 1).After, paused(sha("2"), 1).After
	healthy := rollout.State{App: "shop", Phase: rollout.Healthy, Stable: one.Stable}
	at := func(phase rollout.Phase, step int) rollout.State {
		return rollout.State{Phase: phase, Release: &rollout.Release{Commit: "new"}, Stable: &rollout.Release{Commit: "old"}, Reason: "a reason",
			Progress: []rollout.Progress{{Step: step, Of: 3, Name: "pause", Weight: 20}}}
	}
	rest := rollout.State{Phase: rollout.Healthy, Stable: &rollout.Release{Commit: "old"}}
	with := func(s rollout.State, change func(*rollout.State)) rollout.State { change(&s); return s }
	for name, c := range map[string]struct {
		before, after rollout.State
		want          string
	}{
		"begins":      {healthy, one, "1 pending Paused, step 2/4 (pause) at 20 %"},
		"the same":    {one, one, ""},
		"superseded":  {one, two, "2 pending Paused, step 2/4 (pause) at 20 %; 1 failure superseded by " + sha("2")[:7]},
		"taken back":  {one, healthy, "stable success serving; 1 failure taken back"},
		"nothing yet": {rollout.State{}, rollout.State{Phase: rollout.Pending}, ""},
		"held": {healthy, with(healthy, func(s *rollout.State) {
			s.Held = &rollout.Held{Message: "app.yaml: is wrong", Commit: sha("2")}
		}), "2 failure not followed: app.yaml: is wrong"},
		"nothing is known": {rollout.State{}, rollout.State{}, ""},
		"it serves":        {rollout.State{}, rest, "old success serving"},
		"it is through":    {at(rollout.Progressing, 2), at(rollout.Promoting, 3), "new pending Promoting, step 3/3 (pause) at 20 %"},
		"it goes back":     {at(rollout.Paused, 1), at(rollout.Aborting, 1), "new failure going back to stable: a reason"},
		"it was rejected": {at(rollout.Aborting, 1), with(rest, func(s *rollout.State) {
			s.Phase, s.Rejected = rollout.Degraded, []rollout.Rejection{{Commit: "new", Reason: "slow"}}
		}), "new failure rejected: slow"},
		"it is tried again": {at(rollout.Paused, 1),
			with(at(rollout.Paused, 1), func(s *rollout.State) { s.Release = &rollout.Release{Commit: "new"} }), ""},
		"it waits": {rest, with(rest, func(s *rollout.State) {
			s.Held = &rollout.Held{Reason: rollout.HeldClosed, Commit: "later", Message: "until Monday"}
		}), "later pending until Monday"},
		"held, by no commit": {rollout.State{}, with(rest, func(s *rollout.State) { s.Held = &rollout.Held{Reason: "Adoption"} }),
			"old success serving"},
		"not well": {rollout.State{}, rollout.State{Phase: rollout.Degraded}, ""},
		"a long reason": {at(rollout.Paused, 1), with(at(rollout.Aborting, 1), func(s *rollout.State) {
			s.Reason = strings.Repeat("x", 200)
		}), "new failure going back to stable: " + strings.Repeat("x", 117) + "…"},
	} {
		var got []string
		for _, m := range statusesOf(rollout.ForgeUpdate{Before: c.before, After: c.after}) {
			commit := m.commit
			for _, known := range []string{"1", "2", "stable"} {
				if commit == sha(known) {
					commit = known
				}
			}
			got = append(got, fmt.Sprintf("%s %s %s", commit, m.state, m.description))
		}
		compare.CheckNamed(t, name, c.want, strings.Join(got, "; "))
	}
}
