package main

import (
	"errors"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/rollout"
)

// TestWriters records the writer in cluster.yaml, with a new epoch at each take-over. A second writer is reported, and
// an exclusive writer stops for it.
func TestWriters(t *testing.T) {
	w := newLoopWorld(t, version("v1", halfThenGate))
	writer := func() rollout.Writer {
		t.Helper()
		c, err := rollout.ParseCluster([]byte(w.repo.Show(stateBranch, rollout.ClusterPath)))
		if err != nil {
			t.Fatal(err)
		}
		return c.Writer
	}
	as := func(id string, exclusive bool) *loopProcess {
		w.who.id, w.who.exclusive = id, exclusive
		return w.start()
	}
	ann := as("ann", true)
	ann.awaitHealthy(w.repo.Head())
	if got, want := writer(), (rollout.Writer{ID: "ann", Epoch: 1}); got != want {
		t.Errorf("the first writer is %v, want %v", got, want)
	}
	bob := as("bob", false)
	if err := bob.passes(3); err != nil || writer().ID != "ann" {
		t.Errorf("nothing is to be done, and bob took over (%v)", err)
	}
	second := w.push("v2", version("v2", halfThenGate))
	s := bob.awaitPaused(second)
	if got, want := writer(), (rollout.Writer{ID: "bob", Epoch: 2}); got != want {
		t.Errorf("the second writer is %v, want %v", got, want)
	}
	if body := w.repo.InBare("log", "-1", "--format=%B", stateBranch); !strings.Contains(body, "\nGitrollout-Epoch: 2\n") {
		t.Errorf("the commit does not name its epoch:\n%s", body)
	}

	w.decide(s.Release.Hash, "promote", "")
	writes, recorded := w.api.count(), w.repo.Ref(stateBranch)
	for range 3 {
		if err := ann.pass(); !errors.Is(err, reconciler.ErrDeposed) || !strings.Contains(err.Error(), "bob") {
			t.Errorf("an exclusive writer that was taken over from goes on: %v", err)
		}
	}
	if made := w.api.since(writes); len(made) > 0 || w.repo.Ref(stateBranch) != recorded {
		t.Errorf("it wrote %v, recorded %v", made, w.history())
	}

	// The same host continues its epoch; another one that is not alone is reported.
	bob.end()
	bob = as("bob", false)
	bob.await("promoted", func(s rollout.State) bool { return s.Phase != rollout.Paused })
	if got, want := writer(), (rollout.Writer{ID: "bob", Epoch: 2}); got != want {
		t.Errorf("the same writer again is %v, want %v", got, want)
	}
	carl := as("carl", false)
	carl.awaitHealthy(second)
	if err := bob.passes(2); err != nil || !strings.Contains(w.log.String(), "another gitrollout writes to the state branch") {
		t.Errorf("error %v, and nothing in the log about two writers", err)
	}
	bob.awaitPaused(w.push("v3", version("v3", halfThenGate)))
	if got, want := writer(), (rollout.Writer{ID: "bob", Epoch: 4}); got != want {
		t.Errorf("after two take-overs the writer is %v, want %v", got, want)
	}
}
