package strategies_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/strategies/plan"
	"gitrollout.dev/gitrollout/strategies/routes"
	"gitrollout.dev/gitrollout/strategies/workloads"
	"gitrollout.dev/gitrollout/traffic"
)

// httpRoute returns a router for the HTTPRoute with the given name.
func httpRoute(name string) rollout.Router {
	r, err := traffic.Parse("gatewayAPI", map[string]any{"httpRoute": name}, nil)
	if err != nil {
		panic(err)
	}
	return r
}

// routedWeb returns an app with a router and one workload of ten pods.
func routedWeb(change func(*rollout.Spec)) *history {
	return oneWeb(func(s *rollout.Spec) {
		s.Name, s.Scaling = "web", rollout.Surge
		s.Canary.StableService, s.Canary.CanaryService = "web", "web-canary"
		s.Canary.Steps = []rollout.Step{weight(50), aPause}
		s.Canary.Traffic = &rollout.Traffic{
			MaxWeight: 100, Settle: 3 * time.Second, Routers: []rollout.Router{httpRoute("web")},
		}
		if change != nil {
			change(s)
		}
	})
}

// routedAt returns a release of routedWeb's app from v1 to v2 at the given step, with ten pods of v1 and 5 pods of v2.
func routedAt(step int) (*history, strategies.Input) {
	h := routedWeb(nil)
	h.push(version("v2"))
	return h, inFlight(h, step, set(h, commitID(1), 5, 5), set(h, commitID(0), 10, 10))
}

var webRoute = rollout.Ref{Group: "gateway.networking.k8s.io", Kind: "HTTPRoute", Namespace: testApp.Namespace, Name: "web"}

// accepted returns an HTTPRoute whose condition Accepted has the given status and observedGeneration.
func accepted(status string, generation int64) rollout.ObservedRoute {
	return rollout.ObservedRoute{Generation: 3, Status: map[string]any{"parents": []any{map[string]any{
		"controllerName": "example.com/gateway", "conditions": []any{map[string]any{
			"type": "Accepted", "status": status, "observedGeneration": generation, "reason": "NoMatchingParent",
			"message": "no such Gateway",
		}},
	}}}}
}

// TestRouteGates checks the gates of a step with weight 50 % and a router. The step's five new pods are running.
func TestRouteGates(t *testing.T) {
	type want struct {
		Step    int
		Routed  bool
		Phase   rollout.Phase
		Waits   string // a substring of the text
		Due     time.Duration
		Reason  string
		Service string // the Service whose endpoints the decision asks for
	}
	routed := func(ago time.Duration) func(*strategies.Input) {
		return func(in *strategies.Input) {
			in.State.Progress[0].Routed = &rollout.Routing{Step: 0, Weight: 50, At: in.Now.Add(-ago)}
		}
	}
	status := func(r rollout.ObservedRoute) func(*strategies.Input) {
		return func(in *strategies.Input) {
			routed(time.Minute)(in)
			in.Observed.Routes = map[rollout.Ref]rollout.ObservedRoute{webRoute: r}
		}
	}
	cases := map[string]struct {
		reason string
		change func(*strategies.Input)
		want   want
	}{
		"Ready": {"pods that every proxy knows of are routed to", func(*strategies.Input) {},
			want{Routed: true, Phase: rollout.Progressing, Service: "web-canary"}},
		"JustReady": {"pods that are ready too short are not", func(in *strategies.Input) {
			in.Observed.Workloads[web].Revisions[0].ReadySince[4] = in.Now.Add(-time.Second)
		}, want{Phase: rollout.Progressing, Waits: "4 of 5 serve", Due: 3 * time.Second}},
		"NoEndpoints": {"nor are pods whose Service has no endpoint yet", func(in *strategies.Input) {
			in.Answers.Endpoints = map[strategies.Need]bool{{Service: webCanary, PodHash: commitID(1)}: false}
		}, want{Phase: rollout.Progressing, Waits: "ready endpoints of Service web-canary", Due: time.Second}},
		"Settling": {"a step is done when proxies have learnt of it", routed(time.Second),
			want{Routed: true, Phase: rollout.Progressing, Waits: "proxies to learn", Due: 2 * time.Second}},
		"Settled": {"which takes as long as the document says", routed(3 * time.Second), want{Step: 1, Routed: true, Phase: rollout.Paused}},
		"AppliedLate": {"counted from when the cluster holds the route, which a slow push may delay", func(in *strategies.Input) {
			routed(time.Minute)(in)
			in.Applied = in.Now.Add(-time.Second)
		}, want{Routed: true, Phase: rollout.Progressing, Waits: "proxies to learn", Due: 2 * time.Second}},
		"AppliedAnew": {"a step that waited for people still does while a new process waits for the route", func(in *strategies.Input) {
			routed(time.Minute)(in)
			in.Applied, in.State.Phase = in.Now.Add(-time.Second), rollout.Paused
		}, want{Routed: true, Phase: rollout.Paused, Waits: "proxies to learn", Due: 2 * time.Second}},
		"Accepted": {"and the router has accepted the route", status(accepted("True", 3)), want{Step: 1, Routed: true, Phase: rollout.Paused}},
		"Silent":   {"or does not say", status(rollout.ObservedRoute{Generation: 3}), want{Step: 1, Routed: true, Phase: rollout.Paused}},
		"NotSeen": {"one that has not seen the newest spec is waited for", status(accepted("True", 2)),
			want{Routed: true, Phase: rollout.Progressing, Waits: "not yet accepted"}},
		"Rejected": {"one that refuses it stops the release with its reason", status(accepted("False", 3)),
			want{Routed: true, Phase: rollout.Stalled, Waits: "router to take", Reason: "no such Gateway"}},
		"NotSynced": {"and nothing is routed before the Deployment controller has seen the step",
			withLive(func(live *rollout.ObservedWorkload) { live.Synced = false }),
			want{Phase: rollout.Progressing, Waits: "Deployment controller"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, in := routedAt(0)
			tc.change(&in)
			d := strategies.Decide(in)
			p := d.State.Progress[0]
			got := want{Step: p.Step, Routed: p.Routed != nil, Phase: d.State.Phase, Waits: tc.want.Waits, Reason: tc.want.Reason}
			if !strings.Contains(d.Waiting, tc.want.Waits) || tc.want.Waits == "" && d.State.Phase == rollout.Progressing && d.Subject == "" {
				got.Waits = d.Waiting
			}
			if !strings.Contains(d.State.Reason, tc.want.Reason) {
				got.Reason = d.State.Reason
			}
			if d.Ask != nil && d.Ask.Endpoints != nil {
				compare.Check(t, &strategies.Ask{Endpoints: []strategies.Need{{Service: webCanary, PodHash: commitID(1)}}}, d.Ask)
				got.Service = d.Ask.Endpoints[0].Service.Name
			}
			if tc.want.Due > 0 {
				got.Due = d.Requeue.Sub(in.Now)
			}
			compare.CheckNamed(t, tc.reason, tc.want, got)
		})
	}
}

var webCanary = serviceRef("web-canary")

func TestWithin(t *testing.T) {
	cases := map[string]struct {
		reason         string
		weight, full   int
		want           plan.Counts
		canary, stable int
		expect         int
	}{
		"All":          {"all pods that the step asks for", 50, 100, plan.Counts{Canary: 5, Stable: 10}, 5, 10, 50},
		"More":         {"more pods are no reason for more weight", 50, 100, plan.Counts{Canary: 5, Stable: 10}, 9, 10, 50},
		"OneLost":      {"each side gets the share that its pods can bear", 50, 100, plan.Counts{Canary: 5, Stable: 10}, 4, 10, 44},
		"HalfLost":     {"half of the pods, a third of the requests", 50, 100, plan.Counts{Canary: 4, Stable: 10}, 2, 10, 33},
		"NoneLeft":     {"no pod, no request", 50, 100, plan.Counts{Canary: 5, Stable: 10}, 0, 10, 0},
		"BothBehind":   {"neither side is behind the other", 50, 100, plan.Counts{Canary: 10, Stable: 20}, 5, 10, 50},
		"StableBehind": {"a canary never gets more than its step says", 50, 100, plan.Counts{Canary: 5, Stable: 10}, 5, 2, 50},
		"StableGone":   {"nor if nothing of stable is left", 50, 100, plan.Counts{Canary: 5, Stable: 10}, 5, 0, 50},
		"Full":         {"all requests stay where stable gets none", 100, 100, plan.Counts{Canary: 10, Stable: 10}, 9, 10, 100},
		"PerMille":     {"of another total", 5, 1000, plan.Counts{Canary: 2, Stable: 10}, 1, 10, 2},
		"NoStable":     {"where a step keeps no stable pods", 100, 100, plan.Counts{Canary: 10, Stable: 0}, 4, 0, 100},
	}
	for name, tc := range cases {
		compare.CheckNamed(t, name+", "+tc.reason, tc.expect, routes.Within(tc.weight, tc.full, tc.want, tc.canary, tc.stable))
	}
}

// FuzzWithin checks that a weight is at most the step's weight, is 0 without new pods, and never decreases if one new pod is added.
func FuzzWithin(f *testing.F) {
	f.Add(50, 100, 5, 10, 4, 10)
	f.Fuzz(func(t *testing.T, weight, full, wantCanary, wantStable, canary, stable int) {
		for _, n := range []*int{&weight, &full, &wantCanary, &wantStable, &canary, &stable} {
			*n = max(0, *n%1000)
		}
		full = max(1, full)
		weight = min(weight, full)
		got := routes.Within(weight, full, plan.Counts{Canary: wantCanary, Stable: wantStable}, canary, stable)
		if got < 0 || got > weight || canary == 0 && got != 0 {
			t.Errorf("within(%d of %d, %d/%d, %d, %d) = %d", weight, full, wantCanary, wantStable, canary, stable, got)
		}
		if more := routes.Within(weight, full, plan.Counts{Canary: wantCanary, Stable: wantStable}, canary+1, stable); more < got {
			t.Errorf("one more pod: %d becomes %d", got, more)
		}
	})
}

// TestGenerated checks that the recorded state lists the objects that are generated for a release, until the release ends. Generated
// objects are deleted once they are not desired.
func TestGenerated(t *testing.T) {
	made := func(name string) rollout.Object {
		o := object("networking.k8s.io/v1", "Ingress", name)
		o.Set("web", "metadata", "annotations", rollout.AnnotationGenerated)
		return o
	}
	own := object("v1", "Service", "web")
	s := rollout.State{Release: &rollout.Release{}}
	s.Generated = strategies.Generated(s, []rollout.Object{own, made("a"), made("b")})
	compare.CheckNamed(t, "generated", []rollout.Ref{made("a").Ref(), made("b").Ref()}, s.Generated)
	compare.CheckNamed(t, "left over", []rollout.Ref{made("a").Ref()}, strategies.Leftover(s, []rollout.Object{own, made("b")}))
	if got := strategies.Generated(s, []rollout.Object{own}); len(got) != 2 {
		t.Errorf("a generated object is forgotten while the release goes on: %v", got)
	}
	s.Release = nil
	if got := strategies.Generated(s, []rollout.Object{own}); got != nil {
		t.Errorf("after the release it is still listed: %v", got)
	}
}

// TestDrainOfLateRetreat checks a rollback whose routes are applied after Rollback.Drain. The new pods stay until proxies use these routes.
func TestDrainOfLateRetreat(t *testing.T) {
	_, in := routedAt(1)
	in.State.Progress[0].Routed = &rollout.Routing{Step: 0, Weight: 50, At: in.Now.Add(-time.Minute)}
	in.Promotion = &rollout.Promotion{Decision: rollout.Abort, Release: in.State.Release.Hash}
	in.State = strategies.Decide(in).State
	if in.State.Phase != rollout.Aborting {
		t.Fatalf("an abort is %s", in.State.Phase)
	}
	late := in.State.Rollback.Drain.Add(10 * time.Second)
	in.Now, in.Applied = late, late.Add(-time.Second)
	if d := strategies.Decide(in); d.Subject != "" || !d.Requeue.Equal(late.Add(2*time.Second)) {
		t.Errorf("one second after it was applied: %q, again at %v", d.Subject, d.Requeue.Sub(late))
	}
	in.Now = late.Add(2 * time.Second)
	if d := strategies.Decide(in); d.State.Source != in.State.Rollback.To {
		t.Errorf("three seconds after it was applied the pods stay: %q", d.Subject)
	}
}

// TestRouting checks that only a change of routes or a switch of a Service restarts the settle time.
func TestRouting(t *testing.T) {
	h := routedWeb(func(s *rollout.Spec) { s.Canary.ScaleDownDelaySeconds = 30 })
	source := h.at(commitID(0))
	at := func(step int, weight int) string {
		return strategies.Routing(rollout.State{Release: &rollout.Release{}, Progress: []rollout.Progress{{Workload: web, Step: step,
			Of: 5, Routed: &rollout.Routing{Step: 0, Weight: weight, At: noon}}}}, source)
	}
	if at(0, 50) != at(1, 50) {
		t.Error("the next step, which routes nothing else, begins the wait anew")
	}
	if at(1, 50) == at(1, 60) || at(2, 100) == at(3, 100) {
		t.Error("another weight, or the switch of the stable Service, does not")
	}
	if got := strategies.Routing(rollout.State{Progress: []rollout.Progress{{Workload: web}}}, source); got != "" {
		t.Errorf("nothing routed is %q", got)
	}
}

// TestAHoldKeepsNoMoreThanItsStepAsksFor checks an edit that lowers the weight of a step while the release is on hold. The routed weight
// falls to the step's weight but never rises, and the release stays at its step.
func TestAHoldKeepsNoMoreThanItsStepAsksFor(t *testing.T) {
	holds := map[string]func(*strategies.Input, *rollout.Promotion){
		"decision": func(in *strategies.Input, p *rollout.Promotion) { in.Promotion = p },
		"paused":   func(in *strategies.Input, _ *rollout.Promotion) { in.Head.Render.Specs[0].Paused = true },
		"promoted": func(in *strategies.Input, p *rollout.Promotion) {
			in.Head.Render.Specs[0].Paused, p.Decision, p.Through = true, rollout.Promote, rollout.Full
			in.Promotion = p
		},
	}
	for name, hold := range holds {
		for before, want := range map[int]int{20: 20, 80: 50, 100: 50} {
			_, in := routedAt(0)
			in.State.Progress[0].Routed = &rollout.Routing{Step: 0, Weight: before, At: in.Now.Add(-time.Minute)}
			hold(&in, &rollout.Promotion{Release: in.State.Release.Hash, Decision: rollout.Hold})
			got := strategies.Decide(in).State.Progress[0]
			if got.Routed.Weight != want || got.Step != 0 {
				t.Errorf("%s: from %d%% at a step of 50%% it goes to %d%% and step %d, want %d%% and step 0",
					name, before, got.Routed.Weight, got.Step, want)
			}
		}
	}
}

// TestNoMoreIsRoutedThanTheStepAsksFor checks an edit that lowers the weight of a step below the routed weight. The smaller weight applies
// immediately, even before the next state is in Git.
func TestNoMoreIsRoutedThanTheStepAsksFor(t *testing.T) {
	h, in := routedAt(0)
	spec, _ := h.at(commitID(1)).Spec(web)
	for weight, want := range map[int]int{50: 33, 10: 10, 0: 0} {
		in.State.Progress[0].Routed = &rollout.Routing{Weight: 33, At: noon}
		in.State.Progress[0].Weight = weight
		compare.CheckNamed(t, fmt.Sprintf("33 were routed, the step asks for %d", weight), want,
			routes.Of(in.State, plan.Compile(spec), viewOf(in, h)).Weight)
	}
}

// TestHeadersLastForTheirStep checks that requests carry a step's headers only while this step's route is in force.
func TestHeadersLastForTheirStep(t *testing.T) {
	headers := &rollout.HeaderModifier{Remove: []string{"X-Debug"}}
	h := routedWeb(func(s *rollout.Spec) {
		zero := weight(0)
		zero.Headers = headers
		half := weight(50)
		half.Headers = headers
		s.Canary.Steps = []rollout.Step{zero, half, aPause}
	})
	h.push(version("v2"))
	p := plan.Compile(h.at(commitID(1)).Specs[0])
	if p.Stages[0].Headers != nil {
		t.Error("a step without requests to the new version asks for headers")
	}
	in := inFlight(h, 1, set(h, commitID(1), 5, 5), set(h, commitID(0), 10, 10))
	at := func(step, routed int, phase rollout.Phase) *rollout.HeaderModifier {
		s := in.State
		s.Phase, s.Progress = phase, []rollout.Progress{p.Enter(step, in.Now)}
		s.Progress[0].Routed = &rollout.Routing{Step: routed, Weight: 50, At: in.Now}
		s.Rollback = &rollout.Rollback{To: commitID(0)}
		return routes.Of(s, p, viewOf(in, h)).Headers
	}
	for name, c := range map[string]struct {
		step, routed int
		phase        rollout.Phase
		want         *rollout.HeaderModifier
	}{
		"at the step":                      {1, 1, rollout.Progressing, headers},
		"until the next step is routed":    {2, 1, rollout.Paused, headers},
		"at the next step":                 {2, 2, rollout.Paused, nil},
		"with all requests":                {3, 3, rollout.Progressing, nil},
		"once the stable Service switches": {5, 1, rollout.Promoting, nil},
		"in a rollback":                    {1, 1, rollout.Aborting, nil},
	} {
		compare.CheckNamed(t, name, c.want, at(c.step, c.routed, c.phase))
	}
	in.State.Progress = []rollout.Progress{p.Enter(2, in.Now)}
	in.State.Progress[0].Routed = &rollout.Routing{Step: 1, Weight: 50, At: noon}
	if d := strategies.Decide(in); d.State.Progress[0].Routed.Step != 2 {
		t.Errorf("the next step, without headers, is not routed: %q", d.Subject)
	}
}

// TestUsersWhoAreAllMovedStay checks that progressDeadlineAbort does not roll back a version that gets all requests. Only the removal of
// old pods remains, so no progress is expected.
func TestUsersWhoAreAllMovedStay(t *testing.T) {
	h := routedWeb(func(s *rollout.Spec) { s.Canary.DynamicStableScale, s.ProgressDeadlineAbort = true, true })
	h.push(version("v2"))
	in := inFlight(h, 2, set(h, commitID(0), 10, 10), set(h, commitID(1), 10, 10))
	in.Now = noon.Add(24 * time.Hour)
	checkPhase(t, "while requests are stable's still", in, rollout.Aborting)
	in.State.Progress[0].Routed = &rollout.Routing{Step: 2, Weight: 100, At: noon}
	if d := strategies.Decide(in); d.State.Phase == rollout.Aborting {
		t.Errorf("all requests are the new version's, and it goes back: %s", d.Subject)
	}
}

// TestRouteThatIsNotThere checks that nothing is applied for a release whose route object is missing. The error must name the workload.
func TestRouteThatIsNotThere(t *testing.T) {
	h := routedWeb(nil)
	in := world(h)
	source := *in.Source
	source.Objects = slices.DeleteFunc(slices.Clone(source.Objects), func(o rollout.Object) bool { return o.Kind() == "HTTPRoute" })
	objects, err := strategies.Desired(in.State, workloads.View{Source: &source, Observed: in.Observed, Now: in.Now})
	if err == nil || objects != nil || !strings.Contains(err.Error(), "route requests of "+web.String()) {
		t.Errorf("%d objects, %v", len(objects), err)
	}
}

// TestRollbackWithoutItsRouter checks a push that removes the router and causes a rollback. The new pods stay while proxies may send them
// requests.
func TestRollbackWithoutItsRouter(t *testing.T) {
	h, in := routedAt(1)
	in.State.Progress[0].Routed = &rollout.Routing{Step: 0, Weight: 50, At: noon}
	h.push(func(x *source) {
		x.workloads[0].spec.Scaling = rollout.InPlace
		x.workloads[0].editCanary(func(c *rollout.Canary) { c.Traffic = nil })
	})
	in.Head = h.headInput()
	for _, row := range []struct {
		after  time.Duration
		source string
	}{{0, commitID(1)}, {2 * time.Second, commitID(1)}, {2 * time.Second, commitID(0)}} {
		in.Now = in.Now.Add(row.after)
		transition(&in, h)
		compare.CheckNamed(t, "phase and commit", []any{rollout.Aborting, row.source}, []any{in.State.Phase, in.State.Source})
	}
}
