package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

// TestHistoryIsTheRecord checks that an app's history comes from the changes of its record, and not from the messages of state commits.
func TestHistoryIsTheRecord(t *testing.T) {
	repo := fleetRepo(t, 2)
	var stream stateCommits
	at, serial := int64(1_000_000_000), 1
	commit := func(message, app string, change func(*rollout.State)) {
		serial, at = serial+1, at+60
		w := rollout.Workload{Namespace: "fleet", Name: app}
		release := &rollout.Release{
			Commit: strings.Repeat("7", 40), Hash: "h1-0000000007", Author: "Ann <ann@example.com>", Subject: "news",
			Since: time.Unix(at, 0).UTC(),
		}
		s := rollout.State{
			App: app, Path: "apps/" + app, Serial: serial, Phase: rollout.Progressing, Source: release.Commit, Release: release,
			Progress: []rollout.Progress{{Workload: w, Of: 2, Name: "setWeight 50", Weight: 50}},
		}
		change(&s)
		stream.add(t, at, message, s)
	}
	since := time.Unix(at+60, 0).UTC()
	same := func(s *rollout.State) { s.Release.Since = since }
	commit("squashed by somebody", "app-0001", same)
	commit("prod: app-0001 healthy\n\nGitrollout-Cluster: prod\nGitrollout-App: app-0001 phase=Healthy\n", "app-0000", same)
	commit("prod: app-0000 moves\n\nGitrollout-Cluster: prod\nGitrollout-App: app-0000 phase=Paused\n", "app-0001", func(s *rollout.State) {
		same(s)
		s.Phase, s.Reason, s.Progress[0].Step = rollout.Stalled, "no pod is ready", 1
	})
	repo.FastImport(stream.String() + "\n")
	url := repo.HTTP(gittest.HTTPOptions{}).URL
	out := wantExit(t, exitOK, "history", "app-0001", "-o", "json", "--repo", url, "--cluster", "prod")
	var h status.History
	must(t, json.Unmarshal([]byte(out), &h))
	if len(h.Releases) != 2 || h.Releases[0].Hash != "h1-0000000007" || h.Releases[0].Outcome != status.InFlight {
		t.Fatalf("it is %s", out)
	}
	var transitions []string
	for _, transition := range h.Releases[0].Transitions {
		transitions = append(transitions, transition.Text)
	}
	compare.Check(t, []string{
		"Progressing at step 1/2 (setWeight 50, 50%), release h1-0000000007 of 7777777",
		"Stalled at step 2/2 (setWeight 50, 50%), release h1-0000000007 of 7777777: no pod is ready",
	}, transitions)
}

// TestHistoryNamesWhoMadeIt checks the author of a release that was rejected before its first step. The record has no author for this
// release, so the history shows the author of the release's commit. If the commit is missing, the history shows no author.
func TestHistoryNamesWhoMadeIt(t *testing.T) {
	repo := fleetRepo(t, 1)
	head := repo.CommitFiles("faster", map[string]string{"README": "faster"})
	var stream stateCommits
	for i, commit := range []string{"", strings.Repeat("7", 40), head} {
		hash := rollout.Hash(fmt.Sprint("h1-000000000", i))
		since := time.Unix(int64(1_000_000_000+i), 0).UTC()
		s := rollout.State{App: "app-0000", Path: "apps/app-0000", Serial: i + 2, Phase: rollout.Degraded, Source: head,
			Stable: &rollout.Release{Commit: head, Hash: "h1-1111111111", Author: "Ann", Since: time.Unix(1_000_000_000, 0).UTC()},
		}
		if commit != "" {
			s.Rejected = []rollout.Rejection{{Hash: hash, Commit: commit, Reason: "shop/migrate failed", At: since}}
		}
		stream.add(t, since.Unix(), ".", s)
	}
	repo.FastImport(stream.String() + "\n")
	url := repo.HTTP(gittest.HTTPOptions{}).URL
	out := wantExit(t, exitOK, "history", "app-0000", "--repo", url, "--cluster", "prod")
	if n := strings.Count(out, "shop/migrate failed"); n != 2 {
		t.Errorf("%d releases were rejected, want 2:\n%s", n, out)
	}
	want := regexp.MustCompile(`faster  Dev +` + head[:7] + `\n  shop/migrate failed`)
	if len(want.FindAllString(out, -1)) != 1 {
		t.Errorf("it is not named that %q:\n%s", want, out)
	}
}
