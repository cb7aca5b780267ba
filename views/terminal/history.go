package terminal

import (
	"cmp"
	"fmt"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

// History draws a few lines per release.
func History(h status.History, k Look) string {
	var b strings.Builder
	b.WriteString(k.apart(span{h.Cluster, dim}, span{h.App, bold},
		span{"  " + rollout.Count(len(h.Releases), "release"), dim}))
	for _, p := range h.Releases {
		b.WriteString("\n" + drawPast(p, k))
	}
	if h.Note != "" {
		b.WriteString("\n" + k.field("Note", h.Note, dim, yellow))
	}
	return b.String()
}

var outcomes = map[status.Outcome]span{
	status.Succeeded: {"✔", green}, status.Applied: {"✔", green}, status.Recorded: {"✔", green},
	status.Refused: {"✖", red}, status.Reverted: {"▼", yellow}, status.Superseded: {"»", dim},
	status.InFlight: {"◐", cyan},
}

func drawPast(p status.Past, k Look) string {
	var b strings.Builder
	mark := outcomes[p.Outcome]
	what := string(p.Outcome)
	if p.Outcome == status.InFlight {
		what = "in flight"
	}
	name := cmp.Or(string(p.Hash), rollout.ShortID(p.Commit))
	when := age(k.Now.Sub(p.Started)) + " ago"
	if took := p.Took(k.Now); p.Ended == nil {
		when = "for " + countdown(took)
	} else if took > 0 {
		when += ", took " + countdown(took)
	}
	b.WriteString(k.line(span{mark.text + " ", mark.color}, span{Pad(name, 13), bold},
		span{"  " + Pad(what, 10), mark.color}, span{"  " + Pad(when, 22), plain},
		span{"  " + p.Started.UTC().Format("2006-01-02 15:04:05Z"), dim}))
	if p.Author != "" {
		b.WriteString(k.line(span{"  " + rollout.ShortID(p.Commit) + "  " + person(p.Author), plain},
			span{"  " + p.Subject, dim}))
	}
	if notes := notesOf(p); len(notes) > 0 {
		b.WriteString(k.below(2, strings.Join(notes, "; "), plain))
	}
	if p.Reason != "" {
		b.WriteString(k.below(2, p.Reason, mark.color))
	}
	if k.Wide {
		for _, t := range p.Transitions {
			b.WriteString(k.line(span{"    " + t.At.Format("15:04:05") + "  ", dim}, span{t.Text, plain},
				span{"  " + rollout.ShortID(t.Commit), dim}))
		}
		b.WriteString(drawHooks(status.App{Hooks: p.Hooks}, k) + drawAnalyses(status.App{Analyses: p.Analyses}, k))
	}
	return b.String()
}

func notesOf(p status.Past) []string {
	var notes []string
	if p.Of > 0 {
		text := fmt.Sprintf("%d of %d steps", p.Step-p.Skipped, p.Of)
		if p.Skipped > 0 {
			text += fmt.Sprintf(", and %d left out", p.Skipped)
		}
		notes = append(notes, text)
	}
	if p.Fast {
		notes = append(notes, "verified before, so without steps")
	}
	if len(p.PromotedBy) > 0 {
		notes = append(notes, "promoted by "+strings.Join(rollout.Mapped(p.PromotedBy, person), ", "))
	}
	return append(notes, rollout.Mapped(p.Analyses, func(r rollout.AnalysisRun) string {
		return "analysis " + r.Name + " " + string(r.Phase)
	})...)
}
