package notify

import (
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// MaxAge is how old an event may be that is still told: what is older is no news,
// and a service that was away for days is not to be flooded.
const MaxAge = 24 * time.Hour

// MaxPending is how many events of a receiver may wait; the oldest are left out.
const MaxPending = 200

// Due is one message for a receiver, and how far it has been told with it.
type Due struct {
	Message
	After rollout.Cursor
}

// Backlog is what waits for a receiver.
type Backlog struct {
	Due     []Due
	End     rollout.Cursor // when all of it has been told
	Dropped int            // too old, or too many
	Err     error          // of the receiver's templates
}

// Pending returns what a receiver is to be told of a line of commits, which begins after what it was told last. What
// lies up to the commit claimed may have been told by a process that was killed meanwhile; "" if nothing was.
func Pending(cluster string, r rollout.Receiver, profile Profile, at rollout.Cursor, claimed string,
	line []rollout.Recorded, links Links, now time.Time) Backlog {
	var b Backlog
	b.End = rollout.Cursor{Told: at.Told}
	repeats := slices.IndexFunc(line, func(c rollout.Recorded) bool { return c.ID == claimed })
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
