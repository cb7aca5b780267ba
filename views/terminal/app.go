package terminal

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

const labelWidth = 14

var phases = map[rollout.Phase]span{
	rollout.Healthy: {"✔", green}, rollout.Progressing: {"◐", cyan}, rollout.Promoting: {"▲", cyan},
	rollout.Paused: {"‖", yellow}, rollout.Stalled: {"!", red}, rollout.Aborting: {"▼", red},
	rollout.Degraded: {"✖", red}, rollout.Pending: {"○", dim},
}

func mark(a status.App) span {
	switch {
	case a.Waits():
		return span{"‖", yellow}
	case a.Held != nil:
		return span{"■", yellow}
	}
	return cmp.Or(phases[a.Phase], span{"?", plain})
}

// Apps draws apps in full. Among several apps, a healthy app takes only one line, unless Wide is set.
func Apps(l status.Listing, k Look) string {
	var b strings.Builder
	if l.Note != "" {
		b.WriteString(k.field("Note", l.Note, dim, yellow) + "\n")
	}
	var calm []status.App
	drawn := 0
	for _, a := range l.Apps {
		if len(l.Apps) > 1 && a.Phase == rollout.Healthy && a.Held == nil && !k.Wide {
			calm = append(calm, a)
			continue
		}
		if drawn++; drawn > 1 {
			b.WriteString("\n")
		}
		b.WriteString(App(a, k))
	}
	if len(calm) > 0 && drawn > 0 {
		b.WriteString("\n")
	}
	names := widest(calm, func(a status.App) string { return a.App })
	for _, a := range calm {
		mark := mark(a)
		spans := []span{{mark.text + " ", mark.color}, {Pad(a.App, names), bold}, {"  " + string(a.Phase), mark.color},
			{"  " + cmp.Or(a.ImagesText(), "-"), plain}}
		if a.Stable != nil {
			spans = append(spans, span{fmt.Sprintf("  %s  %s  %s", person(a.Stable.Author), age(k.Now.Sub(a.Stable.Since)),
				a.Stable.Hash), dim})
		} else if a.Source != nil {
			spans = append(spans, span{"  applied at " + rollout.ShortID(a.Source.ID), dim})
		}
		b.WriteString(k.line(spans...))
	}
	if len(l.Apps) == 0 {
		b.WriteString(k.line(span{"cluster " + l.Cluster + " has no apps", plain}))
	}
	return b.String()
}

// App draws one app in full.
func App(a status.App, k Look) (out string) {
	out = drawHead(a, k)
	if a.Note != "" {
		out += k.field("Note", a.Note, dim, yellow)
	}
	for _, w := range a.Workloads {
		out += "\n" + drawWorkload(w, k)
	}
	return out + drawAnalyses(a, k) + drawHooks(a, k)
}

// drawNext never cuts commands, because users copy them.
func drawNext(a status.App, k Look) (out string) {
	last := ""
	for _, n := range a.Next {
		label := ""
		if n.To != last {
			label = "  To " + n.To
		}
		if width(label) >= labelWidth {
			out += k.line(span{label, bold})
			label = ""
		}
		out += k.paint(bold, Pad(label, labelWidth)) + k.paint(cyan, cmp.Or(n.URL, n.Command)) + "\n"
		last = n.To
	}
	return out
}

func drawHead(a status.App, k Look) (out string) {
	mark := mark(a)
	phase := string(a.Phase)
	if a.Held != nil {
		phase += ", " + a.HeldText()
	}
	out = k.apart(span{a.Cluster, dim}, span{mark.text + " ", mark.color}, span{a.App, bold},
		span{"  " + phase, mark.color})
	out += drawRelease("Release", a.Release, a, k)
	for _, w := range a.Workloads {
		if w.Moving && w.Opened != "" {
			out += k.field("Promoted", "by "+person(w.Opened)+", past the last gate", dim, plain)
			break
		}
	}
	out += drawRelease("Stable", a.Stable, a, k)
	if a.Stable == nil && a.Release == nil && a.Source != nil {
		applied := status.Release{Commit: a.Source.ID, Author: a.Source.Author, Subject: a.Source.Subject}
		out += drawVersion("Applied", a.ImagesText(), person(a.Source.Author), applied, k)
	}
	if r := a.Rejected; r != nil {
		rejected := status.Release{Images: r.Images, Hash: r.Hash, Commit: r.Commit, Author: r.Author, Subject: r.Subject,
			Since: r.At}
		out += drawRelease("Rejected", &rejected, a, k)
		out += k.field("", r.Reason, dim, red)
	}
	if a.Reason != "" && (a.Rejected == nil || (a.Phase != rollout.Degraded && a.Reason != a.Rejected.Reason)) {
		color := map[rollout.Phase]paint{rollout.Stalled: red, rollout.Aborting: red}[a.Phase]
		out += k.field("Reason", a.Reason, dim, color)
	}
	if a.Held != nil {
		text := a.Held.Message
		if a.Held.Commit != "" {
			by := strings.TrimSuffix(" by "+person(a.Held.Author), " by ")
			text += " (commit " + rollout.ShortID(a.Held.Commit) + by + ")"
		}
		label, _, _ := strings.Cut(a.HeldText(), " ") // the label has room for the first word of "running hooks"
		out += k.field(strings.ToUpper(label[:1])+label[1:], text, dim, yellow)
	}
	if a.Shared != nil && a.Shared.State != "done" {
		out += k.field("Shared", sharedText(a), dim, plain)
	}
	if a.Waiting != "" {
		text := a.Waiting
		if a.Due != nil {
			text += " (" + countdown(a.Due.Sub(k.Now)) + " left)"
		}
		out += k.field("Waits for", text, dim, plain)
	}
	for _, w := range a.Warnings {
		out += k.field("Warning", w, dim, yellow)
	}
	return out + drawNext(a, k)
}

func drawRelease(label string, r *status.Release, a status.App, k Look) string {
	if r == nil {
		return ""
	}
	by := ""
	if !r.Since.IsZero() {
		by = strings.TrimPrefix(fmt.Sprintf("%s, %s ago", person(r.Author), age(k.Now.Sub(r.Since))), ", ")
	}
	if r.Fast {
		by += ", verified before"
	}
	return drawVersion(label, a.ImagesBeside(r.Images), by, *r, k)
}

func drawVersion(label, images, by string, r status.Release, k Look) string {
	if images != "" && by != "" {
		images += "  "
	}
	id := strings.TrimSpace(rollout.ShortID(r.Commit) + " " + string(r.Hash))
	out := k.apart(span{id, dim}, span{Pad("  "+label, labelWidth), dim}, span{images, bold}, span{by, plain})
	if r.Subject != "" {
		out += k.line(span{strings.Repeat(" ", labelWidth) + r.Subject, dim})
	}
	return out
}

func drawWorkload(w status.Workload, k Look) (out string) {
	kind := map[string]string{"canary": "canary", "blueGreen": "blue-green", "rollingUpdate": "rolling update",
		"plain": "no stages", "experiment": "experiment"}[w.Strategy]
	if w.Current() != nil {
		kind += fmt.Sprintf(", step %d/%d", w.Step, len(w.Steps))
	}
	want := w.Desired()
	ready := span{fmt.Sprintf("%d/%d ready", w.Ready, want), readyColor(w.Ready, want)}
	if w.Unread {
		ready = span{"not observed", yellow}
	}
	out += k.apart(ready, span{"  " + w.Workload, bold}, span{"  " + kind, dim})
	if w.Strategy == "canary" && w.Moving {
		out += drawWeight(w, k)
		if w.Surplus != "" {
			out += k.line(span{"  " + w.Surplus, plain})
		}
		if len(w.Routes) > 0 {
			out += k.line(span{"  and the requests of: " + strings.Join(w.Routes, ", "), plain})
		}
		for _, service := range slices.Sorted(maps.Keys(w.Shares)) {
			out += k.line(span{fmt.Sprintf("  and weight %d of %d: %s", w.Shares[service], w.Full(), service), plain})
		}
	}
	out += drawSteps(w, k)
	if len(w.Steps) > 0 && len(w.Revisions) > 0 {
		out += "\n"
	}
	for _, r := range w.Revisions {
		out += drawRevision(r, k)
	}
	return out
}

func readyColor(ready, desired int) paint {
	if ready < desired {
		return yellow
	}
	return green
}

// drawWeight draws 30 cells: the new version's actual share, the missing part of its desired share, and the rest.
func drawWeight(w status.Workload, k Look) string {
	const cells = 30
	filled := func(percent int) int { return (min(percent, 100)*cells + 50) / 100 }
	done, asked := filled(w.RealWeight), filled(w.Weight*100/w.Full())
	if w.Pods > 0 {
		asked = filled(w.Pods * 100 / max(w.Replicas, 1))
	}
	asked = max(asked, done)
	text := "  " + w.Asked() + " asked"
	switch {
	case w.Unread:
	case w.Routed:
		text += fmt.Sprintf(", %d%% of the requests", w.RealWeight)
	default:
		text += fmt.Sprintf(", %d%% of the ready pods", w.RealWeight)
	}
	return k.line(span{"  " + strings.Repeat("█", done), cyan}, span{strings.Repeat("▒", asked-done), cyan},
		span{strings.Repeat("░", cells-asked), dim}, span{text, plain})
}

func drawSteps(w status.Workload, k Look) (out string) {
	if len(w.Steps) == 0 {
		return ""
	}
	if !w.Moving {
		texts := rollout.Mapped(w.Steps, func(s status.Step) string { return stepTitle(w, s) })
		return k.field("Steps", strings.Join(texts, " → "), dim, dim)
	}
	titles := min(48, widest(w.Steps, func(s status.Step) string { return stepTitle(w, s) }))
	for i, s := range w.Steps {
		mark, color := span{"○", dim}, dim
		switch s.Status {
		case "done":
			mark, color = span{"✔", green}, plain
		case "current":
			mark, color = span{"●", yellow}, bold
		}
		title, note := span{Pad(Truncate(stepTitle(w, s), titles), titles), color}, ""
		if s.Status == "current" && w.Entered != nil {
			note = "  for " + age(k.Now.Sub(*w.Entered))
			if w.Due != nil {
				note += ", " + countdown(w.Due.Sub(k.Now)) + " left"
			}
		}
		weight := span{padLeft(w.Share(s.Weight), 2+len(w.Share(w.Full()))), dim}
		if w.Strategy == "blueGreen" {
			weight = span{} // a blue-green step switches all requests
		}
		out += k.line(span{"    " + mark.text + " ", mark.color},
			span{padLeft(fmt.Sprint(i+1), len(fmt.Sprint(len(w.Steps)))) + "  ", dim}, title, weight, span{note, plain})
	}
	return out
}

func stepTitle(w status.Workload, s status.Step) string {
	if w.Strategy == "blueGreen" || s.Name == "" || s.Name == s.Text || strings.ReplaceAll(s.Name, "-", " ") == s.Text {
		return s.Text
	}
	return s.Name + ": " + s.Text
}
