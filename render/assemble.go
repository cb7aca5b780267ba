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

type assembly struct {
	origins
	rollout.Render

	documents         []*document
	analysisTemplates []*analysis.Template
	named             []*analysis.Template                           // named by a Rollout or another template
	checkProvider     func(kind string, config map[string]any) error // nil accepts all settings
	deployments       map[rollout.Workload]rollout.Object
}

func (a *assembly) assemble(built []rollout.Object) error {
	schema.shared(func() { defaultNamespaces(built, a.App.Namespace) })
	built, err := a.withHooks(built)
	if err != nil {
		return err
	}
	seen := make(map[rollout.Ref]bool, len(built))
	for _, object := range built { // kustomize accepts an object twice if only one copy has the namespace
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
	slices.SortStableFunc(a.Objects, func(x, y rollout.Object) int { return cmp.Compare(rank(x), rank(y)) })
	a.Templates = make(map[rollout.Workload]rollout.Hash, len(a.deployments))
	for w, deployment := range a.deployments {
		if a.Templates[w], err = rollout.HashTemplate(deployment.Map("spec", "template")); err != nil {
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
	case ref.Group == ownGroup && rollout.CheckVersion("", ref.Kind, object.APIVersion()) != nil:
		return a.blame(rollout.CheckVersion("", ref.Kind, object.APIVersion()), ref)
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
		(ref.Group == ownGroup || ref.Group == argoGroup):
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
	for _, name := range slices.Sorted(maps.Keys(annotations)) { // users copy annotations from kubectl get
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
	if p, _ := rollout.FindPartitioned(rollout.PartitionedOf(a.App), object.APIVersion(), ref.Kind); is || p != nil {
		a.deployments[w] = object // also without a Rollout, because a missing workload would count as removed
	}
	a.Objects = append(a.Objects, object)
	return nil
}

func (a *assembly) render() (*rollout.Render, error) {
	for _, d := range a.documents {
		a.Specs = append(a.Specs, d.spec)
	}
	slices.SortFunc(a.Specs, func(x, y rollout.Spec) int { return cmp.Compare(x.Workload.String(), y.Workload.String()) })
	raw, err := json.Marshal([]any{rollout.Mapped(a.Objects, rollout.Object.Told), a.Specs})
	if err != nil {
		return nil, fmt.Errorf("digest of app %s: %w", a.App.Name, err)
	}
	if len(raw) > maxOutput {
		return nil, tooLarge(a.file)
	}
	out := a.Render
	out.App.Sealed = false
	out.Files, out.Digest = a.fs.files(), rollout.Digest(raw, 16)
	return &out, nil
}

func (a *assembly) warn(format string, args ...any) {
	a.Warnings = append(a.Warnings, fmt.Sprintf(format, args...))
}
