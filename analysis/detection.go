package analysis

import (
	"math"
	"math/rand/v2"
	"time"
)

// Detection is the smallest difference between versions that a comparison detects. Shares are within 0..1.
type Detection struct {
	Found float64       // smallest share of bad requests at which at least 90 % of releases are rejected; 0: none
	After time.Duration // median time until a release with the share Found is rejected
	Blind float64       // largest share of bad requests at which fewer than 10 % of releases are rejected
}

// With these numbers, a Detection takes 0.1 s of CPU time, or 0.2 s with maxIncrease.
const (
	detectionRuns  = 100 // simulated releases for each share
	detectionLooks = 30
)

// DetectionOf simulates releases with the setting's first metric, which needs Interval and Count. DetectionOf ignores
// s.Canary, and is deterministic. For a histogram, a request is bad if it exceeds the bound near stable's 99th
// percentile.
func DetectionOf(s Setting) (found Detection) {
	s = s.coarse()
	least := s.Stable + s.Metrics[0].Compare.MaxIncrease
	canary := func(octaves float64) float64 { return least + max(0, 1-least)*math.Exp2(-octaves) }
	search := func(low, high, part float64) float64 {
		for high-low > 0.04 { // 3 % of an increase
			if middle := (low + high) / 2; s.rejects(canary(middle), part) {
				low = middle
			} else {
				high = middle
			}
		}
		return low
	}
	low := 0.0
	if s.rejects(1, 0.9) {
		low = search(0, 20, 0.9)
		found.Found, s.Canary = canary(low), canary(low)
		requests := Simulate(s, detectionRuns, 0).MedianRequests
		found.After = time.Duration(float64(requests) / s.Rate * float64(time.Second))
	}
	found.Blind = canary(search(low, low+4, 0.1))
	return found
}

// coarse replaces several looks by one look with all their requests, so that simulations are fast. In a release, at
// most detectionLooks looks have enough requests (MinSamples). At most about as many earlier looks have too few.
func (s Setting) coarse() Setting {
	m := s.Metrics[0]
	requests := s.Rate * min(1, (1-s.Weight)/s.Weight) * m.Interval.Seconds()
	s.every = max(1, (m.Count+detectionLooks-1)/detectionLooks, int(float64(max(1, m.MinSamples))/requests/detectionLooks))
	m.Count, m.Retention = max(1, m.Count/s.every), 1
	m.FailureLimit /= s.every
	if m.Compare.Histogram { // only one of three bounds is simulated; histograms have no exact test
		s.Family = Family{Compared: math.MaxInt32, Sequential: 3 * max(1, s.Family.Sequential)}
	}
	s.Metrics = []Metric{m}
	return s
}

func (s Setting) rejects(share, part float64) bool {
	s.Canary = share
	most := detectionRuns - int(math.Ceil(part*detectionRuns))
	for i := range uint64(detectionRuns) {
		if _, rejected := s.release(rand.New(rand.NewPCG(0, i))); !rejected {
			most--
		}
		if most < 0 {
			return false
		}
	}
	return true
}
