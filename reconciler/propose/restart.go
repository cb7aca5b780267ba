package propose

import (
	"errors"
	"fmt"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

func restart(in strategies.Input) (decision, error) {
	s, coming := in.State, strategies.Coming(in)
	text, _ := strategies.Restarting(in)
	switch {
	case s.Release != nil || s.Draining != nil:
		return decision{}, errors.New("a release is in flight; restart the app when the release has ended")
	case s.Stable == nil || len(s.Stable.Templates) == 0:
		return decision{}, errors.New("it has no stable version of a workload with a Rollout document")
	case coming != nil && in.Promotion != nil && in.Promotion.Release == coming.Hash:
		return decision{}, fmt.Errorf("its promotion file is for release %s, which has not begun; restart the app later",
			coming.Hash)
	case text != "":
		return decision{}, errors.New("it waits already for " + text + "; to change the time, edit restartAt")
	}
	p := &rollout.Promotion{Release: s.Stable.Hash, Decision: rollout.Restart, RestartAt: rollout.Second(in.Now)}
	return decision{promotion: p, subject: "Restart " + in.App.Name,
		then: fmt.Sprintf("gitrollout deletes the pods of %s that were created before %s, within maxUnavailable; %s",
			in.App.Name, p.RestartAt.Format(time.RFC3339), watchHint(in.App.Name))}, nil
}

func isWatched(in strategies.Input) bool {
	return in.State.Watch != nil && in.State.Draining == nil && strategies.Coming(in) == nil
}

func watchHint(app string) string { return "watch: gitrollout get " + app + " -w" }
