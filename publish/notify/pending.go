package notify

import (
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// MaxAge is the maximum age of a sent event.
const MaxAge = 24 * time.Hour

// MaxPending limits a receiver's waiting events. The oldest are dropped.
const MaxPending = 200

// Due is a message. Sending moves the receiver's cursor to After.
type Due struct {
	Message
	After rollout.Cursor
}

// Backlog holds a receiver's unsent messages.
type Backlog struct {
	Due     []Due
	Dropped int // too old or too many events
	Err     error
}

// Pending returns messages about the commits after the cursor, oldest first. A killed process may have sent the
// messages up to claimed, so Pending marks them as repeats.
func Pending(cluster string, r rollout.Receiver, profile Profile, at rollout.Cursor, claimed string,
	line []rollout.StateCommit, links Links, now time.Time) (b Backlog) {
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
