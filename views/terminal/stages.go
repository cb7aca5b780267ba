package terminal

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

// Fleet draws a line for each app with a column for each stage, and below what the clusters wait for. With detail or
// k.Wide, it draws each cluster.
func Fleet(f status.Fleet, detail bool, k Look) string {
	if k.Wide {
		k.Width, detail = 0, true
	}
	titles := append([]string{"APP"}, f.Stages...)
	if last := &titles[len(titles)-1]; *last == "" {
		*last = "(no stage)"
	}
	rows := [][]span{rollout.Mapped(titles, func(title string) span { return span{title, dim} })}
	name := widest(f.Apps, func(a status.FleetApp) string { return a.App })
	if k.Width > 0 {
		name = min(name, 24)
	}
	room := max(0, k.Width-name)/len(f.Stages) - 2
	for _, a := range f.Apps {
		row := []span{{Truncate(a.App, name), bold}}
		for _, stage := range f.Stages {
			row = append(row, stageCell(slices.DeleteFunc(slices.Clone(a.Clusters), func(c status.FleetCluster) bool {
				return c.Stage != stage
			}), room, k))
		}
		rows = append(rows, row)
	}
	widths := rollout.Mapped(titles, func(string) int { return 0 })
	for i := range widths {
		widths[i] = widest(rows, func(row []span) string { return row[i].text })
	}
	var b strings.Builder
	for n, row := range rows {
		for i := range row {
			row[i].text = Pad(row[i].text, widths[i]+2)
		}
		if b.WriteString(k.line(row...)); n > 0 {
			b.WriteString(stageLines(f.Apps[n-1], detail, k))
		}
	}
	for i, note := range f.Notes {
		if i == 0 {
			b.WriteString("\n")
		}
		b.WriteString(k.field("Note", note, dim, yellow))
	}
	return b.String()
}

// stageCell returns "◐ web:v3 5m 1/4" or the like: the newest version, its age, and how many of the stage's clusters
// have the version. The mark is the most urgent cluster's. room is in columns; 0 or less: unlimited.
func stageCell(all []status.FleetCluster, room int, k Look) span {
	if len(all) == 0 {
		return span{"-", dim}
	}
	newest := slices.MaxFunc(all, func(a, b status.FleetCluster) int { return a.Since.Compare(b.Since) })
	worst, same, tail := status.App{Phase: rollout.Healthy}, 0, ""
	for _, c := range all {
		a := status.App{Phase: c.Phase, Held: c.Held}
		if more := urgency(a) - urgency(worst); more < 0 || more == 0 && worst.Held == nil {
			worst = a
		}
		if c.Version == newest.Version {
			same++
		}
	}
	if !newest.Since.IsZero() {
		tail = " " + age(k.Now.Sub(newest.Since))
	}
	if same < len(all) {
		tail += fmt.Sprintf(" %d/%d", same, len(all))
	}
	version, m := cmp.Or(newest.Version, "-"), mark(worst)
	if room > 0 {
		version = Truncate(version, max(6, room-2-width(tail)))
	}
	return span{m.text + " " + version + tail, m.color}
}

// stageLines names the clusters with one text together.
func stageLines(a status.FleetApp, detail bool, k Look) string {
	var texts []string
	clusters := map[string][]string{}
	for _, c := range a.Clusters {
		text := string(c.Phase)
		if commit := rollout.ShortID(c.Commit); detail && commit != "" {
			text += " " + strings.TrimPrefix(c.Version+" at "+commit, commit+" at ")
			if !c.Since.IsZero() {
				text += " for " + age(k.Now.Sub(c.Since))
			}
		}
		text = strings.TrimSuffix(text+": "+c.Waiting, ": ")
		if !detail && c.Phase == rollout.Healthy {
			text = c.Waiting
		}
		if text != "" {
			texts, clusters[text] = append(texts, text), append(clusters[text], c.Cluster)
		}
	}
	var b strings.Builder
	for _, text := range texts {
		if names := clusters[text]; names != nil {
			b.WriteString(k.below(4, strings.Join(names, ", ")+": "+text, dim))
			delete(clusters, text)
		}
	}
	return b.String()
}
