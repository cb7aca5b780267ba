package rollout

import (
	"fmt"
	"slices"
	"strings"
)

// WorkloadKinds are the kinds without a Partitioned. An empty Workload.Kind means the first kind.
var WorkloadKinds = []Ref{
	{Group: "apps", Kind: "Deployment"}, {Group: "apps", Kind: "StatefulSet"}, {Group: "apps", Kind: "DaemonSet"},
}

// Workload names an object that a release moves in stages. The text form is "namespace/name" for a Deployment,
// "Kind/namespace/name" for other WorkloadKinds, else "Kind.group/namespace/name".
type Workload struct {
	Kind      string // "" for a Deployment
	Namespace string
	Name      string
}

// WorkloadOf returns a reference's workload, and whether its kind is in WorkloadKinds.
func WorkloadOf(ref Ref) (Workload, bool) {
	w := Workload{Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name}
	switch i := slices.Index(WorkloadKinds, Ref{Group: ref.Group, Kind: ref.Kind}); i {
	case -1:
		w.Kind += "." + ref.Group
		return w, false
	case 0:
		w.Kind = ""
	}
	return w, true
}

// Workload is like WorkloadOf, but also accepts kinds of r's Rollouts.
func (r *Render) Workload(ref Ref) (Workload, bool) {
	w, is := WorkloadOf(ref)
	if !is {
		_, is = r.Spec(w)
	}
	return w, is
}

func (w Workload) String() string {
	return strings.TrimPrefix(w.Kind+"/"+w.Namespace+"/"+w.Name, "/")
}

// Title returns "Deployment shop/web" or the like.
func (w Workload) Title() string { return w.Ref().Title() }

// Compare orders workloads by text.
func (w Workload) Compare(o Workload) int { return strings.Compare(w.String(), o.String()) }

// Ref returns the object's reference.
func (w Workload) Ref() Ref {
	if kind, group, isOther := strings.Cut(w.Kind, "."); isOther {
		return Ref{Group: group, Kind: kind, Namespace: w.Namespace, Name: w.Name}
	}
	ref := WorkloadKinds[max(0, w.kind())]
	ref.Namespace, ref.Name = w.Namespace, w.Name
	return ref
}

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
		return fmt.Errorf("workload %q: want namespace/name or Kind/namespace/name", b)
	}
	*w, _ = WorkloadOf(Workload{Kind: read.Kind, Namespace: parts[0], Name: parts[1]}.Ref())
	return nil
}

// The Deployment controller copies annotations to the ReplicaSet (SetNewReplicaSetAnnotations), so AnnotationHash shows
// each ReplicaSet's version.
const (
	LabelAnalysis     = "gitrollout.dev/analysis"      // on a Secret: "true" lets the namespace's analyses read it
	LabelApp          = "gitrollout.dev/app"           // on applied objects: the app's name
	AnnotationCluster = "gitrollout.dev/cluster"       // on applied objects: the cluster's name in Git
	AnnotationHash    = "gitrollout.dev/template-hash" // on workloads: Hash of the applied pod template
	AnnotationCommit  = "gitrollout.dev/commit"        // on workloads: commit of the applied pod template
	// LabelSerial has State.Mark on workloads. A record with a lower Serial is outdated. LabelSerial is a label,
	// because the Deployment controller would copy an annotation to the ReplicaSet at each step.
	LabelSerial      = "gitrollout.dev/serial"
	AnnotationStatus = "gitrollout.dev/status" // on workloads at a step: a text about the release
	// on generated objects: the Rollout that needs them
	AnnotationGenerated = "gitrollout.dev/generated-by"
	// on an experiment's objects and pods: the Deployment's name
	LabelExperiment = "gitrollout.dev/experiment"
	// on pods: metadata for the pod's role (Spec.StableMetadata)
	AnnotationRole = "gitrollout.dev/role-metadata"
	// AnnotationSealed marks a rendered Secret with encrypted values. gitrollout does not apply such a Secret.
	AnnotationSealed = "gitrollout.dev/sealed"

	AnnotationPrune = "gitrollout.dev/prune" // by users: "disabled" prevents deletion
	// AnnotationCreateOnly is set by users on Secrets. With "true", gitrollout never updates the Secret.
	AnnotationCreateOnly = "gitrollout.dev/create-only"
	// AnnotationDecryption is set by users. With "none", gitrollout applies the object without decryption.
	AnnotationDecryption = "gitrollout.dev/decryption"

	// LabelPodHash is a label of the Deployment controller (apps/v1 DefaultDeploymentUniqueLabelKey). gitrollout never
	// computes its value.
	LabelPodHash = "pod-template-hash"
	// LabelRevision has the ControllerRevision's name on a StatefulSet's pods, and the end of this name on a
	// DaemonSet's pods.
	LabelRevision = "controller-revision-hash"
)
