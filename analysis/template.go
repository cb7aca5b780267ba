package analysis

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

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
	for i, a := range t.Spec.Args {
		if a.Name == "" {
			return nil, &ProblemError{Template: name, Field: fmt.Sprintf("spec.args[%d].name", i), Msg: "is missing"}
		}
		if a.ValueFrom != nil && a.ValueFrom.SecretKeyRef == nil {
			return nil, &ProblemError{Template: name, Field: fmt.Sprintf("spec.args[%d].valueFrom", i), Msg: "is not a secretKeyRef", Fix: "a template takes no other; give the value in the Rollout"}
		}
		if a.ValueFrom == nil {
			continue
		}
		if a.Value != nil {
			return nil, &ProblemError{Template: name, Field: fmt.Sprintf("spec.args[%d].value", i), Msg: "is given, and valueFrom too", Fix: "keep one of them"}
		}
		for field, text := range ordered("name", a.ValueFrom.SecretKeyRef.Name, "key", a.ValueFrom.SecretKeyRef.Key) {
			if text == "" {
				return nil, &ProblemError{Template: name, Field: fmt.Sprintf("spec.args[%d].valueFrom.secretKeyRef.%s", i, field), Msg: "is missing", Fix: "name the Secret and its key"}
			}
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
			return &ProblemError{Field: wrong.Field, Msg: fmt.Sprintf("is %s where %s belongs", written(wrong.Value), wanted(wrong.Type))}
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

// written and wanted say what kind of value there is, and what belongs there.
func written(json string) string {
	kind, _, _ := strings.Cut(json, " ") // number 1.5
	switch kind {
	case "object":
		return "a mapping"
	case "array":
		return "a list"
	case "string":
		return "a text"
	case "bool":
		return "true or false"
	default:
		return "a " + kind
	}
}

func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Slice:
		return "a list"
	case reflect.Map, reflect.Struct, reflect.Pointer:
		return "a mapping"
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	default:
		return "a number"
	}
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
// they are in no record and in no message. Check reads a provider's block; its
// *ProblemError names fields below the metric's. Nil: nothing is checked.
func Instantiate(find func(TemplateRef) *Template, refs []TemplateRef, given Values, check func(kind string, config map[string]any) error) ([]Metric, error) {
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
			m, problem := newMetric(raw, values)
			if problem == nil && check != nil {
				if err := check(m.Provider, m.Config); err != nil && !errors.As(err, &problem) {
					return nil, err
				}
			}
			if problem != nil {
				problem.Template, problem.Field = t.Name, strings.TrimSuffix(field+"."+problem.Field, ".")
				return nil, problem
			}
			if slices.ContainsFunc(metrics, func(o Metric) bool { return o.Name == m.Name }) {
				return nil, &ProblemError{Template: t.Name, Field: field + ".name", Msg: fmt.Sprintf("%q is the name of two metrics", m.Name), Fix: "rename one"}
			}
			metrics = append(metrics, *m)
		}
	}
	if len(metrics) == 0 {
		return nil, &ProblemError{Msg: "the templates have no metric"}
	}
	for _, t := range all {
		if err := ApplyRules(t.Spec, "spec.", metrics); err != nil {
			err.Template = t.Name
			return nil, err
		}
	}
	return metrics, nil
}

// ApplyRules makes metrics dry runs and says how many of their measurements are
// kept, where the rules name them. A rule that names none is a mistake, as in Argo
// Rollouts. Prefix is put before the field's name.
func ApplyRules(rules TemplateSpec, prefix string, metrics []Metric) *ProblemError {
	names := func(field, pattern string, apply func(*Metric)) *ProblemError {
		re, err := regexp.Compile(pattern)
		if err != nil || pattern == "" {
			return &ProblemError{Field: prefix + field, Msg: fmt.Sprintf("%q is not a regular expression", pattern), Fix: "for all metrics write .*"}
		}
		found := false
		for i := range metrics {
			if re.MatchString(metrics[i].Name) {
				found = true
				apply(&metrics[i])
			}
		}
		if !found {
			return &ProblemError{Field: prefix + field, Msg: fmt.Sprintf("%q names no metric", pattern), Fix: "for all metrics write .*"}
		}
		return nil
	}
	for i, d := range rules.DryRun {
		if err := names(fmt.Sprintf("dryRun[%d].metricName", i), d.MetricName, func(m *Metric) { m.DryRun = true }); err != nil {
			return err
		}
	}
	for i, r := range rules.MeasurementRetention {
		if r.Limit < 1 {
			return &ProblemError{Field: fmt.Sprintf("%smeasurementRetention[%d].limit", prefix, i), Msg: fmt.Sprintf("%d is no number of measurements", r.Limit), Fix: "give 1 or more"}
		}
		if err := names(fmt.Sprintf("measurementRetention[%d].metricName", i), r.MetricName, func(m *Metric) { m.Retention = max(m.Retention, r.Limit) }); err != nil {
			return err
		}
	}
	return nil
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
			field := "templates"
			if len(path) > 0 {
				field = "spec.templates"
			}
			return &ProblemError{Template: last(path), Field: field, Msg: fmt.Sprintf("%s %s is not in this app", kind, ref.TemplateName), Fix: "add it to the kustomization"}
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
	for _, name := range slices.Sorted(maps.Keys(declared)) { // the same message each time
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
