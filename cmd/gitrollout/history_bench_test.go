package main

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/rollout"
)

// BenchmarkHistory reads one app's history from 20,000 commits of 200 apps: ten releases, and all of it.
func BenchmarkHistory(b *testing.B) {
	const apps, commits = 200, 20_000
	repo := fleetRepo(b, apps)
	var stream strings.Builder
	for i := range commits {
		app := fmt.Sprintf("app-%04d", i%apps)
		n := i / apps // of this app: release, gate, healthy, in turn
		r := &rollout.Release{Commit: fmt.Sprintf("%040d", n/3), Hash: rollout.Hash(fmt.Sprintf("h1-%010d", n/3)), Author: "Ann <ann@example.com>", Subject: "news", Since: at().Add(time.Duration(n/3) * time.Hour)}
		s := rollout.State{App: app, Path: "apps/" + app, Serial: n + 2, Phase: rollout.Paused, Source: r.Commit, Release: r, Progress: []rollout.Progress{{Workload: rollout.Workload{Namespace: "fleet", Name: app}, Step: n % 3, Of: 2}}}
		if n%3 == 2 {
			s.Phase, s.Stable, s.Release, s.Progress = rollout.Healthy, r, nil, nil
		}
		data, err := s.Encode()
		if err != nil {
			b.Fatal(err)
		}
		message := fmt.Sprintf("prod: %s news\n\nGitrollout-Cluster: prod\nGitrollout-App: %s phase=%s\n", app, app, s.Phase)
		from := ""
		if i == 0 {
			from = "from refs/heads/gitrollout/state/prod^0\n"
		}
		fmt.Fprintf(&stream, "commit refs/heads/gitrollout/state/prod\ncommitter a <a@b> %d +0000\ndata %d\n%s%sM 644 inline %s\ndata %d\n%s\n", 1_000_000_000+60*i, len(message), message, from, rollout.StatePath(app), len(data), data)
	}
	repo.FastImport(stream.String() + "\n")
	url := repo.HTTP(gittest.HTTPOptions{}).URL
	for _, limit := range []int{3, 10, 1000} {
		b.Run(fmt.Sprintf("limit=%d", limit), func(b *testing.B) {
			for b.Loop() {
				w, err := openWorld(b.Context(), &sourceOptions{repo: url, branch: "main", cluster: "prod"}, streams{out: io.Discard, err: io.Discard})
				if err != nil {
					b.Fatal(err)
				}
				h, err := w.History(b.Context(), "app-0007", limit, 30_000)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(len(h.Releases)), "releases")
			}
		})
	}
}
