package terminal

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

// Fleet draws a line for each app, with a column for each stage. Below each app, it says why clusters wait. If detail
// or k.Wide is set, each cluster has a line as in List.
func Fleet(f status.Fleet, detail bool, k Look) string {
	rows := [][]span{append([]span{{"APP", dim}}, rollout.Mapped(f.Stages, func(stage string) span {
		return span{cmp.Or(stage, "(no stage)"), dim}
	})...)}
	name := min(24, widest(f.Apps, func(a status.FleetApp) string { return a.App }))
	if k.Wide {
		k.Width = 0
	}
	room := (k.Width-name)/max(1, len(f.Stages)) - 2
	for _, a := range f.Apps {
		rows = append(rows, append([]span{{Truncate(a.App, name), bold}}, rollout.Mapped(f.Stages, func(stage string) span {
			return stageCell(a.Stages[stage], room, k)
		})...))
	}
	var b strings.Builder
	for n, row := range rows {
		cells := slices.Clone(row)
		for i := range cells {
			cells[i].text = Pad(cells[i].text, widest(rows, func(row []span) string { return row[i].text })+2)
		}
		if b.WriteString(k.line(cells...)); n > 0 {
			b.WriteString(stageLines(f.Stages, f.Apps[n-1], detail || k.Wide, k))
		}
	}
	for i, note := range f.Notes {
		b.WriteString(strings.Repeat("\n", max(0, 1-i)) + k.field("Note", note, dim, yellow))
	}
	return b.String()
}

// stageCell returns "◐ web:v3 5m 1/4" or similar: the newest version, its age, and how many clusters have it. The most
// urgent cluster decides the symbol.
func stageCell(all []status.App, room int, k Look) span {
	if len(all) == 0 {
		return span{"-", dim}
	}
	newest := slices.MaxFunc(all, func(a, b status.App) int { return sinceOf(a).Compare(sinceOf(b)) })
	worst := slices.MinFunc(all, func(a, b status.App) int { // among healthy apps, waiting apps are more urgent
		return cmp.Or(cmp.Compare(urgency(a), urgency(b)), cmp.Compare(mark(b).color, mark(a).color))
	})
	version, _, tail := versionText(newest, k)
	same := slices.DeleteFunc(slices.Clone(all), func(a status.App) bool {
		other, _, _ := versionText(a, k)
		return other != version
	})
	if len(same) < len(all) {
		tail += fmt.Sprintf(" %d/%d", len(same), len(all))
	}
	if version = cmp.Or(version, "-"); k.Width > 0 {
		version = Truncate(version, max(6, room-2-width(tail)))
	}
	return span{mark(worst).text + " " + version + tail, mark(worst).color}
}

func versionText(a status.App, k Look) (version, commit, tail string) {
	newest := cmp.Or(a.Newest(), &status.Release{})
	version = rollout.ShortID(newest.Commit)
	if !newest.Since.IsZero() {
		tail = " " + age(k.Now.Sub(newest.Since))
	}
	if images := rollout.Mapped(newest.Images, rollout.ShortImage); len(images) > 0 {
		return strings.Join(images, ", "), " (" + version + ")", tail
	}
	return version, "", tail
}

func stageLines(stages []string, app status.FleetApp, detail bool, k Look) (lines string) {
	var texts []string
	clusters := map[string][]string{}
	for _, stage := range stages {
		for _, a := range app.Stages[stage] {
			text := waitingText(a)
			if _, condition, waits := strings.Cut(text, " waits for "); waits && a.Waits() {
				text = "waits for " + condition
			}
			if version, commit, tail := versionText(a, k); detail {
				text = strings.TrimRight(string(a.Phase)+" "+version+commit+tail, " ") + ": " + text
			} else if a.Phase != rollout.Healthy {
				text = fmt.Sprintf("%s: %s", a.Phase, text)
			}
			texts, clusters[text] = append(texts, text), append(clusters[text], a.Cluster)
		}
	}
	for i, text := range texts {
		if text == "" || slices.Index(texts, text) != i {
			continue
		}
		text = strings.Join(clusters[text], ", ") + ": " + strings.TrimSuffix(text, ": ")
		if k.Wide { // one line for each cluster, for scripts
			lines += k.line(span{"    ", plain}, span{text, dim})
		} else {
			lines += k.below(4, text, dim)
		}
	}
	return lines
}
