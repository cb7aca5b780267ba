package render

import (
	"errors"
	"fmt"
	"strings"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/rollout"
)

// isTemplate reports whether an object is a template of an analysis. Templates
// are read and never applied: the cluster needs no CRD.
func isTemplate(ref rollout.Ref) bool {
	return (ref.Kind == "AnalysisTemplate" || ref.Kind == "ClusterAnalysisTemplate") && (ref.Group == ownGroup || ref.Group == argoGroup)
}

// takeTemplate keeps a template for the documents that name it. A template of the
// cluster is the same for all namespaces.
func (a *assembly) takeTemplate(object rollout.Object) error {
	ref := object.Ref()
	t, err := analysis.ParseTemplate(ref.Name, ref.Kind == "ClusterAnalysisTemplate", object["spec"])
	if err != nil {
		return a.blameTemplate(err, ref)
	}
	a.analysisTemplates = append(a.analysisTemplates, namedTemplate{t, ref})
	return nil
}

type namedTemplate struct {
	*analysis.Template
	ref rollout.Ref
}

// measured is one place of a document that asks for an analysis.
type measured struct {
	field     value
	templates []analysis.TemplateRef
	args      []analysis.Arg
	extra     analysis.TemplateSpec // its own dryRun and measurementRetention
	into      *rollout.Analysis
	finite    bool // a step waits for its end

	experiment bool // it is of one: arguments may name its pods
}

// readAnalysis reads an analysis of a document; the templates that it names are
// looked up when all of them are known.
func (d *document) readAnalysis(v value, finite bool) *rollout.Analysis {
	fields := analysisFields
	if finite {
		fields = stepAnalysisFields
	}
	if !v.object(fields) {
		return nil
	}
	m := measured{field: v, into: &rollout.Analysis{}, finite: finite}
	m.into.StartingStep = v.field("startingStep").countOr(0)
	m.templates = v.field("templates").templateRefs()
	if len(m.templates) == 0 {
		v.field("templates").fail("name at least one: - templateName: NAME", "is empty")
	}
	for _, a := range v.field("args").list() {
		m.args = append(m.args, a.arg())
	}
	for _, r := range v.field("dryRun").list() {
		r.object(dryRunFields)
		m.extra.DryRun = append(m.extra.DryRun, analysis.DryRun{MetricName: r.field("metricName").text()})
	}
	for _, r := range v.field("measurementRetention").list() {
		r.object(retentionFields)
		m.extra.MeasurementRetention = append(m.extra.MeasurementRetention, analysis.Retention{MetricName: r.field("metricName").text(), Limit: r.field("limit").countOr(0)})
	}
	d.analyses = append(d.analyses, m)
	return m.into
}

func (v value) templateRefs() []analysis.TemplateRef {
	var refs []analysis.TemplateRef
	for _, t := range v.list() {
		t.object(templateRefFields)
		if t.field("templateName").text() == "" {
			t.field("templateName").fail("name a template", "is missing")
		}
		refs = append(refs, analysis.TemplateRef{TemplateName: t.field("templateName").text(), ClusterScope: t.field("clusterScope").boolOr(false)})
	}
	return refs
}

// arg reads the value that a document gives an argument.
func (v value) arg() analysis.Arg {
	a := analysis.Arg{}
	if !v.object(argFields) {
		v.fail("", "is empty")
		return a
	}
	if a.Name = v.field("name").text(); a.Name == "" {
		v.field("name").fail("", "is missing")
	}
	if text := v.field("value"); text.given() {
		s := text.text()
		a.Value = &s
	}
	from := v.field("valueFrom")
	if !from.object(valueFromFields) {
		if a.Value == nil {
			v.fail("give value or valueFrom", "has no value")
		}
		return a
	}
	a.ValueFrom = &analysis.ValueFrom{PodTemplateHashValue: from.field("podTemplateHashValue").text()}
	switch which := a.ValueFrom.PodTemplateHashValue; which {
	case "", "Stable", "Latest":
	default:
		from.field("podTemplateHashValue").fail("write Stable or Latest", "%q is no version", which)
	}
	if ref := from.field("fieldRef"); ref.object(fieldRefFields) {
		s, ok := fieldAt(map[string]any(v.r.object), ref.field("fieldPath").text())
		if !ok {
			ref.field("fieldPath").fail("name a text, number or label of the Rollout, such as metadata.labels['region']", "%q is not in this Rollout", ref.field("fieldPath").text())
		}
		a.Value = &s
	}
	return a
}

// fieldAt returns a text or number at a path such as metadata.name or
// metadata.labels['region'].
func fieldAt(object map[string]any, path string) (string, bool) {
	var at any = object
	for path != "" {
		m, ok := at.(map[string]any)
		if !ok {
			return "", false
		}
		name := path
		if i := strings.IndexAny(path, ".["); i >= 0 {
			name, path = path[:i], path[i:]
		} else {
			path = ""
		}
		at = m[name]
		if strings.HasPrefix(path, "['") {
			key, rest, closed := strings.Cut(path[2:], "']")
			m, ok := at.(map[string]any)
			if !closed || !ok {
				return "", false
			}
			at, path = m[key], rest
		}
		path = strings.TrimPrefix(path, ".")
	}
	switch v := at.(type) {
	case string:
		return v, true
	case int64, float64, bool:
		return fmt.Sprint(v), true
	default:
		return "", false
	}
}

// instantiate fills in the metrics of a document's analyses.
func (a *assembly) instantiate(d *document) error {
	for _, m := range d.analyses {
		values := analysis.Values{Plain: map[string]string{}, Secrets: map[string]analysis.SecretRef{}, Pods: map[string]string{}}
		for _, arg := range m.args {
			switch from := arg.ValueFrom; {
			case m.experiment && arg.Value != nil && len(analysis.Variables(*arg.Value)) > 0:
				values.Pods[arg.Name] = *arg.Value
			case arg.Value != nil:
				values.Plain[arg.Name] = *arg.Value
			case from != nil && from.PodTemplateHashValue != "":
				values.Pods[arg.Name] = from.PodTemplateHashValue
			}
		}
		find := func(ref analysis.TemplateRef) *analysis.Template { return a.findTemplate(d.ref, ref) }
		metrics, err := analysis.Instantiate(find, m.templates, values, a.checkProvider)
		if err != nil {
			return a.blameAnalysis(err, d, m)
		}
		if err := analysis.ApplyRules(m.extra, "", metrics); err != nil {
			return a.blameAnalysis(err, d, m)
		}
		for i := range metrics {
			if m.finite && metrics[i].Interval > 0 && metrics[i].Count == 0 && metrics[i].ConsecutiveSuccessLimit == 0 {
				return a.invalid(d.ref, m.field.path, "give the metric a count", "waits for metric %s, which is measured without end", metrics[i].Name)
			}
		}
		m.into.Metrics = metrics
	}
	return nil
}

// findTemplate returns a template by the name that the document has for it,
// which kustomize may have changed.
func (a *assembly) findTemplate(from rollout.Ref, ref analysis.TemplateRef) *analysis.Template {
	_, source := a.source(from)
	prefix, suffix, _ := strings.Cut(from.Name, source)
	for _, name := range []string{ref.TemplateName, prefix + ref.TemplateName + suffix} {
		for _, t := range a.analysisTemplates {
			if t.Name == name && t.Cluster == ref.ClusterScope && (t.Cluster || t.ref.Namespace == from.Namespace) {
				return t.Template
			}
		}
	}
	return nil
}

// blameAnalysis says whether the template or its use is wrong.
func (a *assembly) blameAnalysis(err error, d *document, m measured) error {
	var problem *analysis.ProblemError
	if !errors.As(err, &problem) {
		return err
	}
	for _, t := range a.analysisTemplates {
		if t.Name == problem.Template {
			return a.blameTemplate(err, t.ref)
		}
	}
	field := m.field.field(problem.Field)
	if single := m.field.field("templateName"); problem.Field == "templates" && single.given() {
		field = single
	}
	return a.invalid(d.ref, field.path, problem.Fix, "%s", problem.Msg)
}

func (a *assembly) blameTemplate(err error, ref rollout.Ref) error {
	var problem *analysis.ProblemError
	if !errors.As(err, &problem) {
		return err
	}
	return a.invalid(ref, problem.Field, problem.Fix, "%s", problem.Msg)
}
