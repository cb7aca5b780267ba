package render

import (
	"cmp"

	"gitrollout.dev/gitrollout/rollout"
)

// scale retargets a Rollout's autoscalers (HPAs, KEDA ScaledObjects, VPAs) to its workload. It removes spec.replicas,
// except for a VPA.
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
