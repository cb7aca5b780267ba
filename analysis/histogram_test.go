package analysis

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

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
			"le=0.5 (999.998) follows le=0.1 (1000): sum by (le)"},
		"negative":  {Histogram{{0.1, -1}, {inf, 4}}, nil, "-1 is not a number of requests (le=0.1)"},
		"infinite":  {Histogram{{0.1, 1}, {inf, inf}}, nil, "+Inf is not a number of requests (le=+Inf)"},
		"twice":     {Histogram{{0.1, 1}, {0.1, 2}, {inf, 4}}, nil, "le=0.1 (2) follows le=0.1 (1): sum by (le)"},
		"no number": {Histogram{{math.NaN(), 1}, {inf, 4}}, nil, "le=NaN (1) follows le=-Inf (0): sum by (le)"},
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

// TestSlower checks the requests above a bound, and which bounds a histogram cannot answer.
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

// FuzzHistogram checks that fewer requests are above a larger bound, that the requests of two histograms add up, and that each of the
// histogram's own bounds has an answer.
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

// TestHistogramRefused checks that validate refuses a histogram without buckets, without a fixed start, and with the same query for both
// versions.
func TestHistogramRefused(t *testing.T) {
	const sum = `sum by (le) (increase(b{hash="{{args.hash}}"}[{{elapsed}}s]))`
	for name, c := range map[string]struct{ provider, want string }{
		"accepted":          {"prometheus: {query: '" + sum + "'}", ""},
		"the whole release": {"prometheus: {query: '" + strings.ReplaceAll(sum, "elapsed", "release.elapsed") + "'}", ""},
		"another provider": {"loki: {query: '" + sum + "'}",
			"metrics[0].compare.histogram: conflicts with the provider loki; use prometheus, or remove histogram"},
		"a range query": {"prometheus: {query: '" + sum + "', rangeQuery: {start: now()}}",
			"metrics[0].provider.prometheus.rangeQuery: conflicts with compare; remove it"},
		"no fixed start": {"prometheus: {query: '" + strings.ReplaceAll(sum, "{{elapsed}}s", "10m") + "'}",
			"metrics[0].provider.prometheus.query: has no {{elapsed}}, which compare.histogram needs; write sum by (le) (increase(" +
				`http_request_duration_seconds_bucket{pod_template_hash="{{args.hash}}"}[{{elapsed}}s]))`},
		"no argument":       {"prometheus: {query: '" + strings.ReplaceAll(sum, "{{args.hash}}", "x") + "'}", sameQuery},
		"stable's argument": {"prometheus: {query: '" + strings.ReplaceAll(sum, "args.hash", "args.stable") + "'}", sameQuery},
		"a fixed argument":  {"prometheus: {query: '" + strings.ReplaceAll(sum, "args.hash", "args.region") + "'}", sameQuery},
	} {
		text := "{args: [{name: hash}, {name: stable}, {name: region}], metrics: [{name: m, interval: 1m, " +
			"compare: {to: stable, histogram: true}, provider: {" + c.provider + "}}]}"
		got, err := Instantiate(templates(t, map[string]string{"a": text}), []TemplateRef{{"a", false}}, Values{
			Plain: map[string]string{"region": "eu"}, Pods: map[string]string{"hash": "Latest", "stable": "Stable"}}, nil)
		var invalid *rollout.InvalidError
		switch {
		case c.want == "" && (err != nil || !got[0].Compare.Histogram):
			t.Errorf("%s: %+v, error %v", name, got, err)
		case c.want != "" && !errors.As(err, &invalid):
			t.Errorf("%s: error %v, want %s", name, err, c.want)
		case c.want != "":
			compare.CheckNamed(t, name, "spec."+c.want, invalid.Field+": "+invalid.Msg+"; "+invalid.Fix)
		}
	}
}

const sameQuery = "metrics[0].provider.prometheus: is the same for both versions, so compare would compare a version with itself; " +
	"use an argument that has podTemplateHashValue: Latest"

// TestNarrowBuckets checks the error of interpolation in the widest bucket. If the number of slower requests falls by the eighth power of
// the latency, as with p99 at 1.33 times p90, the error is below 10 %. A sequential test for 25 % loses evidence up to an error of 11 %.
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
