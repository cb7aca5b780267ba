package strategies_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/strategies/plan"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

// FuzzDecide calls Decide with impossible states and contradicting observations. Decide must not panic or change its input. Each changed
// state must have a subject, and the last state must need no change.
func FuzzDecide(f *testing.F) {
	f.Add(uint64(1), []byte{})
	f.Add(uint64(2), []byte{0, 0, 0, 0, 0, 0, 0, 0})
	f.Add(uint64(3), []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20})
	f.Add(uint64(7), []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20})
	f.Add(uint64(4), []byte{255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255})
	for phase := range byte(8) {
		f.Add(uint64(phase), []byte{phase, 1, 1, 0, 1, 1, 2, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1})
	}
	f.Fuzz(func(t *testing.T, seed uint64, data []byte) {
		in, git := fuzzInput(seed, data)
		for range 80 {
			before := dump(in)
			d := strategies.Decide(in)
			if dump(strategies.Decide(in)) != dump(d) {
				t.Fatal("two decisions from one input")
			}
			strategies.Explain(in)
			strategies.Gate(in)
			if v := (workloads.View{Now: in.Now, Source: git.at(d.State.Source), Observed: in.Observed}); v.Source != nil {
				if strategies.NeedsStable(d.State, v) {
					v.Stable = git.at(d.State.Stable.Commit)
				}
				objects := mustDesired(d.State, v)
				strategies.Prunable(d.State, objects)
				if dump(mustDesired(d.State, v)) != dump(objects) {
					t.Fatal("Desired is not deterministic")
				}
			}
			if dump(in) != before {
				t.Fatal("the input was changed")
			}
			if d.State.Equal(&in.State) != (d.Subject == "") {
				t.Fatalf("subject %q, equal %t", d.Subject, d.State.Equal(&in.State))
			}
			if d.Subject == "" {
				return
			}
			readAgain(t, d.State)
			in.State, in.Source = d.State, git.at(d.State.Source)
		}
		t.Fatalf("does not come to rest: %s", dump(in.State))
	})
}

// fuzzInput derives a history from the seed. The data selects a state, a head and an observation, which may contradict each other.
func fuzzInput(seed uint64, data []byte) (strategies.Input, *history) {
	next := func(n int) int {
		if len(data) == 0 {
			return 0
		}
		b := int(data[0])
		data = data[1:]
		return b % n
	}
	rng := rand.New(rand.NewPCG(seed, 3))
	first := randomSource(rng)
	if c := first.workloads[0].spec.Canary; c != nil && seed%4 == 3 {
		c.Steps = randomExperiments(rng, c)
	}
	git := newHistory(first)
	for _, version := range []string{"v2", "v3", "v1"} {
		git.push(func(x *source) {
			for i := range x.workloads {
				if i == 0 || next(2) == 0 {
					x.workloads[i].version = version
				}
				x.workloads[i].plain, x.workloads[i].gone = next(8) == 1, next(16) == 1
				if w := &x.workloads[i]; next(8) == 1 && w.spec.Canary != nil {
					w.editCanary(func(c *rollout.Canary) { c.Steps = randomSteps(rng, w.spec.Scaling) })
				}
			}
			x.config += next(2)
			if next(4) == 1 {
				x.hooks = contentHooks("migrate=pre-upgrade", "check=post-upgrade")
			}
		})
	}
	last := len(git.commits) - 1
	commit := func() int { return next(last + 1) }
	head := commitID(commit())
	in := strategies.Input{Now: noon.Add(time.Duration(next(5)) * time.Hour), App: testApp,
		Answers: strategies.Answers{Healed: new(next(3) > 0)}}
	in.Head = strategies.Head{Commit: rollout.Commit{ID: head, Author: "Ann"}, Render: git.at(head)}
	if next(8) == 1 {
		in.Head.Render, in.Head.Err = nil, errors.New("kustomization.yaml: is not valid YAML")
	}
	in.State = fuzzState(next, git, commit)
	in.Source = git.at(in.State.Source)
	if next(2) == 1 {
		in.Promotion = &rollout.Promotion{
			Release: git.at(commitID(commit())).Release(), Decision: rollout.Verbs()[next(4)], Digest: "d",
			Through: []string{rollout.Full, "0", "1", "2", "promotion"}[next(5)],
		}
	}
	in.Observed = fuzzObserved(next, git, in.Now)
	return in, git
}

func fuzzState(next func(int) int, git *history, commit func() int) rollout.State {
	s := rollout.State{App: testApp.Name, Path: testApp.Path, Phase: rollout.Phases()[next(8)], Source: commitID(commit())}
	release := func() *rollout.Release {
		r := git.releaseAt(commitID(commit()))
		r.Fast = next(4) == 1
		return &r
	}
	if next(4) > 0 || s.Phase == rollout.Degraded || s.Phase == rollout.Aborting {
		s.Stable = release()
		s.Verified = []rollout.Hash{s.Stable.Hash}
	}
	resting := s.Phase == rollout.Healthy || s.Phase == rollout.Degraded || s.Phase == rollout.Pending
	if !resting {
		s.Release = release()
		for _, spec := range git.at(s.Release.Commit).Specs {
			p := plan.Compile(spec)
			if next(4) > 0 {
				at := p.Enter(next(len(p.Stages)+1), noon)
				st, _ := p.At(at.Step)
				if _, is := st.Wait.(plan.ExperimentWait); is && at.Step%2 == 0 {
					at.Available = new(noon)
				}
				s.Progress = append(s.Progress, at)
			}
		}
	}
	if s.Phase == rollout.Aborting {
		s.Rollback = &rollout.Rollback{Reject: next(2) == 1, Routed: noon,
			Drain: noon.Add(time.Duration(next(3)) * time.Minute), To: s.Stable.Commit}
	}
	if next(4) == 1 {
		s.Rejected = []rollout.Rejection{{Hash: git.at(commitID(commit())).Release(), Commit: s.Source, Reason: "errors", At: noon}}
	}
	if next(4) == 1 {
		s.Held = &rollout.Held{Reason: "InvalidInput", Message: "kustomization.yaml: is not valid YAML"}
	}
	return s
}

func fuzzObserved(next func(int) int, git *history, now time.Time) rollout.Observed {
	o := rollout.Observed{Workloads: map[rollout.Workload]rollout.ObservedWorkload{}}
	templates := git.at(commitID(0)).Templates
	for _, w := range sortedWorkloads(templates) {
		hash := templates[w]
		if next(8) == 1 {
			continue
		}
		live := rollout.ObservedWorkload{Replicas: next(12), Hash: hash, Synced: next(3) > 0, Complete: next(2) == 1}
		for i := range git.commits {
			r := rollout.Revision{
				Name: commitID(i), Hash: git.at(commitID(i)).Templates[w], Pin: rollout.PodHash(commitID(i)), Number: i,
				Desired: next(12), Pods: next(12), Current: next(3) == 1,
			}
			for range next(12) {
				r.ReadySince = append(r.ReadySince, now.Add(-time.Duration(next(60))*time.Second))
			}
			if r.Current {
				live.Hash = r.Hash
			}
			if next(3) > 0 {
				live.Revisions = append(live.Revisions, r)
			}
		}
		o.Workloads[w] = live
	}
	return o
}
