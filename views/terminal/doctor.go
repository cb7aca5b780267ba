package terminal

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/doctor"
)

// Examination draws the checks' messages and fixes.
func Examination(e doctor.Examination, k Look) string {
	colors := map[doctor.Health]paint{doctor.Healthy: green, doctor.Warning: yellow, doctor.Problem: red,
		doctor.Unknown: dim}
	var b strings.Builder
	names := widest(e.Findings, func(f doctor.Finding) string { return f.Check })
	columns := cmp.Or(k.Width, math.MaxInt)
	for _, f := range e.Findings {
		b.WriteString(k.beside(f.Message, columns, plain, span{Pad("  "+string(f.Status), 11), colors[f.Status]},
			span{Pad(f.Check, names) + "  ", dim}))
		if f.Fix != "" {
			b.WriteString(k.beside(f.Fix, columns, plain, span{strings.Repeat(" ", 11+names+2) + "fix: ", cyan}))
		}
	}
	fmt.Fprintf(&b, "%s, %s\n", rollout.Count(e.Problems, "problem"), rollout.Count(e.Warnings, "warning"))
	return b.String()
}

// Report draws the clusters' errors and warnings, then the apps that have warnings.
func Report(r doctor.Report, k Look) string {
	var b strings.Builder
	k.Width = 0
	row := func(color paint, what string, texts ...span) {
		head := []span{{"  ", plain}, {what, color}, {strings.Repeat(" ", 9-len(what)), plain}}
		b.WriteString(k.line(append(head, texts...)...))
	}
	warn := func(warnings []string) {
		for _, w := range warnings {
			row(yellow, "warning", span{w, plain})
		}
	}
	for _, c := range r.Clusters {
		b.WriteString(k.line(span{c.Cluster, bold}))
		for _, f := range c.Errors {
			row(red, "error", span{f.Error(), plain})
		}
		warn(c.Warnings)
		names := widest(c.Apps, func(a doctor.AppReport) string { return a.App })
		for _, a := range c.Apps {
			name := span{Pad(a.App, names) + "  ", plain}
			if a.Error != nil {
				what := "error"
				for text := range strings.SplitSeq(strings.ReplaceAll(a.Error.Error(), "; also ", "\nalso "), "\n") {
					row(red, what, name, span{text, plain})
					what, name = "", span{Pad("", names) + "  ", plain}
				}
				continue
			}
			text := fmt.Sprintf("%s, %s", rollout.Count(a.Objects, "object"), rollout.Count(a.Staged, "staged workload"))
			row(green, "ok", name, span{text, dim})
			warn(a.Warnings)
			for _, s := range a.Detection {
				row(dim, "sees", span{Pad("", names) + "  ", plain}, span{s.Text(), dim})
			}
		}
		if len(c.Allow) > 0 {
			text := "  these lines in " + rollout.ConfigPath(c.Cluster) + " allow the forbidden objects:"
			b.WriteString(k.line(span{text, plain}))
		}
		for _, line := range c.Allow {
			b.WriteString(k.line(span{"    " + line, plain}))
		}
	}
	b.WriteString(fmt.Sprintf("%s, %s\n", rollout.Count(r.Errors, "error"), rollout.Count(r.Warnings, "warning")))
	return b.String()
}
