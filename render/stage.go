package render

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"

	"gitrollout.dev/gitrollout/rollout"
)

// These defaults are the same for Deployments and Argo Rollouts.
const (
	defaultProgressDeadline = 600
	defaultPercent          = 25 // for maxSurge and maxUnavailable
)

func (a *assembly) stage(d *document) error {
	for _, w := range d.Warnings {
		a.warn("%s: %s", shortRef(d.ref), w)
	}
	if err := a.resolve(d); err != nil {
		return err
	}
	if err := a.describe(d); err != nil {
		return err
	}
	if slices.ContainsFunc(a.documents, func(o *document) bool { return o.spec.Workload == d.workload }) {
		return a.invalid(d.ref, "", "keep only one", "%s already has a Rollout", shortRef(d.workload.Ref()))
	}
	deployment, exists := a.deployments[d.workload]
	switch {
	case d.inline && exists:
		return a.invalid(d.ref, "metadata.name", "remove the Deployment, or name it in spec.workloadRef",
			"conflicts with Deployment/%s", d.workload)
	case d.inline:
		deployment = d.deployment()
		a.deployments[d.workload] = deployment
		a.Objects = append(a.Objects, deployment)
	case !exists:
		return a.invalid(d.ref, "spec.workloadRef.name", "add it to the kustomization", "%s is not in this app",
			shortRef(d.workload.Ref()))
	}
	if err := a.mergeInto(deployment, d); err != nil {
		return err
	}
	if err := a.instantiate(d); err != nil {
		return err
	}
	d.spec.Workload, d.spec.Name = d.workload, d.ref.Name
	return nil
}

func (a *assembly) mergeInto(deployment rollout.Object, d *document) error {
	from := originOf(d)
	into := deployment.Map("spec")
	if len(into) == 0 {
		return a.invalid(from, "spec", "", "is missing")
	}
	own, other := &rollout.Reader{}, &rollout.Reader{}
	given := d.form.Selector
	if !d.inline && given != nil && !reflect.DeepEqual(given, deployment.Map("spec", "selector")) {
		own.Fail("spec.selector", "leave it out", "differs from the selector of %s", shortRef(d.workload.Ref()))
	}
	var form deploymentForm
	if other.Read("spec", into, &form); other.Err == nil {
		d.merge(&form, deployment, own, other)
	}
	if other.Err != nil {
		return a.blame(other.Err, from)
	}
	if own.Err != nil {
		return a.blame(own.Err, d.ref)
	}
	return nil
}

func originOf(d *document) rollout.Ref {
	if d.inline {
		return d.ref
	}
	return d.workload.Ref()
}

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
			"selector": d.form.Selector, "template": d.form.Template,
			"strategy": map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{"maxSurge": "25%",
				"maxUnavailable": "25%"}},
		},
	}
}

// merge writes settings into the workload's spec, and reads missing settings from the spec. Errors about the document
// go to the reader "own", and errors about the workload to the reader "other".
func (d *document) merge(from *deploymentForm, o rollout.Object, own, other *rollout.Reader) {
	into := o.Map("spec")
	if from.Paused {
		other.Fail("spec.paused", "leave it out, and use the Rollout's spec.paused",
			"is true, so no pod would be updated")
	}
	d.spec.Replicas = d.mergeReplicas(from.Replicas, into)
	d.spec.MinReadySeconds = d.mergeMinReady(from, o, other)
	deadline := into
	if d.workload.Kind != "" {
		deadline = map[string]any{} // only a Deployment has this field
	}
	d.spec.ProgressDeadlineSeconds = mergeCount("progressDeadlineSeconds", d.form.ProgressDeadlineSeconds,
		from.ProgressDeadlineSeconds, deadline, defaultProgressDeadline)
	mergeCount("revisionHistoryLimit", d.form.RevisionHistoryLimit, from.RevisionHistoryLimit, into, 0)
	if d.spec.ProgressDeadlineSeconds <= d.spec.MinReadySeconds {
		blamed, fix := other, ""
		if d.form.ProgressDeadlineSeconds != nil || d.form.MinReadySeconds != nil || d.workload.Kind != "" {
			blamed, fix = own, fmt.Sprintf("set it to more than %d in the Rollout document", d.spec.MinReadySeconds)
		}
		blamed.Fail("spec.progressDeadlineSeconds", fix,
			"%d is not more than minReadySeconds %d, so every release would exceed the deadline",
			d.spec.ProgressDeadlineSeconds, d.spec.MinReadySeconds)
	}
	kind := mergers[d.workload.Kind]
	if d.spec.Partition != nil {
		kind.merge = (*document).mergePartitioned
	}
	if c := d.spec.Canary; c != nil && c.Rebalance && !kind.ordinals {
		own.Fail(canaryPath+".rebalance", "leave it out",
			"is true, but needs ordinals, and the pods of a %s have none", o.Kind())
	}
	if c := d.spec.Canary; c != nil && len(c.NodeOrder) > 0 && !kind.nodes {
		own.Fail(canaryPath+".nodeOrder", "leave it out: the workload's controller chooses the nodes",
			"is set, but "+nodesElsewhere)
	}
	kind.merge(d, o, from, own, other)
	if c := d.spec.Canary; c != nil && c.ReplicaProgressThreshold != nil && d.spec.MaxUnavailable.Value == 0 &&
		d.workload.Kind != "" { // in a Deployment, 0 is intended
		own.Fail(canaryPath+".replicaProgressThreshold",
			"leave it out, or set maxUnavailable in spec.updateStrategy of the workload if its kind has the field",
			"is set, but all pods of a setWeight step must be available: maxUnavailable of the %s is 0 or unknown", o.Kind())
	}
}

// mergeReplicas returns nil if an autoscaler may set the replicas. For an Argo Rollout, a Deployment's 0 becomes 1,
// because Argo's migration guide sets 0.
func (d *document) mergeReplicas(own *int, into map[string]any) *int {
	if d.Argo && own != nil && *own == 0 {
		own = new(1)
	}
	own = cmp.Or(d.form.Replicas, own)
	if own != nil {
		into["replicas"] = int64(*own)
	}
	return own
}

func mergeCount(field string, over, own *int, into map[string]any, absent int) int {
	if over != nil {
		into[field] = int64(*over)
	}
	return *cmp.Or(over, own, &absent)
}

func (d *document) mergeStrategy(o rollout.Object, form *deploymentForm, own, other *rollout.Reader) {
	from := form.Strategy
	var surge, unavailable *rollout.Amount
	if c := d.form.Strategy.Canary; c != nil {
		surge, unavailable = c.MaxSurge, c.MaxUnavailable
	}
	said := surge != nil || unavailable != nil
	if from.Type == "Recreate" {
		d.recreate(said, other)
		return
	}
	pick := func(over *rollout.Amount, own *podAmount) rollout.Amount {
		if over == nil && own != nil {
			over = &own.Amount
		}
		return *cmp.Or(over, &rollout.Amount{Value: defaultPercent, Percent: true})
	}
	d.spec.MaxSurge, d.spec.MaxUnavailable = pick(surge, from.RollingUpdate.MaxSurge), pick(unavailable,
		from.RollingUpdate.MaxUnavailable)
	if d.spec.MaxSurge.Value == 0 && d.spec.MaxUnavailable.Value == 0 {
		blamed, at := other, "spec.strategy"
		if said {
			blamed, at = own, canaryPath
		}
		blamed.Fail(at, "set one of them above 0", "maxSurge and maxUnavailable are both 0, so no pod could be replaced")
	}
	if said {
		o.Map("spec")["strategy"] = map[string]any{"type": "RollingUpdate", "rollingUpdate": map[string]any{
			"maxSurge": amountValue(d.spec.MaxSurge), "maxUnavailable": amountValue(d.spec.MaxUnavailable)}}
	}
}

func (d *document) recreate(said bool, other *rollout.Reader) {
	const at = "spec.strategy.type"
	switch {
	case d.spec.BlueGreen != nil:
		other.Fail(at, "use RollingUpdate, or remove the Rollout",
			"is Recreate: old and new pods cannot run side by side, as blueGreen needs")
	case len(d.spec.Canary.Steps) > 0:
		other.Fail(at, "use RollingUpdate, or remove the steps",
			"is Recreate: old and new pods cannot run side by side, as steps need")
	case said:
		other.Fail(at, "use RollingUpdate", "is Recreate, which has no maxSurge and no maxUnavailable")
	}
	d.spec.MaxUnavailable = rollout.Amount{Value: 100, Percent: true}
}

func amountValue(a rollout.Amount) any {
	if a.Percent {
		return a.String()
	}
	return int64(a.Value)
}

// scale points a Rollout's autoscalers (HPAs, KEDA ScaledObjects, VPAs) at the Rollout's workload. For an HPA or
// ScaledObject, scale also removes the workload's spec.replicas.
func (a *assembly) scale() {
	for _, object := range a.Objects {
		ref := object.Ref()
		isVPA := ref.Group == "autoscaling.k8s.io" && ref.Kind == "VerticalPodAutoscaler"
		target := object.Map("spec", "scaleTargetRef")
		if isVPA {
			target = object.Map("spec", "targetRef")
		}
		if !ref.Autoscales() && !isVPA || target == nil {
			continue
		}
		of := rollout.Object{"apiVersion": target["apiVersion"], "kind": target["kind"]}.Ref()
		of.Namespace = ref.Namespace
		of.Name, _ = target["name"].(string)
		if ref.Group == "keda.sh" && of.Kind == "" {
			of.Kind, of.Group = "Deployment", "apps" // KEDA's default
		}
		var w rollout.Workload
		if isRollout(of) {
			w.Namespace, w.Name = of.Namespace, a.renamed(ref, "Rollout", of.Name)
			d := a.document(w)
			if d == nil {
				a.warn("%s: its target is Rollout/%s, which is not in this app", shortRef(ref), w)
				continue
			}
			w = d.workload
			target["apiVersion"], target["kind"], target["name"] = "apps/v1", w.Ref().Kind, w.Name
			if d.spec.Partition != nil {
				target["apiVersion"] = d.spec.Partition.APIVersion
			}
		} else {
			of.Group = cmp.Or(of.Group, "apps")
			w, _ = rollout.WorkloadOf(of)
		}
		if !isVPA {
			a.omitReplicas(w, ref)
		}
	}
}

func (a *assembly) document(w rollout.Workload) *document {
	d, _ := rollout.Find(a.documents, func(d *document) bool {
		return d.ref.Namespace == w.Namespace && d.ref.Name == w.Name
	})
	return d
}

func (a *assembly) omitReplicas(w rollout.Workload, by rollout.Ref) {
	deployment, ok := a.deployments[w]
	if !ok {
		return
	}
	spec := deployment.Map("spec")
	if d, staged := rollout.Find(a.documents, func(d *document) bool { return d.workload == w }); staged {
		d.spec.Replicas = nil
	}
	if spec["replicas"] != nil {
		a.warn("%s: replicas are ignored, because %s scales the workload; remove replicas from the manifest",
			shortRef(w.Ref()), shortRef(by))
	}
	delete(spec, "replicas")
}
