package render

import (
	"fmt"

	"gitrollout.dev/gitrollout/rollout"
)

// Defaults that the Deployment and Argo Rollouts have in common.
const (
	defaultProgressDeadline = 600
	defaultPercent          = 25 // maxSurge and maxUnavailable
)

// stage applies one Rollout document: what it says overrides what the
// Deployment says, and the two together make the Spec.
func (a *assembly) stage(d *document) error {
	a.warnings = append(a.warnings, d.warnings...)
	if err := a.resolve(d); err != nil {
		return err
	}
	for _, s := range a.specs {
		if s.Workload == d.workload {
			return a.blame(&rollout.InvalidError{Msg: fmt.Sprintf("Deployment/%s already has a Rollout (%s)", d.workload, shortRef(d.ref)), Fix: "keep one of them"}, d.ref)
		}
	}
	deployment, exists := a.deployments[d.workload]
	switch {
	case d.inline && exists:
		return a.blame(&rollout.InvalidError{Field: "metadata.name", Msg: fmt.Sprintf("there is a Deployment/%s too (%s)", d.workload, shortRef(d.ref)),
			Fix: "remove it, or move only it with spec.workloadRef"}, d.ref)
	case d.inline:
		deployment = d.deployment()
		a.deployments[d.workload] = deployment
		a.objects = append(a.objects, deployment)
	case !exists:
		return a.blame(&rollout.InvalidError{Field: "spec.workloadRef.name", Msg: fmt.Sprintf("Deployment/%s is not in this app (%s)", d.workload, shortRef(d.ref)),
			Fix: "add it to the kustomization"}, d.ref)
	}
	if err := a.mergeInto(deployment, d); err != nil {
		return err
	}
	if err := a.instantiate(d); err != nil {
		return err
	}
	d.spec.Workload, d.spec.Name = d.workload, d.ref.Name
	a.specs = append(a.specs, d.spec)
	return nil
}

// mergeInto merges a document into its Deployment, and blames whichever of the
// two says what is wrong.
func (a *assembly) mergeInto(deployment rollout.Object, d *document) error {
	from := d.ref
	if !d.inline {
		from = d.workload.Ref()
	}
	own, other := &reader{ref: shortRef(d.ref)}, &reader{ref: shortRef(from)}
	d.merge(value{r: other, raw: deployment.Map("spec"), path: "spec"}, own)
	if other.err != nil {
		return a.blame(other.err, from)
	}
	if own.err != nil {
		return a.blame(own.err, d.ref)
	}
	return nil
}

// deployment makes the Deployment of a document that has the template.
func (d *document) deployment() rollout.Object {
	meta := map[string]any{"name": d.ref.Name, "namespace": d.ref.Namespace}
	for _, key := range []string{"labels", "annotations"} {
		if m := d.object.Map("metadata", key); len(m) > 0 {
			delete(m, annotationScaling)
			delete(m, "kubectl.kubernetes.io/last-applied-configuration")
			meta[key] = m
		}
	}
	return rollout.Object{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta,
		"spec": map[string]any{
			"selector": d.selector, "template": d.template,
			"strategy": map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxSurge": "25%", "maxUnavailable": "25%"}},
		},
	}
}

// merge writes what the document says into the Deployment's spec, and reads
// from there what the document leaves out. Own takes errors about the document,
// spec those about the Deployment.
func (d *document) merge(spec value, own *reader) {
	into, ok := spec.raw.(map[string]any)
	if !ok || len(into) == 0 {
		spec.fail("", "is missing")
		return
	}
	if spec.field("paused").boolOr(false) {
		spec.field("paused").fail("leave it out, and use the Rollout's spec.paused", "is true, so Kubernetes would move no pod")
	}
	d.spec.Replicas = d.mergeReplicas(spec.field("replicas"), into)
	d.spec.MinReadySeconds = mergeCount(d.minReadySeconds, spec.field("minReadySeconds"), into, 0)
	d.spec.ProgressDeadlineSeconds = mergeCount(d.progressDeadlineSeconds, spec.field("progressDeadlineSeconds"), into, defaultProgressDeadline)
	mergeCount(d.revisionHistoryLimit, spec.field("revisionHistoryLimit"), into, 0)
	if d.spec.ProgressDeadlineSeconds <= d.spec.MinReadySeconds {
		blamed := spec.field("progressDeadlineSeconds")
		if d.progressDeadlineSeconds != nil || d.minReadySeconds != nil {
			blamed.r = own
		}
		blamed.fail("", "%d is not more than minReadySeconds %d, so no release could keep it", d.spec.ProgressDeadlineSeconds, d.spec.MinReadySeconds)
	}
	d.mergeStrategy(spec.field("strategy"), into, own)
}

// mergeReplicas returns how many pods there should be, nil if the manifests do
// not say. Argo Rollouts' default is 1, also where the Deployment it refers to
// has been scaled to 0, as its migration guide asks for.
func (d *document) mergeReplicas(field value, into map[string]any) *int {
	own := field.count()
	switch {
	case d.replicas != nil:
		own = d.replicas
	case d.argo && (own == nil || *own == 0):
		one := 1
		own = &one
	}
	if own != nil {
		into["replicas"] = int64(*own)
	}
	return own
}

func mergeCount(over *int, field value, into map[string]any, absent int) int {
	if over == nil {
		return field.countOr(absent)
	}
	into[field.path[len("spec."):]] = int64(*over)
	return *over
}

// mergeStrategy fills in maxSurge and maxUnavailable.
func (d *document) mergeStrategy(strategy value, into map[string]any, own *reader) {
	if strategy.field("type").text() == "Recreate" {
		d.recreate(strategy)
		return
	}
	rolling := strategy.field("rollingUpdate")
	pick := func(over *rollout.Amount, field value) rollout.Amount {
		own := field.amount(false)
		switch {
		case over != nil:
			return *over
		case own != nil:
			return *own
		default:
			return rollout.Amount{Value: defaultPercent, Percent: true}
		}
	}
	d.spec.MaxSurge, d.spec.MaxUnavailable = pick(d.maxSurge, rolling.field("maxSurge")), pick(d.maxUnavailable, rolling.field("maxUnavailable"))
	if d.spec.MaxSurge.Value == 0 && d.spec.MaxUnavailable.Value == 0 {
		if d.maxSurge != nil || d.maxUnavailable != nil {
			strategy = value{r: own, path: "spec.strategy.canary"}
		}
		strategy.fail("let one of them be more", "maxSurge and maxUnavailable are both 0, so no pod could be replaced")
	}
	if d.maxSurge == nil && d.maxUnavailable == nil {
		return
	}
	into["strategy"] = map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{
		"maxSurge": amountValue(d.spec.MaxSurge), "maxUnavailable": amountValue(d.spec.MaxUnavailable)}}
}

// recreate refuses what a Deployment that stops all old pods first cannot do.
func (d *document) recreate(strategy value) {
	switch {
	case d.spec.BlueGreen != nil:
		strategy.field("type").fail("use RollingUpdate, or remove the Rollout", "is Recreate: old and new pods cannot run side by side, as blueGreen needs")
	case len(d.spec.Canary.Steps) > 0:
		strategy.field("type").fail("use RollingUpdate, or remove the steps", "is Recreate: old and new pods cannot run side by side, as steps need")
	case d.maxSurge != nil || d.maxUnavailable != nil:
		strategy.field("type").fail("use RollingUpdate", "is Recreate, which has no maxSurge and no maxUnavailable")
	}
	d.spec.MaxUnavailable = rollout.Amount{Value: 100, Percent: true}
}

func amountValue(a rollout.Amount) any {
	if a.Percent {
		return a.String()
	}
	return int64(a.Value)
}
