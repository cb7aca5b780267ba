package notify

import (
	"fmt"
	"slices"
	"strings"
	"text/template"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// Message is an event for one receiver.
type Message struct {
	rollout.Event
	Facts []Fact
	Ends  bool // the receiver did not select the event, but the event ends a problem
}

// Profile has the defaults of a service.
type Profile struct {
	Defaults []rollout.EventKind // for receivers that select none
	Resolves bool                // the service shows a problem until a message resolves it
	Dedups   bool                // the recipient recognizes a repeated message by its key
}

// Fact has a name and a value.
type Fact struct{ Name, Value string }

// maxText is in characters. Slack's blocks allow 3,000, and Discord's embeds 4,096.
const maxText = 2500

// MessageFor returns the message for an event, if the receiver wants the event. If a template fails, the default text
// is used.
func MessageFor(r rollout.Receiver, profile Profile, e rollout.Event) (m Message, ok bool, err error) {
	wanted := r.On
	if len(wanted) == 0 {
		wanted = profile.Defaults
	}
	i := slices.IndexFunc(e.Kinds, func(k rollout.EventKind) bool { return slices.Contains(wanted, k) })
	m.Ends = i < 0 && profile.Resolves && len(e.Over) > 0
	if (i < 0 && !m.Ends) || !r.Wants(e.App) {
		return m, false, nil
	}
	m.Event = eventAs(e, e.Kinds[max(i, 0)])
	m.Facts = factsOf(m.Event)
	for _, t := range []struct {
		template *template.Template
		into     *string
	}{{r.Title, &m.Title}, {r.Text, &m.Text}} {
		if t.template == nil {
			continue
		}
		var b strings.Builder
		if failed := t.template.Execute(&bounded{b: &b}, m.Event); failed != nil {
			err = fmt.Errorf("template of notification %s: %w", r.Name, failed)
			continue
		}
		*t.into = b.String()
	}
	m.Title = rollout.Cut(rollout.OneLine(m.Title), 200)
	m.Text = rollout.Cut(strings.TrimSpace(m.Text), maxText)
	return m, true, err
}

// bounded limits a template's output, which could otherwise use all memory.
type bounded struct{ b *strings.Builder }

func (w *bounded) Write(p []byte) (int, error) {
	if w.b.Len() > 4*maxText {
		return 0, fmt.Errorf("it writes more than %d bytes", 4*maxText)
	}
	return w.b.Write(p)
}

func factsOf(e rollout.Event) (all []Fact) {
	add := func(name, value string) {
		if value != "" {
			all = append(all, Fact{Name: name, Value: value})
		}
	}
	add("Release", string(e.Release))
	if e.Commit != "" {
		add("Commit", strings.TrimSpace(rollout.ShortID(e.Commit)+" "+rollout.Cut(e.Subject, 100)))
	}
	add("Author", e.Author)
	if e.Stable != e.Release {
		add("Stable", string(e.Stable))
	}
	if e.Step > 0 && !e.Is(rollout.EventCompleted) {
		add("Step", fmt.Sprintf("%d/%d %s", e.Step, e.Steps, e.StepName))
	}
	return all
}

// Sample returns a made-up event, for tests of a receiver.
func Sample(cluster string, kind rollout.EventKind, at time.Time) rollout.Event {
	const app = "sample"
	e := rollout.Event{
		ID: "sample-" + at.UTC().Format("20060102T150405Z") + "/" + app, Kinds: []rollout.EventKind{kind}, At: at,
		Cluster: cluster, App: app,
		Release: "h1-7b4e2a91d0", Stable: "h1-0123456789", Commit: "9f31c0de9f31c0de9f31c0de9f31c0de9f31c0de",
		Author: "gitrollout notify test", Subject: "a sample", Since: at.Add(-time.Minute), Step: 2, Steps: 4,
		StepName: "pause", Weight: 20,
		Reason: "This is a sample: nothing has happened.",
	}
	trouble := cluster + "/" + app + "/" + string(e.Release)
	if told[kind].outcome == rollout.OutcomeBad {
		e.Trouble = trouble
	} else {
		e.Over = []string{trouble}
	}
	return eventAs(e, kind)
}

// MaxAge is the maximum age of an event that is still sent.
const MaxAge = 24 * time.Hour

// MaxPending limits the waiting events of a receiver. The oldest are dropped.
const MaxPending = 200

// Due is a message to send. After is the receiver's cursor after the delivery.
type Due struct {
	Message
	After rollout.Cursor
}

// Backlog has a receiver's unsent messages.
type Backlog struct {
	Due     []Due
	Dropped int // number of events beyond MaxAge or MaxPending
	Err     error
}

// Pending returns messages about the commits after the cursor, oldest first. Messages up to the last claimed commit are
// marked as repeats, because a killed process may have sent them.
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
