package analysis

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Histogram has cumulative buckets in ascending order. The last bucket, +Inf, counts all requests.
type Histogram []Bucket

// Bucket counts the requests that took at most Bound.
type Bucket struct{ Bound, Count float64 }

// narrow limits interpolation to buckets with upper bound ≤ narrow × lower bound. Native histograms of schema 3 have
// the factor 2^(1/8). In wider buckets, the interpolation's error could look like a slower version.
const narrow = 1.091

func histogramOf(v any) (Histogram, error) {
	h, is := v.(Histogram)
	if !is && !isEmpty(v) {
		return nil, fmt.Errorf("%s is not a histogram", short(v))
	}
	h = slices.Clone(h)
	before := Bucket{Bound: math.Inf(-1)}
	for i, b := range h {
		switch {
		case math.IsNaN(b.Count):
			return nil, nil
		case b.Count < 0 || b.Count > 1e12:
			return nil, fmt.Errorf("%v is not a number of requests (le=%v)", b.Count, b.Bound)
		case !(b.Bound > before.Bound) || b.Count < before.Count*(1-1e-6): // Prometheus rounds
			return nil, fmt.Errorf("le=%v has count %v after le=%v with count %v: sum by (le)", b.Bound, b.Count,
				before.Bound, before.Count)
		}
		h[i].Count = max(b.Count, before.Count)
		before = h[i]
	}
	if len(h) > 0 && !math.IsInf(before.Bound, 1) {
		return nil, errors.New(`the bucket le="+Inf" is missing: the query must return all buckets`)
	}
	return h, nil
}

// bounds returns the bucket bounds nearest to the percentiles 50, 90 and 99. It skips a bound that all requests exceed,
// because no version can be worse at this bound.
func bounds(h Histogram) (all []float64) {
	for _, quantile := range []float64{0.5, 0.9, 0.99} {
		nearest, least := math.Inf(1), math.Inf(1)
		for _, b := range h {
			off := math.Abs(b.Count/h[len(h)-1].Count - quantile)
			if b.Count > 0 && b.Bound != 0 && off < least && !slices.Contains(all, b.Bound) && !math.IsInf(b.Bound, 1) {
				nearest, least = b.Bound, off
			}
		}
		if !math.IsInf(nearest, 1) {
			all = append(all, nearest)
		}
	}
	slices.Sort(all)
	return all
}

func (h Histogram) all() int {
	if len(h) == 0 {
		return 0
	}
	return int(math.Round(h[len(h)-1].Count))
}

// slower counts the requests above a bound (rounded down) and all requests (rounded to nearest). In a narrow bucket, it
// interpolates linearly. If the bound is inside a wider bucket with requests, ok is false.
func (h Histogram) slower(bound float64) (bad, all int, ok bool) {
	i, found := slices.BinarySearchFunc(h, bound, func(b Bucket, at float64) int { return cmp.Compare(b.Bound, at) })
	if i == len(h) {
		return 0, 0, false
	}
	low, high := Bucket{Bound: math.Inf(-1)}, h[i]
	if i > 0 {
		low = h[i-1]
	}
	within := high.Count
	if !found && high.Count > low.Count {
		if low.Bound <= 0 || high.Bound > narrow*low.Bound {
			return 0, 0, false
		}
		within = low.Count + (high.Count-low.Count)*(bound-low.Bound)/(high.Bound-low.Bound)
	}
	last := h[len(h)-1].Count
	all = int(math.Round(last))
	return min(int(last-within), all), all, true
}
