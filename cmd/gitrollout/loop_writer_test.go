package main

import (
	"errors"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/rollout"
)

// TestWriters checks that cluster.yaml names the process that writes the state branch. The epoch in cluster.yaml grows when another process
// takes over. An exclusive process stops after the takeover. A process that is not exclusive logs a warning and continues.
func TestWriters(t *testing.T) {
	w := newLoopWorld(t, version("v1", halfThenGate))
	wantWriter := func(id string, epoch int) {
		t.Helper()
		c, err := rollout.ParseCluster([]byte(w.repo.Show(stateBranch, rollout.ClusterPath)))
		must(t, err)
		compare.Check(t, rollout.Writer{ID: id, Epoch: epoch}, c.Writer)
	}
	as := func(id string, exclusive bool) *loopProcess {
		w.who.id, w.who.exclusive = id, exclusive
		return w.start()
	}
	ann := as("ann", true)
	ann.awaitHealthy(w.repo.Head())
	wantWriter("ann", 1)
	bob := as("bob", false)
	bob.passWell(3)
	wantWriter("ann", 1) // bob had nothing to record and did not take over
	s := bob.awaitPaused(w.pushVersion("v2"))
	wantWriter("bob", 2)
	w.wantText(w.repo.InBare("log", "-1", "--format=%B", stateBranch), "\nGitrollout-Epoch: 2\n")

	w.decide(s.Release.Hash, "promote", "")
	writes, recorded := w.api.count(), w.repo.Ref(stateBranch)
	for range 3 {
		if err := ann.pass(); !errors.Is(err, reconciler.ErrDeposed) || !strings.Contains(err.Error(), "bob") {
			t.Errorf("an exclusive writer that was taken over from goes on: %v", err)
		}
	}
	w.wantNoWritesSince(writes)
	w.wantRecorded(recorded)

	// A new process with the same writer ID keeps the epoch. If two writers take turns, a warning is logged.
	bob.end()
	bob = as("bob", false)
	bob.await("promoted", func(s rollout.State) bool { return s.Phase != rollout.Paused })
	wantWriter("bob", 2)
	carl := as("carl", false)
	carl.awaitHealthy(s.Release.Commit)
	bob.passWell(2)
	w.wantText(w.log.String(), "another gitrollout process also writes to the state branch")
	bob.awaitPaused(w.pushVersion("v3"))
	wantWriter("bob", 4) // carl and then bob took over
}
