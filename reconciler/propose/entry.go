package propose

import (
	"errors"
	"fmt"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// promoteEntry lets an app take a shared change before its cohort.
func promoteEntry(in strategies.Input) (decision, error) {
	e := in.Entry
	if e.Open {
		return decision{}, errors.New("it may take the change already")
	}
	p := &rollout.Promotion{Release: e.Release, Decision: rollout.Promote, Through: rollout.ThroughEntry,
		At: rollout.Second(in.Now).Format(time.RFC3339)}
	return decision{promotion: p, subject: fmt.Sprintf("Let %s take %s", in.App.Name, e.Commit.Short()),
		then: in.App.Name + " does not wait for other apps or clusters; " + watchHint(in.App.Name)}, nil
}

// entry returns the action that lets a waiting app take a shared change, if any.
func entry(in strategies.Input) (all []Action) {
	if in.Entry != nil && !in.Entry.Open {
		all = append(all, Action{Verb: rollout.Promote, Through: rollout.ThroughEntry})
	}
	return all
}

// waitsForEntry reports whether an app at rest waits for its cohort or stage.
func waitsForEntry(in strategies.Input) bool {
	return in.Entry != nil && !in.Entry.Open && in.State.Release == nil
}

func mayEnter(in strategies.Input) error {
	return fmt.Errorf("it waits for %s; to let it take the change now: gitrollout promote %s --through %s",
		in.Entry.Waits, in.App.Name, rollout.ThroughEntry)
}
