package notify

import (
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// MaxAge is the maximum age of an event to send, so that a receiver gets no old events after a long outage.
const MaxAge = 24 * time.Hour

// MaxPending is the maximum number of events that wait for one receiver. If there are more, the oldest are dropped.
const MaxPending = 200

// Due is one message to send to a receiver. After the message was sent, the receiver's cursor moves to After.
type Due struct {
	Message
	After rollout.Cursor
}

// Backlog holds the messages that were not yet sent to a receiver.
type Backlog struct {
	Due     []Due
	End     rollout.Cursor // the cursor after the last message
	Dropped int            // number of events that were dropped, because they are too old or too many
	Err     error          // an error in the receiver's templates
}

// Pending returns a receiver's messages about the commits after its cursor, oldest first. A killed process may already
// have sent the messages up to the commit claimed, so Pending marks these messages as repeats.
func Pending(cluster string, r rollout.Receiver, profile Profile, at rollout.Cursor, claimed string,
	line []rollout.StateCommit, links Links, now time.Time) Backlog {
	var b Backlog
	b.End = rollout.Cursor{Told: at.Told}
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
		b.End = rollout.Cursor{Told: commit.ID}
	}
	if more := len(b.Due) - MaxPending; more > 0 {
		b.Due, b.Dropped = b.Due[more:], b.Dropped+more
	}
	return b
}
