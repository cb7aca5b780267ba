package rollout

import (
	"fmt"
	"strings"
)

// Workload names a Deployment, the kind of workload that is moved in stages.
// Its text form is "namespace/name".
type Workload struct {
	Namespace string
	Name      string
}

// String returns "namespace/name".
func (w Workload) String() string { return w.Namespace + "/" + w.Name }

// Ref returns the workload's object reference.
func (w Workload) Ref() Ref {
	return Ref{Group: "apps", Kind: "Deployment", Namespace: w.Namespace, Name: w.Name}
}

// MarshalText writes the text form.
func (w Workload) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalText reads the text form.
func (w *Workload) UnmarshalText(b []byte) error {
	ns, name, ok := strings.Cut(string(b), "/")
	if !ok || ns == "" || name == "" || strings.Contains(name, "/") {
		return fmt.Errorf("workload %q: want namespace/name", b)
	}
	*w = Workload{Namespace: ns, Name: name}
	return nil
}

// Annotations and labels that gitrollout writes on the objects it applies. The
// Deployment controller copies a Deployment's annotations to the ReplicaSet
// that matches its template (SetNewReplicaSetAnnotations), which makes
// AnnotationHash on a ReplicaSet a map from ReplicaSet to release that costs
// nothing.
const (
	LabelApp            = "gitrollout.dev/app"           // on every applied object: the app's name
	AnnotationCluster   = "gitrollout.dev/cluster"       // on every applied object: the cluster's name in Git
	AnnotationHash      = "gitrollout.dev/template-hash" // on workloads: Hash of the applied template
	AnnotationCommit    = "gitrollout.dev/commit"        // on workloads: the commit the template was rendered from
	AnnotationSerial    = "gitrollout.dev/serial"        // on workloads: State.Serial, so that an older record is known for what it is
	AnnotationStatus    = "gitrollout.dev/status"        // on held workloads: who holds it, at which step, and why
	AnnotationGenerated = "gitrollout.dev/generated-by"  // on objects that are not in Git: the Rollout whose release they are for
	LabelExperiment     = "gitrollout.dev/experiment"    // on an experiment's objects and pods: the name of their Deployment
	AnnotationPrune     = "gitrollout.dev/prune"         // by users, "disabled": never delete this object

	// LabelPodHash is the Deployment controller's own label on ReplicaSets and
	// pods (apps/v1 DefaultDeploymentUniqueLabelKey). It is read, never computed.
	LabelPodHash = "pod-template-hash"
)
