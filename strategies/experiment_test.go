package strategies_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/experiment"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/strategies/plan"
	"gitrollout.dev/gitrollout/strategies/routes"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

// trying returns an app whose experiment began at noon. The given number of pods of each template has been ready since noon.
func trying(t *testing.T, change func(*rollout.Experiment), ready int) (strategies.Input, *history) {
	t.Helper()
	e := &rollout.Experiment{
		Duration: new(time.Hour), ProgressDeadlineSeconds: 120,
		Templates: []rollout.ExperimentTemplate{
			{Name: "baseline", SpecRef: rollout.SpecStable, Replicas: 2, Service: new("")},
			{Name: "candidate", SpecRef: rollout.SpecCanary, Replicas: 2},
		},
		Analyses: []rollout.ExperimentAnalysis{
			{Name: "errors", Analysis: &rollout.Analysis{Metrics: []rollout.Metric{{Name: "errors", Interval: time.Minute}}}},
		},
	}
	if change != nil {
		change(e)
	}
	h := twoVersions(func(s *rollout.Spec) { s.Name, s.Canary.Steps = "web", []rollout.Step{{Experiment: e}, weight(50)} })
	in := world(h)
	in.Now = noon
	transition(&in, h)
	for _, tmpl := range e.Templates {
		r := pods(tmpl.Replicas, ready)
		r.Name, r.Pin, r.Current = "set-of-"+tmpl.Name, rollout.PodHash("hash-of-"+tmpl.Name), true
		name := experiment.Name(web, in.State.Release.Hash, 0, tmpl.Name)
		in.Observed.Workloads[rollout.Workload{Namespace: web.Namespace, Name: name}] = rollout.ObservedWorkload{
			Replicas: tmpl.Replicas, Synced: true, Revisions: []rollout.Revision{r},
		}
	}
	return in, h
}

// TestExperimentClock checks that an experiment's duration begins when all its pods are available, and that the app is requeued for its
// deadline and its end.
func TestExperimentClock(t *testing.T) {
	in, _ := trying(t, nil, 1)
	in.Now = noon.Add(time.Minute)
	d := strategies.Decide(in)
	if want := noon.Add(2 * time.Minute); d.Subject != "" || !d.Requeue.Equal(want) ||
		!strings.Contains(d.Waiting, "baseline: 1 of 2 available") {
		t.Errorf("with pods missing: %q, waits for %q, looks again at %s, want at the deadline %s", d.Subject, d.Waiting, d.Requeue, want)
	}

	in, _ = trying(t, nil, 2)
	in.Now = noon.Add(90*time.Second + time.Millisecond)
	d = strategies.Decide(in)
	begun := noon.Add(90*time.Second + 100*time.Millisecond)
	if p := d.State.Progress[0]; p.Available == nil || !p.Available.Equal(begun) || p.Step != 0 {
		t.Fatalf("with all pods available the progress is %+v", p)
	}
	if len(d.State.Analyses) != 1 || d.State.Analyses[0].Name != "web/step-1/errors" {
		t.Errorf("the analyses are %+v", d.State.Analyses)
	}
	in.State, in.Now = d.State, begun.Add(time.Minute)
	baseline := rollout.Workload{Namespace: web.Namespace, Name: experiment.Name(web, in.State.Release.Hash, 0, "baseline")}
	in.Observed.Workloads[baseline] = rollout.ObservedWorkload{}
	if d = strategies.Decide(in); d.Subject != "" || !d.Requeue.Equal(begun.Add(time.Hour)) {
		t.Errorf("with pods lost: %q, looks again at %s, want when the duration is over", d.Subject, d.Requeue)
	}
	in.Now = begun.Add(time.Hour)
	if d = strategies.Decide(in); d.State.Progress[0].Step != 1 || d.State.Progress[0].Available != nil ||
		d.State.Analyses[0].Phase != rollout.AnalysisStopped {
		t.Errorf("after the duration: %+v, %+v", d.State.Progress, d.State.Analyses)
	}
}

// TestExperimentOfAnUnreadableHead checks that an experiment keeps its deadline while the head is unreadable.
func TestExperimentOfAnUnreadableHead(t *testing.T) {
	in, _ := trying(t, nil, 1)
	in.Head.Render, in.Head.Err = nil, &rollout.InvalidError{Msg: "is not valid YAML"}
	d := strategies.Decide(in)
	if !d.Requeue.Equal(noon.Add(2 * time.Minute)) {
		t.Errorf("looks again at %s, want at the deadline", d.Requeue)
	}
	in.State, in.Now = d.State, noon.Add(2*time.Minute)
	if d = strategies.Decide(in); !d.Rollback || !strings.Contains(d.State.Reason, "1 of 2 pods of the experiment's baseline are available") {
		t.Errorf("after the deadline: %q", d.Subject)
	}
}

// TestExperimentMeasures checks that measurements have the pod hashes of the experiment's pods. For a version without pods in the
// experiment, measurements have the pod hash of the release's pods.
func TestExperimentMeasures(t *testing.T) {
	texts := map[string]string{
		"templates.baseline.podTemplateHash": "hash-of-baseline", "templates.baseline.replicaset.name": "set-of-baseline",
		"templates.candidate.podTemplateHash": "hash-of-candidate", "templates.candidate.replicaset.name": "set-of-candidate",
		"experiment.availableAt": "2026-11-20T12:00:00Z", "experiment.finishedAt": "2026-11-20T13:00:00Z",
	}
	for name, tc := range map[string]struct {
		reason         string
		change         func(*rollout.Experiment)
		latest, stable string
	}{
		"both": {"the experiment's own", nil, "hash-of-candidate", "hash-of-baseline"},
		"one": {"the release's where the experiment has none", func(e *rollout.Experiment) { e.Templates = e.Templates[1:] },
			"hash-of-candidate", commitID(0)},
		"two stable": {"the first of a version", func(e *rollout.Experiment) { e.Templates[1].SpecRef = rollout.SpecStable },
			"", "hash-of-baseline"},
	} {
		t.Run(name, func(t *testing.T) {
			in, _ := trying(t, tc.change, 2)
			d := strategies.Decide(in)
			if len(d.Measure) != 1 {
				t.Fatalf("%d measurements are due", len(d.Measure))
			}
			m := d.Measure[0]
			if m.Latest != tc.latest || m.Stable != tc.stable {
				t.Errorf("%s: %q and %q, want %q and %q", tc.reason, m.Latest, m.Stable, tc.latest, tc.stable)
			}
			if available := m.Since.Format(time.RFC3339); available != texts["experiment.availableAt"] {
				t.Errorf("%s: the measured period begins at %s", tc.reason, available)
			}
			for key, text := range m.Texts {
				if texts[key] != text {
					t.Errorf("{{%s}} is %s, want %s", key, text, texts[key])
				}
			}
			if name == "both" && len(m.Texts) != len(texts) {
				t.Errorf("the texts are %v", m.Texts)
			}
			in.State, in.Observed.Workloads = d.State, nil
			if d = strategies.Decide(in); len(d.Measure) > 0 {
				t.Errorf("without ReplicaSets %+v is due", d.Measure)
			}
		})
	}
}

// TestExperimentShares checks that an experiment's template gets requests only while all its pods are ready and known to the proxies. The
// record first has the readiness, and then the weights. The experiment's objects stay until the proxies know that the templates get no
// requests.
func TestExperimentShares(t *testing.T) {
	h := routedWeb(func(s *rollout.Spec) {
		s.Canary.Steps = []rollout.Step{{Experiment: &rollout.Experiment{
			Duration: new(time.Hour), ProgressDeadlineSeconds: 120, Templates: []rollout.ExperimentTemplate{
				{Name: "baseline", SpecRef: rollout.SpecStable, Replicas: 2, Weight: 5, Service: new("base")},
				{Name: "candidate", SpecRef: rollout.SpecCanary, Replicas: 2, Weight: 10, Service: new("try")},
				{Name: "idle", SpecRef: rollout.SpecCanary, Replicas: 1},
			},
		}}, weight(50)}
	})
	h.push(version("v2"))
	in := world(h)
	in.Now = noon
	transition(&in, h)
	hash := in.State.Release.Hash
	ready := func(template string, replicas, ready int) {
		r := pods(replicas, ready)
		r.Current = true
		in.Observed.Workloads[rollout.Workload{Namespace: web.Namespace, Name: experiment.Name(web, hash, 0, template)}] =
			rollout.ObservedWorkload{Replicas: replicas, Synced: true, Revisions: []rollout.Revision{r}}
	}
	ready("baseline", 2, 2)
	ready("candidate", 2, 2)
	ready("idle", 1, 1)
	type want struct {
		Shares map[string]int
		Tries  bool // the experiment's objects are applied
		Step   int
	}
	check := func(name string, after time.Duration, expect want) {
		t.Helper()
		in.Now = in.Now.Add(after)
		transition(&in, h)
		v := viewOf(in, h)
		got := want{Shares: routes.Of(in.State, plan.Compile(v.Source.Specs[0]), v).Shares}
		if len(in.State.Progress) > 0 {
			got.Step = in.State.Progress[0].Step
		}
		got.Tries = slices.ContainsFunc(mustDesired(in.State, v), func(o rollout.Object) bool { return o.Name() == "try" })
		compare.CheckNamed(t, name, expect, got)
	}
	both := map[string]int{"base": 5, "try": 10}
	check("the pods are available, which is recorded first", 10*time.Second, want{nil, true, 0})
	check("then the weights are recorded", time.Second, want{both, true, 0})
	began := in.State
	ready("baseline", 2, 1)
	check("a template that lacks a pod gets none", 10*time.Second, want{map[string]int{"try": 10}, true, 0})
	ready("baseline", 2, 2)
	check("until the pod is back", time.Second, want{both, true, 0})
	check("at the end, the requests end first", time.Hour, want{nil, true, 0})
	check("and the pods stay while proxies may not know it", 2*time.Second, want{nil, true, 0})
	check("before the next step begins", 2*time.Second, want{nil, false, 1})

	for name, row := range map[string]struct {
		decision rollout.Verb
		router   string // whether the router accepts the routes
		step     int    // after the pods are gone
	}{
		"abort": {rollout.Abort, "True", 0}, "abort although the router refuses": {rollout.Abort, "False", 0},
		"promote": {rollout.Promote, "True", 2}, "promote although the router refuses": {rollout.Promote, "False", 2},
	} {
		in.State, in.Now = began, noon.Add(time.Minute)
		in.Source = h.at(in.State.Source)
		in.Promotion = &rollout.Promotion{Release: hash, Decision: row.decision, Through: rollout.Full, Author: "Ann"}
		in.Observed.Routes = map[rollout.Ref]rollout.ObservedRoute{webRoute: accepted(row.router, 3)}
		check(name+": the requests end first", 0, want{nil, true, 0})
		check(name+": the pods stay while proxies may not know it", 2*time.Second, want{nil, true, 0})
		check(name+": the pods go", 2*time.Second, want{nil, false, row.step})
	}

	in.Promotion = nil
	other := rollout.Experiment{Duration: new(time.Hour), ProgressDeadlineSeconds: 120,
		Templates: []rollout.ExperimentTemplate{{Name: "other", SpecRef: rollout.SpecStable, Replicas: 2, Weight: 5, Service: new("")}}}
	metrics := []rollout.Metric{{Name: "errors", Interval: time.Minute}}
	for name, first := range map[string]rollout.Step{
		"a step before": weight(10), "other templates": {Experiment: &other}, "an analysis": {Analysis: &rollout.Analysis{Metrics: metrics}},
	} {
		steps := slices.Concat([]rollout.Step{first}, h.commits[1].workloads[0].spec.Canary.Steps)
		h.push(func(x *source) { x.workloads[0].editCanary(func(c *rollout.Canary) { c.Steps = steps }) })
		head := h.at(h.headID())
		at, back := strategies.GoesOn(began, h.at(commitID(1)), head, noon)
		compare.CheckNamed(t, name+": the forecast", []any{plan.Compile(head.Specs[0]).Digest(), false}, []any{at[0].Plan, back})
		for _, router := range []string{"True", "False"} {
			in.State, in.Now, in.Head = began, noon.Add(time.Minute), h.headInput()
			in.Source = h.at(in.State.Source)
			in.Observed.Routes = map[rollout.Ref]rollout.ObservedRoute{webRoute: accepted(router, 2)}
			check(name+": the requests end first", 0, want{nil, true, 0})
			check(name+": the pods stay while proxies may not know it", 2*time.Second, want{nil, true, 0})
			check(name+": the pods stay while the router has not seen the route", 2*time.Second, want{nil, true, 0})
			compare.CheckNamed(t, name+": analyses of the new steps", 0, len(in.State.Analyses))
			in.Observed.Routes[webRoute] = accepted(router, 3)
			check(name+": the app follows, accepted: "+router, 0, want{nil, false, 0})
		}
	}

	in.State, in.Now, in.Head = began, noon.Add(time.Minute),
		strategies.Head{Commit: rollout.Commit{ID: commitID(1)}, Render: h.at(commitID(1))}
	in.Source = h.at(in.State.Source)
	in.State.Serial, in.State.Release.Serial = 1, 1
	changeLive(&in, web, func(live *rollout.ObservedWorkload) { // the step needs no other pods of the new version
		live.Hash = h.at(commitID(0)).Templates[web]
		live.BreakGlass = rollout.BreakGlass{Release: hash, Serial: 1, At: in.Now}.Encode()
	})
	check("break glass: the requests end first", 0, want{nil, true, 0})
	check("break glass: the pods stay while proxies may not know it", 2*time.Second, want{nil, true, 0})
	check("break glass: the pods go", 2*time.Second, want{nil, false, 0})
}

// TestExperimentDesired checks which objects an experiment applies, and when.
func TestExperimentDesired(t *testing.T) {
	in, h := trying(t, nil, 2)
	names := func(s rollout.State, stable *rollout.Render) []string {
		v := workloads.View{Now: in.Now, Source: h.at(s.Source), Stable: stable, Observed: in.Observed}
		if need := s.Phase == rollout.Progressing && s.Release != nil; strategies.NeedsStable(s, v) != need {
			t.Errorf("phase %s needs stable: %t, want %t", s.Phase, !need, need)
		}
		var all []string
		for _, o := range mustDesired(s, v) {
			if o.Annotation(rollout.AnnotationGenerated) == "web" {
				version, _ := o.Map("spec", "template")["version"].(string)
				all = append(all, strings.TrimSpace(o.Kind()+" "+o.Name()[strings.LastIndex(o.Name(), "-")+1:]+" "+version))
			}
		}
		slices.Sort(all)
		return all
	}
	both := []string{"Deployment baseline v1", "Deployment candidate v2", "Service baseline"}
	compare.CheckNamed(t, "at the step", both, names(in.State, h.at(commitID(0))))
	compare.CheckNamed(t, "without the stable commit", []string{"Deployment candidate v2"}, names(in.State, nil))
	ahead, err := strategies.Ahead(h.at(commitID(1)), h.at(commitID(1)).Objects)
	if err != nil || len(ahead) != 3 {
		t.Errorf("the API server is asked about %d objects ahead (%v), want two Deployments and a Service", len(ahead), err)
	}
	back := strategies.Rollback(in, commitID(0), "aborted", true).State
	later := in.State
	later.Progress = []rollout.Progress{plan.Compile(h.at(commitID(1)).Specs[0]).Enter(2, noon)}
	later.Phase = rollout.Promoting
	for what, s := range map[string]rollout.State{"the rollback": back, "promoting": later} {
		if got := names(s, h.at(commitID(0))); got != nil {
			t.Errorf("%s asks for %v", what, got)
		}
	}
}

// TestExperimentKeepsALaterWindow checks an experiment whose metrics server lacks most requests in one answer: the next queries cover only
// the time since this answer, so no request counts twice.
func TestExperimentKeepsALaterWindow(t *testing.T) {
	in, _ := trying(t, func(e *rollout.Experiment) { e.Analyses[0].Analysis.Metrics[0] = comparedMetric("errors") }, 2)
	in.State = strategies.Decide(in).State
	for _, canary := range []float64{1000, 300} {
		in.Now = in.Now.Add(time.Minute)
		due := strategies.Decide(in).Measure
		if len(due) != 1 {
			t.Fatalf("%d measurements are due", len(due))
		}
		in.Runs = strategies.Record(in,
			due[0].Judge(strategies.Result{At: in.Now, Value: []any{9.0, canary}, Stable: []any{40.0, 4000.0}, Samples: -1}))
	}
	lost := in.Now
	in.Now = in.Now.Add(time.Minute)
	due := strategies.Decide(in).Measure
	if len(due) != 1 || !due[0].Since.Equal(lost) {
		t.Fatalf("the next window does not begin at %s: %+v", lost, due)
	}
}
