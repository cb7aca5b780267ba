package terminal

import (
	"strings"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

func drawHooks(a status.App, k Look) (out string) {
	names := widest(a.Hooks, func(h rollout.HookRun) string { return h.Name })
	for i, h := range a.Hooks {
		if i == 0 {
			out += "\n" + k.line(span{"  Hooks of ", dim}, span{string(h.Release), bold})
		}
		sign, color := "●", cyan
		switch h.Phase {
		case rollout.HookSucceeded:
			sign, color = "✔", green
		case rollout.HookFailed:
			sign, color = "✖", red
		}
		out += k.line(span{"    " + sign + " ", color}, span{Pad(h.Name, names), plain},
			span{"  " + Pad(string(h.When), 6), dim}, span{"  " + string(h.Phase), color},
			span{", since " + age(k.Now.Sub(h.Since)) + "  " + h.Job, dim})
		if h.Message != "" {
			out += k.line(span{"      " + h.Message, color})
		}
		if h.Phase == rollout.HookFailed && h.Log != "" {
			for line := range strings.SplitSeq(h.Log, "\n") {
				out += k.line(span{"      │ " + line, dim})
			}
		}
	}
	return out
}
