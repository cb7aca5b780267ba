package main

import (
	"fmt"
	"maps"
	"testing"

	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/internal/testcluster"
	"gitrollout.dev/gitrollout/rollout"
)

// TestRestartOfManyCommits starts a process when each app is at a different commit, and the head is a later commit.
// The process must fetch all these commits with one request to the Git server.
func TestRestartOfManyCommits(t *testing.T) {
	t.Parallel()
	const apps = 8
	kube := testcluster.Shared(t)
	repo := gittest.New(t)
	server := repo.HTTP(gittest.HTTPOptions{})
	version := func(i int, v string) map[string]string { return appFiles(fmt.Sprintf("app%d", i), gate, v) }
	all := func(v string) map[string]string {
		files := map[string]string{}
		for i := range apps {
			maps.Copy(files, version(i, v))
		}
		return files
	}
	repo.Write(map[string]string{configFile: configOf(kube.Namespace(t), "- path: apps/*")})
	repo.CommitFiles("first versions", all("v1"))
	l := startLoop(t, server, kube)
	are := func(n int, is func(rollout.State) bool) func(map[string]rollout.State) bool {
		return func(states map[string]rollout.State) bool {
			found := 0
			for _, s := range states {
				if is(s) {
					found++
				}
			}
			return found >= n
		}
	}
	l.await(t, repo, "all healthy", are(apps, func(s rollout.State) bool { return s.Phase == rollout.Healthy }))
	for i := range apps {
		repo.CommitFiles(fmt.Sprintf("app%d", i), version(i, "v2"))
		l.await(t, repo, "one more at its gate", are(i+1, paused))
	}
	sources := map[string]bool{}
	for _, s := range statesOf(t, repo) {
		sources[s.Source] = true
	}
	if len(sources) != apps {
		t.Fatalf("the apps are at %d commits, want %d", len(sources), apps)
	}
	l.close()
	third := repo.CommitFiles("third versions", all("v3"))

	l = startLoop(t, server, kube)
	l.await(t, repo, "all at the gate of their third version", are(apps, func(s rollout.State) bool {
		return paused(s) && s.Release.Commit == third
	}))
	if got := l.costs().fetches; got > 4 {
		t.Errorf("it fetched %d times, want at most 4: main and the state, the %d commits, and pushes made meanwhile",
			got, apps)
	}
}
