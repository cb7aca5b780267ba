package traffic

import (
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// TestBlueGreen switches the Service behind each provider's route to a new version, and reverts the version in Git.
func TestBlueGreen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, beside, each(provider.blueGreen)...)
	w.users(slow)
	commit, at := w.release("v2")
	w.paused(at, 1)
	w.switched(w.decide(rollout.Promote, "2"), "v2")
	at = time.Now()
	w.repo.Revert(commit)
	w.switched(at, "v1")
	w.quiet()
}

// switched waits for the end of a release. The version must get no requests before the switch is recorded, and all requests once the settle
// time after this record has passed.
func (w *world) switched(since time.Time, version string) {
	w.t.Helper()
	recorded := func(a *app) record {
		return a.await(since, "switched", func(s rollout.State) bool {
			return len(s.Progress) == 1 && strings.HasPrefix(s.Progress[0].Name, "switch")
		})
	}
	w.allTo(version, since, 0, recorded)
	for _, a := range w.apps {
		a.load.Results().Between(since, recorded(a).at).WantShare(w.t, a.String()+" before the switch", version, 0)
	}
}
