package analysis

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// Sequential is a sequential test's record; see package rollout.
type Sequential = rollout.Sequential

// Family describes metrics that share a release's alpha, the allowed probability of a false failure.
type Family struct {
	Compared   int     // the release's metrics that compare versions
	Sequential int     // metrics with a sequential test
	Others     float64 // sum of the evidence of the family's other sequential tests
}

// FamilyOf returns the family of the metrics that compare versions and can fail.
func FamilyOf(metrics []Metric) (f Family) {
	for _, m := range metrics {
		if m.Compare != nil && !m.DryRun {
			f.Compared++
			if IsSequential(m) {
				f.Sequential++
			}
		}
	}
	return f
}

// Alone returns the family of a metric that shares alpha with no other metric.
func Alone(m Metric) Family {
	m.DryRun = false
	return FamilyOf([]Metric{m})
}

// IsSequential reports whether a metric has a sequential test.
func IsSequential(m Metric) bool { return m.Compare != nil && WindowOf(m) != WindowOther }

// These constants divide alpha among the tests. If maxIncrease is set, boundShare is for the upper bound of stable's
// share.
const (
	sequentialShare = 0.5
	exactShare      = 0.49
	boundShare      = 0.01
)

func alphaOf(c *Compare) float64 {
	if c.Confidence == 0 {
		return 1 - defaultConfidence
	}
	return 1 - c.Confidence
}

func (f Family) exactAlpha(m Metric) float64 {
	alpha := alphaOf(m.Compare) / float64(max(1, f.Compared))
	if f.Sequential > 0 {
		alpha *= exactShare
	}
	return alpha
}

// Limit returns the evidence at which a release fails.
func Limit(m Metric) float64 { return 1 / (sequentialShare * alphaOf(m.Compare)) }

// Look has both versions' counts of bad and all requests since the window's start, or these requests' latency
// histograms.
type Look struct {
	canary, stable sample
	latency        *[2]Histogram // new version, stable
}

const leastLatencies = 100

// testsOf returns a look's counts for each test. It returns false if a histogram has no count at a test's bound.
func (l *Look) testsOf(before *Sequential) (tests []rollout.Test, ok bool) {
	if l.latency == nil {
		return []rollout.Test{{Canary: l.canary.bad, Stable: l.stable.bad}}, true
	}
	at := bounds(l.latency[1])
	if before != nil {
		at = rollout.Mapped(before.Tests, func(t rollout.Test) float64 { return t.Bound })
	}
	for _, bound := range at {
		c, _, okC := l.latency[0].slower(bound)
		s, _, okS := l.latency[1].slower(bound)
		if !okC || !okS {
			return nil, false
		}
		tests = append(tests, rollout.Test{Bound: bound, Canary: c, Stable: s})
	}
	return tests, len(tests) > 0
}

// Weigh adds a look to a metric's evidence, and fails the measurement if the evidence reaches the release's limit.
// Looks may be taken at any time. While the weight changes, the parameter since is zero, and Weigh adds nothing.
func Weigh(m Metric, before *Sequential, look *Look, since time.Time, got Measurement, f Family) (
	Measurement, *Sequential,
) {
	window := WindowOf(m)
	if look == nil || since.IsZero() || window == WindowOther {
		return got, before
	}
	if before != nil && (len(before.Tests) == 0 || (before.Tests[0].Bound != 0) != (look.latency != nil)) {
		before = nil // the metric's type or the record's format has changed
	}
	if before == nil && look.latency != nil && look.stable.all < leastLatencies {
		return got, before
	}
	tests, ok := look.testsOf(before)
	if !ok {
		if got.Phase == Successful {
			got.Phase, got.Message = Pending, "the buckets of the two versions differ"
		}
		return got, before
	}
	// If this look lacks most of the counted requests, the server lost these requests or will return them later. If the
	// window can restart, it restarts now, so that no request counts twice. Otherwise, no request counts until the
	// missing requests return.
	if before != nil && (window == WindowRelease || before.Since.Equal(since)) && look.lacks(tests, before) {
		if min(look.canary.all, look.stable.all) > 0 {
			got.Phase, got.Message = Pending, "this answer lacks most requests of an earlier answer"
		}
		if window == WindowWeight && !m.Compare.Before {
			before = baseOf(before, &Sequential{Since: got.At.UTC()}, m, window)
		}
		return got, before
	}
	next := &Sequential{Since: since.UTC(), Canary: look.canary.all, Stable: look.stable.all, Tests: tests}
	if !add(next, baseOf(before, next, m, window), m, f) && got.Phase.Done() {
		got.Phase, got.Message = Pending, "requests to one version are missing"
	}
	if look.latency != nil && got.Phase.Done() {
		got.Value = worstBound(m, next)
	}
	mean := (next.Value() + f.Others) / float64(max(1, f.Sequential))
	next.Limit, next.Metrics = Limit(m), f.Sequential
	if got.Phase == Successful && mean >= next.Limit {
		got.Phase = Failed
		text := rollout.EvidenceText(next.Value(), mean, next.Limit)
		got.Message = fmt.Sprintf("worse than %s: evidence %s", other(m), text)
	}
	return got, next
}

// lacks reports whether most of the counted requests or bad requests are missing from a look. One missing bad request
// is allowed, because extrapolation may round down.
func (l *Look) lacks(tests []rollout.Test, before *Sequential) bool {
	most := func(n, had int) bool { return n < had-had/2 }
	lacks := most(l.canary.all, before.Canary) || most(l.stable.all, before.Stable)
	for i, t := range tests {
		was := before.Tests[i]
		lacks = lacks || most(t.Canary+1, was.Canary) || most(t.Stable+1, was.Stable)
	}
	return lacks
}

func worstBound(m Metric, e *Sequential) string {
	value := func(t rollout.Test) float64 { return (&Sequential{Tests: []rollout.Test{t}}).Value() }
	worst := slices.MaxFunc(e.Tests, func(a, b rollout.Test) int { return cmp.Compare(value(a), value(b)) })
	c, s := sample{worst.Canary, e.Canary}, sample{worst.Stable, e.Stable}
	return fmt.Sprintf("above %v: %s, %s %s", worst.Bound, c, other(m), s)
}

// add adds the evidence of the requests since the last look at the same weight. If requests to one version seem to be
// missing (differs is true), add adds no evidence. In this case, add returns true only if waits and lasts are true. If
// waits is true, this look's requests count with the next look.
func add(next, last *Sequential, m Metric, f Family) bool {
	// Prometheus extrapolates, so a count may decrease a little. No request may count twice.
	next.Canary, next.Stable, next.Past = max(next.Canary, last.Canary), max(next.Stable, last.Stable), last.Past
	c, s := next.Canary-last.Canary, next.Stable-last.Stable
	differs, lasts := differs(c, s, last.Last)
	waits := differs && !lasts || m.Compare.MaxIncrease == 0 && (c == 0 || s == 0)
	if waits {
		next.Canary, next.Stable = last.Canary, last.Stable
	}
	if next.Last = last.Last; !waits && c > 0 && s > 0 {
		next.Last = []int{c, s}
	}
	for i := range next.Tests {
		t, was := &next.Tests[i], last.Tests[i]
		if t.Logs = was.Logs; waits {
			t.Canary, t.Stable = was.Canary, was.Stable
			continue
		}
		t.Canary, t.Stable = max(t.Canary, was.Canary), max(t.Stable, was.Stable)
		badC, badS := min(t.Canary-was.Canary, c), min(t.Stable-was.Stable, s)
		limit := 0.0
		if m.Compare.MaxIncrease > 0 {
			limit = m.Compare.MaxIncrease + stableUpTo(last, boundShare*alphaOf(m.Compare)/float64(max(1, f.Compared)))
		}
		for r, ratio := range rollout.Ratios {
			switch {
			case differs: // no evidence, because requests may be missing
			case limit > 0:
				t.Logs[r] += marginLog(badC, c, limit, ratio)
			default:
				t.Logs[r] += ratioLog(float64(badC), float64(badS), float64(c), float64(s), ratio)
			}
		}
	}
	return !differs || waits && lasts
}

// differs reports whether c is far from its mean at the last look's proportion. The result lasts reports whether this
// look has over four times the last look's requests.
func differs(c, s int, last []int) (is, lasts bool) {
	if len(last) != 2 {
		return false, false
	}
	n, n0 := float64(c+s), float64(last[0]+last[1])
	p := float64(last[0]) / n0
	v := n * p * (1 - p)
	return math.Abs(float64(c)-n*p) > 1+v/4+3*math.Sqrt(v*(1+n/n0)), n > 4*n0
}

// baseOf returns the counts that are subtracted from a look. A new weight resets these counts: to zero or, in a
// release's window, to the look's counts.
func baseOf(before, look *Sequential, m Metric, window Window) *Sequential {
	if before != nil && before.Since.Equal(look.Since) {
		return before
	}
	base := Sequential{Tests: make([]rollout.Test, len(look.Tests))}
	if before != nil {
		base = *before
		base.Tests = slices.Clone(before.Tests)
		if m.Compare.MaxIncrease > 0 && window == WindowWeight {
			bad, all := stableOf(before)
			base.Past = []int{bad, all}
		}
	}
	from := &Sequential{Tests: make([]rollout.Test, len(base.Tests))}
	if window == WindowRelease {
		from = look
	}
	base.Since, base.Canary, base.Stable, base.Last = look.Since, from.Canary, from.Stable, nil
	for i, t := range from.Tests {
		base.Tests[i].Canary, base.Tests[i].Stable = t.Canary, t.Stable
	}
	return &base
}

// ratioLog returns ln((q/p)^badC ((1-q)/(1-p))^badS). p is the new version's share of a look's requests. Unless the new
// version is worse, each bad request is the new version's with probability at most p. If the new version's bad share is
// ratio times stable's, the probability is q.
//
// The product is the sequential multinomial test of Lindon and Malek (2022) with fixed ratios in place of a Dirichlet
// prior. The true distribution is hypergeometric, with a smaller mean of the product than the multinomial (Hoeffding
// 1963, theorem 4).
func ratioLog(badC, badS, c, s, ratio float64) float64 {
	if c == 0 || s == 0 {
		return 0
	}
	return badC*math.Log(ratio) + (badC+badS)*math.Log((c+s)/(ratio*c+s))
}

// marginLog is like ratioLog, but its null hypothesis is a bad share up to the limit.
func marginLog(bad, all int, limit, ratio float64) float64 {
	if limit >= 1 {
		return 0
	}
	q := min(ratio*limit, (1+limit)/2)
	return float64(bad)*math.Log(q/limit) + float64(all-bad)*math.Log((1-q)/(1-limit))
}

// stableUpTo returns an upper bound of stable's bad share. The bound holds at all looks with probability 1-delta
// (mixture of Robbins, 1970, uniform prior).
func stableUpTo(e *Sequential, delta float64) float64 {
	bad, all := stableOf(e)
	if bad >= all {
		return 1
	}
	least := math.Log(delta) - choose(all, bad) - math.Log(float64(all+1))
	return bisect(float64(bad)/float64(all), func(share float64) bool {
		return float64(bad)*math.Log(share)+float64(all-bad)*math.Log1p(-share) >= least
	})
}

func stableOf(e *Sequential) (bad, all int) {
	bad, all = e.Tests[0].Stable, e.Stable
	if len(e.Past) == 2 {
		bad, all = bad+e.Past[0], all+e.Past[1]
	}
	return bad, all
}
