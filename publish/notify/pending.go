package notify

import (
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// MaxAge is the maximum age of an event that is sent.
const MaxAge = 24 * time.Hour

// MaxPending limits a receiver's waiting events. Beyond the limit, the oldest events are dropped.
const MaxPending = 200

// Due is a message. After sending, the receiver's cursor moves to After.
type Due struct {
	Message
	After rollout.Cursor
}

// Backlog holds a receiver's unsent messages.
type Backlog struct {
	Due     []Due
	Dropped int   // events that were too old or too many
	Err     error // an error in the receiver's templates
}

// Pending returns a receiver's messages about the commits after its cursor, oldest first. A killed process may have
// sent the messages up to claimed, so Pending marks these messages as repeats.
func Pending(cluster string, r rollout.Receiver, profile Profile, at rollout.Cursor, claimed string,
	line []rollout.StateCommit, links Links, now time.Time) Backlog {
	var b Backlog
	repeats := slices.IndexFunc(line, func(c rollout.StateCommit) bool { return c.ID == claimed })
	for i, commit := range line {
		for _, e := range Events(cluster, commit, links) {
			if i == 0 && e.App <= at.App {
				continue
			}
			e.Repeat = i <= repeats
			m, ok, err := MessageFor(r, profile, e)
			switch {
			case !ok:
				continue
			case now.Sub(e.At) > MaxAge:
				b.Dropped++
				continue
			case err != nil:
				b.Err = err
			}
			b.Due = append(b.Due, Due{Message: m, After: rollout.Cursor{Told: commit.Parent, App: e.App}})
		}
	}
	if more := len(b.Due) - MaxPending; more > 0 {
		b.Due, b.Dropped = b.Due[more:], b.Dropped+more
	}
	return b
}
