package render

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/rollout"
)

type measured struct {
	analysisForm
	at     string // the analysis's path in the document
	named  string // the field that names the templates, relative to "at"
	into   *rollout.Analysis
	finite bool // a step waits for the analysis's end

	experiment bool // values of arguments may refer to the experiment's pods
}

func (d *document) readAnalysis(at string, form *analysisForm, finite bool) *rollout.Analysis {
	if form == nil {
		return nil
	}
	m := measured{analysisForm: *form, at: at, named: "templates", finite: finite, into: &rollout.Analysis{}}
	d.addAnalysis(m)
	return m.into
}

func (f *watchForm) read(d *document, at string) *rollout.Analysis {
	if f == nil {
		return nil
	}
	a := d.readAnalysis(at, &f.analysisForm, false)
	a.For = f.For
	return a
}

func (d *document) addAnalysis(m measured) {
	for i := range m.Args {
		d.readArgument(fmt.Sprintf("%s.args[%d]", m.at, i), &m.Args[i])
	}
	d.analyses = append(d.analyses, m)
}

func (d *document) readArgument(at string, a *argument) {
	switch {
	case a.ValueFrom == nil && a.Value == nil:
		d.Fail(at, "give value or valueFrom", "has no value")
	case a.ValueFrom != nil && a.ValueFrom.FieldRef != nil:
		path, at := a.ValueFrom.FieldRef.FieldPath, at+".valueFrom.fieldRef.fieldPath"
		switch text, has := fieldAt(d.object, path); {
		case has:
			a.Value = &text
		case strings.HasPrefix(path, "metadata.labels["), strings.HasPrefix(path, "metadata.annotations["):
			d.Warn(at, "this Rollout has no field %q: until the field is added, metrics that use it cannot be measured", path)
		case strings.HasPrefix(path, "status."):
			d.Fail(at, "name a field of its metadata or spec", "%q is in the status, which a Rollout in Git does not have",
				path)
		default:
			d.Fail(at, "name a text, number or label of the Rollout, such as metadata.labels['region']",
				"%q is not in this Rollout", path)
		}
	}
}

// fieldAt reads a path such as metadata.labels['region'].
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

func (a *assembly) instantiate(d *document) error {
	for _, m := range d.analyses {
		find := func(ref analysis.TemplateRef) *analysis.Template { return a.findTemplate(d.ref, ref) }
		metrics, err := analysis.Instantiate(find, m.Templates, m.values(d.object), a.checkProvider)
		if err == nil {
			err = analysis.ApplyRules(m.Rules, metrics)
		}
		if err != nil {
			if invalid := new(rollout.InvalidError); errors.As(err, &invalid) && invalid.About == (rollout.Ref{}) {
				if invalid.Field == "templates" {
					invalid.Field = m.named
				}
				invalid.Below(m.at)
			}
			return a.blame(err, d.ref)
		}
		for i := range metrics {
			if m.finite && metrics[i].Interval > 0 && metrics[i].Count == 0 && metrics[i].ConsecutiveSuccessLimit == 0 {
				return a.invalid(d.ref, m.at, "give the metric a count", "waits for metric %s, which is measured without end",
					metrics[i].Name)
			}
		}
		if err := a.checkWatch(d, m, metrics); err != nil {
			return err
		}
		m.into.Metrics = metrics
	}
	return nil
}

// checkWatch refuses metrics that cannot measure throughout a watch (the analysis after a release). In a watch, errors
// and inconclusive measurements do not end a metric.
func (a *assembly) checkWatch(d *document, m measured, metrics []rollout.Metric) error {
	length := m.into.For
	for i := range metrics {
		x := &metrics[i]
		fail := func(fix, format string, args ...any) error {
			return a.invalid(d.ref, m.at, fix, "metric "+x.Name+" "+format, args...)
		}
		switch before := x.Compare != nil && x.Compare.Before; {
		case length == 0 && before:
			return fail("write to: stable, or move the template to strategy.canary.watch",
				"compares with the time before the release, and only a watch does so")
		case length == 0 && x.Compare != nil && slices.Contains(d.alone, m.into):
			return fail("use a condition, or a step of strategy.canary with a smaller weight",
				"compares the versions, but only one of them gets the users' requests")
		case length == 0:
			continue
		case x.Compare != nil && !before:
			return fail("write to: before", "compares with stable, but after the release all pods have one version")
		case before && a.deployments[d.workload].Map("spec")["revisionHistoryLimit"] == int64(0):
			by := map[bool]rollout.Ref{true: originOf(d), false: d.ref}[d.form.RevisionHistoryLimit == nil]
			return a.invalid(by, "spec.revisionHistoryLimit", "set it to 1 or more",
				"is 0, so the version before has no revision, but metric %s of the watch compares with that version", x.Name)
		case x.ConsecutiveSuccessLimit > 0: // with failureLimit -1, inconclusive measurements would count as failed
			return fail("remove it", "has a consecutiveSuccessLimit, so it may end long before the watch")
		case x.Interval == 0:
			return fail("give it an interval", "is measured only once")
		case x.InitialDelay+x.Interval >= length:
			return fail("shorten them, or watch longer", "has initialDelay and interval of %s together, which fill the watch",
				x.InitialDelay+x.Interval)
		case x.Count > 0 && x.InitialDelay+time.Duration(x.Count)*x.Interval < length:
			a.warn("%s: %s: metric %s ends after %s, and the watch lasts %s: to measure until its end, leave count out",
				shortRef(d.ref), m.at, x.Name, rollout.Count(x.Count, "measurement"), length)
		}
		x.ConsecutiveErrorLimit, x.InconclusiveLimit = math.MaxInt32, math.MaxInt32
	}
	return nil
}

func (m measured) values(document rollout.Object) analysis.Values {
	values := analysis.Values{Plain: map[string]string{}, Pods: map[string]string{},
		Field: func(path string) (string, bool) { return fieldAt(document, path) }}
	for _, arg := range m.Args {
		switch {
		case m.experiment && arg.Value != nil && len(analysis.Variables(*arg.Value)) > 0:
			values.Pods[arg.Name] = *arg.Value
		case arg.Value != nil:
			values.Plain[arg.Name] = *arg.Value
		case arg.ValueFrom != nil && arg.ValueFrom.PodTemplateHashValue != "":
			values.Pods[arg.Name] = arg.ValueFrom.PodTemplateHashValue
		case arg.ValueFrom != nil && arg.ValueFrom.FieldRef != nil: // a user may add a missing label later
			values.Pods[arg.Name] = "{{" + arg.ValueFrom.FieldRef.FieldPath + "}}"
		}
	}
	return values
}

// findTemplate also finds a template whose name kustomize has changed by a prefix or suffix.
func (a *assembly) findTemplate(from rollout.Ref, ref analysis.TemplateRef) *analysis.Template {
	for _, name := range []string{ref.TemplateName, a.affixed(from, ref.TemplateName)} {
		for _, t := range a.analysisTemplates {
			if t.Ref.Name == name && t.IsCluster() == ref.ClusterScope && (t.IsCluster() || t.Ref.Namespace == from.Namespace) {
				a.named = append(a.named, t)
				return t
			}
		}
	}
	return nil
}
