package propose_test

import (
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// restful returns the input of the app shop at its stable version, without a release in flight.
func restful(change func(*strategies.Input)) strategies.Input {
	in := rejected()
	in.State.Phase, in.State.Rejected = rollout.Healthy, nil
	in.Head.Render = &rollout.Render{Templates: in.State.Stable.Templates, Specs: in.Head.Render.Specs}
	in.State.Stable.Hash = in.Head.Render.Release()
	if change != nil {
		change(&in)
	}
	return in
}

func TestRestart(t *testing.T) {
	a := propose.Action{Verb: rollout.Restart}
	in := restful(nil)
	file, o := decided(t, in, a)
	stable := in.State.Stable.Hash
	compare.Check(t, "apiVersion: gitrollout.dev/v1alpha1\ndecision: restart\nkind: Promotion\nrelease: "+string(stable)+
		"\nrestartAt: \"2026-11-22T10:00:00Z\"\n", file)
	compare.Check(t, "Restart shop in prod\n", o.Message)
	compare.Check(t, "gitrollout deletes the pods of shop that were created before 2026-11-22T10:00:00Z, within maxUnavailable; "+
		"watch: gitrollout get shop -w", o.Effect)
	if _, err := rollout.ParsePromotion(promotionFile, []byte(file)); err != nil {
		t.Error(err)
	}
	a.Release = stable
	if err := a.StillAbout(in); err != nil {
		t.Errorf("the version that serves: %v", err)
	}
	if a.Release = "h1-0"; a.StillAbout(in) == nil {
		t.Error("the action is accepted for another version")
	}

	coming := func(in *strategies.Input) {
		in.Head.Render, in.State.Held = rejected().Head.Render, &rollout.Held{Reason: rollout.HeldClosed, Message: "why"}
	}
	w := shop().State.Progress[0].Workload
	requested := func(after time.Duration) strategies.Input {
		return restful(func(in *strategies.Input) {
			in.Source = &rollout.Render{Specs: []rollout.Spec{{Workload: w, RestartAt: in.Now.Add(after)}}}
			in.Observed.Workloads = map[rollout.Workload]rollout.ObservedWorkload{w: {Replicas: 1, Synced: true, Revisions: []rollout.Revision{
				{Members: []rollout.Pod{{Name: "shop-1", Created: hour(1)}}}}}}
		})
	}
	for name, c := range map[string]struct {
		in  strategies.Input
		err string // "" if the action is possible
	}{
		"after a rejected version": {rejected(), ""},
		"before a release":         {restful(coming), ""},
		"before a release that is on hold": {restful(func(in *strategies.Input) {
			coming(in)
			in.Promotion = &rollout.Promotion{Release: in.Head.Render.Release(), Decision: rollout.Hold}
		}), "its promotion file is for release"},
		"a release in flight": {shop(), "a release is in flight; restart the app when the release has ended"},
		"old pods are kept":   {restful(func(in *strategies.Input) { in.State.Draining = &rollout.Draining{} }), "a release is in flight"},
		"no document":         {restful(func(in *strategies.Input) { in.State.Stable.Templates = nil }), "no stable version of a workload"},
		"no record":           {strategies.Input{}, "no stable version of a workload"},
		"a restart is under way": {requested(-time.Minute),
			"it waits already for the restart of shop/shop: 1 pod created before 2026-11-22T09:59:00Z; to change the time, edit restartAt"},
		"a restart is planned": {requested(time.Hour),
			"it waits already for the restart of shop/shop: planned for 2026-11-22T11:00:00Z; to change the time, edit restartAt"},
	} {
		_, err := to.Decide(c.in, propose.Action{Verb: rollout.Restart})
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %v, want %q", name, err, c.err)
		}
		isOffered := false
		for _, a := range propose.Possible(c.in) {
			isOffered = isOffered || a.Verb == rollout.Restart
		}
		if isOffered != (c.err == "") {
			t.Errorf("%s: a restart is offered: %t", name, isOffered)
		}
	}
}
