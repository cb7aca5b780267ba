package render

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/hook"
)

// assembly makes a Render from an app's built objects.
type assembly struct {
	origins
	app      rollout.App
	warnings []string
	unopened []string // encrypted files that were read without keys
	content  rollout.Hash
	hooked   bool

	objects           []rollout.Object // the objects to apply
	documents         []*document      // the Rollout documents among the built objects
	analysisTemplates []*analysis.Template
	named             []*analysis.Template                           // templates that a Rollout or another template names
	checkProvider     func(kind string, config map[string]any) error // validates a provider's settings; nil accepts all
	deployments       map[rollout.Workload]rollout.Object
	specs             []rollout.Spec
	templates         map[rollout.Workload]rollout.Hash
	generated         []rollout.Ref // the objects that routers generate during releases
}

// assemble checks the built objects and may change them.
func (a *assembly) assemble(built []rollout.Object) error {
	schema.shared(func() { defaultNamespaces(built, a.app.Namespace) })
	built, err := a.withHooks(built)
	if err != nil {
		return err
	}
	seen := make(map[rollout.Ref]bool, len(built))
	for _, object := range built { // kustomize accepts two objects with one Ref if only one manifest has the namespace
		if seen[object.Ref()] {
			return &rollout.InvalidError{File: a.file, Fix: "remove one",
				Msg: object.Ref().String() + " is defined twice, once with and once without its namespace"}
		}
		seen[object.Ref()] = true
	}
	a.deployments = map[rollout.Workload]rollout.Object{}
	var refused *rollout.InvalidError
	for _, object := range built {
		var invalid *rollout.InvalidError
		if err := a.take(object); errors.As(err, &invalid) {
			refused = refused.And(invalid)
		} else if err != nil {
			return err
		}
	}
	if refused != nil {
		return refused
	}
	for _, d := range a.documents {
		if err := a.stage(d); err != nil {
			return err
		}
	}
	a.scale()
	if err := a.check(); err != nil {
		return err
	}
	a.warnGenerated()
	slices.SortStableFunc(a.objects, func(x, y rollout.Object) int { return cmp.Compare(rank(x), rank(y)) })
	a.templates = make(map[rollout.Workload]rollout.Hash, len(a.deployments))
	for w, deployment := range a.deployments {
		if a.templates[w], err = rollout.HashTemplate(deployment.Map("spec", "template")); err != nil {
			return err
		}
	}
	return nil
}

func (a *assembly) take(object rollout.Object) error {
	ref := object.Ref()
	if err := a.checkSpelling(object); err != nil {
		return err
	}
	switch {
	case isRollout(ref):
		d, err := newDocument(object)
		if err != nil {
			return a.blame(err, ref)
		}
		for _, name := range slices.Sorted(maps.Keys(d.object.Map("metadata", "annotations"))) {
			if strings.HasPrefix(name, "notifications.argoproj.io/") {
				d.Warn("metadata.annotations", "%s sends no message: list receivers in the configuration's notifications", name)
			}
		}
		a.documents = append(a.documents, d)
		return nil
	case ofOthers[ref.GroupKind()] != "":
		return a.invalid(ref, "kind", ofOthers[ref.GroupKind()], "%s of %s is for another controller", ref.Kind, ref.Group)
	case (ref.Kind == "AnalysisTemplate" || ref.Kind == "ClusterAnalysisTemplate") &&
		(ref.Group == ownGroup || ref.Group == argoGroup): // templates need no CRD, because they are not applied
		t, err := analysis.ParseTemplate(ref, object["spec"])
		a.analysisTemplates = append(a.analysisTemplates, t)
		return a.blame(err, ref)
	case ref.Group == ownGroup:
		return a.invalid(ref, "kind", "keep it under .gitrollout/ and out of resources",
			"%s of %s does not belong in a kustomization", ref.Kind, object.APIVersion())
	}
	annotations := object.Map("metadata", "annotations")
	if annotations["helm.sh/resource-policy"] == "keep" {
		annotations[rollout.AnnotationPrune] = "disabled"
	}
	for _, name := range slices.Sorted(maps.Keys(annotations)) { // users copy annotations from kubectl get -o yaml
		if strings.HasPrefix(name, "deployment.kubernetes.io/") || name == "control-plane.alpha.kubernetes.io/leader" {
			delete(annotations, name)
			a.warn("%s: annotation %s is left out: a controller of Kubernetes writes it", shortRef(ref), name)
		}
	}
	isJob := ref.Group == "batch" && ref.Kind == "Job" && !hook.Is(object)
	if spec := object.Map("spec"); isJob && spec["ttlSecondsAfterFinished"] != nil {
		delete(spec, "ttlSecondsAfterFinished") // the cluster would delete the Job, and gitrollout would run it again
		a.warn("%s: ttlSecondsAfterFinished is left out: the Job runs once, and stays while it is in Git", shortRef(ref))
	}
	w, is := rollout.WorkloadOf(ref)
	if p, _ := rollout.FindPartitioned(rollout.PartitionedOf(a.app), object.APIVersion(), ref.Kind); is || p != nil {
		a.deployments[w] = object // even without a Rollout, because a missing workload counts as removed
	}
	a.objects = append(a.objects, object)
	return nil
}

func (a *assembly) render() (*rollout.Render, error) {
	slices.SortFunc(a.specs, func(x, y rollout.Spec) int { return cmp.Compare(x.Workload.String(), y.Workload.String()) })
	raw, err := json.Marshal([]any{rollout.Mapped(a.objects, rollout.Object.Told), a.specs})
	if err != nil {
		return nil, fmt.Errorf("digest of app %s: %w", a.app.Name, err)
	}
	if len(raw) > maxOutput {
		return nil, tooLarge(a.file)
	}
	app := a.app
	app.Sealed = false // Sealed is a fact about the render, not about the app
	return &rollout.Render{
		App:       app,
		Objects:   a.objects,
		Specs:     a.specs,
		Templates: a.templates,
		Files:     a.fs.files(),
		Digest:    rollout.Digest(raw, 16),
		Content:   a.content,
		Hooked:    a.hooked,
		Warnings:  a.warnings,
		Unopened:  a.unopened,
		Generated: a.generated,
	}, nil
}

func (a *assembly) warn(format string, args ...any) {
	a.warnings = append(a.warnings, fmt.Sprintf(format, args...))
}
