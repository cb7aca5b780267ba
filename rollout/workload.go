package rollout

import (
	"fmt"
	"slices"
	"strings"
)

// WorkloadKinds are the built-in kinds that a release moves in stages. An empty Workload.Kind means the first kind.
var WorkloadKinds = []Ref{
	{Group: "apps", Kind: "Deployment"}, {Group: "apps", Kind: "StatefulSet"}, {Group: "apps", Kind: "DaemonSet"},
}

// KindNames returns the names of WorkloadKinds, for a sentence.
func KindNames() string {
	return strings.Join(Mapped(WorkloadKinds, func(kind Ref) string { return kind.Kind }), ", ")
}

// Workload names an object that a release moves in stages. Its text is "namespace/name" for a Deployment,
// "Kind/namespace/name" for the other WorkloadKinds, and "Kind.group/namespace/name" for any other kind.
type Workload struct {
	Kind      string // "" for a Deployment
	Namespace string
	Name      string
}

// WorkloadOf returns a reference's workload. It returns false if WorkloadKinds lacks the kind; see Render.Workload.
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

// Workload returns a reference's workload. It returns false if the kind is not in WorkloadKinds and no Rollout has it.
func (r *Render) Workload(ref Ref) (Workload, bool) {
	w, is := WorkloadOf(ref)
	if !is {
		_, is = r.Spec(w)
	}
	return w, is
}

// String returns kind/namespace/name, or namespace/name for a Deployment.
func (w Workload) String() string {
	if w.Kind != "" {
		return w.Kind + "/" + w.Namespace + "/" + w.Name
	}
	return w.Namespace + "/" + w.Name
}

// Title returns the kind and name for messages, such as "Deployment shop/web".
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

// kind returns the kind's index in WorkloadKinds, or -1.
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

// Annotations and labels on applied objects. The Deployment controller copies annotations to the matching ReplicaSet
// (SetNewReplicaSetAnnotations), so that AnnotationHash tells the release of each ReplicaSet.
const (
	LabelAnalysis     = "gitrollout.dev/analysis"      // on a Secret: with "true", analyses in the namespace may read it
	LabelApp          = "gitrollout.dev/app"           // on every applied object: the app's name
	AnnotationCluster = "gitrollout.dev/cluster"       // on every applied object: the cluster's name in Git
	AnnotationHash    = "gitrollout.dev/template-hash" // on workloads: Hash of the applied template
	AnnotationCommit  = "gitrollout.dev/commit"        // on workloads: the commit of the template's render
	// LabelSerial is a label on workloads with the value of State.Mark. An older value in the record shows that the record
	// is outdated. An annotation would not do, because the controller would copy it to the ReplicaSet at each step.
	LabelSerial      = "gitrollout.dev/serial"
	AnnotationStatus = "gitrollout.dev/status" // on workloads that wait at a step: the running release as text
	// on objects that are not in Git: the name of the Rollout whose release needs them
	AnnotationGenerated = "gitrollout.dev/generated-by"
	// on an experiment's objects and pods: the name of the experiment's Deployment
	LabelExperiment = "gitrollout.dev/experiment"
	// AnnotationSealed is on a render's Secrets that are still encrypted. gitrollout never applies them.
	AnnotationSealed = "gitrollout.dev/sealed"

	AnnotationPrune = "gitrollout.dev/prune" // set by users: "disabled" protects the object from deletion
	// AnnotationCreateOnly is set by users on Secrets. With "true", gitrollout creates the Secret but never updates it.
	AnnotationCreateOnly = "gitrollout.dev/create-only"
	// AnnotationDecryption is set by users. With "none", the object stays encrypted by SOPS, for another tool.
	AnnotationDecryption = "gitrollout.dev/decryption"

	// LabelPodHash is the Deployment controller's label on ReplicaSets and pods (apps/v1 DefaultDeploymentUniqueLabelKey).
	// gitrollout only reads the label. It never computes the value.
	LabelPodHash = "pod-template-hash"
	// LabelRevision has the ControllerRevision's name on a StatefulSet's pods, and the name's end on a DaemonSet's pods.
	LabelRevision = "controller-revision-hash"
)
