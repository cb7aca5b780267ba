package terminal

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

// Line describes an app in one line, without ages or countdowns, so that the line changes only with the app.
func Line(a status.App) string {
	text := a.App + " " + string(a.Phase)
	if release := cmp.Or(a.Release, a.Stable); release != nil {
		text += " " + string(release.Hash)
	}
	for _, w := range a.Workloads {
		if s := w.Current(); s != nil {
			text += fmt.Sprintf(", %s step %d/%d (%s, %s)", w.Workload, w.Step, len(w.Steps), s.Text, w.Asked())
		}
	}
	switch {
	case a.Held != nil:
		text += ", " + a.HeldText() + ": " + a.WhyHeld()
	case a.Phase == rollout.Paused && a.Waiting != "":
		text += ", waits for " + a.Waiting
	case a.Reason != "":
		text += ": " + a.Reason
	case a.Waiting != "" && slices.ContainsFunc(a.Hooks, status.IsRunning):
		text += ", waits for " + a.Waiting
	}
	return Clean(text)
}

func watchLine(a status.App) string {
	line := Line(a)
	_, _, _, ready := summary(a)
	if ready != "-" {
		line += ", " + ready + " ready"
	}
	for _, r := range a.Analyses {
		if a.Release != nil {
			line += ", analysis " + r.Name + " " + string(r.Phase)
		}
	}
	return Clean(line)
}

// News returns the changes of a listing, for output that cannot be redrawn.
type News struct {
	lines map[string]string // last line, by app
	note  string
}

// Of returns the lines of changed apps. The first call returns the whole listing. If k.Wide is set, Of returns the
// whole listing after each change.
func (n *News) Of(l status.Listing, k Look, whole func(Look) string) string {
	if n.lines == nil {
		n.lines = map[string]string{}
		n.changes(l)
		return whole(k) + "\n"
	}
	changes := n.changes(l)
	now := k.Now.UTC().Format(time.RFC3339)
	if len(changes) > 0 && k.Wide {
		return now + "\n" + whole(k) + "\n"
	}
	text := ""
	for _, line := range changes {
		text += now + " " + line + "\n"
	}
	return text
}

func (n *News) changes(l status.Listing) (changes []string) {
	for _, a := range l.Apps {
		if line := watchLine(a); line != n.lines[a.App] {
			n.lines[a.App] = line
			changes = append(changes, line)
		}
	}
	for _, app := range slices.Sorted(maps.Keys(n.lines)) {
		if !slices.ContainsFunc(l.Apps, func(a status.App) bool { return a.App == app }) {
			delete(n.lines, app)
			changes = append(changes, app+" is no longer listed")
		}
	}
	if l.Note != n.note {
		n.note = l.Note
		changes = append(changes, cmp.Or(Clean(l.Note), "everything can be read again"))
	}
	return changes
}
