package render

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/experiment"
)

func (d *document) readExperiment(at string, form *experimentForm) *rollout.Experiment {
	e := &form.Experiment
	for i := range form.Templates {
		e.Templates = append(e.Templates, d.readTemplate(fmt.Sprintf("%s.templates[%d]", at, i), &form.Templates[i], e))
	}
	for i, a := range form.Analyses {
		e.Analyses = append(e.Analyses, d.readRuns(fmt.Sprintf("%s.analyses[%d]", at, i), a, form))
	}
	required := func(a rollout.ExperimentAnalysis) bool { return a.Required }
	if e.Duration == nil && !slices.ContainsFunc(e.Analyses, required) {
		d.Fail(at, "give it a duration, or an analysis with requiredForCompletion: true", "has no end")
	}
	return e
}

func (d *document) readTemplate(at string, form *templateForm, e *rollout.Experiment) rollout.ExperimentTemplate {
	t := form.ExperimentTemplate
	if slices.ContainsFunc(e.Templates, func(o rollout.ExperimentTemplate) bool { return o.Name == t.Name }) {
		d.Fail(at+".name", "name each template once", "%q is also the name of another template", t.Name)
	}
	t.Labels, t.Annotations = form.Metadata.Labels, form.Metadata.Annotations
	form.Metadata.check(d, at+".metadata")
	if s := form.Selector; s != nil {
		t.Selector = map[string]any{}
		if s.MatchLabels != nil {
			t.Selector["matchLabels"] = s.MatchLabels
		}
		if s.MatchExpressions != nil {
			t.Selector["matchExpressions"] = s.MatchExpressions
		}
	}
	if form.Service != nil {
		t.Service = &form.Service.Name
	} else if t.Weight > 0 {
		t.Service = new("")
	}
	return t
}

// checkShares refuses weights that routers cannot apply together with the canary's weight.
func (d *document) checkShares(at string, e *rollout.Experiment, weight int) {
	switch c, full := d.spec.Canary, d.fullWeight(); {
	case e.Weight("") == 0:
	case c.Traffic == nil:
		d.Fail(at, "add trafficRouting with a router", "gives a template a weight, but there is no trafficRouting")
	case c.DynamicStableScale:
		d.Fail(at, "leave dynamicStableScale out", "gives a template a weight, which conflicts with dynamicStableScale")
	case c.StableService == "" && c.PingPong == nil:
		d.Fail(canaryPath+".stableService", "name the Service",
			"is missing, but a template with a weight needs the Service's ports")
	case weight+e.Weight("") > full:
		d.Fail(at, "lower the weights", "gives its templates weight %d: more than %d together with the canary's %d",
			e.Weight(""), full, weight)
	}
}

func (d *document) readRuns(at string, form experimentRuns, of *experimentForm) rollout.ExperimentAnalysis {
	e := &of.Experiment
	if slices.ContainsFunc(e.Analyses, func(o rollout.ExperimentAnalysis) bool { return o.Name == form.Name }) {
		d.Fail(at+".name", "name each analysis once", "%q is also the name of another analysis", form.Name)
	}
	m := measured{
		analysisForm: analysisForm{Templates: form.Templates, Args: form.Args, Rules: analysis.Rules{DryRun: of.DryRun}},
		at:           at, named: "templates", into: &rollout.Analysis{}, finite: form.Required, experiment: true,
	}
	if form.TemplateName != "" {
		m.named, m.Templates = "templateName", []analysis.TemplateRef{{TemplateName: form.TemplateName,
			ClusterScope: form.ClusterScope}}
	}
	d.addAnalysis(m)
	for i, arg := range m.Args {
		if arg.Value == nil {
			continue
		}
		for _, variable := range analysis.Variables(*arg.Value) {
			d.checkVariable(fmt.Sprintf("%s.args[%d].value", at, i), variable, e)
		}
	}
	return rollout.ExperimentAnalysis{Name: form.Name, Required: form.Required, Analysis: m.into}
}

func (d *document) checkVariable(at, name string, e *rollout.Experiment) {
	if name == "experiment.finishedAt" && e.Duration == nil {
		d.Fail(at, "give the experiment a duration", "asks for {{%s}}, and the experiment has no duration", name)
	}
	known := []string{"experiment.availableAt", "experiment.finishedAt"}
	for _, t := range e.Templates {
		known = append(known, "templates."+t.Name+".podTemplateHash", "templates."+t.Name+".replicaset.name")
	}
	if !slices.Contains(known, name) {
		d.Fail(at, "use one of "+strings.Join(known, ", "), "asks for {{%s}}, which the experiment does not have", name)
	}
}

func (a *assembly) checkExperiments() error {
	taken := map[rollout.Ref]string{}
	for _, o := range a.Objects {
		taken[o.Ref()] = shortRef(o.Ref())
	}
	for _, d := range a.documents {
		for n, step := range cmp.Or(d.spec.Canary, &rollout.Canary{}).Steps {
			if step.Experiment == nil {
				continue
			}
			if err := a.checkExperiment(d, n, taken); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *assembly) checkExperiment(d *document, step int, taken map[rollout.Ref]string) error {
	at, spec := stepPath(step)+".experiment", d.spec
	e := spec.Canary.Steps[step].Experiment
	e.ProgressDeadlineSeconds = cmp.Or(e.ProgressDeadlineSeconds, spec.ProgressDeadlineSeconds)
	if e.ProgressDeadlineSeconds <= spec.MinReadySeconds {
		return a.invalid(d.ref, at+".progressDeadlineSeconds", "",
			"%d is not more than minReadySeconds %d, so no pod could be available in time",
			e.ProgressDeadlineSeconds, spec.MinReadySeconds)
	}
	for i, t := range e.Templates {
		field := fmt.Sprintf("%s.templates[%d]", at, i)
		made := experiment.Template{ExperimentTemplate: t, Spec: spec, Release: "h1-0000000000", Step: step,
			From: a.deployments[spec.Workload], Others: a.Objects}
		if t.Selector != nil && !experiment.Matches(t.Selector, made.PodLabels()) {
			return a.invalid(d.ref, field+".selector", "leave it out, or give the pods the labels in metadata.labels",
				"does not match the labels of the template's pods")
		}
		if name := made.ServiceName(); name != "" {
			if !rollout.Formats()["service"].Pattern.MatchString(name) {
				return a.invalid(d.ref, field+".service.name", "name it", "is missing, and the default %q is not valid", name)
			}
			ref := rollout.Ref{Kind: "Service", Namespace: spec.Workload.Namespace, Name: name}
			if by, is := taken[ref]; is {
				return a.invalid(d.ref, field+".service.name", "use another name", "%q is also the name of %s", name, by)
			}
			taken[ref] = "the Service of " + field
			if len(made.Ports()) == 0 {
				return a.invalid(d.ref, field+".service", "declare a containerPort in the pod template, or name a stableService",
					"has no port")
			}
		}
		for _, by := range made.Caught() {
			a.warn("%s: %s.metadata.labels: %s also selects the experiment's pods", shortRef(d.ref),
				field, shortRef(by))
		}
	}
	return nil
}
