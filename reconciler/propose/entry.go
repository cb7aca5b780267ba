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
		then: in.App.Name + " does not wait for its cohort; " + watchHint(in.App.Name)}, nil
}
