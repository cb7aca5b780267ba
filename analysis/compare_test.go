package analysis

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The exact values are R's: fisher.test(..., alternative="greater") and
// binom.test.
func TestWorse(t *testing.T) {
	cases := map[string]struct {
		c, s   sample
		margin float64
		want   float64
	}{
		"Tea":       {sample{3, 4}, sample{1, 4}, 0, 0.2428571},
		"AllBad":    {sample{5, 5}, sample{0, 5}, 0, 0.003968254},
		"Same":      {sample{5, 100}, sample{5, 100}, 0, 0.6204},
		"NoneBad":   {sample{0, 100}, sample{0, 1000}, 0, 1},
		"TwentyOne": {sample{10, 50}, sample{5, 1000}, 0, 2.6e-10},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := worse(tc.c, tc.s, tc.margin, 0.001)
			if math.Abs(got-tc.want) > 0.02*tc.want+1e-9 {
				t.Errorf("p = %.6g, want %.6g", got, tc.want)
			}
		})
	}
	if got := upper(sample{0, 100}, 0.05); math.Abs(got-0.02951) > 0.0002 { // 1-0.05^(1/100)
		t.Errorf("upper end for 0 of 100 is %.5f", got)
	}
	if got := binomialTail(3, 10, 0.1); math.Abs(got-0.0701908) > 1e-6 {
		t.Errorf("P(X >= 3 of 10 at 0.1) = %.7f", got)
	}
}

// verdicts runs a release of so many measurements, each of all requests so far.
func verdicts(rng *rand.Rand, share, stableShare float64, perStep, steps int, margin float64) Phase {
	m := Metric{Name: "errors", Compare: &Compare{MaxIncrease: margin}, Count: steps, MinSamples: 20}
	r := Start("r", "h1-x", []Metric{m}, noon)
	var c, s sample
	for i := range steps {
		for range perStep {
			c.all++
			if rng.Float64() < share {
				c.bad++
			}
		}
		for range 9 * perStep {
			s.all++
			if rng.Float64() < stableShare {
				s.bad++
			}
		}
		got := JudgeComparison(m, r.Metrics[0], noon, []any{float64(c.bad), float64(c.all)}, []any{float64(s.bad), float64(s.all)}, noon)
		r = Record(r, m, got)
		if r.Phase.Done() {
			return r.Phase
		}
		_ = i
	}
	return r.Phase
}

// 200 good releases go through and 200 bad ones, with five more errors in a
// hundred requests, do not, while the old version has none to two itself; one
// with ten has to be ten worse to be noticed as fast.
func TestComparisonOfReleases(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	alarms, misses := 0, 0
	for i := range 200 {
		base := []float64{0, 0.001, 0.005, 0.02, 0.1}[i%5]
		if verdicts(rng, base, base, 50, 20, 0) == Failed {
			alarms++
		}
		if verdicts(rng, base+max(0.05, base), base, 50, 20, 0) != Failed {
			misses++
		}
	}
	t.Logf("of 200 good releases %d went back, of 200 bad ones %d went through", alarms, misses)
	if alarms > 0 || misses > 0 {
		t.Errorf("%d false alarms, %d misses", alarms, misses)
	}
}

func TestSampleOf(t *testing.T) {
	for _, bad := range []any{nil, 5.0, []any{1.0}, []any{1.0, 2.0, 3.0}, []any{-1.0, 5.0}, []any{"x", 5.0}, []any{math.Inf(1), 5.0}} {
		if got, err := sampleOf(bad); err == nil {
			t.Errorf("%v is taken for %v", bad, got)
		}
	}
	got, err := sampleOf([]any{2.9, 100.4})
	if err != nil || got != (sample{2, 100}) {
		t.Errorf("rates become %v, %v", got, err)
	}
	if got, err := sampleOf([]any{math.NaN(), math.NaN()}); err != nil || got != (sample{}) {
		t.Errorf("nothing counted becomes %v, %v", got, err)
	}
}

func FuzzWorse(f *testing.F) {
	f.Add(3, 100, 5, 1000, 0.01)
	f.Fuzz(func(t *testing.T, cb, ca, sb, sa int, margin float64) {
		ca, sa = 1+max(0, ca%2000), 1+max(0, sa%2000)
		cb, sb = max(0, cb%(ca+1)), max(0, sb%(sa+1))
		if math.IsNaN(margin) || margin < 0 || margin >= 1 {
			margin = 0
		}
		p := worse(sample{cb, ca}, sample{sb, sa}, margin, 0.001)
		if math.IsNaN(p) || p < 0 || p > 1 {
			t.Errorf("p = %v of %d/%d and %d/%d, margin %v", p, cb, ca, sb, sa, margin)
		}
		if cb == 0 && p < 0.999 {
			t.Errorf("none is bad, and p = %v", p)
		}
	})
}
