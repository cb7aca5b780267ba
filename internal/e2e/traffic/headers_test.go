package traffic

import (
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/proxytest"
	"gitrollout.dev/gitrollout/rollout"
)

// TestHeaders checks that requests to the new version carry a step's header, and that no other requests carry the header. After the step,
// no request carries the header.
func TestHeaders(t *testing.T) {
	t.Parallel()
	const header = `requestHeaderModifier: {set: [{name: X-Canary, value: "yes"}]}}`
	w := newWorld(t, beside, gateway.canary(quick, []string{"{setWeight: 20, " + header, "{pause: {}, " + header, "pause: {}"}))
	w.users(slow)
	_, at := w.release("v2")
	for _, step := range []struct {
		at   int
		want string
	}{{1, "yes"}, {2, ""}} {
		from := w.paused(at, step.at).Add(w.settled)
		for _, a := range w.apps {
			some := a.after(from)
			some.WantShare(t, a.String(), "v2", 0.2)
			for _, r := range some {
				want := map[string]string{"v2": step.want}[r.Version]
				if got := r.Header.Get("X-Canary"); got != want {
					t.Errorf("step %d: a request to %s has X-Canary %q, want %q", step.at, r.Version, got, want)
				}
			}
		}
		if step.at == 1 {
			at = w.decide(rollout.Promote, "2")
		}
	}
	w.aborted(w.decide(rollout.Abort, ""), "v2")
	w.quiet()
}

// TestExperimentWeights sends 20 % of the requests to new pods of the stable version and 10 % to pods of the new version. After the
// experiment, no request reaches its pods. After an abort, no request reaches the new version.
func TestExperimentWeights(t *testing.T) {
	t.Parallel()
	w := newWorld(t, beside, gateway.canary(quick, []string{"experiment: {duration: 60s, templates: [" +
		"{name: baseline, specRef: stable, replicas: 2, weight: 20}, {name: try, specRef: canary, replicas: 2, weight: 10}]}", "pause: {}"}))
	w.users(slow)
	a := w.apps[0]
	of := func(template string) func(proxytest.Result) bool {
		return func(r proxytest.Result) bool { return strings.Contains(r.Pod, "-"+template+"-") }
	}
	tried := func(since time.Time, version string) {
		t.Helper()
		shared := a.await(since, "requests to the experiment", func(s rollout.State) bool {
			return len(s.Progress) == 1 && s.Progress[0].Routed != nil && s.Progress[0].Routed.Shares
		})
		some := a.after(shared.at.Add(w.settled))
		some.WantShare(t, "both versions", version, 0.1)
		if n := len(some.Where(of("baseline"))); !proxytest.Within999(n, len(some), 0.2) {
			t.Errorf("the baseline gets %d of %d requests, want 20 %%", n, len(some))
		}
	}
	_, at := w.release("v2")
	tried(at, "v2")
	paused := w.paused(at, 1)
	for _, template := range []string{"baseline", "try"} {
		if late := a.after(paused).Where(of(template)); len(late) > 0 {
			t.Errorf("after the experiment, %d requests reach its %s", len(late), template)
		}
	}
	w.aborted(w.decide(rollout.Abort, ""), "v2")
	_, at = w.release("v3")
	tried(at, "v3")
	w.aborted(w.decide(rollout.Abort, ""), "v3")
	w.quiet()
}
