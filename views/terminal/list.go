package terminal

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

// List draws one aligned line per app. If k.Rows is set, List first counts the apps, and draws at most k.Rows lines.
func List(l status.Listing, k Look) string {
	if k.Wide {
		k.Width = 0
	}
	head, note, rest := "", "", ""
	if len(l.Apps) == 0 {
		rest = k.line(span{"no app of cluster " + l.Cluster + " is listed, or matches", plain})
	}
	if l.Note != "" {
		note = "\n" + k.field("Note", l.Note, dim, yellow)
	}
	if k.Rows > 0 {
		head = fleetLine(l, k) + "\n"
		room := max(1, k.Rows-strings.Count(head+note, "\n")-1)
		if more := len(l.Apps) - room; more > 0 {
			rest = k.line(span{fmt.Sprintf("… and %d more", more+1), dim})
			l.Apps = l.Apps[:room-1] // the last line counts the rest
		}
	}
	return head + drawTable(l, k) + rest + note
}

func drawTable(l status.Listing, k Look) string {
	rows := [][]span{{
		{"NAME", dim}, {"PHASE", dim}, {"STRATEGY", dim}, {"STEP", dim}, {"WEIGHT", dim}, {"READY", dim},
		{"STABLE", dim}, {"RELEASE", dim}, {"AUTHOR", dim}, {"WAITING", dim},
	}}
	rows = append(rows, rollout.Mapped(l.Apps, listRow)...)
	widths := make([]int, len(rows[0]))
	for i := range widths {
		widths[i] = widest(rows, func(row []span) string { return row[i].text })
	}
	narrow(widths, k.Width)
	var b strings.Builder
	for _, row := range rows {
		var spans []span
		for i, cell := range row {
			switch {
			case i == len(row)-1:
				spans = append(spans, cell)
			case widths[i] > 0:
				spans = append(spans, span{Pad(cell.text, widths[i]) + "  ", cell.color})
			}
		}
		b.WriteString(k.line(spans...))
	}
	return b.String()
}

// narrow drops the least important columns until the last column, WAITING, fits. A width ("columns") of 0 is unlimited.
func narrow(widths []int, columns int) {
	const stable, strategy, author, release, room = 6, 2, 8, 7, 24
	for _, drop := range []int{stable, strategy, author, release} {
		used := min(widths[len(widths)-1], room)
		for _, w := range widths[:len(widths)-1] {
			if w > 0 {
				used += w + 2
			}
		}
		if columns <= 0 || used <= columns {
			return
		}
		widths[drop] = 0
	}
}

func listRow(a status.App) []span {
	phase := string(a.Phase)
	if a.Held != nil {
		phase += "," + a.HeldText()
	}
	strategy, step, weight, ready := summary(a)
	observed := func(w status.Workload) bool { return len(w.Revisions) > 0 }
	if a.Note != "" && !slices.ContainsFunc(a.Workloads, observed) {
		ready = "-" // unknown
	}
	return []span{
		{a.App, bold}, {phase, mark(a).color}, {strategy, plain}, {step, plain}, {weight, plain}, {ready, plain},
		{releaseText(a.Stable), plain}, {releaseText(a.Release), plain}, {authorOf(a), plain}, {waitingText(a), dim},
	}
}

// summary adds up an app's workloads. It shows the step and weight of the moving workload with the lowest weight.
func summary(a status.App) (strategy, step, weight, ready string) {
	strategy, step, weight = "-", "-", "-"
	have, want := 0, 0
	var least *status.Workload
	for i, w := range a.Workloads {
		have, want = have+w.Ready, want+w.Desired()
		switch {
		case (w.Strategy == "plain" || w.Strategy == "experiment") && strategy != "-":
		case w.Strategy == "":
		case strategy == "-" || strategy == "plain" || strategy == w.Strategy:
			strategy = w.Strategy
		default:
			strategy = "mixed"
		}
		if w.Moving && (least == nil || w.Weight*least.Full() < least.Weight*w.Full()) {
			least = &a.Workloads[i]
		}
	}
	if least != nil && len(least.Steps) > 0 {
		step = fmt.Sprintf("%d/%d", least.Step, len(least.Steps))
		weight = least.Asked()
	}
	return strategy, step, weight, fmt.Sprintf("%d/%d", have, want)
}

func releaseText(r *status.Release) string {
	if r == nil {
		return "-"
	}
	return string(r.Hash)
}

func authorOf(a status.App) string {
	switch release := cmp.Or(a.Release, a.Stable); {
	case release != nil:
		return person(release.Author)
	case a.Source != nil && a.Source.Author != "":
		return person(a.Source.Author)
	}
	return "-"
}

func waitingText(a status.App) string {
	switch {
	case a.Held != nil:
		return a.WhyHeld()
	case a.Waiting != "":
		return a.Waiting
	case a.Phase == rollout.Healthy && len(a.Warnings) > 0:
		return rollout.Count(len(a.Warnings), "warning")
	case a.Phase == rollout.Healthy:
		return ""
	}
	return a.Reason
}
