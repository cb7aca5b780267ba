package analysis

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	kjson "sigs.k8s.io/json" // encoding/json takes NAME for name
)

// Template is an AnalysisTemplate or a ClusterAnalysisTemplate with its
// arguments not yet filled in.
type Template struct {
	Name    string
	Cluster bool // a ClusterAnalysisTemplate
	Spec    TemplateSpec
}

// TemplateSpec has the fields of Argo Rollouts' AnalysisTemplate. Metrics stay as
// they are written until their arguments are known: a count may be {{args.n}}.
type TemplateSpec struct {
	Args                 []Arg            `json:"args,omitempty"`
	Metrics              []map[string]any `json:"metrics,omitempty"`
	DryRun               []DryRun         `json:"dryRun,omitempty"`
	MeasurementRetention []Retention      `json:"measurementRetention,omitempty"`
	Templates            []TemplateRef    `json:"templates,omitempty"`
}

// Arg is one argument of a template, or the value that a Rollout gives it.
type Arg struct {
	Name      string     `json:"name"`
	Value     *string    `json:"value,omitempty"`
	ValueFrom *ValueFrom `json:"valueFrom,omitempty"`
}

// ValueFrom says where an argument's value comes from. The first is for templates
// and Rollouts, the others are for Rollouts.
type ValueFrom struct {
	SecretKeyRef *struct {
		Name string `json:"name"`
		Key  string `json:"key"`
	} `json:"secretKeyRef,omitempty"`
	PodTemplateHashValue string `json:"podTemplateHashValue,omitempty"` // Stable or Latest
	FieldRef             *struct {
		FieldPath string `json:"fieldPath"`
	} `json:"fieldRef,omitempty"`
}

// DryRun names metrics, by a regular expression, that decide nothing.
type DryRun struct {
	MetricName string `json:"metricName"`
}

// Retention says how many measurements of the named metrics are kept.
type Retention struct {
	MetricName string `json:"metricName"`
	Limit      int    `json:"limit"`
}

// TemplateRef names a template.
type TemplateRef struct {
	TemplateName string `json:"templateName"`
	ClusterScope bool   `json:"clusterScope,omitempty"`
}

// ProblemError says what is wrong with a template or with its use.
type ProblemError struct {
	Template string // "" for the Rollout document
	Field    string // in the template's or the Rollout's analysis
	Msg      string
	Fix      string
}

// Error returns "template: field: message; fix".
func (e *ProblemError) Error() string {
	parts := slices.DeleteFunc([]string{e.Template, e.Field, e.Msg}, func(s string) bool { return s == "" })
	text := strings.Join(parts, ": ")
	if e.Fix != "" {
		text += "; " + e.Fix
	}
	return text
}

// ParseTemplate reads the spec of a template strictly.
func ParseTemplate(name string, cluster bool, spec any) (*Template, error) {
	t := &Template{Name: name, Cluster: cluster}
	if err := decodeStrict(spec, &t.Spec); err != nil {
		err.Template, err.Field = name, strings.TrimSuffix("spec."+err.Field, ".")
		return nil, err
	}
	if len(t.Spec.Metrics) == 0 && len(t.Spec.Templates) == 0 {
		return nil, &ProblemError{Template: name, Field: "spec.metrics", Msg: "is empty", Fix: "give at least one metric, or templates"}
	}
	for i, d := range t.Spec.DryRun {
		if _, err := regexp.Compile(d.MetricName); err != nil || d.MetricName == "" {
			return nil, &ProblemError{Template: name, Field: fmt.Sprintf("spec.dryRun[%d].metricName", i), Msg: fmt.Sprintf("%q is not a regular expression", d.MetricName), Fix: "for all metrics write .*"}
		}
	}
	for i, r := range t.Spec.MeasurementRetention {
		if _, err := regexp.Compile(r.MetricName); err != nil || r.MetricName == "" || r.Limit < 1 {
			return nil, &ProblemError{Template: name, Field: fmt.Sprintf("spec.measurementRetention[%d]", i), Msg: fmt.Sprintf("%q and %d are not a regular expression and a number of measurements", r.MetricName, r.Limit)}
		}
	}
	for i, a := range t.Spec.Args {
		if a.Name == "" {
			return nil, &ProblemError{Template: name, Field: fmt.Sprintf("spec.args[%d].name", i), Msg: "is missing"}
		}
		if a.ValueFrom != nil && a.ValueFrom.SecretKeyRef == nil {
			return nil, &ProblemError{Template: name, Field: fmt.Sprintf("spec.args[%d].valueFrom", i), Msg: "is not a secretKeyRef", Fix: "a template takes no other; give the value in the Rollout"}
		}
	}
	return t, nil
}

func decodeStrict(from, into any) *ProblemError {
	raw, err := json.Marshal(from)
	if err != nil {
		return &ProblemError{Msg: err.Error()}
	}
	strict, err := kjson.UnmarshalStrict(raw, into)
	if err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) {
			return &ProblemError{Field: wrong.Field, Msg: fmt.Sprintf("is a %s where another kind of value belongs", wrong.Value)}
		}
		return &ProblemError{Msg: err.Error()}
	}
	if len(strict) > 0 {
		var unknown kjson.FieldError
		if errors.As(strict[0], &unknown) {
			return &ProblemError{Field: unknown.FieldPath(), Msg: "is not a known field"}
		}
		return &ProblemError{Msg: strict[0].Error()}
	}
	return nil
}

// Values are the arguments that a use of templates gives: plain ones, and those
// that are looked up when something is measured.
type Values struct {
	Plain   map[string]string
	Secrets map[string]SecretRef
	Pods    map[string]string // Latest or Stable: a version's pod-template-hash
}

// Instantiate puts templates together, those that they name included, and fills
// in the arguments. Those out of Secrets stay {{args.name}} in Config, so that
// they are in no record and in no message.
func Instantiate(find func(TemplateRef) *Template, refs []TemplateRef, given Values) ([]Metric, error) {
	var all []*Template
	if err := collect(find, refs, nil, &all); err != nil {
		return nil, err
	}
	values, err := arguments(all, given)
	if err != nil {
		return nil, err
	}
	var metrics []Metric
	for _, t := range all {
		for i, raw := range t.Spec.Metrics {
			field := fmt.Sprintf("spec.metrics[%d]", i)
			m, err := newMetric(raw, values)
			if err != nil {
				err.Template, err.Field = t.Name, strings.TrimSuffix(field+"."+err.Field, ".")
				return nil, err
			}
			if slices.ContainsFunc(metrics, func(o Metric) bool { return o.Name == m.Name }) {
				return nil, &ProblemError{Template: t.Name, Field: field + ".name", Msg: fmt.Sprintf("%q is the name of two metrics", m.Name), Fix: "rename one"}
			}
			metrics = append(metrics, *m)
		}
	}
	for _, t := range all {
		for i := range metrics {
			ApplyRules(t.Spec, &metrics[i])
		}
	}
	if len(metrics) == 0 {
		return nil, &ProblemError{Msg: "the templates have no metric"}
	}
	return metrics, nil
}

// ApplyRules makes a metric a dry run and says how many of its measurements are
// kept, where the rules name it.
func ApplyRules(rules TemplateSpec, m *Metric) {
	for _, d := range rules.DryRun {
		if matched, err := regexp.MatchString(d.MetricName, m.Name); err == nil && matched {
			m.DryRun = true
		}
	}
	for _, r := range rules.MeasurementRetention {
		if matched, err := regexp.MatchString(r.MetricName, m.Name); err == nil && matched {
			m.Retention = max(m.Retention, r.Limit)
		}
	}
}

// collect lists templates, each once, and refuses those that name each other.
func collect(find func(TemplateRef) *Template, refs []TemplateRef, path []string, all *[]*Template) error {
	for _, ref := range refs {
		t := find(ref)
		if t == nil {
			kind := "AnalysisTemplate"
			if ref.ClusterScope {
				kind = "ClusterAnalysisTemplate"
			}
			return &ProblemError{Template: last(path), Field: "templates", Msg: fmt.Sprintf("%s %s is not in this app", kind, ref.TemplateName), Fix: "add it to the kustomization"}
		}
		name := t.Name
		if t.Cluster {
			name = "cluster/" + name
		}
		if slices.Contains(path, name) {
			return &ProblemError{Template: t.Name, Field: "spec.templates", Msg: "names itself: " + strings.Join(append(path, name), " -> ")}
		}
		if !slices.Contains(*all, t) {
			*all = append(*all, t)
		}
		if err := collect(find, t.Spec.Templates, append(slices.Clone(path), name), all); err != nil {
			return err
		}
	}
	return nil
}

func last(path []string) string {
	if len(path) == 0 {
		return ""
	}
	return path[len(path)-1]
}

// arguments merges what templates declare with what is given.
func arguments(all []*Template, given Values) (Values, error) {
	out := Values{Plain: map[string]string{}, Secrets: map[string]SecretRef{}, Pods: map[string]string{}}
	declared := map[string]Arg{}
	for _, t := range all {
		for i, a := range t.Spec.Args {
			was, twice := declared[a.Name]
			if twice && was.Value != nil && a.Value != nil && *was.Value != *a.Value {
				return out, &ProblemError{Template: t.Name, Field: fmt.Sprintf("spec.args[%d].value", i), Msg: fmt.Sprintf("%q is another default of %s than %q", *a.Value, a.Name, *was.Value), Fix: "give the value in the Rollout"}
			}
			if !twice || was.Value == nil && was.ValueFrom == nil {
				declared[a.Name] = a
			}
		}
	}
	for name := range declared {
		a := declared[name]
		if v, ok := given.Plain[name]; ok {
			out.Plain[name] = v
			continue
		}
		if s, ok := given.Secrets[name]; ok {
			out.Secrets[name] = s
			continue
		}
		if which, ok := given.Pods[name]; ok {
			out.Pods[name] = which
			continue
		}
		switch {
		case a.Value != nil:
			out.Plain[name] = *a.Value
		case a.ValueFrom != nil && a.ValueFrom.SecretKeyRef != nil:
			out.Secrets[name] = SecretRef{Name: a.ValueFrom.SecretKeyRef.Name, Key: a.ValueFrom.SecretKeyRef.Key}
		default:
			return out, &ProblemError{Field: "args", Msg: fmt.Sprintf("the argument %s has no value", name), Fix: "give it: - name: " + name}
		}
	}
	return out, nil
}

var placeholder = regexp.MustCompile(`\{\{\s*args\.([A-Za-z0-9_.-]+)\s*\}\}`)

// fill replaces {{args.name}} in every text of a value. What is out of a Secret
// stays; what is unknown is an error.
func fill(v any, values Values, field string) (any, *ProblemError) {
	switch v := v.(type) {
	case string:
		var unknown string
		out := placeholder.ReplaceAllStringFunc(v, func(found string) string {
			name := placeholder.FindStringSubmatch(found)[1]
			if text, ok := values.Plain[name]; ok {
				return text
			}
			_, secret := values.Secrets[name]
			if _, pods := values.Pods[name]; !secret && !pods {
				unknown = name
			}
			return found
		})
		if unknown != "" {
			return nil, &ProblemError{Field: field, Msg: fmt.Sprintf("{{args.%s}} is not an argument of the template", unknown), Fix: "list it in spec.args"}
		}
		return out, nil
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			filled, err := fill(e, values, fmt.Sprintf("%s[%d]", field, i))
			if err != nil {
				return nil, err
			}
			out[i] = filled
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, e := range v {
			filled, err := fill(e, values, strings.TrimPrefix(field+"."+key, "."))
			if err != nil {
				return nil, err
			}
			out[key] = filled
		}
		return out, nil
	default:
		return v, nil
	}
}

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
	if len(raw) != 1 {
		return &ProblemError{Field: "provider", Msg: fmt.Sprintf("names %d providers", len(raw)), Fix: "name one"}
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
		return &ProblemError{Field: "count", Msg: fmt.Sprintf("%d is negative", m.Count)}
	case m.Count > 1 && m.Interval == 0:
		return &ProblemError{Field: "interval", Msg: fmt.Sprintf("is missing, and count is %d", m.Count), Fix: "say how long to wait between measurements"}
	case m.FailureLimit < -1:
		return &ProblemError{Field: "failureLimit", Msg: fmt.Sprintf("%d is less than -1", m.FailureLimit)}
	case m.FailureLimit == -1 && m.ConsecutiveSuccessLimit <= 0:
		return &ProblemError{Field: "failureLimit", Msg: "is -1, so nothing decides", Fix: "give consecutiveSuccessLimit"}
	case m.InconclusiveLimit < 0, m.ConsecutiveErrorLimit < 0, m.ConsecutiveSuccessLimit < 0, m.MinSamples < 0:
		return &ProblemError{Msg: "has a negative limit"}
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
	for field, condition := range map[string]string{"successCondition": m.SuccessCondition, "failureCondition": m.FailureCondition, "startWhen": m.StartWhen} {
		if err := CheckCondition(condition); err != nil {
			return &ProblemError{Field: field, Msg: fmt.Sprintf("%q %v", condition, err)}
		}
	}
	return nil
}
