package provider

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/call"
	"gitrollout.dev/gitrollout/rollout"
)

// promHistogram returns an instant query's buckets: one series for each le, or one native histogram. Without series, it
// returns nil. It refuses other labels, because a version with more pods would have several series.
func promHistogram(from string, raw json.RawMessage) (any, error) {
	var series []promSeriesOf
	if err := call.Decode(from, raw, &series); err != nil || len(series) == 0 {
		return nil, err
	}
	var h analysis.Histogram
	for _, one := range series {
		le, isBucket := one.Metric["le"]
		delete(one.Metric, "le")
		switch {
		case len(one.Metric) > 0 || one.Histogram != nil && len(series) > 1:
			return nil, errors.New("the query returns several series: sum by (le)")
		case one.Histogram != nil:
			return promNative(from, one.Histogram)
		case !isBucket || one.Value == nil:
			return nil, errors.New("the query returns no buckets: keep the label le, as in sum by (le) (increase(…))")
		}
		bound, err := strconv.ParseFloat(le, 64)
		if err != nil {
			return nil, fmt.Errorf("le=%q is not a number", rollout.Cut(le, 20))
		}
		h = append(h, analysis.Bucket{Bound: bound, Count: float64(*one.Value)})
	}
	slices.SortFunc(h, func(a, b analysis.Bucket) int { return cmp.Compare(a.Bound, b.Bound) })
	return h, nil
}

// promNative parses a native histogram. The JSON form is [1700000000.1, {"count": "5", "buckets": [[0, "1", "2", "5"]]}]
// with a rule, the lower bound, the upper bound and the bucket's requests. Buckets without requests are left out.
func promNative(from string, raw json.RawMessage) (any, error) {
	var sample [2]json.RawMessage
	var found struct {
		Count   string   `json:"count"`
		Buckets [][4]any `json:"buckets"`
	}
	err := call.Decode(from, raw, &sample)
	if err == nil {
		err = call.Decode(from, sample[1], &found)
	}
	number := func(v any) float64 {
		f, errNumber := strconv.ParseFloat(fmt.Sprint(v), 64)
		if errNumber != nil && err == nil {
			err = fmt.Errorf("the answer of %s differs from its documentation: a bucket has a text that is no number", from)
		}
		return f
	}
	var h analysis.Histogram
	last := analysis.Bucket{Bound: math.Inf(-1)}
	add := func(bound, count float64) {
		if bound > last.Bound {
			last = analysis.Bucket{Bound: bound, Count: count}
			h = append(h, last)
		}
	}
	for _, b := range found.Buckets {
		add(number(b[1]), last.Count)
		add(number(b[2]), last.Count+number(b[3]))
	}
	add(math.Inf(1), number(found.Count))
	return h, err
}
