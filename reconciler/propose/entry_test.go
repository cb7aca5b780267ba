package propose_test

import (
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/cohort"
)

// TestPromoteEntry checks the promotion that lets an app take a shared change before its cohort opens. The file names the head's version.
// The error of a plain promotion names the flag --through entry. If the app does not wait, the promotion is refused.
func TestPromoteEntry(t *testing.T) {
	entry := propose.Action{Verb: rollout.Promote, Through: rollout.ThroughEntry, Release: "h1-9"}
	in := shop()
	refused(t, in, entry, "is not a step")
	in.State = in.State.AtRest(rollout.Healthy, "")
	in.State.Held = &rollout.Held{Reason: rollout.HeldCohort, Message: "release h1-9 of c9 by Ann waits for cohort 2 of 3 (base/web.yaml)"}
	in.Entry = &cohort.Entry{Waits: "cohort 2 of 3 (base/web.yaml)", Release: "h1-9", Commit: rollout.Commit{ID: "c9c9c9c9c9"}}
	file, o := decided(t, in, entry)
	compare.Contains(t, file, "release: h1-9\nthrough: entry")
	compare.Contains(t, file, "commit: c9c9c9c9c9\n")
	compare.Contains(t, o.Effect, "shop does not wait for other apps or clusters")
	compare.CheckNamed(t, "about the head's version", error(nil), entry.StillAbout(in))
	refused(t, in, propose.Action{Verb: rollout.Promote}, "it waits for cohort 2 of 3 (base/web.yaml); to let it take the change now: "+
		"gitrollout promote shop --through entry")
	offers := 0
	for _, a := range propose.Possible(in) {
		if a.Through == rollout.ThroughEntry {
			offers++
		}
	}
	compare.CheckNamed(t, "the offered entries", 1, offers)
	in.Entry.Open = true
	if _, err := to.Decide(in, entry); err == nil || !strings.Contains(err.Error(), "does not wait for other apps") {
		t.Errorf("opened: %v", err)
	}
}
