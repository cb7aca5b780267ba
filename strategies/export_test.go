package strategies

import (
	"slices"
	"time"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/strategies/plan"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

// The tests of package strategies_test simulate an app. These names export parts of a decision that Decide does not return.

// Verdict is a verdict with exported fields.
type Verdict struct {
	Done, Paused, Route, Full, Rides, Begins, Shares bool
	By, Text, Broken                                 string
	Due                                              time.Time
}

func (v verdict) exported() Verdict {
	return Verdict{v.done, v.paused, v.route, v.full, v.rides, v.begins, v.shares, v.by, v.text, v.broken, v.due}
}

// Gates returns the verdict of the named gates, or of all gates. A decision has only the first gate's text.
func Gates(in Input, m workloads.Staged, names ...string) Verdict {
	isOther := func(g gate) bool { return len(names) > 0 && !slices.Contains(names, g.name) }
	return slices.DeleteFunc(slices.Clone(gates), isOther).verdict(in, m).exported()
}

// WaitVerdict returns the verdict of one wait, without other gates.
func WaitVerdict(w plan.Wait, in Input, m workloads.Staged) Verdict {
	return verdictOf(w, in, m).exported()
}

// Overdue returns the first deadline, which a decision has only as text.
func Overdue(in Input) (at time.Time, reason string, is bool) {
	d, is := overdue(in)
	return d.at, d.reason, is
}

// Rollback begins a rollback that needs no cause in the input.
func Rollback(in Input, to, reason string, reject bool) Decision {
	return rollback(in, cause{to: to, reason: reason, reject: reject})
}

// Adjusted adjusts a decision once more, which must change nothing.
func Adjusted(given Input, d Decision) Decision {
	in := given.prepared()
	in.State = workloads.Reopened(given.State)
	in.State.Progress = withPeaks(in)
	for _, adjust := range adjustments {
		d = adjust(in, given, d)
	}
	return d
}

// Unhooked starts the release at the head, or moves to the head's content, without the hooks: a defect for mutation tests.
func Unhooked(in Input, isRelease bool) Decision {
	if isRelease {
		return startRelease(in.prepared())
	}
	return follow(in.prepared())
}

func (s Detection) Setting() analysis.Setting { return s.setting } // returns the simulated setting, whose parts the texts omit

func (in Input) WithPlans(known plan.Cache) Input { in.plans = known; return in } // shares compiled specs between the inputs of a long run

var (
	PhaseOf  = phaseOf  // makes a state at any step
	Enough   = enough   // counts pods for many thresholds, without a world for each
	MayShare = mayShare // says when an invariant about experiments applies
	IsTried  = isTried  // says when an invariant about analyses applies
)
