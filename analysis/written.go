package analysis

import (
	"fmt"
	"iter"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// metricFile is a metric as it is written, after its arguments are filled in.
// Numbers may be texts, which is what {{args.n}} makes of them.
type metricFile struct {
	Name                    string         `json:"name"`
	Interval                string         `json:"interval"`
	InitialDelay            string         `json:"initialDelay"`
	Count                   any            `json:"count"`
	SuccessCondition        string         `json:"successCondition"`
	FailureCondition        string         `json:"failureCondition"`
	FailureLimit            any            `json:"failureLimit"`
	InconclusiveLimit       any            `json:"inconclusiveLimit"`
	ConsecutiveErrorLimit   any            `json:"consecutiveErrorLimit"`
	ConsecutiveSuccessLimit any            `json:"consecutiveSuccessLimit"`
	OnNoData                NoData         `json:"onNoData"`
	MinSamples              any            `json:"minSamples"`
	StartWhen               string         `json:"startWhen"`
	Compare                 *compareFile   `json:"compare"`
	Provider                map[string]any `json:"provider"`
}

type compareFile struct {
	To          string  `json:"to"` // stable
	MaxIncrease float64 `json:"maxIncrease"`
	Confidence  float64 `json:"confidence"`
}

func newMetric(raw map[string]any, values Values) (*Metric, *ProblemError) {
	filled, problem := fill(raw, values, "")
	if problem != nil {
		return nil, problem
	}
	var f metricFile
	if problem := decodeStrict(filled, &f); problem != nil {
		return nil, problem
	}
	m := &Metric{
		Name: f.Name, SuccessCondition: f.SuccessCondition, FailureCondition: f.FailureCondition,
		OnNoData: f.OnNoData, StartWhen: f.StartWhen, ConsecutiveErrorLimit: 4, Retention: 10, Secrets: values.Secrets, Pods: values.Pods,
	}
	if m.Name == "" {
		return nil, &ProblemError{Field: "name", Msg: "is missing"}
	}
	for _, d := range []struct {
		field, text string
		into        *time.Duration
	}{{"interval", f.Interval, &m.Interval}, {"initialDelay", f.InitialDelay, &m.InitialDelay}} {
		if d.text == "" {
			continue
		}
		span, err := time.ParseDuration(d.text)
		if err != nil || span < 0 {
			return nil, &ProblemError{Field: d.field, Msg: fmt.Sprintf("%q is not a duration", d.text), Fix: "write 30s, 5m or the like"}
		}
		*d.into = span
	}
	for _, n := range []struct {
		field string
		value any
		into  *int
	}{
		{"count", f.Count, &m.Count}, {"failureLimit", f.FailureLimit, &m.FailureLimit}, {"inconclusiveLimit", f.InconclusiveLimit, &m.InconclusiveLimit},
		{"consecutiveErrorLimit", f.ConsecutiveErrorLimit, &m.ConsecutiveErrorLimit}, {"consecutiveSuccessLimit", f.ConsecutiveSuccessLimit, &m.ConsecutiveSuccessLimit},
		{"minSamples", f.MinSamples, &m.MinSamples},
	} {
		if err := whole(n.value, n.into); err != nil {
			return nil, &ProblemError{Field: n.field, Msg: err.Error()}
		}
	}
	if problem := setProvider(m, f.Provider); problem != nil {
		return nil, problem
	}
	if f.Compare != nil {
		m.Compare = &Compare{MaxIncrease: f.Compare.MaxIncrease, Confidence: f.Compare.Confidence}
		if f.Compare.To != "stable" {
			return nil, &ProblemError{Field: "compare.to", Msg: fmt.Sprintf("%q is not stable", f.Compare.To), Fix: "write to: stable"}
		}
	}
	return m, check(m)
}

// provider takes the only key of a metric's provider.
func setProvider(m *Metric, raw map[string]any) *ProblemError {
	if len(raw) == 0 {
		return &ProblemError{Field: "provider", Msg: "is missing", Fix: "name one: prometheus, web, job …"}
	}
	if len(raw) > 1 {
		return &ProblemError{Field: "provider", Msg: "names " + strings.Join(slices.Sorted(maps.Keys(raw)), " and "), Fix: "keep one of them"}
	}
	for kind, config := range raw {
		block, ok := config.(map[string]any)
		if !ok && config != nil {
			return &ProblemError{Field: "provider." + kind, Msg: "is not a mapping"}
		}
		m.Provider, m.Config = kind, block
	}
	return nil
}

// whole reads a whole number, also out of a text. Nothing changes nothing.
func whole(v any, into *int) error {
	switch n := v.(type) {
	case nil:
	case int64:
		*into = int(n)
	case float64:
		if n != float64(int(n)) {
			return fmt.Errorf("%v is not a whole number", n)
		}
		*into = int(n)
	case string:
		i, err := strconv.Atoi(strings.TrimSpace(n))
		if err != nil {
			return fmt.Errorf("%q is not a whole number", n)
		}
		*into = i
	default:
		return fmt.Errorf("%v is not a whole number", v)
	}
	return nil
}

// check refuses what could never pass or never end, as Argo Rollouts does
// (utils/analysis, ValidateMetric).
func check(m *Metric) *ProblemError {
	switch {
	case m.Count < 0:
		return negative("count", m.Count)
	case m.Count > 1 && m.Interval == 0:
		return &ProblemError{Field: "interval", Msg: fmt.Sprintf("is missing, and count is %d", m.Count), Fix: "say how long to wait between measurements"}
	case m.FailureLimit < -1:
		return &ProblemError{Field: "failureLimit", Msg: fmt.Sprintf("%d is less than -1", m.FailureLimit)}
	case m.FailureLimit == -1 && m.ConsecutiveSuccessLimit <= 0:
		return &ProblemError{Field: "failureLimit", Msg: "is -1, so nothing decides", Fix: "give consecutiveSuccessLimit"}
	case m.InconclusiveLimit < 0:
		return negative("inconclusiveLimit", m.InconclusiveLimit)
	case m.ConsecutiveErrorLimit < 0:
		return negative("consecutiveErrorLimit", m.ConsecutiveErrorLimit)
	case m.ConsecutiveSuccessLimit < 0:
		return negative("consecutiveSuccessLimit", m.ConsecutiveSuccessLimit)
	case m.MinSamples < 0:
		return negative("minSamples", m.MinSamples)
	case m.Count > 0 && m.Count < max(0, m.FailureLimit)+m.ConsecutiveSuccessLimit:
		return &ProblemError{Field: "count", Msg: fmt.Sprintf("%d is less than failureLimit and consecutiveSuccessLimit together", m.Count), Fix: "measure more often, or lower the limits"}
	case m.Count > 0 && m.Count < m.InconclusiveLimit:
		return &ProblemError{Field: "count", Msg: fmt.Sprintf("%d is less than inconclusiveLimit %d", m.Count, m.InconclusiveLimit)}
	case !slices.Contains([]NoData{NoDataError, NoDataWait, NoDataPass, NoDataFail}, m.OnNoData):
		return &ProblemError{Field: "onNoData", Msg: fmt.Sprintf("%q is not one of wait, pass, fail", m.OnNoData)}
	case m.Compare != nil && (m.SuccessCondition != "" || m.FailureCondition != ""):
		return &ProblemError{Field: "compare", Msg: "is given, and a condition too", Fix: "keep one of them"}
	case m.Compare != nil && (m.Compare.MaxIncrease < 0 || m.Compare.MaxIncrease >= 1):
		return &ProblemError{Field: "compare.maxIncrease", Msg: fmt.Sprintf("%v is not within 0..1", m.Compare.MaxIncrease)}
	case m.Compare != nil && m.Compare.Confidence != 0 && (m.Compare.Confidence < 0.5 || m.Compare.Confidence >= 1):
		return &ProblemError{Field: "compare.confidence", Msg: fmt.Sprintf("%v is not within 0.5..1", m.Compare.Confidence)}
	}
	if m.Count == 0 && m.Interval == 0 {
		m.Count = 1
	}
	for field, condition := range ordered("successCondition", m.SuccessCondition, "failureCondition", m.FailureCondition, "startWhen", m.StartWhen) {
		if err := CheckCondition(condition); err != nil {
			return &ProblemError{Field: field, Msg: fmt.Sprintf("%q %v", condition, err)}
		}
	}
	return nil
}

func negative(field string, n int) *ProblemError {
	return &ProblemError{Field: field, Msg: fmt.Sprintf("%d is negative", n), Fix: "give 0 or more"}
}

// ordered are fields and their texts, always in the same order, so that the same
// mistake has the same message.
func ordered(pairs ...string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for i := 0; i+1 < len(pairs); i += 2 {
			if !yield(pairs[i], pairs[i+1]) {
				return
			}
		}
	}
}

// MetricType is the form of a metric in a template, for the schemas that editors
// check documents by.
func MetricType() reflect.Type { return reflect.TypeFor[metricFile]() }
