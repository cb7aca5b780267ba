package render

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/experiment"
)

// What Kubernetes takes for names that become parts of others (RFC 1123), for
// names of Services (RFC 1035), and for labels.
var (
	partName    = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?$`)
	serviceName = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$`)
	labelKey    = regexp.MustCompile(`^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$`)
	labelValue  = regexp.MustCompile(`^([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?$`)
)

// readExperiment reads an experiment step, nil if this is none. What it makes is
// looked at by checkExperiments.
func (d *document) readExperiment(v value) *rollout.Experiment {
	if !v.object(experimentFields) {
		return nil
	}
	e := &rollout.Experiment{Duration: v.field("duration").duration("leave duration out to wait for the analyses with requiredForCompletion: true")}
	if deadline := v.field("progressDeadlineSeconds"); deadline.given() && d.isNative(deadline) {
		if e.ProgressDeadlineSeconds = deadline.countOr(0); e.ProgressDeadlineSeconds == 0 {
			deadline.fail("write seconds, or leave it out", "is 0, so no pod could become available in time")
		}
	}
	for _, t := range v.field("templates").list() {
		e.Templates = append(e.Templates, t.experimentTemplate(e))
	}
	if len(e.Templates) == 0 {
		v.field("templates").fail("name at least one: - {name: baseline, specRef: stable}", "is empty")
	}
	var dryRun []analysis.DryRun
	for _, r := range v.field("dryRun").list() {
		r.object(dryRunFields)
		dryRun = append(dryRun, analysis.DryRun{MetricName: r.field("metricName").text()})
	}
	for _, a := range v.field("analyses").list() {
		e.Analyses = append(e.Analyses, d.readExperimentAnalysis(a, e, dryRun))
	}
	if e.Duration == nil && !slices.ContainsFunc(e.Analyses, func(a rollout.ExperimentAnalysis) bool { return a.Required }) {
		v.fail("give it a duration, or an analysis with requiredForCompletion: true", "has no end")
	}
	return e
}

func (v value) experimentTemplate(e *rollout.Experiment) rollout.ExperimentTemplate {
	if !v.object(experimentTemplateFields) {
		v.fail("", "is empty")
		return rollout.ExperimentTemplate{}
	}
	t := rollout.ExperimentTemplate{Name: v.experimentName("template"), Replicas: v.field("replicas").countOr(1)}
	if slices.ContainsFunc(e.Templates, func(o rollout.ExperimentTemplate) bool { return o.Name == t.Name }) {
		v.field("name").fail("name each template once", "%q is the name of another template too", t.Name)
	}
	ref := v.field("specRef")
	switch t.SpecRef = rollout.SpecRef(ref.text()); t.SpecRef {
	case rollout.SpecStable, rollout.SpecCanary:
	case "":
		ref.fail("write stable or canary", "is missing")
	default:
		ref.fail("write stable or canary", "%q is no version", t.SpecRef)
	}
	if t.Replicas == 0 {
		v.field("replicas").fail("write 1 or more, or leave the template out", "is 0, so there would be nothing to look at")
	}
	if metadata := v.field("metadata"); metadata.object(experimentMetadataFields) {
		t.Labels, t.Annotations = metadata.field("labels").labels(), metadata.field("annotations").texts()
	}
	if selector := v.field("selector"); selector.object(experimentSelectorFields) {
		t.Selector, _ = selector.raw.(map[string]any)
	}
	if service := v.field("service"); service.object(experimentServiceFields) {
		name := service.field("name").text()
		if t.Service = &name; name != "" && !serviceName.MatchString(name) {
			service.field("name").fail("use lower case letters, digits and -, a letter first, at most 63", "%q is not a name for a Service", name)
		}
	}
	return t
}

// experimentName reads a name that becomes part of other names.
func (v value) experimentName(what string) string {
	name := v.field("name")
	switch text := name.text(); {
	case text == "":
		name.fail("name the "+what, "is missing")
	case !partName.MatchString(text):
		name.fail("use lower case letters, digits and -, at most 32", "%q cannot be part of a name", text)
	}
	return name.text()
}

// texts reads a mapping of texts, nil if it is absent.
func (v value) texts() map[string]string {
	m, ok := v.raw.(map[string]any)
	if !ok {
		if v.given() {
			v.fail("", "is %s where a mapping belongs", describe(v.raw))
		}
		return nil
	}
	out := make(map[string]string, len(m))
	for _, key := range sortedKeys(m) {
		out[key] = value{r: v.r, path: v.path + "[" + key + "]", raw: m[key]}.text()
	}
	return out
}

func (v value) labels() map[string]string {
	labels := v.texts()
	for _, key := range sortedKeys(labels) {
		at := value{r: v.r, path: v.path + "[" + key + "]"}
		switch {
		case key == rollout.LabelPodHash || key == rollout.LabelExperiment || key == rollout.LabelApp:
			at.fail("leave it out", "is a label that only Kubernetes or gitrollout may set")
		case !labelKey.MatchString(key):
			at.fail("use letters, digits, -, _ and ., with a domain and / before it at most", "%q is not the name of a label", key)
		case !labelValue.MatchString(labels[key]):
			at.fail("use letters, digits, -, _ and ., at most 63", "%q is not the value of a label", labels[key])
		}
	}
	return labels
}

// readExperimentAnalysis reads one analysis of an experiment's pods.
func (d *document) readExperimentAnalysis(v value, e *rollout.Experiment, dryRun []analysis.DryRun) rollout.ExperimentAnalysis {
	if !v.object(experimentAnalysisFields) {
		v.fail("", "is empty")
		return rollout.ExperimentAnalysis{}
	}
	a := rollout.ExperimentAnalysis{Name: v.experimentName("analysis"), Analysis: &rollout.Analysis{}}
	if slices.ContainsFunc(e.Analyses, func(o rollout.ExperimentAnalysis) bool { return o.Name == a.Name }) {
		v.field("name").fail("name each analysis once", "%q is the name of another analysis too", a.Name)
	}
	a.Required = v.field("requiredForCompletion").boolOr(false)
	m := measured{field: v, into: a.Analysis, finite: a.Required, experiment: true}
	m.extra.DryRun = dryRun
	single, several := v.field("templateName"), v.field("templates")
	switch {
	case single.given() && several.given():
		several.fail("keep one of them", "is given, and templateName too")
	case single.given():
		m.templates = []analysis.TemplateRef{{TemplateName: single.text(), ClusterScope: v.field("clusterScope").boolOr(false)}}
	case several.given() && d.isNative(several):
		m.templates = several.templateRefs()
	}
	if len(m.templates) == 0 {
		single.fail("name an AnalysisTemplate of this app", "is missing")
	}
	for _, given := range v.field("args").list() {
		arg := given.arg()
		m.args = append(m.args, arg)
		if arg.Value == nil {
			continue
		}
		for _, variable := range analysis.Variables(*arg.Value) {
			given.field("value").checkVariable(variable, e)
		}
	}
	d.analyses = append(d.analyses, m)
	return a
}

// checkVariable refuses what an experiment does not know of itself.
func (v value) checkVariable(name string, e *rollout.Experiment) {
	if name == "experiment.finishedAt" && e.Duration == nil {
		v.fail("give the experiment a duration", "asks for {{%s}}, and the experiment has no duration", name)
	}
	known := []string{"experiment.availableAt", "experiment.finishedAt"}
	for _, t := range e.Templates {
		known = append(known, "templates."+t.Name+".podTemplateHash", "templates."+t.Name+".replicaset.name")
	}
	if !slices.Contains(known, name) {
		v.fail("use one of "+strings.Join(known, ", "), "asks for {{%s}}, which the experiment does not have", name)
	}
}

// checkExperiments makes what experiments will, of the version that is at hand,
// to see that it can be made.
func (a *assembly) checkExperiments() error {
	taken := map[rollout.Ref]string{}
	for _, o := range a.objects {
		taken[o.Ref()] = shortRef(o.Ref())
	}
	for i := range a.specs {
		d := a.documents[i] // stage appended one spec for each document, in order
		if a.specs[i].Canary == nil {
			continue
		}
		for n, step := range a.specs[i].Canary.Steps {
			if step.Experiment == nil {
				continue
			}
			if err := a.checkExperiment(d, a.specs[i], n, taken); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *assembly) checkExperiment(d *document, spec rollout.Spec, step int, taken map[rollout.Ref]string) error {
	at := fmt.Sprintf("spec.strategy.canary.steps[%d].experiment", step)
	e := spec.Canary.Steps[step].Experiment
	if e.ProgressDeadlineSeconds == 0 {
		e.ProgressDeadlineSeconds = spec.ProgressDeadlineSeconds
	}
	if e.ProgressDeadlineSeconds <= spec.MinReadySeconds {
		return a.invalid(d.ref, at+".progressDeadlineSeconds", "", "%d is not more than minReadySeconds %d, so no pod could be available in time", e.ProgressDeadlineSeconds, spec.MinReadySeconds)
	}
	for i, t := range e.Templates {
		field := fmt.Sprintf("%s.templates[%d]", at, i)
		made := experiment.Template{ExperimentTemplate: t, Spec: spec, Release: "h1-0000000000", Step: step, From: a.deployments[spec.Workload], Others: a.objects}
		if t.Selector != nil && !experiment.Matches(t.Selector, made.PodLabels()) {
			return a.invalid(d.ref, field+".selector", "leave it out, or give the pods the labels in metadata.labels", "does not match the labels of the template's pods")
		}
		if name := made.ServiceName(); name != "" {
			if !serviceName.MatchString(name) {
				return a.invalid(d.ref, field+".service.name", "name it", "is missing, and %q is not a name for a Service", name)
			}
			ref := rollout.Ref{Kind: "Service", Namespace: spec.Workload.Namespace, Name: name}
			if by, is := taken[ref]; is {
				return a.invalid(d.ref, field+".service.name", "use another name", "%q is the name of %s too", name, by)
			}
			taken[ref] = "the Service of " + field
			if len(made.Ports()) == 0 {
				return a.invalid(d.ref, field+".service", "declare a containerPort in the pod template, or name a stableService", "has no port")
			}
		}
		for _, by := range made.Caught() {
			a.warn("%s: %s.metadata.labels: %s selects the pods, which are then among those that it is about", shortRef(d.ref), field, shortRef(by))
		}
	}
	return nil
}
