package analysis

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Setting describes releases to simulate. All requests are independent.
type Setting struct {
	Metrics []Metric // comparisons of the two versions, all with the same requests
	Stable  float64  // stable's share of bad requests
	Canary  float64  // the new version's share of bad requests
	Rate    float64  // requests per second to the new version
	Weight  float64  // the new version's share of all requests, within 0..1
	Family  Family   // if zero, FamilyOf(Metrics)

	every int // intervals between looks; 0 means 1
}

// Passing returns the fewest measurements with which a metric can pass; 0 means that the metric never ends.
func Passing(m Metric) int {
	if k := m.ConsecutiveSuccessLimit; k > 0 && (m.Count == 0 || k < m.Count) {
		return k
	}
	return m.Count
}

// SettingOf returns a metric's setting without rates and shares. The release's length (0: unknown) limits the number of
// looks.
func SettingOf(m Metric, f Family, length time.Duration) Setting {
	window := map[bool]string{true: "{{release.elapsed}}", false: "{{elapsed}}"}[WindowOf(m) == WindowRelease]
	plain := Metric{Interval: m.Interval, InitialDelay: m.InitialDelay, Count: Passing(m), MinSamples: m.MinSamples,
		FailureLimit: m.FailureLimit, Compare: m.Compare, Config: map[string]any{"query": window}}
	if plain.Interval == 0 {
		plain.Interval, plain.InitialDelay = cmp.Or(m.InitialDelay, time.Second), 0
	}
	if most := int((cmp.Or(length, time.Hour) - plain.InitialDelay) / plain.Interval); plain.Count == 0 || length > 0 {
		plain.Count = max(1, min(cmp.Or(plain.Count, most), most))
	}
	return Setting{Metrics: []Metric{plain}, Family: f}
}

// Outcome is the result of simulated releases.
type Outcome struct {
	Runs     int `json:"runs"`
	Rejected int `json:"rejected"`
	// MedianRequests is the median number of requests to the new version until its rejection; 0 without rejections.
	MedianRequests int `json:"medianRequests"`
}

// Simulate judges simulated releases as the reconciler does. Equal seeds give equal outcomes.
func Simulate(s Setting, runs int, seed uint64) Outcome {
	out := Outcome{Runs: runs}
	var requests []int
	for i := range runs {
		if n, rejected := s.release(rand.New(rand.NewPCG(seed, uint64(i)))); rejected {
			requests = append(requests, n)
		}
	}
	if out.Rejected = len(requests); out.Rejected > 0 {
		slices.Sort(requests)
		out.MedianRequests = requests[len(requests)/2]
	}
	return out
}

func (s Setting) release(rng *rand.Rand) (requests int, rejected bool) {
	began := time.Unix(0, 0)
	run, family := Start("", "", s.Metrics, began), s.Family
	looks := make([]Look, len(s.Metrics))
	if family.Compared == 0 {
		family = FamilyOf(s.Metrics)
	}
	step := s.Metrics[0].Interval * time.Duration(max(1, s.every))
	last, now := began, began.Add(s.Metrics[0].InitialDelay+step)
	left := 2*s.Metrics[0].Count + 1000 // looks; the limit ends a release that never has enough requests
	for ; !run.Phase.Done() && left > 0; last, now, left = now, now.Add(step), left-1 {
		seconds := now.Sub(last).Seconds()
		for i, m := range s.Metrics {
			draw(&looks[i].canary, rng, seconds*s.Rate, s.Canary)
			draw(&looks[i].stable, rng, seconds*s.Rate*(1-s.Weight)/s.Weight, s.Stable)
			got, look := judgeCounts(m, family, run.Metrics[i], began, looks[i], now)
			others := family
			for j, p := range run.Metrics {
				if j != i {
					others.Others += p.Evidence.Value()
				}
			}
			got, evidence := Weigh(m, run.Metrics[i].Evidence, look, began, got, others)
			run = Record(run, m, got, evidence)
		}
	}
	return looks[0].canary.all, run.Phase == Failed
}

func draw(to *sample, rng *rand.Rand, mean, share float64) {
	bad := poisson(rng, mean*share)
	to.bad, to.all = to.bad+bad, to.all+bad+poisson(rng, mean*(1-share))
}

func poisson(rng *rand.Rand, mean float64) (n int) {
	if mean > 100 {
		return max(0, int(math.Round(mean+math.Sqrt(mean)*rng.NormFloat64())))
	}
	p := rng.Float64()
	for limit := math.Exp(-mean); p > limit; n++ {
		p *= rng.Float64()
	}
	return n
}
