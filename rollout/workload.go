package rollout

import (
	"fmt"
	"slices"
	"strings"
)

// WorkloadKinds are the kinds of objects that are moved in stages. The first one
// goes without saying: neither Workload.Kind nor its text form names it.
var WorkloadKinds = []Ref{
	{Group: "apps", Kind: "Deployment"}, {Group: "apps", Kind: "StatefulSet"}, {Group: "apps", Kind: "DaemonSet"},
}

// KindNames are the names of WorkloadKinds, as a sentence has them.
func KindNames() string {
	return strings.Join(Mapped(WorkloadKinds, func(kind Ref) string { return kind.Kind }), ", ")
}

// Workload names an object that is moved in stages. Its text form is "namespace/name", or "Kind/namespace/name" where
// it is no Deployment, and "Kind.group/namespace/name" where WorkloadKinds do not have its kind.
type Workload struct {
	Kind      string // "" for a Deployment
	Namespace string
	Name      string
}

// WorkloadOf returns the workload that a reference is one of, false for an object of another kind than WorkloadKinds:
// that is one if a Rollout document says so, which Render.Workload knows.
func WorkloadOf(ref Ref) (Workload, bool) {
	for i, kind := range WorkloadKinds {
		if ref.Group != kind.Group || ref.Kind != kind.Kind {
			continue
		}
		w := Workload{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
		if i == 0 {
			w.Kind = ""
		}
		return w, true
	}
	return Workload{Kind: ref.Kind + "." + ref.Group, Namespace: ref.Namespace, Name: ref.Name}, false
}

// Workload returns the workload of a render that a reference is one of.
func (r *Render) Workload(ref Ref) (Workload, bool) {
	w, is := WorkloadOf(ref)
	if !is {
		_, is = r.Spec(w)
	}
	return w, is
}

// String returns the text form.
func (w Workload) String() string {
	if w.Kind != "" {
		return w.Kind + "/" + w.Namespace + "/" + w.Name
	}
	return w.Namespace + "/" + w.Name
}

// Title names the workload as a sentence does: Deployment shop/web.
func (w Workload) Title() string { return w.Ref().Title() }

// Compare orders workloads by their text form.
func (w Workload) Compare(o Workload) int { return strings.Compare(w.String(), o.String()) }

// Ref returns the workload's object reference.
func (w Workload) Ref() Ref {
	if kind, group, isOther := strings.Cut(w.Kind, "."); isOther {
		return Ref{Group: group, Kind: kind, Namespace: w.Namespace, Name: w.Name}
	}
	ref := WorkloadKinds[max(0, w.kind())]
	ref.Namespace, ref.Name = w.Namespace, w.Name
	return ref
}

// kind is its place in WorkloadKinds, -1 if it is none of them.
func (w Workload) kind() int {
	if w.Kind == "" {
		return 0
	}
	return slices.IndexFunc(WorkloadKinds, func(kind Ref) bool { return kind.Kind == w.Kind })
}

// MarshalText writes the text form.
func (w Workload) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalText reads the text form.
func (w *Workload) UnmarshalText(b []byte) error {
	var read Workload
	parts := strings.Split(string(b), "/")
	if len(parts) == 3 {
		read.Kind, parts = parts[0], parts[1:]
	}
	kind, group, isOther := strings.Cut(read.Kind, ".")
	isKnown := read.kind() >= 0 || isOther && kind != "" && group != ""
	if len(parts) != 2 || parts[0] == "" || parts[1] == "" || !isKnown {
		return fmt.Errorf("workload %q: want namespace/name", b)
	}
	*w, _ = WorkloadOf(Workload{Kind: read.Kind, Namespace: parts[0], Name: parts[1]}.Ref())
	return nil
}

// Annotations and labels that gitrollout writes on the objects it applies. The Deployment controller copies a
// Deployment's annotations to the ReplicaSet that matches its template (SetNewReplicaSetAnnotations), which makes
// AnnotationHash on a ReplicaSet a map from ReplicaSet to release that costs nothing.
const (
	LabelAnalysis     = "gitrollout.dev/analysis"      // "true" on a Secret: analyses of its namespace may read it
	LabelApp          = "gitrollout.dev/app"           // on every applied object: the app's name
	AnnotationCluster = "gitrollout.dev/cluster"       // on every applied object: the cluster's name in Git
	AnnotationHash    = "gitrollout.dev/template-hash" // on workloads: Hash of the applied template
	AnnotationCommit  = "gitrollout.dev/commit"        // on workloads: the commit the template was rendered from
	// LabelSerial is on workloads: State.Mark, by which an older record is known. It changes at each step and is no
	// annotation, which the Deployment controller would write to the ReplicaSet each time.
	LabelSerial      = "gitrollout.dev/serial"
	AnnotationStatus = "gitrollout.dev/status" // on held workloads: the release that holds it
	// on objects that are not in Git: the Rollout whose release they are for.
	AnnotationGenerated = "gitrollout.dev/generated-by"
	// on an experiment's objects and pods: the name of their Deployment.
	LabelExperiment = "gitrollout.dev/experiment"
	// AnnotationSealed is on Secrets of a render whose values nobody has decrypted; they are never applied.
	AnnotationSealed = "gitrollout.dev/sealed"

	AnnotationPrune = "gitrollout.dev/prune" // by users, "disabled": never delete this object
	// AnnotationCreateOnly is by users, "true" on a Secret: make it where it is missing, and leave it alone otherwise.
	AnnotationCreateOnly = "gitrollout.dev/create-only"
	// AnnotationDecryption is by users, "none": what SOPS has encrypted in this object is for somebody else to decrypt.
	AnnotationDecryption = "gitrollout.dev/decryption"

	// LabelPodHash is the Deployment controller's own label on ReplicaSets and
	// pods (apps/v1 DefaultDeploymentUniqueLabelKey). It is read, never computed.
	LabelPodHash = "pod-template-hash"
	// LabelRevision is the StatefulSet controller's, with the name of a ControllerRevision, and the DaemonSet
	// controller's, with the end of its name.
	LabelRevision = "controller-revision-hash"
)
