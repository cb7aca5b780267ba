package analysis

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

type metricFile struct {
	Name                    string         `json:"name" needs:"name the metric"`
	Interval                time.Duration  `json:"interval" default:"0"`
	InitialDelay            time.Duration  `json:"initialDelay" default:"0"`
	Count                   whole          `json:"count"`
	SuccessCondition        string         `json:"successCondition"`
	FailureCondition        string         `json:"failureCondition"`
	FailureLimit            whole          `json:"failureLimit" min:"-1"`
	InconclusiveLimit       whole          `json:"inconclusiveLimit"`
	ConsecutiveErrorLimit   whole          `json:"consecutiveErrorLimit" default:"4"`
	ConsecutiveSuccessLimit whole          `json:"consecutiveSuccessLimit"`
	OnNoData                NoData         `json:"onNoData" oneOf:"wait pass fail"`
	MinSamples              whole          `json:"minSamples"`
	StartWhen               string         `json:"startWhen"`
	Compare                 *compareFile   `json:"compare"`
	Provider                map[string]any `json:"provider" needs:"name one: prometheus, web, job …"`
}

type compareFile struct {
	To string `json:"to" needs:"write to: stable" oneOf:"stable before" fix:"write to: stable"`
	Compare
}

// whole is a whole number. It may be a text, for example after "{{args.n}}" was filled in.
type whole int

func (w *whole) ReadValue(raw any) error {
	text, isText := raw.(string)
	if !isText {
		text = fmt.Sprint(raw)
	}
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil {
		return fmt.Errorf("%s is not a whole number", strings.TrimPrefix(rollout.Describe(raw), "the string "))
	}
	*w = whole(n)
	return nil
}

func newMetric(raw map[string]any, values Values) (*Metric, error) {
	filled, err := fill(raw, values, "")
	if err != nil {
		return nil, err
	}
	var f metricFile
	r := rollout.Reader{Hide: true}
	if r.Read("", filled, &f); r.Err != nil {
		return nil, r.Err
	}
	m := &Metric{
		Name: f.Name, Interval: f.Interval, InitialDelay: f.InitialDelay, Count: int(f.Count),
		SuccessCondition: f.SuccessCondition, FailureCondition: f.FailureCondition,
		FailureLimit: int(f.FailureLimit), InconclusiveLimit: int(f.InconclusiveLimit),
		ConsecutiveErrorLimit: int(f.ConsecutiveErrorLimit), ConsecutiveSuccessLimit: int(f.ConsecutiveSuccessLimit),
		OnNoData: f.OnNoData, MinSamples: int(f.MinSamples), StartWhen: f.StartWhen, Retention: 10,
		Secrets: values.Secrets, Pods: values.Pods}
	if f.Compare != nil {
		m.Compare = &f.Compare.Compare
		m.Compare.Before = f.Compare.To == "before"
	}
	if err := setProvider(m, f.Provider); err != nil {
		return nil, err
	}
	return m, check(m)
}

func setProvider(m *Metric, raw map[string]any) error {
	if len(raw) > 1 {
		return wrong("provider", "keep only one", "names %s", strings.Join(slices.Sorted(maps.Keys(raw)), " and "))
	}
	for kind, config := range raw {
		block, ok := config.(map[string]any)
		if !ok {
			return wrong("provider."+kind, "", "is not a mapping")
		}
		m.Provider, m.Config = kind, block
	}
	return nil
}

func wrong(field, fix, format string, args ...any) error {
	return rollout.Invalidf("", field, format, args...).WithFix("%s", fix)
}

// check refuses a metric that can never pass or end, as Argo Rollouts' ValidateMetric does.
func check(m *Metric) error {
	if err := cmp.Or(checkNumbers(m), checkCompare(m), checkPair(m), checkVersions(m)); err != nil {
		return err
	}
	if m.Count == 0 && m.Interval == 0 {
		m.Count = 1
	}
	for _, c := range []struct{ field, condition string }{
		{"successCondition", m.SuccessCondition}, {"failureCondition", m.FailureCondition}, {"startWhen", m.StartWhen},
	} {
		if err := checkCondition(c.condition); err != nil {
			return wrong(c.field, "", "%q %v", c.condition, err)
		}
	}
	return nil
}

func checkCompare(m *Metric) error {
	c := m.Compare
	switch {
	case c == nil:
		return nil
	case m.SuccessCondition != "" || m.FailureCondition != "" || m.StartWhen != "":
		return wrong("compare", "keep only one", "conflicts with a condition")
	case slices.Contains([]string{"job", "kayenta", "webhook", "graphite", "newRelic", "skywalking"}, m.Provider):
		return wrong("compare", "use another provider, or a condition",
			"needs [bad, all], and the provider %s returns no such list", m.Provider)
	case c.MaxIncrease < 0 || c.MaxIncrease >= 1:
		return wrong("compare.maxIncrease", "", "%v is not within 0..1", c.MaxIncrease)
	case c.Confidence != 0 && (c.Confidence < 0.5 || c.Confidence >= 1):
		return wrong("compare.confidence", "", "%v is not within 0.5..1", c.Confidence)
	case c.Before && m.Provider != "prometheus":
		return wrong("compare.to", "use prometheus, or a condition",
			"before needs a query of a past time, which provider %s cannot make", m.Provider)
	case c.By != "" && m.Provider != "prometheus":
		return wrong("compare.by", "use prometheus, or remove by", "conflicts with the provider %s", m.Provider)
	case c.By != "" && c.Histogram:
		return wrong("compare.by", "keep only one", "conflicts with histogram")
	case c.MaxIncrease > 0 && c.Histogram:
		return wrong("compare.maxIncrease", "keep only one", "conflicts with histogram")
	case (m.Count == 1 || m.Interval == 0) && WindowOf(*m) == WindowRelease:
		return wrong("count", "measure more often, or write {{elapsed}}",
			"is 1, but with {{release.elapsed}} the first measurement is only the baseline")
	case m.Provider == "prometheus" && m.Config["rangeQuery"] != nil:
		return wrong("provider.prometheus.rangeQuery", "remove rangeQuery", "conflicts with compare")
	case c.Histogram && m.Provider != "prometheus":
		return wrong("compare.histogram", "use prometheus, or remove histogram", "conflicts with the provider %s", m.Provider)
	case c.Histogram && WindowOf(*m) == WindowOther:
		return wrong("provider.prometheus.query", "write sum by (le) (increase(http_request_duration_seconds_bucket"+
			`{pod_template_hash="{{args.hash}}"}[{{elapsed}}s]))`, "has no {{elapsed}}, which compare.histogram needs")
	}
	return nil
}

// checkVersions refuses a comparison whose query does not depend on the version. A comparison with the version before
// the release needs no hash, because the two queries differ in time.
func checkVersions(m *Metric) error {
	for _, found := range placeholder.FindAllStringSubmatch(fmt.Sprint(m.Config), -1) {
		if m.Pods[found[1]] == "Latest" {
			return nil
		}
	}
	if m.Compare == nil || m.Compare.Before {
		return nil
	}
	return wrong("provider."+m.Provider, "use an argument that has podTemplateHashValue: Latest",
		"is the same for both versions, so compare would compare a version with itself")
}

func checkPair(m *Metric) error {
	queries, _ := m.Config["queries"].(map[string]any)
	listed, _ := m.Config["metricDataQueries"].([]any)
	names := slices.Sorted(maps.Keys(queries))
	for _, raw := range listed {
		if query, _ := raw.(map[string]any); query["returnData"] != false {
			names = append(names, fmt.Sprint(query["id"]))
		}
	}
	formula := m.Config["formula"] != nil && m.Config["formula"] != ""
	isPair := slices.Contains(names, "bad") && slices.Contains(names, "of") && len(queries) <= 2
	switch field := map[string]string{"datadog": "queries", "cloudWatch": "metricDataQueries"}[m.Provider]; {
	case field == "queries" && m.Compare == nil && isPair && !formula:
		return wrong("provider.datadog.formula", "write the result, as in bad / of", "is missing, but there are 2 queries")
	case field == "queries" && m.Compare != nil && formula:
		return wrong("provider.datadog.formula", "remove formula", "conflicts with compare")
	case field != "" && m.Compare != nil && !isPair:
		return wrong("provider."+m.Provider+"."+field, `name the queries "bad" and "of"`,
			`are not "bad" and "of", which compare needs`)
	}
	return nil
}

func checkNumbers(m *Metric) error {
	for _, n := range []struct {
		field string
		value int
	}{
		{"count", m.Count}, {"inconclusiveLimit", m.InconclusiveLimit}, {"consecutiveErrorLimit", m.ConsecutiveErrorLimit},
		{"consecutiveSuccessLimit", m.ConsecutiveSuccessLimit}, {"minSamples", m.MinSamples}} {
		if n.value < 0 {
			return wrong(n.field, "give 0 or more", "%d is negative", n.value)
		}
	}
	switch {
	case m.Count > 1 && m.Interval == 0:
		return wrong("interval", "say how long to wait between measurements", "is missing, but count is %d", m.Count)
	case m.FailureLimit < -1:
		return wrong("failureLimit", "give 0 or more", "%d is less than -1", m.FailureLimit)
	case m.FailureLimit == -1 && m.ConsecutiveSuccessLimit == 0:
		return wrong("failureLimit", "give consecutiveSuccessLimit", "is -1, which needs a consecutiveSuccessLimit")
	case m.Count > 0 && m.Count < max(0, m.FailureLimit)+m.ConsecutiveSuccessLimit:
		return wrong("count", "measure more often, or lower the limits",
			"%d is less than failureLimit and consecutiveSuccessLimit together", m.Count)
	case m.Count > 0 && m.Count < m.InconclusiveLimit:
		return wrong("count", "", "%d is less than inconclusiveLimit %d", m.Count, m.InconclusiveLimit)
	}
	return nil
}

// MetricType returns a template metric's type, for editors' schemas.
func MetricType() reflect.Type { return reflect.TypeFor[metricFile]() }
