package terminal

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

// History draws a few lines for each release.
func History(h status.History, k Look) string {
	var b strings.Builder
	b.WriteString(k.apart(span{h.Cluster, dim}, span{h.App, bold},
		span{"  " + rollout.Count(len(h.Releases), "release"), dim}))
	for i, p := range h.Releases {
		var older []string // images of the previous release
		if i+1 < len(h.Releases) {
			older = h.Releases[i+1].Images
		}
		b.WriteString("\n" + drawPast(p, older, k))
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

func drawPast(p status.Past, older []string, k Look) (out string) {
	mark := outcomes[p.Outcome]
	what := string(p.Outcome)
	if p.Outcome == status.InFlight {
		what = "in flight"
	}
	images := rollout.Mapped(rollout.ShownImages(p.Images, older), rollout.ShortImage)
	name := cmp.Or(strings.Join(images, ", "), string(p.Hash), rollout.ShortID(p.Commit))
	when := age(k.Now.Sub(p.Started)) + " ago"
	if took := p.Took(k.Now); p.Ended == nil {
		when = "for " + countdown(took)
	} else if took > 0 {
		when += ", took " + countdown(took)
	}
	out += k.line(span{mark.text + " ", mark.color}, span{Pad(name, 20), bold},
		span{"  " + Pad(what, 10), mark.color}, span{"  " + Pad(when, 20), plain},
		span{"  " + p.Started.UTC().Format("2006-01-02 15:04:05Z"), dim})
	id := rollout.ShortID(p.Commit)
	if len(images) > 0 {
		id = strings.TrimSpace(id + " " + string(p.Hash))
	}
	if p.Author != "" {
		out += k.apart(span{id, dim}, span{strings.TrimRight("  "+p.Subject, " "), plain}, span{"  " + person(p.Author), dim})
	} else if id != name {
		out += k.line(span{"  " + id, dim})
	}
	out += k.below(2, strings.Join(notesOf(p), "; "), plain) + k.below(2, p.Reason, mark.color)
	if k.Wide {
		for _, t := range p.Transitions {
			when := span{"    " + t.At.Format("15:04:05") + "  ", dim}
			if t.Object != "" {
				about := t.Object + " " + t.Reason
				if t.Count > 1 {
					about += fmt.Sprintf(" %d times", t.Count)
				}
				color := map[string]paint{"Warning": yellow}[t.Type]
				out += k.beside(about+": "+t.Text, cmp.Or(k.Width, math.MaxInt), color, when)
				continue
			}
			out += k.line(when, span{t.Text, plain}, span{"  " + rollout.ShortID(t.Commit), dim})
		}
		out += drawHooks(status.App{Hooks: p.Hooks}, k) + drawAnalyses(status.App{Analyses: p.Analyses}, k)
	}
	return out
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
	return append(notes, rollout.Mapped(p.Analyses, func(r status.Analysis) string {
		return "analysis " + r.Name + " " + string(r.Phase)
	})...)
}
