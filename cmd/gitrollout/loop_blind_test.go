package main

import "testing"

// TestClusterAlone checks that users without access to Git see the state of the app in the cluster, and a note about the missing parts.
func TestClusterAlone(t *testing.T) {
	w, p, s := newPausedWorld(t)

	look := func(want exitCode, args ...string) string {
		t.Helper()
		return wantExit(t, want, append(args, "--kubeconfig", w.api.kubeconfig, "--cluster", "test")...)
	}
	const gone, alone = "--repo=http://127.0.0.1:1/gone.git", "shown from the cluster alone"
	w.wantText(look(exitOK, "get", w.app, "--cluster-only"), "Progressing", string(s.Release.Hash), string(s.Stable.Hash),
		"held between the steps of release ", "canary", "3/3 ready", alone, "--cluster-only")
	w.wantText(look(exitOK, "get", w.app, gone), string(s.Release.Hash), alone, "unreachable")
	w.wantText(look(exitOK, "list", w.app, "--cluster-only", "--phase", "Progressing"), w.app+" ", "Progressing", "3/3")
	w.wantText(look(exitFailed, "get", "nonsense", "--cluster-only"), `no workload of an app "nonsense"`)
	w.wantText(look(exitCluster, "get", w.app, "--repo", w.server.URL, "--context", "nowhere"), `context "nowhere" does not exist`)
	look(exitGit, "get", w.app, gone, "--context", "nowhere")
	w.wantText(look(exitGit, "list", "-l", "app=app", gone), "--selector needs the labels in Git", "unreachable")

	w.decide(s.Release.Hash, "promote", "")
	p.awaitHealthy(s.Release.Commit)
	w.wantText(look(exitOK, "get", w.app, "--cluster-only"), "Unknown", string(s.Release.Hash), "whether Git has a newer version is not")
}
