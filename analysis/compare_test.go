package analysis

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func begin(metrics ...Metric) Run { return Start("web/step-1", "h1-x", metrics, noon) }

// Judged judges a metric that shares its alpha with no other metric.
func Judged(m Metric, before Progress, began time.Time, canary, stable any, at time.Time) Measurement {
	got, _ := JudgeComparison(m, Alone(m), before, began, canary, stable, at)
	return got
}

// TestWorse compares the function worse with exact probabilities. The values without a margin come from R: fisher.test(...,
// alternative="greater") and binom.test. The values with a margin are sums of binomial probabilities.
func TestWorse(t *testing.T) {
	for name, c := range map[string]struct {
		c, s                     sample
		margin, alpha, want, off float64
	}{
		"Tea":       {sample{3, 4}, sample{1, 4}, 0, 0.001, 0.2428571, 0.0048},
		"AllBad":    {sample{5, 5}, sample{0, 5}, 0, 0.001, 0.003968254, 7.9e-5},
		"Same":      {sample{5, 100}, sample{5, 100}, 0, 0.001, 0.6204, 0.0124},
		"NoneBad":   {sample{0, 100}, sample{0, 1000}, 0, 0.001, 1, 0.02},
		"TwentyOne": {sample{10, 50}, sample{5, 1000}, 0, 0.001, 2.6e-10, 1e-9},
		// Half of alpha is for the upper bound of stable's share, and half for the test. If both used all of alpha, false alarms could
		// double.
		"Margin":      {sample{9, 50}, sample{0, 100}, 0.01, 0.05, 0.0008589978490531522, 8e-10},
		"LargeMargin": {sample{20, 60}, sample{3, 200}, 0.05, 0.01, 2.8171063113710506e-06, 2e-12},
		"NotWorse":    {sample{12, 40}, sample{10, 100}, 0.02, 0.001, 0.6087052218083367, 6e-7},
	} {
		if got := worse(c.c, c.s, c.margin, c.alpha); math.Abs(got-c.want) > c.off {
			t.Errorf("%s: p = %v, want %v", name, got, c.want)
		}
	}
	if got := upper(sample{0, 100}, 0.05); math.Abs(got-0.02951) > 0.0002 { // 1-0.05^(1/100)
		t.Errorf("upper end for 0 of 100 is %.5f", got)
	}
	if got := binomialTail(3, 10, 0.1); math.Abs(got-0.0701908) > 1e-6 {
		t.Errorf("P(X >= 3 of 10 at 0.1) = %.7f", got)
	}
}

// TestTailsAreExact compares fisher and binomialTail with rational arithmetic, which does not round.
func TestTailsAreExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	near := func(got float64, want *big.Rat) bool {
		exact, _ := want.Float64()
		return math.Abs(got-exact) <= 1e-9*exact+1e-14
	}
	for range 500 {
		c, s := sample{all: 1 + rng.IntN(200)}, sample{all: 1 + rng.IntN(400)}
		c.bad, s.bad = rng.IntN(c.all+1), rng.IntN(s.all+1)
		bad, sum := int64(c.bad+s.bad), new(big.Int)
		for k := c.bad; k <= min(c.bad+s.bad, c.all); k++ {
			of := new(big.Int).Binomial(int64(s.all), bad-int64(k))
			sum.Add(sum, of.Mul(of, new(big.Int).Binomial(int64(c.all), int64(k))))
		}
		want := new(big.Rat).SetFrac(sum, new(big.Int).Binomial(int64(c.all+s.all), bad))
		if got := fisher(c, s); !near(got, want) {
			t.Fatalf("fisher of %v and %v is %v, exactly %s", c, s, got, want.FloatString(20))
		}
	}
	power := func(n uint64, exponent int) *big.Int {
		return new(big.Int).Exp(new(big.Int).SetUint64(n), big.NewInt(int64(exponent)), nil)
	}
	for range 300 {
		const whole = 1 << 53 // each share is parts/whole, a fraction that float64 represents exactly
		n, parts := 1+rng.IntN(60), rng.Uint64N(whole)
		k, share, sum := rng.IntN(n+1), float64(parts)/whole, new(big.Int)
		for i := k; i <= n; i++ {
			term := new(big.Int).Binomial(int64(n), int64(i))
			term.Mul(term, power(parts, i))
			sum.Add(sum, term.Mul(term, power(whole-parts, n-i)))
		}
		want := new(big.Rat).SetFrac(sum, power(whole, n))
		if got := binomialTail(k, n, share); !near(got, want) {
			t.Fatalf("%d or more of %d at %v is %v, exactly %s", k, n, share, got, want.FloatString(20))
		}
	}
}

// TestHalfAPairRejectsNothing checks a result with only one value of [bad, all]. The comparison is Pending, unless onNoData is pass or
// fail.
func TestHalfAPairRejectsNothing(t *testing.T) {
	for _, onNoData := range []NoData{"", rollout.NoDataError, rollout.NoDataWait} {
		m := Metric{Compare: &Compare{}, OnNoData: onNoData}
		for _, half := range [][2]any{{[]any{3.0}, []any{0.0, 100.0}}, {[]any{3.0, 100.0}, []any{1000.0}}, {[]any{3.0}, []any{3.0}}} {
			if got := Judged(m, Progress{}, noon, half[0], half[1], noon); got.Phase != Pending {
				t.Errorf("onNoData %q, %v: %s (%s)", onNoData, half, got.Phase, got.Message)
			}
		}
	}
}

// TestHugeNumbersOfRequests checks that samples of up to 1e12 requests are judged correctly, within 5 s of CPU time.
func TestHugeNumbersOfRequests(t *testing.T) {
	const all = 1e12
	for name, c := range map[string]struct {
		canary, stable []any
		margin         float64
		want           Phase
	}{
		"none and all":           {[]any{0.0, all}, []any{all, all}, 0, Successful},
		"all and none":           {[]any{all, all}, []any{0.0, all}, 0, Failed},
		"none and all, margin":   {[]any{0.0, all}, []any{all, all}, 0.01, Successful},
		"alike":                  {[]any{all / 100, all}, []any{all / 100, all}, 0, Successful},
		"alike, margin":          {[]any{all / 100, all}, []any{all / 100, all}, 0.01, Successful},
		"a little worse":         {[]any{all / 99, all}, []any{all / 100, all}, 0, Failed},
		"within the margin":      {[]any{all / 60, all}, []any{all / 100, all}, 0.01, Successful},
		"beyond the margin":      {[]any{all / 40, all}, []any{all / 100, all}, 0.01, Failed},
		"few beside very many":   {[]any{2.0, 100.0}, []any{all / 100, all}, 0, Successful},
		"half":                   {[]any{all / 2, all}, []any{all / 2, all}, 0, Successful},
		"half of a thousand mio": {[]any{5e8, 1e9}, []any{5e8, 1e9}, 0.001, Successful},
	} {
		t.Run(name, func(t *testing.T) {
			began := cpuTime()
			m := Metric{Compare: &Compare{MaxIncrease: c.margin}}
			if got := Judged(m, Progress{}, noon, c.canary, c.stable, noon); got.Phase != c.want {
				t.Errorf("%s (%s), want %s", got.Phase, got.Message, c.want)
			}
			if took := cpuTime() - began; took > 5*time.Second {
				t.Errorf("it took %s of CPU", took)
			}
		})
	}
}

// verdicts simulates a run with at most `steps` comparisons, and returns the run's phase. Each sample covers all requests since the run
// began.
func verdicts(rng *rand.Rand, share, stableShare float64, perStep, steps int, margin float64) Phase {
	m := Metric{Name: "errors", Compare: &Compare{MaxIncrease: margin}, Count: steps, MinSamples: 20}
	var c, s sample
	count := func(of *sample, requests int, share float64) []any {
		for range requests {
			of.all++
			if rng.Float64() < share {
				of.bad++
			}
		}
		return []any{float64(of.bad), float64(of.all)}
	}
	r := begin(m)
	for range steps {
		canary, stable := count(&c, perStep, share), count(&s, 9*perStep, stableShare)
		if r = Record(r, m, Judged(m, r.Metrics[0], noon, canary, stable, noon), nil); r.Phase.Done() {
			break
		}
	}
	return r.Phase
}

// TestComparisonOfReleases checks that good releases pass, and that releases with five more errors per hundred requests fail. If 10 % of
// stable's requests fail, the bad release has ten more errors per hundred: five more would take more measurements.
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
	for _, bad := range []any{5.0, []any{1.0, 2.0, 3.0}, []any{-1.0, 5.0}, []any{"x", 5.0}, []any{math.Inf(1), 5.0}} {
		if got, err := sampleOf(bad); err == nil {
			t.Errorf("%v is taken for %v", bad, got)
		}
	}
	for _, none := range []any{nil, "", math.NaN(), "NaN", -1e-9} { // null in JSON, or a negative difference of extrapolated counts
		if got, err := sampleOf([]any{none, 100.0}); err != nil || got != (sample{0, 100}) {
			t.Errorf("[%v, 100] becomes %v, %v", none, got, err)
		}
		if got, err := sampleOf([]any{3.0, none}); err != nil || got != (sample{}) {
			t.Errorf("[3, %v] becomes %v, %v", none, got, err)
		}
	}
	got, err := sampleOf([]any{2.9, 100.4})
	if err != nil || got != (sample{2, 100}) {
		t.Errorf("rates become %v, %v", got, err)
	}
	for _, none := range []any{nil, []any{}, math.NaN(), []any{math.NaN(), math.NaN()}, []any{3.0}} {
		if got, err := sampleOf(none); err != nil || got != (sample{}) {
			t.Errorf("%v becomes %v, %v", none, got, err)
		}
	}
}

func TestSamplesInWords(t *testing.T) {
	for s, want := range map[sample]string{{}: "0 of 0", {3, 12}: "3 of 12 (25%)", {0, 7}: "0 of 7 (0%)"} {
		if got := s.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestQuickCheck compares isNotWorse with worse for random counts. isNotWorse never passes a version that the function worse rejects, and
// passes most other versions.
func TestQuickCheck(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 9))
	passed, slow := 0, 0
	for range 3000 {
		c, s := sample{all: 1 + rng.IntN(2000)}, sample{all: 1 + rng.IntN(4000)}
		c.bad, s.bad = rng.IntN(c.all/10+2)%(c.all+1), rng.IntN(s.all/20+2)%(s.all+1)
		margin, alpha := 0.05*rng.Float64(), math.Pow(10, -1-10*rng.Float64())
		switch isWorse := worse(c, s, margin, alpha) < alpha; {
		case isNotWorse(c, s, margin, alpha):
			if passed++; isWorse {
				t.Errorf("%s and stable %s with the margin %g pass, with alpha %g", c, s, margin, alpha)
			}
		case !isWorse:
			slow++
		}
	}
	if slow > passed/20 {
		t.Errorf("%d of %d good versions need the slow test", slow, passed+slow)
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

// TestFalseAlarms checks versions that are equal, or that differ by the margin. The probability of a verdict "worse" must be at most alpha.
// The alphas of all measurements of a run must add up to one minus the confidence.
func TestFalseAlarms(t *testing.T) {
	outcome := func(k, n int, p float64) float64 {
		return math.Exp(choose(n, k) + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
	}
	worst := 0.0
	for _, n := range [][2]int{{5, 20}, {20, 20}, {40, 15}, {30, 60}} {
		for _, margin := range []float64{0, 0.05} {
			for _, share := range []float64{0.01, 0.1, 0.3, 0.5, 0.8} {
				for _, alpha := range []float64{0.2, 0.02} {
					alarms := 0.0
					for cb := range n[0] + 1 {
						for sb := range n[1] + 1 {
							if worse(sample{cb, n[0]}, sample{sb, n[1]}, margin, alpha) < alpha {
								alarms += outcome(cb, n[0], share+margin) * outcome(sb, n[1], share)
							}
						}
					}
					worst = max(worst, alarms/alpha)
					if alarms > alpha {
						t.Errorf("%v requests, share %v, margin %v: %v false alarms, want at most %v", n, share, margin, alarms, alpha)
					}
				}
			}
		}
	}
	if worst < 0.2 {
		t.Errorf("at most %.2g of the allowed rate: it never alarms", worst)
	}
	spent, m := 0.0, Metric{Compare: &Compare{Confidence: 0.9}}
	for k := range 1000 {
		got := Judged(m, Progress{Count: k}, noon, []any{9.0, 9.0}, []any{0.0, 9e6}, noon)
		var p, allowed float64
		if _, err := fmt.Sscanf(got.Message, "worse than stable: p-value %g is below %g", &p, &allowed); err != nil {
			t.Fatalf("%q: %v", got.Message, err)
		}
		spent += allowed
	}
	if spent < 0.09 || spent > 0.101 {
		t.Errorf("1000 measurements are allowed %v together, want nearly 0.1", spent)
	}
}

// TestFewRequestsSayNothing checks that a comparison is Pending if either version has too few requests.
func TestFewRequestsSayNothing(t *testing.T) {
	m := Metric{MinSamples: 50, Compare: &Compare{}}
	few, enough := []any{20.0, 49.0}, []any{0.0, 50.0}
	for name, c := range map[string]struct {
		canary, stable []any
		want           Phase
	}{
		"the new version": {few, enough, Pending}, "stable": {[]any{50.0, 50.0}, []any{0.0, 49.0}, Pending},
		"neither": {[]any{50.0, 50.0}, enough, Failed},
	} {
		if got := Judged(m, Progress{}, noon, c.canary, c.stable, noon); got.Phase != c.want {
			t.Errorf("few requests to %s: %s (%s), want %s", name, got.Phase, got.Message, c.want)
		}
	}
}

// TestDetectionOfLatenciesAgreesWithSimulation judges histograms of 400 releases. The new version's share of requests above stable's 99th
// percentile is Detection.Found. About nine of ten releases are rejected, in a median time near Detection.After.
func TestDetectionOfLatenciesAgreesWithSimulation(t *testing.T) {
	for _, rate := range []float64{4, 20, 200} { // requests per second to the new version
		m := ElapsedMetric(10*time.Second, 60)
		m.Compare = &Compare{Histogram: true}
		detection := DetectionOf(Setting{Metrics: []Metric{m}, Stable: 0.01, Rate: rate, Weight: 0.2})
		simulate := func(share float64) (part float64, after time.Duration) {
			var times []time.Duration
			for i := range uint64(400) {
				rng, run := rand.New(rand.NewPCG(i, 1)), begin(m)
				var all [2][4]float64
				for n := 1; !run.Phase.Done(); n++ {
					at := noon.Add(time.Duration(n) * m.Interval)
					var of [2]Histogram
					for v, slow := range []float64{share, 0.01} {
						sum := 0.0
						for b, part := range []float64{0.5 / 0.99 * (1 - slow), 0.4 / 0.99 * (1 - slow), 0.09 / 0.99 * (1 - slow), slow} {
							all[v][b] += float64(poisson(rng, 10*rate*[]float64{1, 4}[v]*part))
							sum += all[v][b]
							of[v] = append(of[v], Bucket{[]float64{0.1, 0.5, 1, math.Inf(1)}[b], sum})
						}
					}
					got, look := JudgeComparison(m, Alone(m), run.Metrics[0], noon, of[0], of[1], at)
					got, evidence := Weigh(m, run.Metrics[0].Evidence, look, noon, got, Alone(m))
					if run = Record(run, m, got, evidence); run.Phase == Failed {
						times = append(times, at.Sub(noon))
					}
				}
			}
			slices.Sort(times)
			return float64(len(times)) / 400, append(times, 0)[len(times)/2]
		}
		part, after := simulate(detection.Found)
		few, _ := simulate(detection.Blind)
		t.Logf("%g/s: %+v; simulated: %.2f after %s, blind %.2f", rate, detection, part, after, few)
		if math.Abs(part-0.9) > 0.15 || few > 0.25 || math.Abs(after.Seconds()/detection.After.Seconds()-1) > 0.15 {
			t.Errorf("%g/s: %.2f are rejected after %s, printed %s; blind %.2f", rate, part, after, detection.After, few)
		}
	}
}

var inf = math.Inf(1)

// TestHistogramOf checks which results are histograms, which mean no data, and which are errors.
func TestHistogramOf(t *testing.T) {
	for name, c := range map[string]struct {
		result any
		want   Histogram
		err    string
	}{
		"buckets":          {Histogram{{0.1, 3}, {0.5, 3}, {inf, 4.5}}, Histogram{{0.1, 3}, {0.5, 3}, {inf, 4.5}}, ""},
		"only the total":   {Histogram{{inf, 0}}, Histogram{{inf, 0}}, ""},
		"rounding errors":  {Histogram{{0.1, 1000}, {0.5, 999.9995}, {inf, 1001}}, Histogram{{0.1, 1000}, {0.5, 1000}, {inf, 1001}}, ""},
		"nil":              {nil, nil, ""},
		"no buckets":       {Histogram{}, Histogram{}, ""},
		"no series":        {[]any{}, nil, ""},
		"NaN":              {Histogram{{0.1, math.NaN()}, {inf, 4}}, nil, ""},
		"NaN in the total": {Histogram{{0.1, 3}, {inf, math.NaN()}}, nil, ""},
		"fewer in a larger bucket": {Histogram{{0.1, 1000}, {0.5, 999.998}, {inf, 1001}}, nil,
			"le=0.5 has count 999.998 after le=0.1 with count 1000: sum by (le)"},
		"negative":  {Histogram{{0.1, -1}, {inf, 4}}, nil, "-1 is not a number of requests (le=0.1)"},
		"infinite":  {Histogram{{0.1, 1}, {inf, inf}}, nil, "+Inf is not a number of requests (le=+Inf)"},
		"twice":     {Histogram{{0.1, 1}, {0.1, 2}, {inf, 4}}, nil, "le=0.1 has count 2 after le=0.1 with count 1: sum by (le)"},
		"no number": {Histogram{{math.NaN(), 1}, {inf, 4}}, nil, "le=NaN has count 1 after le=-Inf with count 0: sum by (le)"},
		"no total":  {Histogram{{0.1, 1}, {0.5, 2}}, nil, `the bucket le="+Inf" is missing: the query must return all buckets`},
		"numbers":   {[]any{1.0, 2.0}, nil, "[1 2] is not a histogram"},
		"a number":  {3.0, nil, "3 is not a histogram"},
		"a text":    {"x", nil, "x is not a histogram"},
	} {
		got, err := histogramOf(c.result)
		compare.CheckNamed(t, name, c.want, got)
		if text := ""; err != nil {
			text = err.Error()
			compare.CheckNamed(t, name, c.err, text)
		} else if c.err != "" {
			t.Errorf("%s: no error, want %s", name, c.err)
		}
	}
	given := Histogram{{0.1, 1000}, {0.5, 999.9999}, {inf, 1001}}
	if _, err := histogramOf(given); err != nil || given[1].Count != 999.9999 {
		t.Errorf("the given histogram is changed to %v (error %v)", given, err)
	}
}

// TestBounds checks which bounds are nearest to the median, the 90th and the 99th percentile.
func TestBounds(t *testing.T) {
	for name, c := range map[string]struct {
		h    Histogram
		want []float64
	}{
		"nearest":          {Histogram{{0.1, 20}, {0.2, 55}, {0.3, 85}, {0.4, 94}, {0.5, 98}, {1, 100}, {inf, 100}}, []float64{0.2, 0.4, 0.5}},
		"the lower of two": {Histogram{{0.1, 25}, {0.2, 75}, {0.3, 90}, {0.4, 99}, {0.5, 99}, {inf, 100}}, []float64{0.1, 0.3, 0.4}},
		"distinct":         {Histogram{{0.1, 999}, {0.2, 1000}, {0.3, 1000}, {0.4, 1000}, {inf, 1000}}, []float64{0.1, 0.2, 0.3}},
		"out of order":     {Histogram{{0.1, 40}, {0.2, 89}, {0.3, 91}, {inf, 100}}, []float64{0.1, 0.2, 0.3}},
		"two":              {Histogram{{0.1, 40}, {0.2, 89}, {inf, 100}}, []float64{0.1, 0.2}},
		"one":              {Histogram{{0.1, 40}, {inf, 100}}, []float64{0.1}},
		"all are slower":   {Histogram{{0.1, 0}, {0.2, 0}, {0.3, 60}, {0.4, 100}, {inf, 100}}, []float64{0.3, 0.4}},
		"above all bounds": {Histogram{{0.1, 0}, {inf, 100}}, nil},
		"no requests":      {Histogram{{0.1, 0}, {0.2, 0}, {inf, 0}}, nil},
		"only the total":   {Histogram{{inf, 100}}, nil},
		"no data":          {nil, nil},
	} {
		compare.CheckNamed(t, name, c.want, bounds(c.h))
	}
}

// TestSlower checks the number of requests above a bound, and bounds for which a histogram has no number.
func TestSlower(t *testing.T) {
	classic := Histogram{{0.1, 60}, {0.25, 90}, {1, 90}, {inf, 100}}
	native := Histogram{{1, 0}, {1.0625, 40}, {1.125, 80}, {1.4, 80}, {1.5, 100}, {inf, 100}}
	type answer struct {
		bad, all int
		ok       bool
	}
	for name, c := range map[string]struct {
		h     Histogram
		bound float64
		want  answer
	}{
		"a bound":                    {classic, 0.1, answer{40, 100, true}},
		"the total":                  {classic, inf, answer{0, 100, true}},
		"between two bounds":         {classic, 0.2, answer{}},
		"below the first bound":      {classic, 0.05, answer{}},
		"above the last bound":       {classic, 2, answer{}},
		"in a bucket without any":    {classic, 0.5, answer{10, 100, true}},
		"a native bound":             {native, 1.0625, answer{60, 100, true}},
		"below all requests":         {native, 0.5, answer{100, 100, true}},
		"above all requests":         {native, 3, answer{0, 100, true}},
		"half of a narrow bucket":    {native, 1.03125, answer{80, 100, true}},
		"a quarter":                  {native, 1.078125, answer{50, 100, true}},
		"in a gap":                   {native, 1.3, answer{20, 100, true}},
		"a narrow bucket below zero": {Histogram{{-1.1, 0}, {-1, 40}, {inf, 100}}, -1.05, answer{}},
		"rounded":                    {Histogram{{0.1, 60.4}, {inf, 100.6}}, 0.1, answer{40, 101, true}},
		"none":                       {Histogram{{0.1, 0}, {inf, 0.4}}, 0.1, answer{0, 0, true}},
		"no data":                    {nil, 0.1, answer{}},
	} {
		var got answer
		got.bad, got.all, got.ok = c.h.slower(c.bound)
		compare.CheckNamed(t, name, c.want, got)
	}
}

// randomHistogram returns a histogram of whole requests with the given bounds and +Inf.
func randomHistogram(rng *rand.Rand, bounds []float64) (h Histogram) {
	count := 0.0
	for _, bound := range append(slices.Clone(bounds), inf) {
		if rng.IntN(3) > 0 {
			count += float64(rng.IntN(1000))
		}
		h = append(h, Bucket{bound, count})
	}
	return h
}

// FuzzHistogram checks that Histogram.slower never counts more requests above a larger bound, and accepts each bound of the histogram. The
// counts of two histograms add up.
func FuzzHistogram(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 7))
		var own []float64
		for bound := rng.Float64(); len(own) < rng.IntN(20); bound *= 1.01 + 0.2*rng.Float64() {
			own = append(own, bound)
		}
		a, b := randomHistogram(rng, own), randomHistogram(rng, own)
		sum := slices.Clone(a)
		for i := range sum {
			sum[i].Count += b[i].Count
		}
		if got, err := histogramOf(sum); err != nil || !slices.Equal(got, sum) {
			t.Fatalf("%v becomes %v (error %v)", sum, got, err)
		}
		tries := append(bounds(sum), own...)
		for range 20 {
			tries = append(tries, 10*rng.Float64())
		}
		slices.Sort(tries)
		before := math.MaxInt
		for _, bound := range tries {
			bad, all, ok := a.slower(bound)
			isOwn := slices.Contains(own, bound)
			if !ok && isOwn || bad < 0 || bad > all || ok && bad > before {
				t.Fatalf("%d of %d are slower than %v (%v), after %d: %v", bad, all, bound, ok, before, a)
			}
			if ok {
				before = bad
			}
			badB, allB, _ := b.slower(bound)
			if bothBad, bothAll, _ := sum.slower(bound); isOwn && (bothBad != bad+badB || bothAll != all+allB) {
				t.Fatalf("at %v, %d of %d and %d of %d add up to %d of %d", bound, bad, all, badB, allB, bothBad, bothAll)
			}
		}
		if three := bounds(sum); len(three) > 3 || !slices.IsSorted(three) || len(slices.Compact(slices.Clone(three))) != len(three) {
			t.Fatalf("the bounds are %v", three)
		}
	})
}

// TestNarrowBuckets checks that interpolation in the widest allowed bucket has an error of at most 10 %. Here, p99 is 1.33 times p90. With
// an error up to 11 %, an equal version still loses evidence for the smallest of Ratios.
func TestNarrowBuckets(t *testing.T) {
	const requests, power = 1e9, 8
	share := func(bound float64) float64 { return math.Pow(bound, -power) }
	h := Histogram{{1, 0}, {narrow, requests * (1 - share(narrow))}, {inf, requests}}
	for bound := 1.01; bound < narrow; bound += 0.01 {
		bad, _, ok := h.slower(bound)
		if ratio := float64(bad) / (requests * share(bound)); !ok || ratio < 1 || ratio > 1.1 {
			t.Errorf("at %.2f, %d requests are slower, %.3f times the true number", bound, bad, ratio)
		}
	}
}
