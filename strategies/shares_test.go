package strategies_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// kindOf is one kind of release. A fifth of the requests goes to the new version.
type kindOf struct {
	rate   float64    // requests per second to the new version
	shares [2]float64 // the shares of failed requests of the new version and of the stable version
}

// requests counts the requests and failures of two versions between measurements.
type requests struct {
	kindOf
	rng  *rand.Rand
	at   []time.Time
	sums [][2][2]float64 // for each time and version: failed and all requests
}

// ask simulates the requests since the previous measurement and adds them to the sums.
func (w *requests) ask(now time.Time) {
	if len(w.at) == 0 {
		w.at, w.sums = []time.Time{now}, [][2][2]float64{{}}
		return
	}
	last := len(w.at) - 1
	since := now.Sub(w.at[last]).Seconds()
	sums := w.sums[last]
	for i, rate := range []float64{w.rate, 4 * w.rate} {
		bad := w.poisson(since * rate * w.shares[i])
		sums[i][0] += bad
		sums[i][1] += bad + w.poisson(since*rate*(1-w.shares[i]))
	}
	w.at, w.sums = append(w.at, now), append(w.sums, sums)
}

// poisson draws a Poisson-distributed number. For large means it uses the normal distribution.
func (w *requests) poisson(mean float64) float64 {
	if mean > 100 {
		return math.Max(0, math.Round(mean+math.Sqrt(mean)*w.rng.NormFloat64()))
	}
	n, p := 0.0, w.rng.Float64()
	for limit := math.Exp(-mean); p > limit; n++ {
		p *= w.rng.Float64()
	}
	return n
}

// compared returns the result of docs/analysis.md's query that compares two versions. The query covers all requests, because all were sent
// within its ten minutes.
func (w *requests) compared() strategies.Result {
	sums := w.sums[len(w.sums)-1]
	pair := func(v [2]float64) any { return []any{v[0], v[1]} }
	return strategies.Result{Value: pair(sums[0]), Stable: pair(sums[1]), Samples: -1}
}

// share returns the result of the first query in docs/analysis.md, which covers the last minute.
func (w *requests) share() strategies.Result {
	last := len(w.at) - 1
	first := slices.IndexFunc(w.at, func(at time.Time) bool { return w.at[last].Sub(at) <= time.Minute })
	all := w.sums[last][0][1] - w.sums[first][0][1]
	if all == 0 {
		return strategies.Result{Value: []any{}, Samples: -1}
	}
	return strategies.Result{Value: []any{(w.sums[last][0][0] - w.sums[first][0][0]) / all}, Samples: -1}
}

// verdicts holds the results of many releases.
type verdicts struct {
	back             int
	requests, failed []float64 // requests of the new version until the end of its release
}

func median(all []float64) float64 {
	if len(all) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(all))[len(all)/2]
}

// judge runs a number of releases of one kind until the verdict of their analysis.
func judge(t *testing.T, start *lab, seed, releases uint64, kind kindOf, result func(*requests) strategies.Result) verdicts {
	var v verdicts
	for i := range releases {
		w := &requests{rng: rand.New(rand.NewPCG(seed, i)), kindOf: kind}
		l := *start
		phase := l.live(t, start.Now.Add(time.Hour), func(_ strategies.Measure, now time.Time) strategies.Result {
			w.ask(now)
			return result(w)
		})
		switch phase {
		case rollout.AnalysisSuccessful:
			if l.State.Phase != rollout.Promoting || len(l.State.Rejected) > 0 {
				t.Fatalf("after a successful analysis the app is %s", l.State.Phase)
			}
		case rollout.AnalysisFailed:
			if l.State.Phase != rollout.Aborting || len(l.State.Rejected) != 1 {
				t.Fatalf("after a failed analysis the app is %s", l.State.Phase)
			}
			v.back++
			sums := w.sums[len(w.sums)-1]
			v.requests, v.failed = append(v.requests, sums[0][1]), append(v.failed, sums[0][0])
		default:
			t.Fatalf("a run ends %s", phase)
		}
	}
	return v
}

// TestSharesOfFailures runs 200 releases of each kind and compares the results with the table in docs/analysis.md. A comparison of versions
// must not roll back a good version. The number of bad versions that pass, and the time to notice a bad version, must match the page.
func TestSharesOfFailures(t *testing.T) {
	releases := uint64(200)
	if testing.Short() {
		releases = 10
	}
	compare := newLab(t, comparedMetric("errors"))
	plain := newLab(t, rollout.Metric{Name: "errors", Interval: 10 * time.Second, Count: 60, FailureLimit: 2,
		SuccessCondition: "result[0] < 0.01", OnNoData: rollout.NoDataWait, ConsecutiveErrorLimit: 4, Retention: 10})
	docs, err := os.ReadFile("../docs/analysis.md")
	if err != nil {
		t.Fatal(err)
	}
	kinds := []kindOf{
		{20, [2]float64{0.001, 0.001}}, {20, [2]float64{0.005, 0.001}}, {20, [2]float64{0.02, 0.001}},
		{20, [2]float64{0.05, 0.001}}, {20, [2]float64{0.2, 0.001}},
		{2, [2]float64{0.001, 0.001}}, {2, [2]float64{0.005, 0.001}}, {2, [2]float64{0.02, 0.001}},
		{2, [2]float64{0.05, 0.001}},
		{20, [2]float64{0.02, 0.02}}, {20, [2]float64{0.04, 0.02}},
	}
	var rows []string
	for i, kind := range kinds {
		a := judge(t, compare, uint64(i+1), releases, kind, (*requests).compared)
		b := judge(t, plain, uint64(i+1), releases, kind, (*requests).share)
		row := fmt.Sprintf("| %g/s | %g %% | %g %% |", kind.rate, 100*kind.shares[1], 100*kind.shares[0])
		for _, v := range []verdicts{a, b} {
			row += fmt.Sprintf(" %d |", v.back)
			if v.back == 0 {
				row += " – |"
				continue
			}
			row += fmt.Sprintf(" %.0f, %.0f, %.0fs |", median(v.requests), median(v.failed), median(v.requests)/kind.rate)
		}
		if rows = append(rows, row); kind.shares[0] == kind.shares[1] && a.back > 0 {
			t.Errorf("of %d good releases %d went back: %s", releases, a.back, row)
		}
		if !testing.Short() && !strings.Contains(string(docs), row+"\n") {
			t.Errorf("docs/analysis.md has not %s", row)
		}
	}
	t.Log("\n" + strings.Join(rows, "\n"))
}
