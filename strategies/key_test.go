package strategies

import (
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// TestIgnored: a promotion file that has no effect is shown with the reason, and one
// that has, or that is left of an earlier release, is not.
func TestIgnored(t *testing.T) {
	_, in := atStep(nil, 1)
	hash, since := in.State.Release.Hash, in.State.Release.Since
	of := func(through string) *rollout.Promotion {
		return &rollout.Promotion{Release: hash, Decision: rollout.Promote, Through: through, Digest: "d"}
	}
	with := func(p *rollout.Promotion, change func(*rollout.Promotion)) *rollout.Promotion { change(p); return p }
	cases := map[string]struct {
		file  *rollout.Promotion
		spent string
		want  string // "" if it counts
	}{
		"None":       {nil, "", ""},
		"Step":       {of("2"), "", ""},
		"Name":       {of("soak"), "", ""},
		"Full":       {of(rollout.Full), "", ""},
		"NoStep":     {of("99"), "", `through "99" names no step of shop/web, which has 3`},
		"NoName":     {of("smok"), "", `through "smok" names no step`},
		"OtherHash":  {with(of("2"), func(p *rollout.Promotion) { p.Release = "h1-other" }), "", "it names h1-other, which is neither in flight"},
		"OtherAbort": {with(of(""), func(p *rollout.Promotion) { p.Release, p.Decision = "h1-other", rollout.Abort }), "", "neither in flight"},
		"OfStable":   {with(of("2"), func(p *rollout.Promotion) { p.Release = in.State.Stable.Hash }), "", ""},
		"ThisTry":    {with(of("2"), func(p *rollout.Promotion) { p.Since = since }), "", ""},
		"OtherTry":   {with(of("2"), func(p *rollout.Promotion) { p.Since = since.Add(-time.Hour) }), "", "it is for another try"},
		"Spent":      {of("2"), "d", "it was there before this try"},
		"Changed":    {of("2"), "e", ""},
		"Workload": {with(of(""), func(p *rollout.Promotion) {
			p.Workloads = map[rollout.Workload]string{web: "2"}
		}), "", ""},
		"NoWorkload": {with(of(""), func(p *rollout.Promotion) {
			p.Workloads = map[rollout.Workload]string{{Namespace: "shop", Name: "api"}: "2"}
		}), "", "shop/api is no workload of the release"},
		"Hold": {with(of(""), func(p *rollout.Promotion) { p.Decision = rollout.Hold }), "", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := in
			in.Promotion, in.State.Spent = tc.file, tc.spent
			got := Ignored(in)
			if !strings.Contains(got, tc.want) || (got == "") != (tc.want == "") {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			opens := tc.file != nil && tc.want == "" && tc.file.Release == hash && tc.file.Decision == rollout.Promote
			if IsOpen(in) != opens || opens != (Key(in) == nil) {
				t.Errorf("it opens the gate: %t; the key is %+v", IsOpen(in), Key(in))
			}
			if d := Decide(in); (d.State.Progress[0].Step > 1) != opens {
				t.Errorf("it goes to step %d: %s", d.State.Progress[0].Step, d.Subject)
			}
		})
	}
}

// TestSpent: the file that let a release go on is no key to its next try, and one
// that is for steps behind a change is none to the new ones.
func TestSpent(t *testing.T) {
	h, in := atStep(nil, 1)
	file := func(through string) *rollout.Promotion {
		return &rollout.Promotion{Release: in.State.Release.Hash, Decision: rollout.Promote, Through: through, Digest: "d"}
	}
	h.push(func(s *source) {
		c := *s.workloads[0].spec.Canary
		c.Steps = append([]rollout.Step{}, c.Steps...)
		c.Steps[2] = rollout.Step{Pause: &rollout.Pause{}}
		s.workloads[0].spec.Canary = &c
	})
	in.Head = h.headInput()
	for through, spent := range map[string]string{"2": "", "3": "d", rollout.Full: ""} {
		in.Promotion = file(through)
		if d := Decide(in); d.State.Spent != spent {
			t.Errorf("through %s is %q after its steps changed, want %q", through, d.State.Spent, spent)
		}
	}
	in.Promotion = file("2")
	h.push(version("v3"))
	in.Head = h.headInput()
	if d := Decide(in); d.State.Phase != rollout.Aborting || d.State.Spent != "d" {
		t.Errorf("superseded it is %s, and spent %q", d.State.Phase, d.State.Spent)
	}
}
