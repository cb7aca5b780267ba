package analysis

import (
	"fmt"
	"math"
	"time"
)

// defaultConfidence allows one wrongly rejected release in a thousand.
const defaultConfidence = 0.999

// JudgeComparison compares [bad, all] requests of both versions in one period. The k-th measurement fails wrongly with
// probability at most alpha/(k(k+1)); the sum over all k is alpha. k also counts measurements that were lost in a
// crash. The Look is nil after an error and, if onNoData is set, without data.
func JudgeComparison(
	m Metric, f Family, before Progress, began time.Time, canary, stable any, at time.Time,
) (got Measurement, _ *Look) {
	got.At = at.UTC()
	if phase, ok := withoutData[m.OnNoData]; ok && (isEmpty(canary) || isEmpty(stable)) {
		got.Phase, got.Message = phase, "no data"
		return got, nil
	}
	var look Look
	var all [2]Histogram
	for i, of := range []*sample{&look.canary, &look.stable} {
		var err error
		if value := []any{canary, stable}[i]; m.Compare.Histogram {
			all[i], err = histogramOf(value)
			of.all, look.latency = all[i].all(), &all
		} else {
			*of, err = sampleOf(value)
		}
		if err != nil {
			got.Phase, got.Message = Errored, []string{"the new version", other(m)}[i]+": "+err.Error()
			return got, nil
		}
	}
	return judgeCounts(m, f, before, began, look, at)
}

// judgeCounts applies the exact test. It leaves histograms, and windows with several weights, to Weigh.
func judgeCounts(m Metric, f Family, before Progress, began time.Time, l Look, at time.Time) (Measurement, *Look) {
	c, s := l.canary, l.stable
	got := Measurement{At: at.UTC(), Value: fmt.Sprintf("%s, %s %s", c, other(m), s), Phase: Successful}
	if least := max(1, m.MinSamples); c.all < least || s.all < least {
		got.Phase, got.Message = Pending, fmt.Sprintf("fewer than %d requests", least)
		if phase, ok := withoutData[m.OnNoData]; ok {
			got.Phase = phase
		}
		return got, &l
	}
	if l.latency != nil {
		got.Value = fmt.Sprintf("%d requests, %s %d", c.all, other(m), s.all)
		return got, &l
	}
	if WindowOf(m) == WindowRelease && !m.Compare.Before {
		return got, &l // the exact test needs one weight
	}
	k := float64(max(before.Count+1, looks(m, began, at)))
	alpha := f.exactAlpha(m) / (k * (k + 1))
	c, s = c.judged(), s.judged()
	margin := m.Compare.MaxIncrease
	if margin > 0 && isNotWorse(c, s, margin, alpha) {
		return got, &l
	}
	if p := worse(c, s, margin, alpha); p < alpha {
		got.Phase = Failed
		got.Message = fmt.Sprintf("worse than %s: p-value %.2g is below %.2g", other(m), p, alpha)
	}
	return got, &l
}

func other(m Metric) string {
	return map[bool]string{true: "the version before", false: "stable"}[m.Compare.Before]
}

func looks(m Metric, began, at time.Time) int {
	if m.Interval <= 0 {
		return 1
	}
	return 1 + int(max(0, at.Sub(began)-m.InitialDelay)/m.Interval)
}

type sample struct{ bad, all int }

func (s sample) String() string {
	if s.all == 0 {
		return "0 of 0"
	}
	return fmt.Sprintf("%d of %d (%.3g%%)", s.bad, s.all, 100*float64(s.bad)/float64(s.all))
}

// sampleOf parses [bad, all]. Prometheus extrapolates counts to fractions, so sampleOf rounds the bad requests down.
func sampleOf(v any) (sample, error) {
	pair, ok := v.([]any)
	if isEmpty(v) || ok && len(pair) == 1 {
		return sample{}, nil
	}
	if !ok || len(pair) != 2 {
		return sample{}, fmt.Errorf("%s is not [bad, all]", short(v))
	}
	var n [2]float64
	for i := range n {
		f, err := number(pair[i])
		switch {
		case isEmpty(pair[i]) || math.IsNaN(f):
			continue // no requests yet
		case err != nil:
			return sample{}, err
		case f <= -0.5 || f > 1e12: // a difference of two rounded counts may be -1e-9
			return sample{}, fmt.Errorf("%v is not a number of requests", f)
		}
		n[i] = f
	}
	s := sample{bad: int(n[0]), all: int(math.Round(n[1]))}
	s.bad = min(s.bad, s.all)
	return s, nil
}

const mostSamples = 1_000_000_000

func (s sample) judged() sample {
	if s.all <= mostSamples {
		return s
	}
	return sample{bad: int(float64(s.bad) / float64(s.all) * mostSamples), all: mostSamples}
}

// worse returns the probability that an equally good version has at least c.bad bad requests (Fisher's exact test). If
// margin > 0, the assumed bad share is margin plus an upper bound of stable's share (Clopper and Pearson, alpha/2).
func worse(c, s sample, margin, alpha float64) float64 {
	if margin <= 0 {
		return fisher(c, s)
	}
	share := math.Min(1, upper(s, alpha/2)+margin)
	return math.Min(1, 2*binomialTail(c.bad, c.all, share))
}

// isNotWorse is a quick check: if it returns true, the function worse would return at least alpha. The check replaces
// the upper bound of stable's share by a lower value: a normal approximation or the measured share.
func isNotWorse(c, s sample, margin, alpha float64) bool {
	share := float64(s.bad) / float64(s.all)
	near := share + 0.9*math.Sqrt(-2*math.Log(alpha)*share*(1-share)/float64(s.all))
	if near < 1 && 1-binomialTail(s.bad+1, s.all, near) > alpha/2 {
		share = near
	}
	return 2*binomialTail(c.bad, c.all, math.Min(1, share+margin)) >= alpha
}

func fisher(c, s sample) float64 {
	bad, all := c.bad+s.bad, c.all+s.all
	term := func(k int) float64 { return math.Exp(choose(c.all, k) + choose(s.all, bad-k) - choose(all, bad)) }
	rise := func(k int) float64 {
		return float64(c.all-k) / float64(k+1) * float64(bad-k) / float64(s.all-bad+k+1)
	}
	least := max(0, bad-s.all)
	return tail(c.bad, least, min(bad, c.all), float64(c.all)*float64(bad)/float64(all), term, rise)
}

// tail sums term(i) for i ≥ k. Terms must decrease away from the mean; rise(i) is term(i+1)/term(i). For 1e9 requests,
// about 10,000 terms matter.
func tail(k, least, most int, mean float64, term, rise func(int) float64) float64 {
	sum := 0.0
	if float64(k) > mean {
		for t := term(k); k <= most && t > math.Max(sum*1e-12, 1e-300); k++ {
			sum, t = sum+t, t*rise(k)
		}
		return math.Min(1, sum)
	}
	for t := term(k - 1); k > least && t > math.Max(sum*1e-12, 1e-300); k-- {
		sum, t = sum+t, t/rise(k-2)
	}
	return math.Max(0, 1-sum)
}

func choose(n, k int) float64 {
	if k < 0 || k > n {
		return math.Inf(-1)
	}
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}

func binomialTail(k, n int, p float64) float64 {
	switch {
	case k <= 0 || p >= 1:
		return 1
	case p <= 0:
		return 0
	}
	term := func(i int) float64 {
		return math.Exp(choose(n, i) + float64(i)*math.Log(p) + float64(n-i)*math.Log1p(-p))
	}
	rise := func(i int) float64 { return float64(n-i) / float64(i+1) * p / (1 - p) }
	return tail(k, 0, n, float64(n)*p, term, rise)
}

func upper(s sample, alpha float64) float64 {
	if s.bad >= s.all {
		return 1
	}
	return bisect(float64(s.bad)/float64(s.all), func(share float64) bool {
		return 1-binomialTail(s.bad+1, s.all, share) > alpha
	})
}

func bisect(low float64, holds func(share float64) bool) float64 {
	high := 1.0
	for range 60 {
		if middle := (low + high) / 2; holds(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return high
}
