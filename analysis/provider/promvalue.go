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

// promValue parses a response of Prometheus or Loki. If c is not nil, the kind of comparison determines how series are
// read. Values may be NaN or infinite.
func promValue(from string, body []byte, c *analysis.Compare) (value any, warnings []string, err error) {
	var answered struct {
		Status    string   `json:"status"`
		ErrorType string   `json:"errorType"`
		Error     string   `json:"error"`
		Warnings  []string `json:"warnings"`
		Data      struct {
			Type   string          `json:"resultType"`
			Result json.RawMessage `json:"result"`
		} `json:"data"`
	}
	if err := call.Decode(from, body, &answered); err != nil {
		return nil, nil, err
	}
	if answered.Status != "success" {
		return nil, nil, refusal(from, answered.Error)
	}
	switch answered.Data.Type {
	case "scalar":
		var sample promSample
		err := call.Decode(from, answered.Data.Result, &sample)
		return float64(sample), answered.Warnings, err
	case "vector", "matrix":
		read := promSeries
		switch {
		case c == nil:
		case c.Histogram:
			read = promHistogram
		default:
			read = promPair(c.By)
		}
		values, err := read(from, answered.Data.Result)
		return values, answered.Warnings, err
	case "streams":
		return nil, nil, errors.New("the query returns log lines; query a number, as in sum(count_over_time(…[5m]))")
	case "string":
		return nil, nil, errors.New("the query's result is a text; ask for a number")
	}
	return nil, nil, fmt.Errorf("the answer of %s has results of the unknown type %q",
		from, rollout.Cut(answered.Data.Type, 20))
}

type promSeriesOf struct {
	Metric     map[string]string `json:"metric"`
	Value      *promSample       `json:"value"`
	Values     []promSample      `json:"values"`
	Histogram  json.RawMessage   `json:"histogram"`
	Histograms json.RawMessage   `json:"histograms"`
}

// promPair returns a function that reads [bad, all] from series with the labels n="bad" and n="of". If a label is
// given, bad and all count its values that have a series above 0. If no label is given and no series has n="bad" or
// n="of", the function returns all values.
func promPair(by string) func(string, json.RawMessage) (any, error) {
	return func(from string, raw json.RawMessage) (any, error) {
		var series []promSeriesOf
		err := call.Decode(from, raw, &series)
		named, bad, all, labelled := map[string]float64{}, map[string]bool{}, map[string]bool{}, false
		isNamed := func(one promSeriesOf) bool { return one.Metric["n"] == "bad" || one.Metric["n"] == "of" }
		if by == "" && !slices.ContainsFunc(series, isNamed) {
			return promSeries(from, raw)
		}
		for _, one := range series {
			name, value := one.Metric["n"], one.Metric[by]
			switch _, twice := named[name]; {
			case !isNamed(one) || one.Value == nil:
				return nil, errors.New(`the query's result has a series without n="bad" or n="of"; add the label by label_replace`)
			case twice && by == "":
				return nil, fmt.Errorf("the query's result has several series with n=%q: write sum(…)", name)
			}
			named[name], labelled = float64(*one.Value), labelled || value != ""
			if value == "" || !(*one.Value > 0) { // NaN is not above 0
				continue
			}
			if all[value] = true; name == "bad" {
				bad[value] = true
			}
		}
		_, total := named["of"]
		switch {
		case err != nil || len(series) == 0:
			return []any{}, err
		case by == "" || !total:
			return pairOf(named), nil
		case !labelled:
			return nil, fmt.Errorf("the query's result has no label %s: keep it, as in sum by (%s) (increase(…))", by, by)
		}
		return []any{float64(len(bad)), float64(len(all))}, nil
	}
}

// pairOf returns [bad, all]. A missing "bad" means 0, because a counter at zero has no series. A missing "of" means no
// requests.
func pairOf(named map[string]float64) []any {
	if all, is := named["of"]; is {
		return []any{named["bad"], all}
	}
	return []any{named["bad"]}
}

func promSeries(from string, raw json.RawMessage) (any, error) {
	var series []promSeriesOf
	if err := call.Decode(from, raw, &series); err != nil {
		return nil, err
	}
	values := []any{}
	for _, one := range series {
		if one.Histogram != nil || one.Histograms != nil {
			return nil, errors.New("the query's result has histograms; ask for a number, as in histogram_quantile(0.99, …)")
		}
		if one.Value != nil {
			values = append(values, float64(*one.Value))
		}
		values = append(values, rollout.Mapped(one.Values, func(v promSample) any { return float64(v) })...)
	}
	return values, nil
}

// promHistogram returns the buckets of one native histogram or of series with the label le. It refuses series with
// other labels, because the query must sum these series.
func promHistogram(from string, raw json.RawMessage) (any, error) {
	var series []promSeriesOf
	if err := call.Decode(from, raw, &series); err != nil || len(series) == 0 {
		return nil, err
	}
	var h analysis.Histogram
	for _, one := range series {
		bound, err := strconv.ParseFloat(one.Metric["le"], 64)
		delete(one.Metric, "le")
		switch {
		case len(one.Metric) > 0 || one.Histogram != nil && len(series) > 1:
			return nil, errors.New("the query returns several series: sum by (le)")
		case one.Histogram != nil:
			return promNative(from, one.Histogram)
		case err != nil || one.Value == nil:
			return nil, errors.New("the query returns no buckets: keep the label le, as in sum by (le) (increase(…))")
		}
		h = append(h, analysis.Bucket{Bound: bound, Count: float64(*one.Value)})
	}
	slices.SortFunc(h, func(a, b analysis.Bucket) int { return cmp.Compare(a.Bound, b.Bound) })
	return h, nil
}

// promNative parses a native histogram: [1700000000, {"count": "5", "buckets": [[0, "1", "2", "5"]]}]. A bucket has a
// boundary rule, a lower bound, an upper bound, and a positive number of requests.
func promNative(from string, raw json.RawMessage) (any, error) {
	var sample [2]json.RawMessage
	var found struct {
		Count   string   `json:"count"`
		Buckets [][4]any `json:"buckets"`
	}
	err := call.Decode(from, raw, &sample)
	err = cmp.Or(err, call.Decode(from, sample[1], &found))
	number := func(v any) float64 {
		f, errNumber := strconv.ParseFloat(fmt.Sprint(v), 64)
		err = cmp.Or(err, errNumber)
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

// promSample is the value of a sample, such as [1700000000.1, "0.95"].
type promSample float64

func (p *promSample) UnmarshalJSON(data []byte) error {
	var pair []any
	if err := json.Unmarshal(data, &pair); err != nil {
		return err
	}
	if len(pair) != 2 {
		return errors.New("a sample is not a pair")
	}
	text, ok := pair[1].(string)
	if !ok {
		return errors.New("a sample's value is not a string")
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return errors.New("a sample's value is not a number")
	}
	*p = promSample(f)
	return nil
}
