package dashboard

import (
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

type row struct {
	App       string        `json:"app"`
	Namespace string        `json:"namespace,omitempty"`
	Images    string        `json:"images,omitempty"` // of the newest version, in short form
	Phase     rollout.Phase `json:"phase"`
	Needs     bool          `json:"needs,omitempty"` // a user must act
	Held      string        `json:"held,omitempty"`  // held, waiting or running hooks; "" if not held
	Text      string        `json:"text,omitempty"`  // reason of Held, or the awaited condition
	Due       *time.Time    `json:"due,omitempty"`
	Step      int           `json:"step,omitempty"` // of the least advanced workload, from 1; 0 without steps
	Of        int           `json:"of,omitempty"`
	Name      string        `json:"name,omitempty"`   // of the step; "no steps" for a release without
	Weight    int           `json:"weight,omitempty"` // desired percent of the new version
	Real      int           `json:"real,omitempty"`   // actual percent of the new version
	Ready     int           `json:"ready,omitempty"`
	Replicas  int           `json:"replicas,omitempty"` // desired, of both versions; 0 without the cluster
	Commit    string        `json:"commit,omitempty"`   // of the newest version, like Subject, Author and Since
	Subject   string        `json:"subject,omitempty"`
	Author    string        `json:"author,omitempty"`
	Since     time.Time     `json:"since,omitzero"`
	Warnings  int           `json:"warnings,omitempty"`

	Shared *status.Shared `json:"shared,omitempty"`
}

const maxText = 160

func rowOf(a status.App) row {
	r := row{App: a.App, Phase: a.Phase, Shared: a.Shared, Due: a.Due, Warnings: len(a.Warnings),
		Namespace: a.Namespace, Images: clip(a.ImagesText(), maxText), Needs: a.NeedsPerson()}
	switch {
	case a.Held != nil:
		r.Held, r.Text = a.HeldText(), a.WhyHeld()
	case a.Waiting != "":
		r.Text = a.Waiting
	case a.Phase != rollout.Healthy:
		r.Text = a.Reason
	}
	r.Text = clip(r.Text, maxText)
	if newest := a.Newest(); newest != nil {
		author, _, _ := strings.Cut(newest.Author, " <")
		r.Commit, r.Subject, r.Author, r.Since = newest.Commit, clip(newest.Subject, maxText), clip(author, 60), newest.Since
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
	if r.Of == 0 && a.Release != nil {
		r.Name = "no steps"
	}
	return r
}

func (r row) searched() string {
	return strings.Join([]string{r.App, r.Images, string(r.Phase), r.Held, r.Text, r.Commit, r.Subject, r.Author}, " ")
}

func lacks(text, q string) bool {
	text = strings.ToLower(text)
	isMissing := func(word string) bool { return !strings.Contains(text, word) }
	return slices.ContainsFunc(strings.Fields(strings.ToLower(q)), isMissing)
}

var symbols = map[rollout.Phase]string{
	rollout.Healthy: "✔", rollout.Progressing: "◐", rollout.Paused: "‖", rollout.Promoting: "▲",
	rollout.Stalled: "!", rollout.Aborting: "▼", rollout.Degraded: "✖", rollout.Pending: "○",
}
