package render

import (
	"cmp"
	"slices"

	"gitrollout.dev/gitrollout/rollout"
)

type scaler struct {
	ref    rollout.Ref
	target map[string]any // spec.scaleTargetRef, or spec.targetRef of a VPA
	sizes  bool           // the scaler is a VPA, which sets resource requests and no replicas
	kind   string
	group  string
	name   string
}

// scalersAmong returns the HPAs, KEDA ScaledObjects and VPAs among the objects.
func scalersAmong(objects []rollout.Object) []scaler {
	var out []scaler
	for _, object := range objects {
		ref := object.Ref()
		isVPA := ref.Group == "autoscaling.k8s.io" && ref.Kind == "VerticalPodAutoscaler"
		target := object.Map("spec", "scaleTargetRef")
		if isVPA {
			target = object.Map("spec", "targetRef")
		}
		if !ref.Autoscales() && !isVPA || target == nil {
			continue
		}
		s := scaler{ref: ref, target: target, sizes: isVPA}
		s.kind, _ = target["kind"].(string)
		s.name, _ = target["name"].(string)
		version, _ := target["apiVersion"].(string)
		s.group = (rollout.Object{"apiVersion": version}).Ref().Group
		if ref.Group == "keda.sh" && s.kind == "" {
			s.kind, s.group = "Deployment", "apps" // KEDA's default
		}
		out = append(out, s)
	}
	return out
}

// scale changes the target of a Rollout's autoscalers to its workload. It removes spec.replicas if they set replicas.
func (a *assembly) scale() {
	for _, s := range scalersAmong(a.objects) {
		w := rollout.Workload{Namespace: s.ref.Namespace, Name: s.name}
		switch {
		case s.kind == "Rollout" && (s.group == argoGroup || s.group == ownGroup):
			w.Name = a.renamed(s.ref, "Rollout", w.Name)
			d := a.document(w)
			if d == nil {
				a.warn("%s: its target is Rollout/%s, which is not in this app", shortRef(s.ref), w)
				continue
			}
			w = d.workload
			s.target["apiVersion"], s.target["kind"], s.target["name"] = "apps/v1", w.Ref().Kind, w.Name
			if d.spec.Partition != nil {
				s.target["apiVersion"] = d.spec.Partition.APIVersion
			}
		default:
			target := rollout.Ref{Group: cmp.Or(s.group, "apps"), Kind: s.kind, Namespace: w.Namespace, Name: w.Name}
			w, _ = rollout.WorkloadOf(target)
		}
		if !s.sizes {
			a.omitReplicas(w, s.ref)
		}
	}
}

func (a *assembly) document(w rollout.Workload) *document {
	d, _ := rollout.Find(a.documents, func(d *document) bool {
		return d.ref.Namespace == w.Namespace && d.ref.Name == w.Name
	})
	return d
}

// omitReplicas removes the replicas from a workload that an autoscaler scales.
func (a *assembly) omitReplicas(w rollout.Workload, by rollout.Ref) {
	deployment, ok := a.deployments[w]
	if !ok {
		return
	}
	spec := deployment.Map("spec")
	if i := slices.IndexFunc(a.specs, func(s rollout.Spec) bool { return s.Workload == w }); i >= 0 {
		a.specs[i].Replicas = nil
	}
	if spec["replicas"] != nil {
		a.warn("%s: replicas are ignored, because %s scales the workload; remove replicas from the manifest",
			shortRef(w.Ref()), shortRef(by))
	}
	delete(spec, "replicas")
}
