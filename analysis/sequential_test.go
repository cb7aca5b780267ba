package analysis

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// ElapsedMetric returns a comparison whose query covers the time since the present weight was reached.
func ElapsedMetric(interval time.Duration, count int) Metric {
	return Metric{Name: "errors", Interval: interval, Count: count, Compare: &Compare{}, OnNoData: rollout.NoDataWait, Retention: 10,
		ConsecutiveErrorLimit: 4, Config: map[string]any{"query": "sum(increase(x[{{elapsed}}s]))"}}
}

// TestSequentialTestFindsBadReleases simulates 400 releases of each row of the table in docs/analysis.md, with the weight 20 %. The number
// of rejected releases and the median number of requests until a rejection have lower and upper bounds.
func TestSequentialTestFindsBadReleases(t *testing.T) {
	runs := 400
	if testing.Short() {
		runs = 40
	}
	for _, row := range []struct {
		interval             time.Duration
		count                int
		rate, stable, canary float64
		least, most          int // rejected releases of 400
		early, late          int // median requests
	}{
		{time.Second, 600, 20, 0.02, 0.03, 380, 400, 4000, 6000},
		{time.Second, 600, 2, 0.001, 0.02, 380, 400, 300, 500},
		{10 * time.Second, 60, 20, 0.001, 0.005, 390, 400, 2300, 3600},
		{10 * time.Second, 60, 2, 0.001, 0.005, 20, 80, 700, 1200},
		{10 * time.Second, 60, 20, 0.02, 0.04, 390, 400, 1200, 1900},
		{time.Minute, 60, 20, 0.02, 0.03, 390, 400, 4000, 6500},
	} {
		s := Setting{Metrics: []Metric{ElapsedMetric(row.interval, row.count)}, Stable: row.stable, Canary: row.canary, Rate: row.rate,
			Weight: 0.2}
		got := Simulate(s, runs, 1)
		t.Logf("%s × %d, %g/s, %g → %g: %+v", row.interval, row.count, row.rate, row.stable, row.canary, got)
		if n := got.Rejected * 400 / runs; !testing.Short() && (n < row.least || n > row.most) {
			t.Errorf("rejected %d of 400, want %d to %d", n, row.least, row.most)
		}
		if m := got.MedianRequests; !testing.Short() && (m < row.early || m > row.late) {
			t.Errorf("median requests %d, want %d to %d", m, row.early, row.late)
		}
	}
}

// TestGoodReleasesPass simulates 2,000 releases that are as good as stable. At most 2 of them may be rejected, no matter how many
// metrics compare versions.
func TestGoodReleasesPass(t *testing.T) {
	runs := 2000
	if testing.Short() {
		runs = 50
	}
	for _, metrics := range []int{1, 8} {
		s := Setting{Stable: 0.02, Canary: 0.02, Rate: 20, Weight: 0.2}
		for range metrics {
			m := ElapsedMetric(10*time.Second, 60)
			m.Name += string(rune('a' + len(s.Metrics)))
			s.Metrics = append(s.Metrics, m)
		}
		if got := Simulate(s, runs, 7); got.Rejected > 2 {
			t.Errorf("with %d metrics, %d of %d good releases are rejected", metrics, got.Rejected, runs)
		}
	}
}

// TestPublishedBayesFactors compares ratioLog with the sequential multinomial test of Lindon and Malek (2022). The numbers are the
// published expectations of the authors' package ssrm_test: three categories with the probabilities 0.4, 0.4 and 0.2, and the prior
// Dirichlet(1, 1, 1). This test's Bayes factor is a product. One factor compares the first category with the others (prior Beta(1, 2)), the
// other factor the second category with the third (uniform prior).
func TestPublishedBayesFactors(t *testing.T) {
	pair := func(bad, good, p float64, prior func(q float64) float64) float64 {
		const steps = 200_000
		sum := 0.0
		for i := range steps {
			q := (float64(i) + 0.5) / steps
			sum += prior(q) * math.Exp(ratioLog(bad, good, p, 1-p, q/(1-q)*(1-p)/p)) / steps
		}
		return math.Log(sum)
	}
	for name, looks := range map[string][]struct {
		counts [3]float64
		log    [2]float64 // log marginal likelihood of the counts: with other probabilities, and with the expected probabilities
	}{
		"one by one": {
			{[3]float64{1, 0, 0}, [2]float64{-1.0986122886681096, -0.916290731874155}},
			{[3]float64{0, 1, 0}, [2]float64{-2.4849066497880004, -1.83258146374831}},
			{[3]float64{1, 0, 0}, [2]float64{-3.401197381662155, -2.748872195622465}},
			{[3]float64{0, 1, 0}, [2]float64{-4.499809670330265, -3.66516292749662}},
			{[3]float64{0, 0, 1}, [2]float64{-6.4457198193855785, -5.27460083993072}},
		},
		"many at a time": {
			{[3]float64{20, 17, 9}, [2]float64{-7.028201432058012, -4.0776406466061985}},
			{[3]float64{18, 21, 8}, [2]float64{-11.947847738358888, -8.265946861099877}},
			{[3]float64{4, 6, 4}, [2]float64{-15.471401950257842, -11.610743519545139}},
			{[3]float64{18, 19, 11}, [2]float64{-19.96484521090386, -15.781031228536165}},
		},
	} {
		var sum [3]float64
		p, published := 1.0, 1.0
		for _, look := range looks {
			for i, n := range look.counts {
				sum[i] += n
			}
			got := pair(sum[0], sum[1]+sum[2], 0.4, func(q float64) float64 { return 2 * (1 - q) }) +
				pair(sum[1], sum[2], 2.0/3, func(float64) float64 { return 1 })
			if want := look.log[0] - look.log[1]; math.Abs(got-want) > 1e-6 {
				t.Errorf("%s, %v: the logarithm of the Bayes factor is %.8f, published %.8f", name, sum, got, want)
			}
			p, published = min(p, math.Exp(-got)), min(published, math.Exp(look.log[1]-look.log[0]))
			if math.Abs(p-published) > 1e-6 {
				t.Errorf("%s, %v: the p-value is %.8f, published %.8f", name, sum, p, published)
			}
		}
	}
}

// TestRatiosAreFair computes the mean evidence of one look over all outcomes of a good version. The mean must not exceed 1. Each outcome is
// a draw of the bad requests without replacement.
func TestRatiosAreFair(t *testing.T) {
	for _, n := range [][3]int{{1, 1, 1}, {3, 12, 4}, {10, 40, 9}, {50, 50, 50}, {7, 3, 10}} {
		c, s, bad := n[0], n[1], n[2]
		for _, ratio := range rollout.Ratios {
			mean := 0.0
			for k := max(0, bad-s); k <= min(bad, c); k++ {
				p := math.Exp(choose(c, k) + choose(s, bad-k) - choose(c+s, bad))
				mean += p * math.Exp(ratioLog(float64(k), float64(bad-k), float64(c), float64(s), ratio))
			}
			if mean > 1+1e-9 {
				t.Errorf("%d and %d requests, %d bad, ratio %g: the mean is %g", c, s, bad, ratio, mean)
			}
		}
	}
}

// looked returns the evidence after looks with the given counts: bad and all requests of the new version and of stable.
func looked(m Metric, before *Sequential, since time.Time, looks ...[4]int) *Sequential {
	for _, n := range looks {
		look := &Look{canary: sample{n[0], n[1]}, stable: sample{n[2], n[3]}}
		_, before = Weigh(m, before, look, since, Measurement{Phase: Successful}, Alone(m))
	}
	return before
}

// TestIncrements checks which requests a look adds: only requests since the last look, since the last change of the weight, or since the
// counters restarted.
func TestIncrements(t *testing.T) {
	m := ElapsedMetric(time.Minute, 10)
	release := m
	release.Config = map[string]any{"query": "sum(increase(x[{{release.elapsed}}s]))"}
	later := noon.Add(time.Hour)
	once := looked(m, nil, noon, [4]int{5, 100, 3, 400})
	for name, tc := range map[string]struct {
		want, got *Sequential
	}{
		"the first look counts all requests":    {looked(m, nil, noon, [4]int{0, 0, 0, 0}, [4]int{5, 100, 3, 400}), once},
		"equal counts add nothing":              {once, looked(m, once, noon, [4]int{5, 100, 3, 400})},
		"a small decrease does not count twice": {once, looked(m, once, noon, [4]int{4, 99, 3, 398}, [4]int{5, 100, 3, 400})},
		"requests to one version wait for requests to both": {
			once, looked(m, nil, noon, [4]int{0, 0, 1, 9}, [4]int{0, 0, 2, 300}, [4]int{5, 100, 3, 400})},
		"a look while the weight changes is no look": {once, looked(m, once, time.Time{}, [4]int{90, 100, 3, 400})},
		"the window of the release begins before the first look": {
			looked(release, nil, noon, [4]int{0, 0, 0, 0}), nilLogs(looked(release, nil, noon, [4]int{0, 0, 0, 0}))},
	} {
		compare.CheckNamed(t, name, tc.want.Tests, tc.got.Tests)
	}
	logs := func(e *Sequential) any { return e.Tests[0].Logs }
	compare.CheckNamed(t, "a loss of most requests adds nothing", logs(once), logs(looked(m, once, noon, [4]int{1, 20, 0, 80})))
	compare.CheckNamed(t, "a new weight with a new window counts from zero",
		logs(looked(m, once, noon, [4]int{5, 100, 3, 400}, [4]int{7, 120, 3, 480})), logs(looked(m, once, later, [4]int{2, 20, 0, 80})))
	compare.CheckNamed(t, "a new weight in a longer window adds nothing",
		logs(looked(release, nil, noon, [4]int{5, 100, 3, 400})), logs(looked(release, looked(release, nil, noon, [4]int{5, 100, 3, 400}), later,
			[4]int{50, 110, 3, 440})))
}

// TestMissingRequestsOfOneVersion checks looks in which the new version's share of the requests changes. Such a look waits: its requests
// count with the next look that has the old share. A look with over four times the requests of the last counted look sets a new usual
// share. If the new version gets no request in such a look, the look is not Pending, so that the analysis ends.
func TestMissingRequestsOfOneVersion(t *testing.T) {
	m := ElapsedMetric(time.Minute, 100)
	steady := [][4]int{{20, 1000, 80, 4000}, {40, 2000, 160, 8000}}
	other := [][4]int{{42, 2100, 240, 12000}, {46, 2300, 400, 20000}, {52, 2600, 680, 32000}, {56, 2700, 760, 36000}}
	few := [][4]int{{40, 2001, 160, 8001}, {41, 2002, 160, 8003}}
	for name, c := range map[string]struct {
		looks [][4]int // after the steady looks
		waits string   // w: the look waits
		like  [][4]int // looks with the expected evidence
	}{
		"one answer":       {[][4]int{{48, 2400, 240, 12000}, {80, 4000, 320, 16000}}, "w-", [][4]int{{80, 4000, 320, 16000}}},
		"of stable":        {[][4]int{{60, 3000, 180, 9000}, {80, 4000, 320, 16000}}, "w-", [][4]int{{80, 4000, 320, 16000}}},
		"by chance":        {[][4]int{{57, 2900, 240, 12000}}, "-", [][4]int{{57, 2900, 240, 12000}}},
		"few requests":     {few, "--", few},
		"another share":    {other[:3], "www", nil},
		"no more requests": {[][4]int{{40, 2000, 240, 12000}, {40, 2000, 320, 16000}, {40, 2000, 640, 32000}}, "ww-", nil},
	} {
		evidence := looked(m, nil, noon, steady...)
		waits := ""
		for _, n := range c.looks {
			look := &Look{canary: sample{n[0], n[1]}, stable: sample{n[2], n[3]}}
			var got Measurement
			got, evidence = Weigh(m, evidence, look, noon, Measurement{Phase: Successful}, Alone(m))
			waits += map[bool]string{true: "w", false: "-"}[got.Phase == Pending]
		}
		compare.CheckNamed(t, name, c.waits, waits)
		want := looked(m, looked(m, nil, noon, steady...), noon, c.like...)
		if math.Abs(evidence.Value()/want.Value()-1) > 1e-9 {
			t.Errorf("%s: the evidence is %g, want %g", name, evidence.Value(), want.Value())
		}
		if name == "another share" && looked(m, evidence, noon, other[3]).Value() == evidence.Value() {
			t.Error("after another share, no look counts")
		}
	}
}

// nilLogs returns evidence that has counted no bad request.
func nilLogs(e *Sequential) *Sequential {
	e.Tests[0].Logs = [len(rollout.Ratios)]float64{}
	return e
}

// latencies returns a histogram with ten buckets. The latencies have an exponential distribution with the given mean.
func latencies(requests int, mean float64) Histogram {
	var h Histogram
	for _, bound := range []float64{0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, math.Inf(1)} {
		h = append(h, Bucket{bound, math.Round(float64(requests) * -math.Expm1(-bound/mean))})
	}
	return h
}

// TestLatencies judges growing histograms of both versions. Only a slower version is rejected. A version with equal latency and half of the
// traffic is not rejected. A histogram without requests, or with other buckets than stable's, rejects no version.
func TestLatencies(t *testing.T) {
	m := ElapsedMetric(10*time.Second, 60)
	m.Compare.Histogram = true
	coarse := func(n int, mean float64) Histogram {
		return slices.DeleteFunc(latencies(n, mean), func(b Bucket) bool { return b.Bound > 0.01 && b.Bound < 5 })
	}
	for name, tc := range map[string]struct {
		canary func(n int) any
		want   Phase
		value  string
	}{
		"as fast": {func(n int) any { return latencies(100*n, 0.1) }, Successful,
			"above 0.5: 40 of 6000 (0.667%), stable 162 of 24000 (0.675%)"},
		"half of the traffic": {func(n int) any { return latencies(50*n, 0.1) }, Successful,
			"above 0.5: 20 of 3000 (0.667%), stable 162 of 24000 (0.675%)"},
		"faster": {func(n int) any { return latencies(100*n, 0.05) }, Successful, ""},
		"slower": {func(n int) any { return latencies(100*n, 0.12) }, Failed, ""},
		"slower, and stable begins with a fast request": {func(n int) any { return latencies(100*n, 0.12) }, Failed, "first"},
		"no requests":           {func(int) any { return nil }, Running, ""},
		"buckets without count": {func(int) any { return latencies(0, 1) }, Running, ""},
		"other buckets":         {func(n int) any { return coarse(100*n, 5) }, Running, ""},
		"no histogram":          {func(int) any { return 3.0 }, Errored, ""},
	} {
		run := begin(m)
		for n := 1; n <= 60 && !run.Phase.Done(); n++ {
			at := noon.Add(time.Duration(n) * m.Interval)
			stable := latencies(400*n, 0.1)
			if tc.value == "first" && n == 1 {
				stable = latencies(1, 0.001)
			}
			got, look := JudgeComparison(m, Alone(m), run.Metrics[0], noon, tc.canary(n), stable, at)
			got, evidence := Weigh(m, run.Metrics[0].Evidence, look, noon, got, Alone(m))
			run = Record(run, m, got, evidence)
		}
		last, _ := run.Metrics[0].Last()
		compare.CheckNamed(t, name, tc.want, run.Phase)
		if tc.value != "" && tc.value != "first" {
			compare.CheckNamed(t, name, tc.value, last.Value)
		}
	}
}

// TestEvidenceIsRecorded checks that the recorded text of a sequential test keeps counts and never rounds evidence up. Wrong texts are
// refused.
func TestEvidenceIsRecorded(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		want := rollout.Test{Bound: float64(rng.IntN(1000)) / 1000, Canary: rng.IntN(1e6), Stable: rng.IntN(1e6)}
		for i := range want.Logs {
			want.Logs[i] = rng.NormFloat64() * 20
		}
		text, err := want.MarshalText()
		var got rollout.Test
		if err != nil || got.UnmarshalText(text) != nil {
			t.Fatalf("%s: %v", text, err)
		}
		for i := range want.Logs {
			if got.Logs[i] > want.Logs[i] || want.Logs[i]-got.Logs[i] > 1e-5 {
				t.Errorf("%v is read as %v", want.Logs[i], got.Logs[i])
			}
		}
		got.Logs = want.Logs
		compare.Check(t, want, got)
	}
	var got rollout.Test
	for _, wrong := range []string{"", "1", "0 1 2", "0 1 2 AAAA", "0 -1 2 " + zeros, "NaN 1 2 " + zeros, "0 1 x " + zeros} {
		if got.UnmarshalText([]byte(wrong)) == nil {
			t.Errorf("%q is read as %+v", wrong, got)
		}
	}
	if err := got.UnmarshalText([]byte("0 1 2 " + zeros)); err != nil {
		t.Error(err)
	}
}

const zeros = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"

// BenchmarkLooks judges 1,000 comparisons.
func BenchmarkLooks(b *testing.B) {
	m := ElapsedMetric(time.Minute, 0)
	before, family := looked(m, nil, noon, [4]int{20, 1000, 80, 4000}), Alone(m)
	for b.Loop() {
		for range 1000 {
			counts := Look{canary: sample{24, 1200}, stable: sample{95, 4800}}
			got, look := judgeCounts(m, family, Progress{Count: 5}, noon, counts, noon.Add(5*time.Minute))
			Weigh(m, before, look, noon, got, family)
		}
	}
}

// TestMissingRequests simulates good releases while a server often lacks all or most requests of one version. When missing requests are
// back, they must not count twice. An answer that lacks requests rejects no version. Stable's failure rate changes in time. So a version
// would seem worse if its requests of one period were compared with stable's requests of another period.
func TestMissingRequests(t *testing.T) {
	const elapsed, release = "{{elapsed}}", "{{release.elapsed}}"
	for name, tc := range map[string]struct {
		query    string
		before   bool
		part     float64 // share of the requests that the server still has
		looks    int     // of each 20 looks, the number that lack requests; 0: all after the fourth look
		increase float64
		stable   bool // stable's requests are missing, not the new version's
	}{
		"all":                                {elapsed, false, 0, 1, 0, false},
		"all of stable's":                    {elapsed, false, 0, 1, 0, true},
		"all, with a margin":                 {elapsed, false, 0, 1, 0.001, false},
		"all of stable's, with a margin":     {elapsed, false, 0, 1, 0.001, true},
		"most":                               {elapsed, false, 0.4, 1, 0, false},
		"most of stable's":                   {elapsed, false, 0.4, 1, 0, true},
		"most, with a margin":                {elapsed, false, 0.4, 1, 0.001, false},
		"most, for a while":                  {elapsed, false, 0.3, 10, 0, false},
		"most, for good":                     {elapsed, false, 0.3, 0, 0, false},
		"most, in the window of the release": {release, false, 0.4, 1, 0, false},
		"most, in a watch":                   {elapsed, true, 0.4, 1, 0, false},
	} {
		m := ElapsedMetric(10*time.Second, 60)
		m.Config = map[string]any{"query": tc.query}
		m.Compare.MaxIncrease, m.Compare.Before = tc.increase, tc.before
		failed, most := 0, 0.0
		for seed := range uint64(300) {
			n, evidence := rejectedAt(m, seed, 1, func(n int, _ *rand.Rand, l *Look) {
				lacks := n > 4 && n%20 < tc.looks || n > 4 && tc.looks == 0
				if of := map[bool]*sample{true: &l.stable, false: &l.canary}[tc.stable]; lacks {
					of.keep(tc.part)
				}
			})
			if n > 0 {
				failed++
			}
			most = max(most, evidence.Value())
		}
		if t.Logf("%s: the largest evidence is %.3g", name, most); failed > 1 {
			t.Errorf("%s: %d of 300 good releases fail", name, failed)
		}
	}
}

func (s *sample) keep(part float64) {
	s.bad, s.all = int(float64(s.bad)*part), int(float64(s.all)*part)
}

// rejectedAt simulates a release with 1,000 requests at each look. The new version's failure rate is `worse` times stable's rate. Without a
// margin, stable's failure rate changes at each tenth look. The function change removes requests from a look. rejectedAt returns the number
// of the look that rejects the release, or 0.
func rejectedAt(m Metric, seed uint64, worse float64, change func(int, *rand.Rand, *Look)) (int, *Sequential) {
	rng := rand.New(rand.NewPCG(seed, 3))
	all := []Look{{}} // at each look, the requests since the release began
	var evidence *Sequential
	for n := 1; n <= m.Count; n++ {
		share := 0.02
		if n/10%2 == 1 && m.Compare.MaxIncrease == 0 { // a margin needs a constant rate
			share = 0.1
		}
		now := all[n-1]
		draw(&now.canary, rng, 200, share*worse)
		draw(&now.stable, rng, 800, share)
		all = append(all, now)
		since, at := noon, noon.Add(time.Duration(n)*m.Interval)
		if evidence != nil {
			since = evidence.Since
		}
		was := all[int(since.Sub(noon)/m.Interval)]
		look := Look{canary: sample{now.canary.bad - was.canary.bad, now.canary.all - was.canary.all},
			stable: sample{now.stable.bad - was.stable.bad, now.stable.all - was.stable.all}}
		change(n, rng, &look)
		got, l := judgeCounts(m, Alone(m), Progress{Count: n - 1}, noon, look, at)
		if got, evidence = Weigh(m, evidence, l, since, got, Alone(m)); got.Phase == Failed {
			return n, evidence
		}
	}
	return 0, evidence
}

// TestPartialAnswersAtRandom simulates releases. For each version, one of six answers lacks a part of the requests. Good releases pass, and
// bad releases are still rejected almost as soon as with complete answers.
func TestPartialAnswersAtRandom(t *testing.T) {
	releases := uint64(2000)
	if testing.Short() {
		releases = 100
	}
	simulate := func(m Metric, releases uint64, worse, part float64) (rejected, looks int) {
		for seed := range releases {
			n, _ := rejectedAt(m, seed, worse, func(_ int, rng *rand.Rand, l *Look) {
				for _, of := range []*sample{&l.canary, &l.stable} {
					kept := part
					if part < 0 {
						kept = rng.Float64()
					}
					if rng.IntN(6) == 0 {
						of.keep(kept)
					}
				}
			})
			if looks += n; n > 0 {
				rejected++
			}
		}
		return rejected, looks
	}
	for _, query := range []string{"{{elapsed}}", "{{release.elapsed}}"} {
		m := ElapsedMetric(10*time.Second, 60)
		m.Config = map[string]any{"query": query}
		_, whole := simulate(m, releases/5, 1.5, 1)
		for _, part := range []float64{0, 0.4, 0.6, 0.8, 0.9, -1} { // share of the requests that the server still has; -1: random
			good, _ := simulate(m, releases, 1, part)
			bad, looks := simulate(m, releases/5, 1.5, part)
			t.Logf("%s, %g: %d of %d good releases and %d of %d bad releases are rejected, after %.2f times the looks", query, part, good,
				releases, bad, releases/5, float64(looks)/float64(whole))
			if good > 2 || bad < int(releases)*19/100 || float64(looks) > 1.5*float64(whole) {
				t.Errorf("%s, %g: %d of %d good releases and %d of %d bad releases are rejected", query, part, good, releases, bad, releases/5)
			}
		}
	}
}

// TestMissingRequestsBeginAWindow checks the evidence after an answer that lacks most requests. A new window begins, and its requests count
// from zero. If the window's start is fixed, nothing counts until the requests are back.
func TestMissingRequestsBeginAWindow(t *testing.T) {
	at := noon.Add(time.Minute)
	for name, tc := range map[string]struct {
		change func(*Metric)
		moves  bool
	}{
		"since the weight":  {func(*Metric) {}, true},
		"with a margin":     {func(m *Metric) { m.Compare.MaxIncrease = 0.01 }, true},
		"since the release": {func(m *Metric) { m.Config = map[string]any{"query": "{{release.elapsed}}"} }, false},
		"in a watch":        {func(m *Metric) { m.Compare.Before = true }, false},
	} {
		m := ElapsedMetric(time.Minute, 10)
		tc.change(&m)
		before := looked(m, nil, noon, [4]int{0, 0, 0, 0}, [4]int{5, 100, 3, 400})
		want := *before
		if tc.moves {
			want.Since, want.Canary, want.Stable, want.Last, want.Tests = at, 0, 0, nil, []rollout.Test{{Logs: before.Tests[0].Logs}}
			if m.Compare.MaxIncrease > 0 {
				want.Past = []int{3, 400}
			}
		}
		look := &Look{canary: sample{2, 40}, stable: sample{3, 410}}
		got, after := Weigh(m, before, look, noon, Measurement{At: at, Phase: Failed, Message: "worse"}, Alone(m))
		compare.CheckNamed(t, name, Measurement{At: at, Phase: Pending, Message: "this answer lacks most requests of an earlier answer"}, got)
		compare.CheckNamed(t, name, &want, after)
	}
}

// TestOtherVersion checks that the texts of a comparison name the version that the new version is compared with.
func TestOtherVersion(t *testing.T) {
	for name, before := range map[string]bool{"stable": false, "the version before": true} {
		rate, latency := ElapsedMetric(time.Minute, 10), ElapsedMetric(time.Minute, 10)
		rate.Compare, latency.Compare = &Compare{Before: before}, &Compare{Before: before, Histogram: true}
		texts := func(m Metric, canary, stable any) (all [2]string) {
			got, look := JudgeComparison(m, Alone(m), Progress{}, noon, canary, stable, noon.Add(time.Minute))
			got, _ = Weigh(m, nil, look, noon, got, Alone(m))
			return [2]string{got.Value, got.Message}
		}
		for _, c := range []struct{ want, got [2]string }{
			{[2]string{"30 of 100 (30%), " + name + " 3 of 100 (3%)",
				"worse than " + name + ": p-value 8.4e-08 is below 8.2e-05"},
				texts(rate, []any{30.0, 100.0}, []any{3.0, 100.0})},
			{[2]string{"1000 of 100000 (1%), " + name + " 0 of 10 (0%)", ""}, texts(rate, []any{1000.0, 100000.0}, []any{0.0, 10.0})},
			{[2]string{"", name + ": 3 is not [bad, all]"}, texts(rate, []any{3.0, 100.0}, 3.0)},
			{[2]string{"100 requests, " + name + " 50", ""}, texts(latency, latencies(100, 0.1), latencies(50, 0.1))},
			{[2]string{"above 0.01: 90484 of 100000 (90.5%), " + name + " 147152 of 400000 (36.8%)",
				"worse than " + name + ": evidence >1e12 of 2,000"},
				texts(latency, latencies(100_000, 0.1), latencies(400_000, 0.01))},
		} {
			compare.CheckNamed(t, name, c.want, c.got)
		}
	}
}

// TestChangedComparison checks a metric that changes from failures to latencies or back during a release, and a record without sequential
// tests. In both cases, the evidence begins anew.
func TestChangedComparison(t *testing.T) {
	rate, latency := ElapsedMetric(time.Minute, 10), ElapsedMetric(time.Minute, 10)
	latency.Compare = &Compare{Histogram: true}
	look := func(m Metric, before *Sequential) (Measurement, *Sequential) {
		canary, stable := any([]any{5.0, 100.0}), any([]any{3.0, 400.0})
		if m.Compare.Histogram {
			canary, stable = latencies(100, 0.1), latencies(400, 0.1)
		}
		got, l := JudgeComparison(m, Alone(m), Progress{}, noon, canary, stable, noon.Add(time.Minute))
		return Weigh(m, before, l, noon, got, Alone(m))
	}
	for name, m := range map[string][2]Metric{"to latencies": {rate, latency}, "to requests": {latency, rate}} {
		_, before := look(m[0], nil)
		want, fresh := look(m[1], nil)
		for _, record := range []*Sequential{before, {Since: noon}} {
			got, evidence := look(m[1], record)
			compare.CheckNamed(t, name, want, got)
			compare.CheckNamed(t, name, fresh, evidence)
		}
	}
}

// TestWindowOfTheReleaseSpansWeights checks a good release whose query covers {{release.elapsed}}. A backend of both versions fails after
// the weight was raised. Most of the new version's requests are later, so its failure rate is higher. This must not reject the release.
func TestWindowOfTheReleaseSpansWeights(t *testing.T) {
	m := ElapsedMetric(time.Minute, 10)
	m.Config = map[string]any{"query": "{{release.elapsed}}"}
	var evidence *Sequential
	for i, c := range []struct {
		canary, stable [2]float64
		since          time.Duration // of the present weight
	}{
		{[2]float64{0, 500}, [2]float64{0, 9500}, 0}, {[2]float64{0, 600}, [2]float64{0, 9600}, 5 * time.Minute},
		{[2]float64{500, 5600}, [2]float64{500, 14600}, 5 * time.Minute},
	} {
		at := noon.Add(time.Duration(i+1) * 3 * time.Minute)
		got, look := JudgeComparison(m, Alone(m), Progress{Count: i}, noon, []any{c.canary[0], c.canary[1]},
			[]any{c.stable[0], c.stable[1]}, at)
		if got, evidence = Weigh(m, evidence, look, noon.Add(c.since), got, Alone(m)); got.Phase != Successful {
			t.Errorf("look %d is %s: %s", i+1, got.Phase, got.Message)
		}
	}
}

// TestMissingBadRequests checks an answer that has all requests, but lacks stable's earlier bad requests, such as after a server lost a
// shard. The answer rejects no version.
func TestMissingBadRequests(t *testing.T) {
	m := ElapsedMetric(time.Minute, 10)
	before := looked(m, nil, noon, [4]int{20, 1000, 80, 4000})
	look := func(canary, stable [2]float64, before *Sequential, since time.Time) (Measurement, *Sequential) {
		got, l := JudgeComparison(m, Alone(m), Progress{Count: 1}, noon, []any{canary[0], canary[1]}, []any{stable[0], stable[1]},
			noon.Add(2*time.Minute))
		return Weigh(m, before, l, since, got, Alone(m))
	}
	got, after := look([2]float64{24, 1200}, [2]float64{0, 4800}, before, noon)
	if got.Phase != Pending || after.Value() > before.Value() {
		t.Errorf("%s (%s), evidence %.3g after %.3g", got.Phase, got.Message, after.Value(), before.Value())
	}
	few := looked(m, nil, noon, [4]int{2, 1000, 2, 4000})
	if got, _ := look([2]float64{0, 1200}, [2]float64{2, 4800}, few, noon); got.Phase != Successful {
		t.Errorf("with few bad requests: %s", got.Phase)
	}
}

// TestEvidenceOfOthers checks the message of a metric that fails because of the evidence of the release's other metrics.
func TestEvidenceOfOthers(t *testing.T) {
	m := ElapsedMetric(time.Minute, 10)
	got, _ := Weigh(m, nil, &Look{canary: sample{1, 100}, stable: sample{4, 400}}, noon, Measurement{Phase: Successful},
		Family{Compared: 2, Sequential: 2, Others: 10_000})
	compare.Check(t, "worse than stable: evidence 0.45, release 5,000 of 2,000", got.Message)
}
