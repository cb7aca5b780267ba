package main

import (
	"fmt"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/rollout"
)

// BenchmarkHistory reads the newest 3, the newest 10, and all releases of one app. The state branch has 20,000 commits for 200 apps.
func BenchmarkHistory(b *testing.B) {
	const apps, commits = 200, 20_000
	repo := fleetRepo(b, apps)
	var stream stateCommits
	for i := range commits {
		app := fmt.Sprintf("app-%04d", i%apps)
		n := i / apps // each release of an app has three commits: two steps and Healthy
		r := &rollout.Release{
			Commit: fmt.Sprintf("%040d", n/3), Hash: rollout.Hash(fmt.Sprintf("h1-%010d", n/3)),
			Author: "Ann <ann@example.com>", Subject: "news", Since: at().Add(time.Duration(n/3) * time.Hour),
		}
		s := rollout.State{
			App: app, Path: "apps/" + app, Serial: n + 2, Phase: rollout.Paused, Source: r.Commit, Release: r,
			Progress: []rollout.Progress{{Workload: rollout.Workload{Namespace: "fleet", Name: app}, Step: n % 3, Of: 2}},
		}
		if n%3 == 2 {
			s.Phase, s.Stable, s.Release, s.Progress = rollout.Healthy, r, nil, nil
		}
		message := fmt.Sprintf("prod: %s news\n\nGitrollout-Cluster: prod\nGitrollout-App: %s phase=%s\n", app, app, s.Phase)
		stream.add(b, int64(1_000_000_000+60*i), message, s)
	}
	repo.FastImport(stream.String() + "\n")
	url := repo.HTTP(gittest.HTTPOptions{}).URL
	for _, limit := range []int{3, 10, 1000} {
		b.Run(fmt.Sprintf("limit=%d", limit), func(b *testing.B) {
			for b.Loop() {
				h, err := openFleet(b, url).History(b.Context(), "app-0007", limit, 30_000)
				must(b, err)
				b.ReportMetric(float64(len(h.Releases)), "releases")
			}
		})
	}
}
