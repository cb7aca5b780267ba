package terminal

import (
	"strings"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

func drawHooks(a status.App, k Look) string {
	var b strings.Builder
	names := widest(a.Hooks, func(h rollout.HookRun) string { return h.Name })
	for i, h := range a.Hooks {
		if i == 0 {
			b.WriteString("\n" + k.line(span{"  Hooks of ", dim}, span{string(h.Release), bold}))
		}
		sign, color := "●", cyan
		switch h.Phase {
		case rollout.HookSucceeded:
			sign, color = "✔", green
		case rollout.HookFailed:
			sign, color = "✖", red
		}
		b.WriteString(k.line(span{"    " + sign + " ", color}, span{Pad(h.Name, names), plain},
			span{"  " + Pad(string(h.When), 6), dim}, span{"  " + string(h.Phase), color},
			span{", since " + age(k.Now.Sub(h.Since)) + "  " + h.Job, dim}))
		if h.Message != "" {
			b.WriteString(k.line(span{"      " + h.Message, color}))
		}
		if h.Phase == rollout.HookFailed && h.Log != "" {
			for line := range strings.SplitSeq(h.Log, "\n") {
				b.WriteString(k.line(span{"      │ " + line, dim}))
			}
		}
	}
	return b.String()
}
