package terminal

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

// List draws a line for each app. If k.Rows is set, it also draws counts, and omits apps beyond k.Rows lines.
func List(l status.Listing, k Look) string {
	if k.Wide {
		k.Width = 0
	}
	head, note, rest := "", "", ""
	for _, c := range l.Changes {
		head += k.line(span{"shared change of " + c.String(), yellow})
	}
	if len(l.Apps) == 0 {
		rest = k.line(span{"cluster " + l.Cluster + " has no apps, or no app matches", plain})
	}
	if l.Note != "" {
		note = "\n" + k.field("Note", l.Note, dim, yellow)
	}
	if k.Rows > 0 {
		head = fleetLine(l, k) + head + "\n"
		room := max(1, k.Rows-strings.Count(head+note, "\n")-1)
		if more := len(l.Apps) - room; more > 0 {
			rest = k.line(span{fmt.Sprintf("… and %d more", more+1), dim})
			l.Apps = l.Apps[:room-1] // the last line counts the omitted apps
		}
	}
	return head + drawTable(l, k) + rest + note
}

// The columns from firstWide on are drawn only if Look.Wide is set.
const (
	nameColumn = iota
	namespaceColumn
	phaseColumn
	stepColumn
	weightColumn
	readyColumn
	imagesColumn
	ageColumn
	waitColumn
	firstWide
)

func drawTable(l status.Listing, k Look) string {
	rows := [][]span{rollout.Mapped([]string{"NAME", "NAMESPACE", "PHASE", "STEP", "WEIGHT", "READY", "IMAGES", "AGE",
		"WAITS FOR", "STRATEGY", "AUTHOR", "STABLE", "RELEASE", "SHARED CHANGE"},
		func(title string) span { return span{title, dim} })}
	rows = append(rows, rollout.Mapped(l.Apps, func(a status.App) []span { return listRow(a, k) })...)
	widths := make([]int, firstWide)
	if k.Wide {
		widths = make([]int, len(rows[0]))
	}
	if k.Wide && len(l.Changes) == 0 {
		widths = widths[1:] // omit the last column
	}
	for i := range widths {
		widths[i] = widest(rows, func(row []span) string { return row[i].text })
	}
	narrow(widths, k.Width)
	var b strings.Builder
	for _, row := range rows {
		var spans []span
		for i, columns := range widths {
			switch {
			case i == len(widths)-1:
				spans = append(spans, row[i])
			case columns > 0:
				spans = append(spans, span{Pad(Truncate(row[i].text, columns), columns) + "  ", row[i].color})
			}
		}
		b.WriteString(k.line(spans...))
	}
	return b.String()
}

func narrow(widths []int, columns int) {
	const room = 24
	if columns <= 0 {
		return
	}
	used := func() int {
		n := min(widths[len(widths)-1], room)
		for _, w := range widths[:len(widths)-1] {
			if w > 0 {
				n += w + 2
			}
		}
		return n
	}
	if over := used() - columns; over > 0 {
		widths[imagesColumn] = max(widths[imagesColumn]-over, min(widths[imagesColumn], room))
	}
	for _, drop := range []int{weightColumn, namespaceColumn, readyColumn, ageColumn, stepColumn, imagesColumn} {
		if used() <= columns {
			return
		}
		widths[drop] = 0
	}
}

func listRow(a status.App, k Look) []span {
	phase := string(a.Phase)
	if a.Held != nil {
		phase += "," + a.HeldText()
	}
	strategy, step, weight, ready := summary(a)
	newest, old := cmp.Or(a.Newest(), &status.Release{}), "-"
	if since := sinceOf(a); !since.IsZero() {
		old = age(k.Now.Sub(since))
	}
	return []span{
		{a.App, bold}, {cmp.Or(a.Namespace, "-"), plain}, {phase, mark(a).color}, {step, plain}, {weight, plain},
		{ready, plain}, {cmp.Or(a.ImagesText(), "-"), plain}, {old, plain}, {waitingText(a), dim},
		{strategy, plain}, {cmp.Or(person(newest.Author), "-"), plain}, {releaseText(a.Stable), plain},
		{releaseText(a.Release), plain}, {sharedText(a), plain},
	}
}

func sharedText(a status.App) string {
	if a.Shared == nil {
		return "-"
	}
	return a.Shared.Place.String() + ", " + a.Shared.State
}

func sinceOf(a status.App) time.Time { return cmp.Or(a.Newest(), &status.Release{}).Since }

func summary(a status.App) (strategy, step, weight, ready string) {
	strategy, step, weight, ready = "-", "-", "-", "-"
	have, want := 0, 0
	var least *status.Workload
	for i, w := range a.Workloads {
		if !w.Unread {
			have, want = have+w.Ready, want+w.Desired()
			ready = fmt.Sprintf("%d/%d", have, want)
		}
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
	return strategy, step, weight, ready
}

func releaseText(r *status.Release) string { return string(cmp.Or(r, &status.Release{Hash: "-"}).Hash) }

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
