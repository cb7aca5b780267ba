package strategies_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// fileFor returns a promotion file that promotes a release through a step.
func fileFor(release rollout.Hash, through string) *rollout.Promotion {
	return &rollout.Promotion{Release: release, Decision: rollout.Promote, Through: through, Digest: "d"}
}

// TestIgnored checks the reason why a promotion file has no effect. The reason is empty if the file has an effect or is for an earlier
// release.
func TestIgnored(t *testing.T) {
	_, in := atStep(nil, 1)
	hash, since := in.State.Release.Hash, in.State.Release.Since
	of := func(through string) *rollout.Promotion { return fileFor(hash, through) }
	with := func(p *rollout.Promotion, change func(*rollout.Promotion)) *rollout.Promotion { change(p); return p }
	workload := func(name string) *rollout.Promotion {
		return &rollout.Promotion{Release: hash, Decision: rollout.Promote, Digest: "d",
			Workloads: map[rollout.Workload]string{{Namespace: "shop", Name: name}: "2"}}
	}
	cases := map[string]struct {
		file  *rollout.Promotion
		spent string
		want  string // a substring of the reason, "" without a reason
	}{
		"None":       {nil, "", ""},
		"Step":       {of("2"), "", ""},
		"Name":       {of("soak"), "", ""},
		"Full":       {of(rollout.Full), "", ""},
		"NoStep":     {of("99"), "", `through "99" names no step of shop/web, which has 3 steps`},
		"NoName":     {of("smok"), "", `through "smok" names no step`},
		"OtherHash":  {fileFor("h1-other", "2"), "", "it names release h1-other, which is neither in flight"},
		"Superseded": {with(fileFor("h1-other", "2"), func(p *rollout.Promotion) { p.Since = since.Add(-time.Hour) }), "", ""},
		"OtherAbort": {&rollout.Promotion{Release: "h1-other", Decision: rollout.Abort, Digest: "d"}, "", "neither in flight"},
		"OfStable":   {fileFor(in.State.Stable.Hash, "2"), "", ""},
		"ThisTry":    {with(of("2"), func(p *rollout.Promotion) { p.Since = since }), "", ""},
		"OtherTry":   {with(of("2"), func(p *rollout.Promotion) { p.Since = since.Add(-time.Hour) }), "", "it is for another try"},
		"Spent":      {of("2"), "d", "it is older than the current try"},
		"SpentOther": {fileFor("h1-other", "2"), "d", ""},
		"Changed":    {of("2"), "e", ""},
		"Workload":   {workload("web"), "", ""},
		"NoWorkload": {workload("api"), "", "shop/api is not a workload of the release"},
		"Hold":       {&rollout.Promotion{Release: hash, Decision: rollout.Hold, Digest: "d"}, "", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := in
			in.Promotion, in.State.Spent = tc.file, tc.spent
			got := strategies.Ignored(in)
			if !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			opens := tc.file != nil && tc.want == "" && tc.file.Release == hash && tc.file.Decision == rollout.Promote
			if strategies.IsOpen(in) != opens || opens != (strategies.Key(in) == nil) {
				t.Errorf("it opens the gate: %t; the key is %+v", strategies.IsOpen(in), strategies.Key(in))
			}
			if d := strategies.Decide(in); (d.State.Progress[0].Step > 1) != opens {
				t.Errorf("it goes to step %d: %s", d.State.Progress[0].Step, d.Subject)
			}
		})
	}
}

// TestIgnoredAtRest checks that a promotion file causes no warning if no release is in flight.
func TestIgnoredAtRest(t *testing.T) {
	_, in := atStep(nil, 1)
	in.Promotion, in.State.Release = fileFor("h1-other", "2"), nil
	for _, decision := range rollout.Verbs() {
		in.Promotion.Decision = decision
		compare.CheckNamed(t, string(decision), "", strategies.Ignored(in))
	}
}

// TestSpent checks when a promotion file no longer opens its gate: in the release's next attempt, and after an edit of the step that the
// file names.
func TestSpent(t *testing.T) {
	h, in := atStep(nil, 1)
	h.push(func(s *source) {
		s.workloads[0].editCanary(func(c *rollout.Canary) { c.Steps = append(slices.Clone(c.Steps[:2]), aPause) })
	})
	in.Head = h.headInput()
	for through, spent := range map[string]string{"2": "", "3": "d", rollout.Full: ""} {
		in.Promotion = fileFor(in.State.Release.Hash, through)
		compare.CheckNamed(t, "spent through "+through+" after its steps changed", spent, strategies.Decide(in).State.Spent)
	}
	in.Promotion = fileFor(in.State.Release.Hash, "2")
	h.push(version("v3"))
	in.Head = h.headInput()
	if d := strategies.Decide(in); d.State.Phase != rollout.Aborting || d.State.Spent != "d" {
		t.Errorf("superseded it is %s, and spent %q", d.State.Phase, d.State.Spent)
	}
}

// TestIgnoredByPolicy checks that State.Ignored records a policy's refusal of a promotion once, and is empty after the file is removed.
func TestIgnoredByPolicy(t *testing.T) {
	_, in := atStep(nil, 1)
	refused := func(release rollout.Hash) *rollout.Promotion {
		return &rollout.Promotion{Release: release, Decision: rollout.Promote, Through: rollout.Full, Forbidden: "not this way"}
	}
	const says = "shop ignores its promotion: not this way"
	hash := in.State.Release.Hash
	for name, c := range map[string]struct {
		file     *rollout.Promotion
		was      string
		ignored  string
		says     string
		rejected rollout.Hash
	}{
		"Refused":       {refused(hash), "", "not this way", says, ""},
		"RefusedBefore": {refused(hash), "not this way", "not this way", "", ""},
		"RefusedElse":   {refused(hash), "another way", "not this way", says, ""},
		"Gone":          {nil, "not this way", "", "shop no longer ignores a promotion", ""},
		"OfStable":      {refused(in.State.Stable.Hash), "", "", "", ""},
		"OfNobody":      {refused("h1-other"), "", "", "", ""},
		"OfARejected":   {refused("h1-other"), "", "not this way", says, "h1-other"},
	} {
		in := in
		in.Promotion, in.State.Ignored = c.file, c.was
		in.State.Rejected = []rollout.Rejection{{Hash: c.rejected}}
		d := strategies.Decide(in)
		if step := d.State.Progress[0].Step; d.State.Ignored != c.ignored || d.Subject != c.says || step != 1 {
			t.Errorf("%s: ignores %q at step %d, and says %q, want %q and %q", name, d.State.Ignored, step, d.Subject, c.ignored, c.says)
		}
	}
}

// TestNamesNoStep checks the error for a promotion file that names no step or workload of its release.
func TestNamesNoStep(t *testing.T) {
	type steps = map[rollout.Workload]string
	api := rollout.Workload{Namespace: "shop", Name: "api"}
	r := oneWeb(nil).at(commitID(0))
	short := oneWeb(func(s *rollout.Spec) { s.Canary.Steps = nil }).at(commitID(0))
	bare := &rollout.Render{Templates: r.Templates}
	for name, c := range map[string]struct {
		of   *rollout.Render
		file rollout.Promotion
		want string
	}{
		"Step":           {r, rollout.Promotion{Through: "3"}, ""},
		"NoStep":         {r, rollout.Promotion{Through: "4"}, `through "4" names no step of shop/web, which has 3 steps`},
		"OtherRelease":   {r, rollout.Promotion{Through: "4", Release: "h1-other"}, ""},
		"Adoption":       {r, rollout.Promotion{Through: "adoption", AdoptAnyway: true}, ""},
		"Abort":          {r, rollout.Promotion{Decision: rollout.Abort}, ""},
		"ItsStep":        {r, rollout.Promotion{Workloads: steps{web: "3"}}, ""},
		"NotItsStep":     {r, rollout.Promotion{Workloads: steps{web: "soon"}}, `through "soon" names no step of shop/web, which has 3 steps`},
		"NoWorkload":     {r, rollout.Promotion{Workloads: steps{web: "3", api: "1"}}, "shop/api is not a workload of the release"},
		"StepsAreGone":   {short, rollout.Promotion{Through: "2"}, ""},
		"ItsStepsAreToo": {short, rollout.Promotion{Workloads: steps{web: "2"}}, ""},
		"NoDocument":     {bare, rollout.Promotion{Through: "9"}, ""},
	} {
		c.file.Release, c.file.Decision = cmp.Or(c.file.Release, c.of.Release()), cmp.Or(c.file.Decision, rollout.Promote)
		before := dump(c.file)
		compare.CheckNamed(t, name, c.want, strategies.NamesNoStep(c.of, &c.file))
		compare.CheckNamed(t, name+": the promotion afterwards", before, dump(c.file))
	}
}

// TestKeys checks which promotion Key returns for the present gate, and which promotion Early returns for a timed pause. In all other
// states, both functions return nil.
func TestKeys(t *testing.T) {
	const gate, timer = "step 2/3 of shop/web (pause)", "step 3/3 of shop/web (pause 1m0s)"
	for name, c := range map[string]struct {
		step       int
		change     func(*rollout.State)
		key, early string // the last step that each promotion opens; "" for no promotion
		skips      string // the steps that a full promotion skips
	}{
		"Gate":          {1, nil, "2", "", timer},
		"Timer":         {2, nil, "", "3", timer},
		"Pods":          {0, nil, "", "", gate + ", " + timer},
		"Held":          {1, func(s *rollout.State) { s.Held = &rollout.Held{Reason: rollout.HeldInvalidInput} }, "", "", timer},
		"First":         {1, func(s *rollout.State) { s.Stable = nil }, "", "", timer},
		"GoesBack":      {1, func(s *rollout.State) { s.Phase = rollout.Aborting }, "", "", timer},
		"TimerGoesBack": {2, func(s *rollout.State) { s.Phase = rollout.Aborting }, "", "", timer},
	} {
		t.Run(name, func(t *testing.T) {
			_, in := atStep(nil, c.step)
			if c.change != nil {
				c.change(&in.State)
			}
			through := func(p *rollout.Promotion) string {
				if p == nil {
					return ""
				}
				if p.Release != in.State.Release.Hash || p.Decision != rollout.Promote || p.Workloads != nil || p.At != "" {
					t.Errorf("the key is %+v", p)
				}
				return p.Through
			}
			full := strategies.KeyThrough(in.State, nil, in.Now)
			compare.CheckNamed(t, "all of it", rollout.Full, full.Through)
			got := [3]string{through(strategies.Key(in)), through(strategies.Early(in)), strings.Join(strategies.Skipped(in, full), ", ")}
			compare.CheckNamed(t, "key, early and skips", [3]string{c.key, c.early, c.skips}, got)
		})
	}
	_, in := atStep(nil, 1)
	in.State.Spent = "d"
	if key := strategies.Key(in); key.At == "" || key.Through != "2" {
		t.Errorf("beside a file that is spent the key is %+v", key)
	}
}

// TestRetryIsOnRecord checks that a retry ends only the rejection of its version, and that the commit subject names the first step.
func TestRetryIsOnRecord(t *testing.T) {
	in := world(twoVersions(nil))
	hash := in.Head.Render.Release()
	in.State.Phase = rollout.Degraded
	in.State.Rejected = []rollout.Rejection{{Hash: hash, Promotion: "d1"}, {Hash: "h1-other"}}
	in.Promotion = &rollout.Promotion{Decision: rollout.Retry, Release: hash, Digest: "d2"}
	d := strategies.Decide(in)
	if len(d.State.Rejected) != 1 || d.State.Rejected[0].Hash != "h1-other" || !strings.Contains(d.Subject, ", step 1/3 setWeight 20") {
		t.Errorf("rejected are %+v; %s", d.State.Rejected, d.Subject)
	}
}

// TestRetryThatWaits checks that a retry ends the rejection although the release must wait. The release can begin even after the file's
// decision has changed.
func TestRetryThatWaits(t *testing.T) {
	frozen := rollout.Calendar{Freeze: &rollout.Freeze{Reason: "a test"}}
	tests := map[string]struct {
		change func(*source)
		waits  func(*strategies.Input)
		held   rollout.HeldReason
	}{
		"for a name": {func(s *source) {
			s.workloads[0].version, s.workloads[0].spec.Workload.Name = "v2", "web-2"
		}, func(*strategies.Input) {}, rollout.HeldRenamed},
		"for a window": {version("v2"), func(in *strategies.Input) { in.Calendar = frozen }, rollout.HeldClosed},
		"for a window, first deployment": {version("v2"), func(in *strategies.Input) {
			in.State.Stable, in.State.Phase, in.Calendar = nil, rollout.Pending, frozen
			in.Observed, in.Answers.Foreign = rollout.Observed{}, &[]rollout.Foreign{}
		}, rollout.HeldClosed},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			h := oneWeb(nil)
			h.push(tt.change)
			in := world(h)
			hash := h.at(commitID(1)).Release()
			in.State.Phase, in.State.Rejected = rollout.Degraded, []rollout.Rejection{{Hash: hash, Promotion: "d1"}}
			tt.waits(&in)
			in.Promotion = &rollout.Promotion{Decision: rollout.Retry, Release: hash, Digest: "d2"}
			d := strategies.Decide(in)
			if !d.State.Held.Is(tt.held) || len(d.State.Rejected) > 0 {
				t.Fatalf("with a retry it is held for %+v, rejected %+v", d.State.Held, d.State.Rejected)
			}
			in.State, in.Calendar = d.State, rollout.Calendar{}
			in.Promotion = &rollout.Promotion{Decision: rollout.Promote, Release: hash, Through: rollout.Full, Digest: "d3"}
			if d = strategies.Decide(in); d.State.Release == nil || d.State.Release.Hash != hash {
				t.Errorf("promoted fully it is %s: %s", d.State.Phase, d.Subject)
			}
		})
	}
}

// TestTimeoutInWords checks the texts about a gate's timeout. Before the timeout, the text has the timeout's time and action. Afterwards,
// the text has the result.
func TestTimeoutInWords(t *testing.T) {
	_, in := atStep(func(s *rollout.Spec) {
		s.Canary.Steps[1].Pause = &rollout.Pause{Timeout: new(time.Hour), OnTimeout: rollout.TimeoutAbort}
	}, 1)
	due := in.State.Progress[0].Entered.Add(time.Hour)
	text := ", until " + due.Format(time.RFC3339) + " (then: abort)"
	if e := strategies.Explain(in)[0]; !strings.HasSuffix(e.Waiting, text) || !e.Due.Equal(due) {
		t.Errorf("it waits for %q, due %s", e.Waiting, e.Due)
	}
	for late, want := range map[time.Duration]string{-1: "", 0: "no promotion within 1h0m0s at step 2/3"} {
		in := in
		in.Now = due.Add(late)
		compare.CheckNamed(t, fmt.Sprintf("late by %s", late), want, strategies.Decide(in).State.Reason)
		in.State.Stable = nil
		if strategies.Decide(in).State.Phase == rollout.Aborting {
			t.Error("a first deployment is late, and has nothing to go back to")
		}
	}
}
