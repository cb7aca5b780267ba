package analysis

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
)

// TestDetectionAgreesWithSimulation simulates 400 releases with each printed share, without the shortcuts of DetectionOf. About nine of
// ten are rejected, after about the printed time. With the share Blind, few are rejected.
func TestDetectionAgreesWithSimulation(t *testing.T) {
	rows := []struct {
		interval     time.Duration
		count        int
		rate, stable float64 // rate: requests per second to both versions
		weight       float64
		change       func(*Metric)
	}{
		{30 * time.Second, 10, 100, 0.01, 0.2, nil},
		{30 * time.Second, 10, 1, 0.01, 0.2, nil},
		{30 * time.Second, 20, 10, 0.01, 0.2, func(m *Metric) { m.MinSamples = 50 }},
		{10 * time.Second, 60, 10, 0.01, 0.2, nil},
		{10 * time.Second, 60, 100, 0.001, 0.05, nil},
		{time.Second, 600, 1, 0.01, 0.2, nil}, // most looks have no request to the new version
		{time.Second, 600, 10, 0.02, 0.5, nil},
		{time.Minute, 60, 10, 0.02, 0.05, nil},
		{30 * time.Second, 20, 10, 0.01, 0.2, func(m *Metric) { m.Compare.MaxIncrease = 0.005 }},
		{30 * time.Second, 90, 10, 0.01, 0.2, func(m *Metric) { m.FailureLimit = 3 }},
		{30 * time.Second, 20, 10, 0.01, 0.2, func(m *Metric) { m.InitialDelay = 5 * time.Minute }},
	}
	if testing.Short() {
		rows = rows[:3]
	}
	for _, row := range rows {
		m := elapsedMetric(row.interval, row.count)
		if row.change != nil {
			row.change(&m)
		}
		s := Setting{Metrics: []Metric{m}, Stable: row.stable, Rate: row.rate * row.weight, Weight: row.weight}
		detection := DetectionOf(s)
		s.Canary = detection.Found
		got := Simulate(s, 400, 1)
		part, after := float64(got.Rejected)/400, float64(got.MedianRequests)/s.Rate
		s.Canary = detection.Blind
		few := float64(Simulate(s, 400, 1).Rejected) / 400
		name := fmt.Sprintf("%s × %d, %g/s, %g, weight %g", row.interval, row.count, row.rate, row.stable, row.weight)
		t.Logf("%s: %+v; simulated: %.2f after %.0fs, blind %.2f", name, detection, part, after, few)
		if math.Abs(part-0.9) > 0.15 || few > 0.25 || detection.Blind <= row.stable {
			t.Errorf("%s: %.2f are rejected with the share %.3g, and %.2f with %.3g", name, part, detection.Found, few, detection.Blind)
		}
		if math.Abs(after/detection.After.Seconds()-1) > 0.15 {
			t.Errorf("%s: rejected after %.0fs, printed %s", name, after, detection.After)
		}
	}
}

// TestDetectionOfLatenciesAgreesWithSimulation judges histograms of 400 releases, whose new version has the printed share of requests above
// the bound of stable's 99th percentile. About nine of ten are rejected, after about the printed time.
func TestDetectionOfLatenciesAgreesWithSimulation(t *testing.T) {
	for _, rate := range []float64{4, 20, 200} { // requests per second to the new version
		m := elapsedMetric(10*time.Second, 60)
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

// TestDetectionOfFewRequests checks settings with which no difference is found, and that a share is found for each metric of a family.
func TestDetectionOfFewRequests(t *testing.T) {
	s := Setting{Metrics: []Metric{elapsedMetric(30*time.Second, 1)}, Stable: 0.01, Rate: 0.02, Weight: 0.2}
	if got := DetectionOf(s); got.Found != 0 || got.After != 0 || got.Blind != 1 {
		t.Errorf("with less than one request: %+v", got)
	}
	s.Metrics[0].MinSamples = 1_000_000 // takes 16 years, and is simulated in 30 looks
	if got := DetectionOf(s); got.Found <= 0.01 || got.Found > 0.02 {
		t.Errorf("with a million requests: %+v", got)
	}
	s = Setting{Metrics: []Metric{elapsedMetric(30*time.Second, 10)}, Stable: 0.01, Rate: 2, Weight: 0.2}
	alone := DetectionOf(s)
	s.Family = Family{Compared: 8, Sequential: 8}
	if shared := DetectionOf(s); shared.Found <= alone.Found {
		t.Errorf("a metric among eight finds %+v, alone %+v", shared, alone)
	}
}

func BenchmarkDetection(b *testing.B) {
	for name, margin := range map[string]float64{"plain": 0, "margin": 0.005} {
		m := elapsedMetric(10*time.Second, 60)
		m.Compare.MaxIncrease = margin
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				DetectionOf(Setting{Metrics: []Metric{m}, Stable: 0.01, Rate: 20, Weight: 0.2})
			}
		})
	}
}

// TestDetectionOfTooManySamples checks that the simulation ends if a comparison can never have enough requests. It then finds nothing.
func TestDetectionOfTooManySamples(t *testing.T) {
	m := elapsedMetric(10*time.Second, 60)
	for _, m.MinSamples = range []int{10_000_000_000, math.MaxInt} {
		got := DetectionOf(Setting{Metrics: []Metric{m}, Stable: 0.01, Weight: 0.01, Rate: 0.01})
		compare.CheckNamed(t, "the share that is found", 0.0, got.Found)
	}
}
