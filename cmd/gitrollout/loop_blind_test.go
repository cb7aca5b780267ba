package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestClusterAlone shows users without access to Git the state in the cluster, and names the missing parts.
func TestClusterAlone(t *testing.T) {
	w := newLoopWorld(t, version("v1", halfThenGate))
	p := w.start()
	p.awaitHealthy(w.repo.Head())
	s := p.awaitPaused(w.push("v2", version("v2", halfThenGate)))

	look := func(want exitCode, args ...string) string {
		t.Helper()
		var out bytes.Buffer
		if got := run(t.Context(), append(args, "--kubeconfig", w.api.kubeconfig, "--cluster", "test"), strings.NewReader(""), &out, &out); exitCode(got) != want {
			t.Errorf("%v: exit code %d, want %d\n%s", args, got, want, &out)
		}
		return out.String()
	}
	text := look(exitOK, "get", w.app, "--cluster-only")
	w.wantText(text, "Progressing", string(s.Release.Hash), string(s.Stable.Hash), "held between the steps of release ", "canary", "3/3 ready", "shown from the cluster alone", "--cluster-only")
	w.wantText(look(exitOK, "get", w.app, "--repo", "http://127.0.0.1:1/gone.git"), string(s.Release.Hash), "shown from the cluster alone", "unreachable")
	w.wantText(look(exitOK, "list", w.app, "--cluster-only", "--phase", "Progressing"), w.app+" ", "Progressing", "3/3")
	w.wantText(look(exitFailed, "get", "nonsense", "--cluster-only"), `no workload of an app "nonsense"`)
	w.wantText(look(exitCluster, "get", w.app, "--repo", w.server.URL, "--context", "nowhere"), `context "nowhere" does not exist`)
	look(exitGit, "get", w.app, "--repo", "http://127.0.0.1:1/gone.git", "--context", "nowhere")

	w.decide(s.Release.Hash, "promote", "")
	p.awaitHealthy(s.Release.Commit)
	w.wantText(look(exitOK, "get", w.app, "--cluster-only"), "Unknown", string(s.Release.Hash), "whether Git asks for another one")
}
