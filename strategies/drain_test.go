package strategies_test

import (
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

// kept returns an app after a blue-green release of v2, while the pods of v1 are kept.
func kept(t *testing.T) *script {
	t.Helper()
	s := scriptOf(t, "replicas: 4\nblueGreen: {activeService: web, autoPromotionEnabled: true, scaleDownDelaySeconds: 300}")
	s.play(t, "start\npush v2\n")
	if s.state.Draining == nil || s.state.Phase != rollout.Healthy || s.state.Release != nil {
		t.Fatalf("%+v", s.state)
	}
	return s
}

// TestFormerOfAnOlderProgram checks a record of an older version of gitrollout, in which a release stays in flight while it keeps old pods.
// This record leads to the same objects as a current record. The next record lists the release as stable.
func TestFormerOfAnOlderProgram(t *testing.T) {
	s := kept(t)
	want, objects := s.state, dump(s.desired(s.state))
	old := workloads.Reopened(s.state)
	old.Draining, old.Verified = nil, want.Verified[1:]
	if got := dump(s.desired(old)); got != objects {
		t.Errorf("the older record asks for something else:\n%s\n%s", objects, got)
	}
	s.state = old
	s.output = nil
	s.rest()
	if len(s.output) != 1 || !s.state.Equal(&want) {
		t.Errorf("%v:\n%s\n%s", s.output, dump(want), dump(s.state))
	}
}

// TestFormerIsNoRelease checks an app that keeps old pods after a release. Pods that are not ready cause no rollback, and nothing is
// measured or pruned.
func TestFormerIsNoRelease(t *testing.T) {
	s := kept(t)
	in := s.input(s.state, true)
	in.Now = in.Now.Add(200 * time.Second)
	for w, live := range in.Observed.Workloads {
		live.Complete = false
		for i := range live.Revisions {
			live.Revisions[i].ReadySince = nil
		}
		in.Observed.Workloads[w] = live
	}
	if d := strategies.Decide(in); d.Subject != "" || len(d.Measure) > 0 || d.Requeue.IsZero() {
		t.Errorf("without a ready pod: %q, measures %v, looks again at %s", d.Subject, d.Measure, d.Requeue)
	}
	s.state.Inventory = append(s.state.Inventory, rollout.Ref{Kind: "ConfigMap", Namespace: "shop", Name: "of-v1"})
	if gone := strategies.Prunable(s.state, s.desired(s.state)); len(gone) > 0 {
		t.Errorf("prunes %v", gone)
	}
	if _, ok := strategies.StartOver(s.state, in.Now); !ok {
		t.Error("cannot start over on a new cluster")
	} else if over, _ := strategies.StartOver(s.state, in.Now); over.Draining != nil {
		t.Error("a new cluster keeps a former release that it does not have")
	}
}
