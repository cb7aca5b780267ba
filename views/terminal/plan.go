package terminal

import (
	"fmt"
	"strings"

	"gitrollout.dev/gitrollout/author/plan"
	"gitrollout.dev/gitrollout/rollout"
)

// Plans draws plans: the commits, the changed apps, and the number of unchanged apps.
func Plans(all []plan.Plan, k Look) string {
	var b strings.Builder
	for i, p := range all {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(k.line(span{p.Cluster, bold}, span{": " + p.Base + " -> " + p.Head, plain}))
		b.WriteString(k.field("state", p.State, dim, dim))
		if p.Error != nil {
			b.WriteString(k.field("error", p.Error.Error(), red, plain))
			continue
		}
		for _, s := range p.Shared {
			b.WriteString(k.field("shared", fmt.Sprintf("%s changes %s: %s", s.File, rollout.Count(len(s.Apps), "app"),
				strings.Join(s.Apps, ", ")), dim, plain))
		}
		for _, c := range p.Cohorts {
			b.WriteString(k.field("cohort", fmt.Sprintf("%d of %d takes %s %s: %s", c.Number, c.Of, strings.Join(c.Files, ", "),
				plan.Moment(c.Begins, p.At), strings.Join(c.Apps, ", ")), dim, plain))
		}
		for _, a := range p.Apps {
			b.WriteString("\n" + drawPlanned(p, a, k))
		}
		changed := rollout.Count(len(p.Apps), "app") + " change"
		if len(p.Apps) == 1 {
			changed += "s"
		}
		b.WriteString("\n" + k.line(span{fmt.Sprintf("%s, %d unchanged", changed, p.Unchanged), plain}))
	}
	return b.String()
}

var changeColors = map[plan.Change]paint{
	plan.Invalid: red, plan.Rejected: red, plan.Release: cyan, plan.Fast: cyan, plan.Rollback: yellow, plan.First: green,
	plan.Gone: yellow,
}

func drawPlanned(p plan.Plan, a plan.App, k Look) string {
	var b strings.Builder
	b.WriteString(k.apart(span{a.Cost(), dim}, span{a.App, bold}, span{"  " + string(a.Change), changeColors[a.Change]}))
	b.WriteString(k.field("what", a.Summary, dim, plain))
	if a.Error != nil {
		b.WriteString(k.field("error", a.Error.Error(), red, plain))
	}
	for _, w := range a.Workloads {
		b.WriteString(k.field("pods", fmt.Sprintf("%s %s: %s, %s", w.Kind, w.Name(), w.Strategy, w.Sizing()), dim, plain))
		b.WriteString(drawStages(p, w, k))
	}
	for _, s := range a.Detection {
		b.WriteString(k.field("sees", s.Text(), dim, plain))
	}
	labels := map[plan.Level]span{plan.Refused: {"refused", red}, plan.AtOnce: {"at once", yellow},
		plan.Hint: {"note", yellow}}
	for _, n := range a.Notes {
		text := n.Message
		if n.Fix != "" {
			text += "; " + n.Fix
		}
		b.WriteString(k.field(labels[n.Level].text, text, labels[n.Level].color, plain))
	}
	if !a.Ends.IsZero() {
		b.WriteString(k.field("done", "not before "+plan.Moment(a.Ends, p.At), dim, plain))
	}
	for _, o := range a.Objects {
		name := o.Object.String()
		if o.Was != "" {
			name += ", which was " + o.Was
		}
		b.WriteString(k.field(o.Change, name, dim, plain))
	}
	for _, o := range a.Objects {
		b.WriteString(Diff(o.Diff, k))
	}
	return b.String()
}

func drawStages(p plan.Plan, w plan.Workload, k Look) (out string) {
	if len(w.Stages) == 0 {
		return ""
	}
	rows := [][]string{{"", "stage", "weight", "new/old", "not before", "at least"}}
	for i, s := range w.Stages {
		text := s.Text
		switch {
		case s.Name == "" || s.Name == s.Text || s.Name == "promote":
		case width(text) > 24: // so that a row fits into 80 columns
			text = s.Name
		default:
			text = s.Name + ": " + text
		}
		rows = append(rows, []string{fmt.Sprint(i + 1), text, w.Share(s.Weight), fmt.Sprintf("%d/%d", s.Canary, s.Stable),
			plan.Moment(s.Enters, p.At), s.Takes()})
	}
	widths := make([]int, len(rows[0]))
	for i := range widths {
		widths[i] = widest(rows, func(row []string) string { return row[i] })
	}
	for n, cells := range rows {
		for i, align := range []func(string, int) string{padLeft, Pad, padLeft, padLeft, Pad} { // not the last column
			cells[i] = align(cells[i], widths[i])
		}
		color := plain
		if n == 0 {
			color = dim
		}
		if n > 0 && w.Stages[n-1].Shut != "" {
			out += k.below(4+widths[0]+2, "waits for "+w.Stages[n-1].Shut, yellow)
		}
		out += k.line(span{"    " + strings.Join(cells, "  "), color})
	}
	return out
}
