package render

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/experiment"
)

func (a *assembly) check() error {
	for _, check := range []func() error{a.checkNames, a.checkWorkloads, a.checkRoles, a.checkPins, a.checkExperiments,
		a.checkTraffic, a.checkReadable, a.checkTemplates} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// checkTemplates validates templates that no document uses. In a template with arguments or nested templates, only
// errors in a provider's block count, because values may be unknown.
func (a *assembly) checkTemplates() error {
	for _, t := range a.analysisTemplates {
		given := analysis.Values{Secrets: map[string]analysis.SecretRef{}}
		for _, arg := range t.Spec.Args {
			if arg.Value == nil {
				given.Secrets[arg.Name] = analysis.SecretRef{}
			}
		}
		named := slices.Contains(a.named, t)
		find := func(ref analysis.TemplateRef) *analysis.Template { return a.findTemplate(t.Ref, ref) }
		self := analysis.TemplateRef{TemplateName: t.Ref.Name, ClusterScope: t.IsCluster()}
		_, err := analysis.Instantiate(find, []analysis.TemplateRef{self}, given, a.checkProvider)
		var invalid *rollout.InvalidError
		whole := len(t.Spec.Args)+len(t.Spec.Templates) == 0
		if !named && errors.As(err, &invalid) && (whole || strings.Contains(invalid.Field, "].provider.")) {
			return a.blame(err, t.Ref)
		}
	}
	return nil
}

func (a *assembly) checkNames() error {
	format := rollout.Formats()["label"]
	for _, object := range a.Objects {
		ref := object.Ref()
		field, name := "metadata.namespace", ref.Namespace
		if ref.Group == "" && ref.Kind == "Namespace" {
			field, name = "metadata.name", ref.Name
		}
		if name != "" && !format.Pattern.MatchString(name) {
			return a.invalid(ref, field, format.Fix, "%q is not a valid namespace", name)
		}
		if wrong := content.IsPathSegmentName(ref.Name); len(wrong) > 0 {
			return a.invalid(ref, "metadata.name", "rename it", "%q is not a valid object name: it %s", ref.Name, wrong[0])
		}
	}
	return nil
}

func (a *assembly) checkWorkloads() error {
	for _, d := range a.documents {
		if err := a.checkWorkload(d); err != nil {
			return err
		}
		for _, s := range d.services() {
			if err := a.checkService(d, s.field, *s.name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *assembly) checkWorkload(d *document) error {
	deployment := a.deployments[d.workload]
	from := originOf(d)
	labels := deployment.Map("spec", "template", "metadata", "labels")
	selector := deployment.Map("spec", "selector")
	switch {
	case deployment.Map("spec", "template") == nil:
		return a.invalid(from, "spec.template", "", "is missing")
	case len(selector) == 0:
		return a.invalid(from, "spec.selector", "select the labels of the pod template", "is missing")
	}
	for _, label := range pins {
		if labels[label] != nil {
			return a.invalid(from, "spec.template.metadata.labels["+label+"]", "remove it",
				"is a label that only the %s controller may set", d.workload.Ref().Kind)
		}
	}
	if why := experiment.Mismatch(selector, labels); why != "" {
		return a.invalid(from, "spec.selector", "make the selector match the labels of the template",
			"does not match the pod template: %s", why)
	}
	return nil
}

type serviceField struct {
	field string
	name  *string
}

func (d *document) services() []serviceField {
	c, b := cmp.Or(d.spec.Canary, &rollout.Canary{}), cmp.Or(d.spec.BlueGreen, &rollout.BlueGreen{})
	p := cmp.Or(c.PingPong, &rollout.PingPong{})
	return slices.DeleteFunc([]serviceField{
		{canaryPath + ".stableService", &c.StableService}, {canaryPath + ".canaryService", &c.CanaryService},
		{canaryPath + ".pingPong.pingService", &p.PingService}, {canaryPath + ".pingPong.pongService", &p.PongService},
		{blueGreenPath + ".activeService", &b.ActiveService}, {blueGreenPath + ".previewService", &b.PreviewService},
	}, func(s serviceField) bool { return *s.name == "" })
}

func (a *assembly) checkService(d *document, field, name string) error {
	ref := rollout.Ref{Kind: "Service", Namespace: d.ref.Namespace, Name: name}
	i := slices.IndexFunc(a.Objects, func(o rollout.Object) bool { return o.Ref() == ref })
	if i < 0 {
		return a.invalid(d.ref, field, "add the Service to the kustomization", "Service/%s/%s is not in this app",
			d.ref.Namespace, name)
	}
	selector := a.Objects[i].Map("spec", "selector")
	if len(selector) == 0 {
		return a.invalid(d.ref, field, "give the Service a selector",
			"Service/%s/%s selects no pods, so it cannot be switched", d.ref.Namespace, name)
	}
	if selector[rollout.LabelPodHash] != nil || selector[rollout.LabelRevision] != nil {
		return nil
	}
	labels := a.deployments[d.workload].Map("spec", "template", "metadata", "labels")
	if why := experiment.Mismatch(map[string]any{"matchLabels": selector}, labels); why != "" {
		return a.invalid(d.ref, field, "make the Service's selector match the labels of the template",
			"the selector of Service/%s/%s does not match the pod template: %s", d.ref.Namespace, name, why)
	}
	return nil
}

var pins = []string{rollout.LabelPodHash, rollout.LabelRevision}

// checkPins refuses Services in Git that select one revision, because after a release they would still select the old
// pods.
func (a *assembly) checkPins() error {
	if len(a.documents) == 0 {
		return nil
	}
	for _, object := range a.Objects {
		ref := object.Ref()
		if ref.Group != "" || ref.Kind != "Service" {
			continue
		}
		for _, label := range pins {
			if object.Map("spec", "selector")[label] != nil {
				return a.invalid(ref, "spec.selector["+label+"]", "remove it",
					"is a label whose value is not known before the pods exist")
			}
		}
	}
	return nil
}
