package dashboard

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

// Row is an app's summary in the fleet view.
type Row struct {
	App      string        `json:"app"`
	Phase    rollout.Phase `json:"phase"`
	Held     string        `json:"held,omitempty"` // the short label of a held app: held, waiting or running hooks
	Text     string        `json:"text,omitempty"` // the reason, or the awaited condition
	Due      *time.Time    `json:"due,omitempty"`
	Step     int           `json:"step,omitempty"` // step of the least advanced workload, from 1; 0 if no workload moves
	Of       int           `json:"of,omitempty"`
	Name     string        `json:"name,omitempty"`   // the step in words
	Weight   int           `json:"weight,omitempty"` // desired percent
	Real     int           `json:"real,omitempty"`   // actual percent
	Ready    int           `json:"ready,omitempty"`
	Replicas int           `json:"replicas,omitempty"` // desired pods of both versions; 0 if the cluster was not read
	Commit   string        `json:"commit,omitempty"`   // commit of the release in flight, or of stable
	Subject  string        `json:"subject,omitempty"`
	Author   string        `json:"author,omitempty"`
	Since    time.Time     `json:"since,omitzero"`
	Warnings int           `json:"warnings,omitempty"`
}

// maxText limits a row's texts, in characters.
const maxText = 160

func rowOf(a status.App) Row {
	r := Row{App: a.App, Phase: a.Phase, Due: a.Due, Warnings: len(a.Warnings)}
	switch {
	case a.Held != nil:
		r.Held, r.Text = a.HeldText(), a.WhyHeld()
	case a.Waiting != "":
		r.Text = a.Waiting
	case a.Phase != rollout.Healthy:
		r.Text = a.Reason
	}
	r.Text = clip(r.Text, maxText)
	if release := cmp.Or(a.Release, a.Stable); release != nil {
		author, _, _ := strings.Cut(release.Author, " <")
		r.Commit, r.Subject, r.Author, r.Since = release.Commit, clip(release.Subject, maxText), clip(author, 60),
			release.Since
	}
	for _, w := range a.Workloads {
		if !w.Unread {
			r.Ready, r.Replicas = r.Ready+w.Ready, r.Replicas+w.Desired()
		}
		if w.Moving && (r.Of == 0 || w.Step < r.Step) {
			r.Step, r.Of, r.Name = w.Step, len(w.Steps), ""
			r.Weight, r.Real = w.Weight*100/w.Full(), w.RealWeight
			if s := w.Current(); s != nil {
				r.Name = s.Text
			}
		}
	}
	return r
}

func (r Row) matches(search string) bool {
	text := strings.ToLower(strings.Join([]string{r.App, string(r.Phase), r.Held, r.Text, r.Commit, r.Subject, r.Author},
		" "))
	isMissing := func(word string) bool { return !strings.Contains(text, word) }
	return !slices.ContainsFunc(strings.Fields(strings.ToLower(search)), isMissing)
}

// symbols are the phases' symbols, as in the terminal.
var symbols = map[rollout.Phase]string{
	rollout.Healthy: "✔", rollout.Progressing: "◐", rollout.Paused: "‖", rollout.Promoting: "▲",
	rollout.Stalled: "!", rollout.Aborting: "▼", rollout.Degraded: "✖", rollout.Pending: "○",
}

func symbol(p rollout.Phase) string { return symbols[p] }
