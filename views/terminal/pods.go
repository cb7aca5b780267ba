package terminal

import (
	"cmp"
	"fmt"
	"slices"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

// maxPods limits how many pods of a revision are drawn without Look.Wide. Failing pods come first.
const maxPods = 6

func drawRevision(r status.Revision, k Look) (out string) {
	role, color := r.Role, roleColor(r.Role)
	if color == dim {
		role = "old"
		if r.Desired > 0 || r.Hash == "" || r.Current {
			role = "pods"
		}
	}
	out += k.line(span{"    " + Pad(role, 9), color}, span{cut(r.PodHash, 10), bold},
		span{fmt.Sprintf("  %d/%d ready", r.Ready, r.Desired), readyColor(r.Ready, r.Desired)})
	out += k.below(6, r.Problem, red)
	pods := slices.SortedStableFunc(slices.Values(r.Pods), func(a, b status.Pod) int {
		return cmp.Compare(trouble(b), trouble(a))
	})
	shown := pods
	if room := maxPods - k.fewer; len(pods) > room && (!k.Wide || k.fewer > 0) {
		shown = pods[:max(0, room-1)]
	}
	names := min(widest(shown, func(p status.Pod) string { return p.Name }), max(24, k.columns()-40))
	states := max(7, widest(shown, podText))
	for i, p := range shown {
		branch := "├ "
		if i == len(pods)-1 {
			branch = "└ "
		}
		out += drawPod(p, branch, names, states, k)
	}
	if more := len(pods) - len(shown); more > 0 && len(shown) > 0 {
		out += k.line(span{fmt.Sprintf("      └ and %d more", more), dim})
	}
	return out
}

func trouble(p status.Pod) int {
	switch {
	case !p.Ready && p.Status != "Terminating":
		return 2
	case p.Restarts > 0:
		return 1
	}
	return 0
}

func podText(p status.Pod) string {
	if !p.Ready && p.Status == "Running" {
		return "not ready"
	}
	return p.Status
}

func drawPod(p status.Pod, branch string, names, states int, k Look) string {
	color := yellow
	switch {
	case p.Ready:
		color = green
	case p.Status == "Terminating" || p.Status == "Completed":
		color = dim
	case p.Status != "Running" && p.Status != "Pending" && p.Status != "ContainerCreating":
		color = red
	}
	restarts := ""
	if p.Restarts > 0 {
		restarts = "  " + rollout.Count(p.Restarts, "restart")
	}
	return k.line(span{"      " + branch, dim}, span{Pad(truncateMiddle(p.Name, names), names) + "  ", plain},
		span{Pad(podText(p), states), color}, span{padLeft(age(k.Now.Sub(p.Created)), 6), dim}, span{restarts, yellow})
}

// truncateMiddle keeps the end of a pod's name, which differs between a workload's pods.
func truncateMiddle(s string, n int) string {
	if width(s) <= n || n < 8 {
		return Truncate(s, n)
	}
	tail := s[max(0, len(s)-16):]
	return cut(s, n-1-width(tail)) + "…" + tail
}
