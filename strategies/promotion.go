package strategies

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/plan"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

// prepared removes an unusable head or promotion file, and adds a cache of compiled specs. While the app waits for a
// cohort or stage, State.Source replaces the head, unless the head reverts the release in flight. During a rollback,
// State.Source does not replace the head until Rollback.To is applied.
func (in Input) prepared() Input {
	s, isLeft := in.State, in.State.Rollback != nil && in.State.Rollback.To != in.State.Source
	isRevert := in.Head.Render != nil && s.Release != nil && s.Phase != rollout.Aborting && s.Stable != nil &&
		s.Stable.Hash == in.Head.Render.Release()
	if e := in.Entry; e != nil && !e.Open && in.Source != nil && in.Head.Err == nil && !isLeft && !isRevert {
		in.Head = Head{Commit: in.Source.Commit, Render: in.Source}
	}
	if err := in.HeadErr(); err != nil {
		in.Head.Render, in.Head.Err = nil, err
	}
	in.plans = in.plans.OrNew()
	if p := in.Promotion; p != nil &&
		(isSpent(in) || p.Decision == rollout.Promote && (isOfAnotherTry(in) || refusal(in) != "")) {
		if in.Promotion = nil; p.Barred { // the next promotion file needs another digest
			in.State.Spent = cmp.Or(in.State.Spent, p.Digest)
		}
	}
	return in
}

func refusal(in Input) string {
	p := in.Promotion
	switch {
	case p.Forbidden == "" || p.Decision != rollout.Promote:
		return ""
	case p.Barred:
		return p.Forbidden
	}
	in.plans = in.plans.OrNew()
	if s := in.State.Release; s == nil || s.Hash != p.Release {
		if in.Head.Render == nil || in.Head.Render.Release() != p.Release {
			in.State.Release = nil
		} else {
			in = in.begun(in.Head.Render)
		}
	}
	if p.SkipsSteps() || len(skipped(in)) > 0 {
		return p.Forbidden
	}
	return ""
}

func (in Input) begun(r *rollout.Render) Input {
	in.State = rollout.State{Release: &rollout.Release{Hash: r.Release(), Templates: r.Templates}}
	for _, spec := range r.Specs {
		if at := in.plans.Of(spec).Enter(0, time.Time{}); at.Of > 0 {
			in.State.Progress = append(in.State.Progress, at)
		}
	}
	return in
}

func isSpent(in Input) bool {
	p := in.Promotion
	return in.State.Spent != "" && p.Digest == in.State.Spent && p.Decision != rollout.Retry
}

// withoutLate records a promotion of the stable version as spent, so that no later release uses it. A promotion through
// "entry" remains valid, because it names one commit.
func withoutLate(in Input) Input {
	if p, s := in.Promotion, in.State.Stable; p != nil && s != nil && p.Release == s.Hash &&
		p.Decision != rollout.Retry && p.Decision != rollout.Restart && p.Through != rollout.ThroughEntry {
		in.State.Spent, in.Promotion = p.Digest, nil
	}
	return in
}

func isOfAnotherTry(in Input) bool {
	since, release := in.Promotion.Since, in.State.Release
	return !since.IsZero() && (release == nil || !release.Since.Equal(since))
}

func spend(in Input, s rollout.State) string {
	if in.Promotion.Says(rollout.Promote, in.State.Release.Hash) && in.Promotion.Digest != "" {
		return in.Promotion.Digest
	}
	return s.Spent
}

// Ignored returns why the promotion file has no effect, or "".
func Ignored(in Input) string {
	p, s := in.Promotion, in.State
	if e := in.Entry; p != nil && p.Barred && e != nil && !e.Open && e.Release == p.Release {
		return p.Forbidden
	}
	if p == nil || s.Phase == "" || p.Through == rollout.ThroughEntry { // approves an entry, not the release
		return ""
	}
	isFor := func(r *rollout.Release) bool { return r != nil && r.Hash == p.Release }
	at, _ := time.Parse(time.RFC3339, p.At)
	since := rollout.Later(p.Since, at)
	head := in.Head.Render == nil || in.Head.Render.Release() == p.Release
	_, rejected := s.IsRejected(p.Release)
	switch {
	case isSpent(in) && !isFor(s.Release):
		return ""
	case !isFor(s.Release) && !head && (s.Release == nil || !since.IsZero() && since.Before(s.Release.Since)):
		return "" // the named release is over
	case !isFor(s.Release) && !isFor(s.Stable) && !head && !rejected && !slices.Contains(s.Verified, p.Release):
		return fmt.Sprintf("it names release %s, which is neither in flight nor the version in Git", p.Release)
	case refusal(in) != "" && (isFor(s.Release) || !isFor(s.Stable)):
		return p.Forbidden
	case !isFor(s.Release):
		return ""
	case isSpent(in):
		return fmt.Sprintf("it is older than the current try of %s, or than the last change of its steps or step names",
			p.Release)
	case p.Decision != rollout.Promote:
		return ""
	case isOfAnotherTry(in):
		began := s.Release.Since.Format(time.RFC3339)
		return fmt.Sprintf("it is for another try of %s: the current try began at %s", p.Release, began)
	}
	return namesNoStep(in.prepared())
}

// withIgnored records that a policy refuses the promotion, because readers of Git cannot see the policy.
func withIgnored(in, given Input, d Decision) Decision {
	if d.Stale {
		return d
	}
	p, s, was := given.Promotion, &d.State, d.State.Ignored
	s.Ignored = ""
	if in.Promotion, in.State = p, *s; p != nil && p.Forbidden != "" && Ignored(in) == p.Forbidden {
		s.Ignored = p.Forbidden
	}
	switch {
	case s.Ignored == was:
	case s.Ignored == "":
		d.Subject = cmp.Or(d.Subject, s.App+" no longer ignores a promotion")
	default:
		d.Subject = cmp.Or(d.Subject, s.App+" ignores its promotion: "+s.Ignored)
	}
	return d
}

// NamesNoStep returns an error text if a promotion names a step that its release lacks. It ignores promotions of other
// releases. It also ignores workloads without steps, because the promotion file may outlive the steps.
func NamesNoStep(r *rollout.Render, p *rollout.Promotion) string {
	if p.Decision != rollout.Promote || p.AdoptAnyway || p.Release != r.Release() || p.Through == rollout.ThroughEntry {
		return ""
	}
	left := *p
	left.Workloads = maps.Clone(p.Workloads)
	in := Input{Head: Head{Render: r}, Promotion: &left, plans: plan.Cache{}}.begun(r)
	for _, spec := range r.Specs {
		if len(in.plans.Of(spec).Stages) == 0 {
			delete(left.Workloads, spec.Workload)
		}
	}
	return namesNoStep(in)
}

func namesNoStep(in Input) string {
	p, all := in.Promotion, stagedIn(in)
	has := func(m workloads.Staged) bool { _, found := p.Last(m.Workload, m.Names()); return found }
	if len(all) == 0 || p.Workloads == nil && slices.ContainsFunc(all, has) {
		return ""
	}
	for _, m := range all {
		if through, named := p.Workloads[m.Workload]; !has(m) && (named || p.Workloads == nil) {
			return fmt.Sprintf("through %q names no step of %s, which has %s",
				cmp.Or(through, p.Through), m.Workload, rollout.Count(m.Of, "step"))
		}
	}
	for w := range p.Workloads {
		if !slices.ContainsFunc(all, func(m workloads.Staged) bool { return m.Workload == w }) {
			return fmt.Sprintf("%s is not a workload of the release", w)
		}
	}
	return ""
}

// Gate returns the highest step at which a workload waits for a promotion, or false.
func Gate(in Input) (step int, shut bool) {
	all := shutGates(in.prepared())
	for _, m := range all {
		step = max(step, m.Step)
	}
	return step, len(all) > 0
}

// Key returns the promotion that opens exactly the gates that wait for users, or nil.
func Key(in Input) *rollout.Promotion {
	in = in.prepared()
	return keyTo(in, shutGates(in))
}

// Early returns the promotion that ends all present timed pauses, analyses and experiments, or nil.
func Early(in Input) *rollout.Promotion {
	in = in.prepared()
	return keyTo(in, early(in))
}

func keyTo(in Input, all []workloads.Staged) *rollout.Promotion {
	through, entered := map[rollout.Workload]int{}, time.Time{}
	for _, m := range all {
		through[m.Workload] = m.Step + 1
		entered = rollout.Later(entered, m.Entered)
	}
	if len(all) == 0 {
		return nil
	}
	return KeyThrough(in.State, through, entered)
}

// KeyThrough returns a promotion of each workload through a step, counted from 1. An empty map means all steps. If
// State.Spent is set, the promotion also has a time, so that its digest is new.
func KeyThrough(s rollout.State, through map[rollout.Workload]int, when time.Time) *rollout.Promotion {
	p := &rollout.Promotion{Release: s.Release.Hash, Decision: rollout.Promote, Since: s.Release.Since}
	if s.Spent != "" {
		p.At = when.Format(time.RFC3339Nano)
	}
	if len(through) == 0 {
		p.Through = rollout.Full
	}
	for w, step := range through {
		if len(s.Progress) == 1 {
			p.Through = strconv.Itoa(step)
			break
		}
		if p.Workloads == nil {
			p.Workloads = map[rollout.Workload]string{}
		}
		p.Workloads[w] = strconv.Itoa(step)
	}
	return p
}

// IsOpen reports whether the promotion file lets any workload pass its step.
func IsOpen(in Input) bool {
	in = in.prepared()
	return slices.ContainsFunc(stagedIn(in), func(m workloads.Staged) bool { return !m.IsThrough() && isOpen(m, in) })
}

// Skipped returns the steps that a promotion would shorten or skip.
func Skipped(in Input, p *rollout.Promotion) []string {
	in.Promotion = p
	return skipped(in.prepared())
}

func skipped(in Input) (all []string) {
	for _, m := range stagedIn(in) {
		last, _ := in.Promotion.Last(m.Workload, m.Names())
		for i := m.Step; i < len(m.Stages) && i <= last; i++ {
			s := m.Stages[i]
			if s.Wait.Traits().Early || isOpenFully(m, in) && i < m.Passed && i > m.Step {
				all = append(all, fmt.Sprintf("step %d/%d of %s (%s)", i+1, m.Of, m.Workload, s.Text))
			}
		}
	}
	return all
}

func shutGates(in Input) []workloads.Staged {
	s := in.State
	if s.Release == nil || s.Stable == nil || s.Held != nil || s.Phase == rollout.Aborting {
		return nil
	}
	return slices.DeleteFunc(stagedIn(in), func(m workloads.Staged) bool {
		_, waits := m.Stage().Wait.(plan.PromotionWait)
		_, asks := inconclusive(in, m)
		return !waits && !asks || isSuspended(m) || waitForPeople(in, m).done
	})
}

func early(in Input) []workloads.Staged {
	return slices.DeleteFunc(stagedIn(in), func(m workloads.Staged) bool {
		if m.IsThrough() || in.State.Phase == rollout.Aborting || !m.Stage().Wait.Traits().Early {
			return true
		}
		v := gates.verdict(in, m)
		return v.done || v.paused && v.due.IsZero()
	})
}

func isOpen(m workloads.Staged, in Input) bool {
	return in.Promotion.Opens(in.State.Release.Hash, m.Workload, m.Names(), m.Step)
}

func isOpenFully(m workloads.Staged, in Input) bool {
	return in.Promotion.Opens(in.State.Release.Hash, m.Workload, m.Names(), len(m.Stages))
}
