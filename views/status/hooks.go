package status

import (
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

func hooksOf(s rollout.State) []rollout.HookRun {
	isOther := func(h rollout.HookRun) bool { return h.Release != s.Hooks[len(s.Hooks)-1].Release }
	return slices.DeleteFunc(slices.Clone(s.Hooks), isOther)
}

// IsRunning reports whether a Job has not ended.
func IsRunning(h rollout.HookRun) bool { return h.Phase == rollout.HookRunning }

func nextOfHooks(s rollout.State, coming *rollout.Release) (out []Next) {
	isWhy := func(h rollout.HookRun) bool {
		switch {
		case s.Held != nil:
			return s.Held.Reason == rollout.HeldHookFailed || s.Held.Reason == rollout.HeldNoStable
		case len(s.Rejected) == 0 || s.Phase != rollout.Degraded && s.Phase != rollout.Aborting:
			return false
		}
		return s.Rejected[0].Hash == h.Release && s.Rejected[0].Hook == h.Name
	}
	for _, h := range slices.Backward(hooksOf(s)) {
		namespace, _, _ := strings.Cut(h.Name, "/")
		switch {
		case h.Phase == rollout.HookRunning:
			out = append(out, Next{To: "look at the Job", Command: "kubectl -n " + namespace + " describe job " + h.Job},
				Next{To: "look at the Job", Command: "kubectl -n " + namespace + " logs job/" + h.Job})
			if h.Past && (s.Release != nil || s.Held.Is(rollout.HeldHook)) || coming != nil && h.Release != coming.Hash {
				out = append(out, Next{To: "go on without that Job", Command: "kubectl -n " + namespace + " delete job " + h.Job})
			}
		case h.Phase == rollout.HookFailed && isWhy(h):
			return append(out, Next{To: "see why it failed", Command: "kubectl -n " + namespace + " logs job/" + h.Job})
		}
	}
	return out
}
