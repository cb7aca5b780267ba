package strategies_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// maxAsks is the largest number of questions that Decide may ask about one input.
const maxAsks = 6

// questions calls Decide and answers each question (Decision.Ask) until Decide asks none. It returns the questions in order, the last input
// and the last decision.
func questions(t *testing.T, in strategies.Input, answer func(*strategies.Input, strategies.Ask)) ([]string, strategies.Input,
	strategies.Decision) {
	t.Helper()
	var asked []string
	d := strategies.Decide(in)
	for d.Ask != nil {
		if len(asked) == maxAsks {
			t.Fatalf("after %q it still asks: %s", asked, dump(d.Ask))
		}
		if d.Rollback || d.Stale {
			t.Fatalf("a decision that waits for nothing asks: %s", dump(d))
		}
		asked = append(asked, questionOf(t, *d.Ask))
		before := dump(in)
		answer(&in, *d.Ask)
		if dump(in) == before {
			t.Fatalf("no answer to %s", dump(d.Ask))
		}
		d = strategies.Decide(in)
	}
	return asked, in, d
}

func questionOf(t *testing.T, ask strategies.Ask) string {
	t.Helper()
	var kinds []string
	for kind, is := range map[string]bool{
		"heal": ask.Heal, "foreign": ask.Foreign != nil, "adoptable": ask.Adoptable != nil, "endpoints": ask.Endpoints != nil,
		"accept": ask.Accept != "",
	} {
		if is {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) != 1 {
		t.Fatalf("asks for %q at once", kinds)
	}
	return kinds[0]
}

// reply returns a function that answers "no" to the given kinds of questions, and "yes" to all other questions.
func reply(no ...string) func(*strategies.Input, strategies.Ask) {
	says := func(kind string) bool { return !strings.Contains(strings.Join(no, " "), kind) }
	return func(in *strategies.Input, ask strategies.Ask) {
		switch {
		case ask.Heal:
			in.Answers.Healed = new(says("heal"))
		case ask.Foreign != nil:
			in.Answers.Foreign = &[]rollout.Foreign{}
			for kind, warns := range map[string]bool{"tool": true, "foreign": false} {
				if !says(kind) {
					sign := rollout.Foreign{Ref: ask.Foreign[0].Ref(), By: kind, Sign: "it owns it", Fix: "ask it", Warns: warns}
					*in.Answers.Foreign = append(*in.Answers.Foreign, sign)
				}
			}
		case ask.Adoptable != nil:
			in.Answers.Adoptable = map[rollout.Workload]bool{}
			for _, o := range ask.Adoptable {
				in.Answers.Adoptable[rollout.Workload{Namespace: o.Namespace(), Name: o.Name()}] = says("adoptable")
			}
		case ask.Endpoints != nil:
			in.Answers.Endpoints = map[strategies.Need]bool{}
			for _, need := range ask.Endpoints {
				in.Answers.Endpoints[need] = says("endpoints")
			}
		default:
			in.Answers.Accepted = map[string]error{ask.Accept: nil}
			if !says("accept") {
				in.Answers.Accepted[ask.Accept] = errors.New("the server refuses it")
			}
		}
	}
}

// routed returns the input of a release with a router, at the release's first step. The new pods are ready for requests.
func routed() strategies.Input {
	_, in := routedAt(0)
	return in
}

// unmarked returns the input of an app that has no recorded state and whose Deployment lacks gitrollout's hash annotation.
func unmarked() strategies.Input {
	in := world(oneWeb(nil))
	in.State, in.Source = rollout.State{}, nil
	changeLive(&in, web, func(live *rollout.ObservedWorkload) { live.Hash = "" })
	return in
}

// promotes adds a full promotion of the head to the input. With AdoptAnyway, the promotion adopts an app that another manager owns.
func promotes(in strategies.Input, anyway bool) strategies.Input {
	in.Promotion = fileFor(in.Head.Render.Release(), rollout.Full)
	in.Promotion.AdoptAnyway = anyway
	return in
}

// TestAdoptedAnywayIsOnRecord checks that the recorded state keeps the approval of an adoption after the promotion file has changed. An
// approval of another version does not count. The commit subject of the adoption names the other manager.
func TestAdoptedAnywayIsOnRecord(t *testing.T) {
	in := promotes(unmarked(), true)
	in.Promotion.Through = "adoption"
	in.Answers = strategies.Answers{}
	_, _, held := questions(t, in, reply("foreign", "adoptable"))
	if held.State.Held == nil || held.State.Held.Reason != rollout.HeldAdoption || held.State.Adopts != in.Promotion.Release {
		t.Fatalf("another template than Git's: %s", dump(held))
	}
	in = promotes(unmarked(), false)
	in.State, in.Answers = held.State, strategies.Answers{}
	_, _, done := questions(t, in, reply("foreign", "adoptable"))
	if done.State.Held != nil || done.State.Source != commitID(0) || !strings.Contains(done.Subject, "though") {
		t.Errorf("then it is promoted fully: %s", dump(done))
	}
	in = unmarked()
	in.State, in.Answers = held.State, strategies.Answers{}
	in.State.Adopts = "h1-another"
	if _, _, d := questions(t, in, reply("foreign")); d.State.Held == nil || d.State.Held.Reason != rollout.HeldForeign {
		t.Errorf("another version than the one that was approved: %s", dump(d))
	}
}

func TestAsk(t *testing.T) {
	released := func() strategies.Input { return world(twoVersions(nil)) } // v2 is pushed
	aborted := func() strategies.Input {
		in := routed()
		in.Promotion = &rollout.Promotion{Release: in.State.Release.Hash, Decision: rollout.Abort, Digest: "d"}
		return in
	}
	back := func() strategies.Input { // v2 is rejected, the rollback to v1 is over, and v3 is pushed
		h := twoVersions(nil)
		h.push(version("v3"))
		in := world(h)
		in.State.Phase, in.State.Release = rollout.Aborting, strategies.Unhooked(in, true).State.Release
		in.State.Rollback = &rollout.Rollback{Routed: noon, Drain: noon, To: commitID(0)}
		return in
	}
	degraded := func() strategies.Input { // v2 is rejected but still at the head, and State.Source is v2's commit
		h := twoVersions(nil)
		in := world(h)
		in.State.Rejected = []rollout.Rejection{{Hash: in.Head.Render.Release(), Commit: commitID(1), Reason: "errors", At: noon}}
		in.State.Source, in.Source = commitID(1), h.at(commitID(1))
		return in
	}
	type outcome struct {
		Phase  rollout.Phase
		Source string
		Held   rollout.HeldReason
	}
	cases := map[string]struct {
		in     strategies.Input
		no     string // kinds of questions that get the answer no
		asks   string
		phase  rollout.Phase
		source string
		held   rollout.HeldReason
		waits  string // a substring of Decision.Waiting
	}{
		"a commit is followed once the server takes it": {released(), "",
			"heal accept", rollout.Progressing, commitID(1), "", ""},
		"a refused object holds the app": {released(), "accept", "heal accept", rollout.Healthy, commitID(0), "InvalidInput", "refuses"},
		"nothing is asked of a commit that changes nothing": {world(oneWeb(nil)), "",
			"heal", rollout.Healthy, commitID(0), "", ""},
		"running objects are adopted if they equal Git's": {unmarked(), "",
			"heal foreign adoptable accept", rollout.Healthy, commitID(0), "", ""},
		"and held if it is not": {unmarked(), "adoptable", "heal foreign adoptable", rollout.Pending, "", "Adoption", "already runs"},
		"another controller's object is left to it, even with a tool's marks": {unmarked(), "foreign tool",
			"heal foreign", rollout.Pending, "", "ForeignController", "is managed by foreign"},
		"also if the release is promoted fully": {promotes(unmarked(), false), "foreign",
			"heal foreign", rollout.Pending, "", "ForeignController", "--adopt-anyway"},
		"unless people say so": {promotes(unmarked(), true), "foreign", "heal foreign adoptable accept", rollout.Healthy, commitID(0), "", ""},
		"an object that a tool applies from files is taken over": {unmarked(), "tool",
			"heal foreign adoptable accept", rollout.Healthy, commitID(0), "", ""},
		"requests move once the Service has endpoints": {routed(), "",
			"heal endpoints", rollout.Progressing, commitID(1), "", ""},
		"and wait for them": {routed(), "endpoints", "heal endpoints", rollout.Progressing, commitID(1), "", "ready endpoints"},
		"and for the cluster to equal the record": {routed(), "heal",
			"heal", rollout.Progressing, commitID(1), "", "the cluster to accept"},
		"a rollback asks nothing": {aborted(), "heal", "", rollout.Aborting, commitID(0), "", "stable version"},
		"at its end the next release is asked about": {back(), "",
			"heal accept", rollout.Progressing, commitID(2), "", ""},
		"and if the server refuses that, the app comes to rest at stable": {back(), "accept",
			"heal accept", rollout.Degraded, commitID(0), "InvalidInput", "refuses"},
		"a commit that is not the head may be refused, too": {degraded(), "accept",
			"heal accept", rollout.Healthy, commitID(1), "InvalidInput", "refuses"},
	}
	for reason, tc := range cases {
		t.Run(reason, func(t *testing.T) {
			tc.in.Answers = strategies.Answers{}
			asks, in, d := questions(t, tc.in, reply(strings.Fields(tc.no)...))
			got := outcome{Phase: d.State.Phase, Source: d.State.Source}
			if d.State.Held != nil {
				got.Held = d.State.Held.Reason
			}
			compare.CheckNamed(t, "outcome", outcome{tc.phase, tc.source, tc.held}, got)
			compare.CheckNamed(t, "questions", tc.asks, strings.Join(asks, " "))
			compare.Contains(t, d.Waiting, tc.waits)
			if refused := in.HeadErr() != nil; refused != (tc.held == rollout.HeldInvalidInput) {
				t.Errorf("HeadErr is %v", in.HeadErr())
			}
		})
	}
}

// TestPending checks that, until Git has the record of a rollback, Decide only continues this rollback.
func TestPending(t *testing.T) {
	h := twoVersions(nil)
	in := inFlight(h, 1, set(h, commitID(1), 2, 2), set(h, commitID(0), 8, 8))
	in.Promotion = &rollout.Promotion{Release: in.State.Release.Hash, Decision: rollout.Abort, Digest: "d"}
	back := strategies.Decide(in)
	if !back.Rollback {
		t.Fatalf("an abort is answered by %s", dump(back))
	}
	in.State, in.Pending, in.Answers = back.State, &back, strategies.Answers{}
	live := in.Observed.Workloads[web]
	live.Hash, live.Complete, live.Revisions = in.State.StableHash(web), true, live.Revisions[1:]
	in.Observed.Workloads[web], in.Source = live, h.at(in.State.Source)
	compare.CheckNamed(t, "a rollback that is not recorded is left", back, strategies.Decide(in))
	back.Requeue = in.Now
	compare.CheckNamed(t, "next pass, when its own time has come", time.Time{}, strategies.Decide(in).Requeue)
	in.State.Rollback.Drain = in.Now.Add(time.Minute)
	compare.CheckNamed(t, "next pass, when pods drain later", in.State.Rollback.Drain, strategies.Decide(in).Requeue)
	in.State.Source, in.State.Rollback.Drain = commitID(1), in.Now
	if d := strategies.Decide(in); !d.Rollback || d.Ask != nil || d.State.Source != in.State.Rollback.To || d.Subject != back.Subject {
		t.Errorf("the next step of the rollback is %s", dump(d))
	}
	in.Pending = nil
	if asks, _, _ := questions(t, in, reply()); len(asks) > 0 {
		t.Errorf("the rollback asks for %q", asks)
	}
}

// TestAsksEnd checks, with random inputs and random answers, that Decide asks a limited number of questions.
func TestAsksEnd(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 9))
	seen := map[string]int{}
	for seed := range uint64(1500) {
		data := make([]byte, 200)
		for i := range data {
			data[i] = byte(rng.Uint32())
		}
		in, git := fuzzInput(seed, data)
		if seed%10 == 0 {
			in, git = routed(), nil
		} else if seed%10 == 1 {
			in, git = unmarked(), nil
		} else if rng.IntN(4) == 0 {
			in.State, in.Source = rollout.State{}, nil
			for w := range in.Observed.Workloads {
				changeLive(&in, w, func(live *rollout.ObservedWorkload) { live.Hash = "" })
			}
		}
		in.Answers = strategies.Answers{}
		kinds := []string{"heal", "adoptable", "endpoints", "accept", "foreign", "tool"}
		asks, _, d := questions(t, in, func(in *strategies.Input, ask strategies.Ask) {
			reply(kinds[rng.IntN(6)], kinds[rng.IntN(6)])(in, ask)
			if ask.Heal && git != nil { // the apply moves pods
				in.Observed = fuzzObserved(rng.IntN, git, in.Now)
				in.Now = in.Now.Add(time.Duration(rng.IntN(60)) * time.Second)
			}
		})
		for _, kind := range asks {
			seen[kind]++
		}
		if d.State.Source != in.State.Source && !d.Rollback && !d.Stale && !strings.Contains(strings.Join(asks, " "), "accept") {
			t.Fatalf("seed %d follows %s without a question", seed, d.State.Source)
		}
	}
	for _, kind := range []string{"heal", "foreign", "adoptable", "endpoints", "accept"} {
		if seen[kind] < 10 {
			t.Errorf("%d of 1500 inputs ask for %s: %v", seen[kind], kind, seen)
		}
	}
}
