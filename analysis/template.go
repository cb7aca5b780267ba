package analysis

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// Template is an analysis template whose arguments are not filled in yet.
type Template struct {
	Ref  rollout.Ref
	Spec TemplateSpec
}

// IsCluster reports whether all namespaces share the template (ClusterAnalysisTemplate).
func (t *Template) IsCluster() bool { return t.Ref.Kind == "ClusterAnalysisTemplate" }

// TemplateSpec is a template's spec. Metrics stay unparsed, because a number may be a placeholder ("{{args.n}}").
type TemplateSpec struct {
	_       any              `some:"give at least one metric, or templates"`
	Args    []Arg            `json:"args"`
	Metrics []map[string]any `json:"metrics"`
	Rules
	Templates []TemplateRef `json:"templates"`
}

// Rules selects metrics by name.
type Rules struct {
	DryRun               []DryRun    `json:"dryRun"`
	MeasurementRetention []Retention `json:"measurementRetention"`
}

// Arg is an argument: a value, or a reference to a Secret's key or a Rollout's field.
type Arg struct {
	Name      string  `json:"name" needs:"name the argument"`
	Value     *string `json:"value"`
	ValueFrom *struct {
		SecretKeyRef *SecretRef `json:"secretKeyRef"`
		FieldRef     *struct {
			FieldPath string `json:"fieldPath" needs:"name a field of the Rollout"`
		} `json:"fieldRef"`
		_ any `field:"podTemplateHashValue" refused:"give the value in the Rollout"`
		_ any `one:"secretKeyRef fieldRef" none:"a template takes no other; give the value in the Rollout"`
	} `json:"valueFrom"`
}

// DryRun selects metrics by a regular expression. These metrics fail no release.
type DryRun struct {
	MetricName string `json:"metricName" needs:"for all metrics write .*"`
}

// Retention sets how many measurements are kept.
type Retention struct {
	MetricName string `json:"metricName" needs:"for all metrics write .*"`
	Limit      int    `json:"limit" min:"1" needs:"give 1 or more" fix:"give 1 or more"`
}

// TemplateRef refers to a template.
type TemplateRef struct {
	TemplateName string `json:"templateName" needs:"name a template"`
	ClusterScope bool   `json:"clusterScope"`
}

// ParseTemplate parses a spec strictly, and returns InvalidErrors.
func ParseTemplate(ref rollout.Ref, spec any) (*Template, error) {
	t := &Template{Ref: ref}
	r := rollout.Reader{Hide: true}
	if r.Read("spec", spec, &t.Spec); r.Err != nil {
		r.Err.About = ref
		return nil, r.Err
	}
	if len(t.Spec.Metrics) == 0 && len(t.Spec.Templates) == 0 {
		return nil, below(wrong("metrics", "give at least one metric, or templates", "is empty"), ref, "spec")
	}
	for i, a := range t.Spec.Args {
		if a.Value != nil && a.ValueFrom != nil {
			err := wrong(fmt.Sprintf("args[%d].value", i), "keep only one", "conflicts with valueFrom")
			return nil, below(err, ref, "spec")
		}
	}
	return t, nil
}

// Values holds arguments. The values of Secrets and Pods are known only at a measurement.
type Values struct {
	Plain   map[string]string
	Secrets map[string]SecretRef
	Pods    map[string]string // Latest, Stable, or a text with an experiment's variables
	Field   func(path string) (text string, exists bool)
}

// Instantiate fills in all arguments except values of Secrets and pods. Values of Secrets must never be in Git. A
// non-nil check validates provider configurations.
func Instantiate(find func(TemplateRef) *Template, refs []TemplateRef, given Values,
	check func(kind string, config map[string]any) error) ([]Metric, error) {
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
			if err == nil && check != nil {
				err = check(m.Provider, m.Config)
			}
			if err != nil {
				return nil, below(err, t.Ref, field)
			}
			if slices.ContainsFunc(metrics, func(o Metric) bool { return o.Name == m.Name }) {
				return nil, below(wrong("name", "rename one", "%q is the name of two metrics", m.Name), t.Ref, field)
			}
			metrics = append(metrics, *m)
		}
	}
	if len(metrics) == 0 {
		return nil, &rollout.InvalidError{Msg: "the templates have no metric"}
	}
	for _, t := range all {
		if err := ApplyRules(t.Spec.Rules, metrics); err != nil {
			return nil, below(err, t.Ref, "spec")
		}
	}
	return metrics, nil
}

func below(err error, ref rollout.Ref, field string) error {
	if invalid := new(rollout.InvalidError); errors.As(err, &invalid) {
		invalid.About = ref
		invalid.Below(field)
	}
	return err
}

// ApplyRules applies rules to metrics by name. As in Argo Rollouts, each rule must match a metric.
func ApplyRules(rules Rules, metrics []Metric) error {
	named := func(field, pattern string, apply func(*Metric)) error {
		re, err := regexp.Compile(pattern)
		if err != nil {
			return wrong(field, "for all metrics write .*", "%q is not a regular expression", pattern)
		}
		found := false
		for i := range metrics {
			if re.MatchString(metrics[i].Name) {
				found = true
				apply(&metrics[i])
			}
		}
		if !found {
			return wrong(field, "for all metrics write .*", "%q matches no metric", pattern)
		}
		return nil
	}
	for i, d := range rules.DryRun {
		dry := func(m *Metric) { m.DryRun = true }
		if err := named(fmt.Sprintf("dryRun[%d].metricName", i), d.MetricName, dry); err != nil {
			return err
		}
	}
	for i, r := range rules.MeasurementRetention {
		keep := func(m *Metric) { m.Retention = max(m.Retention, r.Limit) }
		if err := named(fmt.Sprintf("measurementRetention[%d].metricName", i), r.MetricName, keep); err != nil {
			return err
		}
	}
	return nil
}

// collect appends each referenced template once. It refuses a cycle; path is the chain of references to this template.
func collect(find func(TemplateRef) *Template, refs []TemplateRef, path []*Template, all *[]*Template) error {
	about, field := rollout.Ref{}, "templates"
	if len(path) > 0 {
		about, field = path[len(path)-1].Ref, "spec.templates"
	}
	for _, ref := range refs {
		t := find(ref)
		if t == nil {
			kind := map[bool]string{true: "Cluster"}[ref.ClusterScope] + "AnalysisTemplate"
			return below(wrong("", "add it to the kustomization", "%s %s is not in this app", kind, ref.TemplateName),
				about, field)
		}
		to := append(slices.Clone(path), t)
		if slices.Contains(path, t) {
			return below(wrong("", "", "names itself: %s", names(to)), t.Ref, "spec.templates")
		}
		if slices.Contains(*all, t) {
			continue // t was collected before; without this check, 2^40 paths could lead to t
		}
		*all = append(*all, t)
		if err := collect(find, t.Spec.Templates, to, all); err != nil {
			return err
		}
	}
	return nil
}

func names(path []*Template) string {
	return strings.Join(rollout.Mapped(path, func(t *Template) string {
		if t.IsCluster() {
			return "cluster/" + t.Ref.Name
		}
		return t.Ref.Name
	}), " -> ")
}

func arguments(all []*Template, given Values) (Values, error) {
	out := Values{Plain: map[string]string{}, Secrets: map[string]SecretRef{}, Pods: map[string]string{}}
	declared := map[string]Arg{}
	for _, t := range all {
		for i, a := range t.Spec.Args {
			was, twice := declared[a.Name]
			if twice && was.Value != nil && a.Value != nil && *was.Value != *a.Value {
				err := wrong(fmt.Sprintf("args[%d].value", i), "keep one default",
					"the default %q of %s conflicts with the default %q in another template", *a.Value, a.Name, *was.Value)
				return out, below(err, t.Ref, "spec")
			}
			if !twice || was.Value == nil && was.ValueFrom == nil {
				declared[a.Name] = a
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		a := declared[name]
		plain, isPlain := given.Plain[name]
		secret, isSecret := given.Secrets[name]
		pods, isPods := given.Pods[name]
		switch {
		case isPlain:
			out.Plain[name] = plain
		case isSecret:
			out.Secrets[name] = secret
		case isPods:
			out.Pods[name] = pods
		case a.Value != nil:
			out.Plain[name] = *a.Value
		case a.ValueFrom != nil && a.ValueFrom.FieldRef != nil:
			var exists bool
			if out.Plain[name], exists = given.Field(a.ValueFrom.FieldRef.FieldPath); !exists {
				return out, wrong("args", "give it: - name: "+name, "the argument %s has no value: this Rollout has no %q",
					name, a.ValueFrom.FieldRef.FieldPath)
			}
		case a.ValueFrom != nil:
			out.Secrets[name] = *a.ValueFrom.SecretKeyRef
		default:
			return out, wrong("args", "give it: - name: "+name, "the argument %s has no value", name)
		}
	}
	return out, nil
}

var placeholder = regexp.MustCompile(`\{\{\s*args\.([A-Za-z0-9_.-]+)\s*\}\}`)

func fill(v any, values Values, field string) (any, error) {
	return eachText(v, field, func(text, field string) (string, error) {
		var unknown string
		out := placeholder.ReplaceAllStringFunc(text, func(found string) string {
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
			return "", wrong(field, "list it in spec.args", "{{args.%s}} is not an argument of the template", unknown)
		}
		return out, nil
	})
}

func eachText(v any, field string, replace func(text, field string) (string, error)) (_ any, err error) {
	switch v := v.(type) {
	case string:
		return replace(v, field)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			if out[i], err = eachText(e, fmt.Sprintf("%s[%d]", field, i), replace); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, e := range v {
			if out[key], err = eachText(e, strings.TrimPrefix(field+"."+key, "."), replace); err != nil {
				return nil, err
			}
		}
		return out, nil
	default:
		return v, nil
	}
}
