package analysis_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/internal/compare"
)

// TestDetectionAgreesWithSimulation simulates 400 releases per row, without the shortcuts of DetectionOf. With the share Detection.Found,
// about nine of ten releases are rejected, in a median time near Detection.After. With Detection.Blind, few are.
func TestDetectionAgreesWithSimulation(t *testing.T) {
	rows := []struct {
		interval     time.Duration
		count        int
		rate, stable float64 // rate: requests per second to both versions
		weight       float64
		change       func(*analysis.Metric)
	}{
		{30 * time.Second, 10, 100, 0.01, 0.2, nil},
		{30 * time.Second, 10, 1, 0.01, 0.2, nil},
		{30 * time.Second, 20, 10, 0.01, 0.2, func(m *analysis.Metric) { m.MinSamples = 50 }},
		{10 * time.Second, 60, 10, 0.01, 0.2, nil},
		{10 * time.Second, 60, 100, 0.001, 0.05, nil},
		{time.Second, 600, 1, 0.01, 0.2, nil}, // most measurements see no request to the new version
		{time.Second, 600, 10, 0.02, 0.5, nil},
		{time.Minute, 60, 10, 0.02, 0.05, nil},
		{30 * time.Second, 20, 10, 0.01, 0.2, func(m *analysis.Metric) { m.Compare.MaxIncrease = 0.005 }},
		{30 * time.Second, 90, 10, 0.01, 0.2, func(m *analysis.Metric) { m.FailureLimit = 3 }},
		{30 * time.Second, 20, 10, 0.01, 0.2, func(m *analysis.Metric) { m.InitialDelay = 5 * time.Minute }},
	}
	if testing.Short() {
		rows = rows[:3]
	}
	for _, row := range rows {
		m := analysis.ElapsedMetric(row.interval, row.count)
		if row.change != nil {
			row.change(&m)
		}
		s := analysis.Setting{Metrics: []analysis.Metric{m}, Stable: row.stable, Rate: row.rate * row.weight, Weight: row.weight}
		detection := analysis.DetectionOf(s)
		s.Canary = detection.Found
		got := analysis.Simulate(s, 400, 1)
		part, after := float64(got.Rejected)/400, float64(got.MedianRequests)/s.Rate
		s.Canary = detection.Blind
		few := float64(analysis.Simulate(s, 400, 1).Rejected) / 400
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

// TestDetectionOfFewRequests checks that DetectionOf finds no share if the new version gets less than one request. A metric in a family of
// eight finds only a larger share than alone.
func TestDetectionOfFewRequests(t *testing.T) {
	s := analysis.Setting{Metrics: []analysis.Metric{analysis.ElapsedMetric(30*time.Second, 1)}, Stable: 0.01, Rate: 0.02, Weight: 0.2}
	if got := analysis.DetectionOf(s); got.Found != 0 || got.After != 0 || got.Blind != 1 {
		t.Errorf("with less than one request: %+v", got)
	}
	s.Metrics[0].MinSamples = 1_000_000 // a million requests take 1.6 years, but the simulation takes only 30 looks
	if got := analysis.DetectionOf(s); got.Found <= 0.01 || got.Found > 0.02 {
		t.Errorf("with a million requests: %+v", got)
	}
	s = analysis.Setting{Metrics: []analysis.Metric{analysis.ElapsedMetric(30*time.Second, 10)}, Stable: 0.01, Rate: 2, Weight: 0.2}
	alone := analysis.DetectionOf(s)
	s.Family = analysis.Family{Compared: 8, Sequential: 8}
	if shared := analysis.DetectionOf(s); shared.Found <= alone.Found {
		t.Errorf("a metric among eight finds %+v, alone %+v", shared, alone)
	}
}

func BenchmarkDetection(b *testing.B) {
	for name, margin := range map[string]float64{"plain": 0, "margin": 0.005} {
		m := analysis.ElapsedMetric(10*time.Second, 60)
		m.Compare.MaxIncrease = margin
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				analysis.DetectionOf(analysis.Setting{Metrics: []analysis.Metric{m}, Stable: 0.01, Rate: 20, Weight: 0.2})
			}
		})
	}
}

// TestDetectionOfTooManySamples checks that DetectionOf ends and finds no share if a comparison can never have enough requests.
func TestDetectionOfTooManySamples(t *testing.T) {
	m := analysis.ElapsedMetric(10*time.Second, 60)
	for _, m.MinSamples = range []int{10_000_000_000, math.MaxInt} {
		got := analysis.DetectionOf(analysis.Setting{Metrics: []analysis.Metric{m}, Stable: 0.01, Weight: 0.01, Rate: 0.01})
		compare.CheckNamed(t, "the share that is found", 0.0, got.Found)
	}
}
