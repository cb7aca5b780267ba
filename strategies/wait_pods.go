package strategies

import (
	"fmt"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/plan"
)

// waitForPods waits until new pods have served for minReadySeconds and get their requests, and old pods are few enough.
func waitForPods(in Input, m workload) verdict {
	want := m.kind().reached(m, m.want())
	ready := plan.MinReady(m.Spec)
	routes := m.needsRouting()
	if routes {
		ready = max(ready, learnt(m.Routing))
	}
	serving := m.fresh.Serving(in.Now, ready)
	switch {
	case !m.exists:
		return verdict{text: m.Workload.Title() + " to exist"}
	case serving < want.Canary:
		text := fmt.Sprintf("pods of the new version: %d of %d serve", serving, want.Canary)
		v := verdict{text: withProblem(text, m.problem())}
		v.due = servesNext(in.Now, ready, m.fresh)
		return v
	case m.n > 0 && routes && m.live.Synced:
		return waitForEndpoints(in, m)
	case (m.Spec.Scaling == rollout.InPlace || m.IsDynamic()) && m.stable.Desired > want.Stable:
		return toGo("old", m.stable.Desired-want.Stable, m.stable)
	case m.fresh.Desired > want.Canary:
		return toGo("new", m.fresh.Desired-want.Canary, m.fresh)
	case m.stable.Desired < want.Stable && m.stable.Hash != "":
		return verdict{text: fmt.Sprintf("pods of the old version: %d of %d are back", m.stable.Desired, want.Stable)}
	case !m.live.Synced:
		return verdict{text: "the " + m.Workload.Ref().Kind + " controller"}
	default:
		return verdict{done: true}
	}
}

// withProblem returns a text with the reason why pods are not ready, if there is one.
func withProblem(text, problem string) string {
	if problem == "" {
		return text
	}
	return text + " (" + problem + ")"
}

func toGo(version string, more int, r rollout.Revision) verdict {
	return verdict{text: fmt.Sprintf("pods of the %s version: %d of %d have yet to go", version, more, r.Desired)}
}

// waitForEndpoints waits for ready endpoints of the new version's Service before its routes are applied.
func waitForEndpoints(in Input, m workload) verdict {
	for _, need := range needsOf(in, m) {
		if serves, known := in.Answers.Endpoints[need]; known && !serves {
			return verdict{text: "ready endpoints of Service " + need.Service.Name, due: in.Now.Add(time.Second)}
		}
	}
	return verdict{route: true}
}

// servesNext returns when the next ready pod will have been ready for minReady, zero if all have.
func servesNext(now time.Time, minReady time.Duration, versions ...rollout.Revision) (due time.Time) {
	for _, v := range versions {
		for _, since := range v.ReadySince {
			if at := since.Add(minReady); at.After(now) {
				due = rollout.Soonest(due, at)
			}
		}
	}
	return due
}
