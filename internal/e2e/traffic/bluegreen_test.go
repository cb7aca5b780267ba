package traffic

import (
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// TestBlueGreen switches the Service behind each kind of route, and reverts it by a commit.
func TestBlueGreen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, beside, each(provider.blueGreen)...)
	w.users(slow)
	commit, at := w.push("v2", func(s shop) shop { return s.at("v2") })
	for _, a := range w.apps {
		a.awaitPaused(at, 1)
	}
	w.switched(w.decide(rollout.Promote, "2"), "v2")
	at = time.Now()
	w.repo.Revert(commit)
	w.switched(at, "v1")
	w.quiet()
}

// switched waits for the end of a release and checks that it got all requests after the switch was recorded and
// settled.
func (w *world) switched(since time.Time, version string) {
	w.t.Helper()
	for _, a := range w.apps {
		a.awaitHealthy(since)
	}
	for _, a := range w.apps {
		record := a.await(since, "switched", func(s rollout.State) bool {
			return len(s.Progress) == 1 && strings.HasPrefix(s.Progress[0].Name, "switch")
		})
		healthy, some := a.awaitHealthy(record.at), a.after(a.allFrom(record))
		all := a.load.Results()
		took := changed(all.Between(record.at, record.at.Add(2*w.settled)), version, 0, 1).Sub(record.at)
		all.Between(since, record.at).WantShare(w.t, a.String()+" before the switch", version, 0)
		some.WantShare(w.t, a.String()+" after the switch", version, 1)
		w.t.Logf("%-10s switched to %s: all of %d requests; from the state's commit to the change %s; from the push %s, healthy after %s", a,
			version, len(some),
			took.Round(10*time.Millisecond), (record.at.Sub(since) +
				took).Round(10*time.Millisecond), healthy.at.Sub(since).Round(10*time.Millisecond))
	}
}
