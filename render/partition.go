package render

import (
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

func (a *assembly) describe(d *document) error {
	if _, builtIn := rollout.WorkloadOf(d.workload.Ref()); builtIn {
		return nil
	}
	ref := d.form.WorkloadRef
	p, instead := rollout.FindPartitioned(rollout.PartitionedOf(a.App), ref.APIVersion, ref.Kind)
	d.spec.Partition = p
	kinds := rollout.Mapped(rollout.WorkloadKinds, func(k rollout.Ref) string { return k.Kind })
	isApps := slices.Contains(kinds, ref.Kind)
	isKubernetes := !strings.Contains(d.workload.Ref().Group, ".")
	switch {
	case p != nil:
		return nil
	case len(instead) > 0:
		return a.invalid(d.ref, "spec.workloadRef.apiVersion", "use "+strings.Join(instead, " or "),
			"is %q, which has no %s that can be released in stages", ref.APIVersion, ref.Kind)
	case isApps && isKubernetes:
		return a.invalid(d.ref, "spec.workloadRef.apiVersion", "use apps/v1", "%q is not apps/v1", ref.APIVersion)
	case isKubernetes:
		return a.invalid(d.ref, "spec.workloadRef.kind", "name a workload that can be released in stages",
			"%q is not supported; supported kinds: %s", ref.Kind, strings.Join(kinds, ", "))
	default:
		return a.invalid(d.ref, "spec.workloadRef.kind", "if its spec has a partition field, describe the kind "+
			"under workloads in .gitrollout/<cluster>/config.yaml; if not, remove the Rollout: the workload is then applied unchanged",
			"is %q of %s, and no entry under workloads describes this kind", ref.Kind, ref.APIVersion)
	}
}

func (d *document) mergePartitioned(o rollout.Object, _ *deploymentForm, own, other *rollout.Reader) {
	p := d.spec.Partition
	at := p.Partition[:strings.LastIndex(p.Partition, ".")]
	if p.Nodes != "" {
		d.mergeNodes(o, own, other)
	} else {
		inPlace{
			second: "its partition divides the only set of pods", beside: "beside the pods that its partition counts",
			experiment: "not belong to its controller", replaced: "as its own updateStrategy says",
			change: "set it in spec.updateStrategy of the " + p.Kind,
		}.refuse(d, own)
	}
	if p.Nodes == "" && p.Unavailable != nil {
		d.mergeUnavailable(o, at, other)
	}
	if o.APIVersion() != p.APIVersion {
		own.Fail("spec.workloadRef.apiVersion", "write the apiVersion of the manifest", "is %q, but the %s uses %q",
			p.APIVersion, p.Kind, o.APIVersion())
	}
	if set := rollout.In(o, p.Partition); set != nil {
		other.Fail(p.Partition, "leave it out: the steps of the Rollout set the number of pods",
			"is %v, but the Rollout sets it at each step", set)
	}
	if p.Only != "" && rollout.In(o, p.Only) != nil {
		other.Fail(p.Only, "leave it out", "is set, but pods outside this selection would keep the old version forever")
	}
	if rollout.In(o, at+".paused") == true {
		other.Fail(at+".paused", "leave it out, and use the Rollout's spec.paused", "is true, so no pod would be updated")
	}
	if kind := rollout.In(o, "spec.updateStrategy.type"); kind == "OnDelete" {
		other.Fail("spec.updateStrategy.type", "leave it out, or remove the Rollout",
			"is %v: a pod would be replaced only after its deletion", kind)
	}
}

func (d *document) mergeMinReady(from *deploymentForm, o rollout.Object, other *rollout.Reader) int {
	p := d.spec.Partition
	if p == nil {
		return mergeCount("minReadySeconds", d.form.MinReadySeconds, from.MinReadySeconds, o.Map("spec"), 0)
	}
	raw := rollout.In(o, p.MinReady)
	n, isNumber := raw.(int64)
	if raw != nil && !isNumber {
		other.Fail(p.MinReady, "write a number of seconds", "is %v", raw)
	}
	if own := d.form.MinReadySeconds; own != nil {
		o.Set(int64(*own), strings.Split(p.MinReady, ".")...)
		return *own
	}
	return int(n)
}
