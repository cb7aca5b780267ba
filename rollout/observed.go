package rollout

import (
	"fmt"
	"time"
)

// Observed is one app's observed state in the cluster.
type Observed struct {
	Workloads map[Workload]ObservedWorkload // every existing workload of the app
	Routes    map[Ref]ObservedRoute         // every existing object with a router's status
	Troubled  []Trouble                     // sorted by reference; objects without a status count as healthy
	Nodes     map[string]map[string]string  // labels by node, if a Spec has a NodeOrder; nil: unknown
	Unseen    string                        // why a watch fails, so that the observation may be outdated; "" if none does
}

// Trouble is a live object that its controller has not reconciled, by the rules of kstatus, which Flux also uses.
type Trouble struct {
	Ref     Ref
	Failed  bool   // the object does not recover by itself; false: it may be in progress
	Message string // the controller's reason on one line; its text may change while the problem lasts
}

// ObservedRoute is the status that a router writes on an object.
type ObservedRoute struct {
	Generation int64          // metadata.generation of the object, which a change of its spec increments
	Status     map[string]any // nil without a status
}

// Serial returns the highest serial on the app's workloads.
func (o Observed) Serial() int {
	newest := 0
	for _, w := range o.Workloads {
		newest = max(newest, w.Serial)
	}
	return newest
}

// ObservedWorkload is one live workload.
type ObservedWorkload struct {
	Replicas  int        // spec.replicas; of a DaemonSet: the number of desired nodes
	Hash      Hash       // AnnotationHash on the workload, "" if gitrollout never applied it
	Serial    int        // LabelSerial on the workload, 0 without one or if another app owns the workload
	Synced    bool       // the controller has seen the newest spec (status.observedGeneration)
	Complete  bool       // every pod has the newest template and is available, no old pod is left
	Available int        // available pods by the controller's count (status.availableReplicas)
	Surge     int        // of a Deployment: pods beyond Replicas that the live strategy allows
	First     int        // of a StatefulSet: the lowest ordinal
	Floor     int        // of a StatefulSet: lowest ordinal with the newest template; otherwise the partition
	Room      bool       // of a StatefulSet: its maxUnavailable is set (the API server may drop the field)
	Revisions []Revision // one for each ReplicaSet or ControllerRevision, newest first
}

// Revision is one version of a workload's template: a ReplicaSet, or a ControllerRevision of the other kinds.
type Revision struct {
	Name       string      // the ReplicaSet's or ControllerRevision's name
	Hash       Hash        // AnnotationHash, "" if unknown
	Pin        Pin         // the label that only its pods have; the zero value if unknown
	Current    bool        // the revision has the workload's live template
	Base       bool        // of a StatefulSet: for pods below the partition; of a DaemonSet: older than the adoption
	Number     int         // deployment.kubernetes.io/revision
	Created    time.Time   // of a ReplicaSet, in seconds
	Desired    int         // spec.replicas of a ReplicaSet; otherwise the pods that should have this revision
	Late       bool        // of a ReplicaSet: its controller has not seen spec.replicas yet, and may create pods
	Pods       int         // pods that exist and are not terminating
	ReadySince []time.Time // when each pod became Ready, oldest first, without terminating pods
	Available  int         // of a ReplicaSet: available pods by the controller's count (status.availableReplicas)
	Problem    string      // the most important reason why a pod is not Ready or not created, "" if none
	Members    []Pod       // all pods, also terminating pods, sorted by name
}

// Pin is a label that only the pods of one version have. The version's Service selects the pods by it.
type Pin struct{ Label, Value string }

// PodHash returns the pin for a value of LabelPodHash, the zero Pin for "".
func PodHash(value string) Pin {
	if value == "" {
		return Pin{}
	}
	return Pin{LabelPodHash, value}
}

// Pod is one pod, for display.
type Pod struct {
	Name        string
	Ready       bool
	Terminating bool
	Restarts    int
	Status      string // as kubectl prints it: Running, CrashLoopBackOff, ImagePullBackOff …
	Created     time.Time
	UID         string
	Node        string // of a DaemonSet's pod: its node, "" before it is scheduled
}

// Ready returns the number of Ready pods.
func (r Revision) Ready() int { return len(r.ReadySince) }

// Serving returns how many pods have been Ready for minReady, the user's minReadySeconds. A held Deployment has a huge
// minReadySeconds, so that its status.availableReplicas does not count them.
func (r Revision) Serving(now time.Time, minReady time.Duration) int {
	n := 0
	for _, since := range r.ReadySince {
		if now.Sub(since) >= minReady {
			n++
		}
	}
	return n
}

// Current returns the revision with the live template, the zero value if the controller has not made it yet.
func (w ObservedWorkload) Current() Revision {
	current, _ := Find(w.Revisions, func(r Revision) bool { return r.Current })
	return current
}

// Find returns the revision with a template hash. A user's edit of the live template can create a second revision. Find
// then prefers the current revision, then the revision with more pods, then the older revision.
func (w ObservedWorkload) Find(h Hash) (Revision, bool) {
	var best Revision
	found := false
	for _, r := range w.Revisions {
		if h == "" || r.Hash != h {
			continue
		}
		if !found || better(r, best) {
			best, found = r, true
		}
	}
	return best, found
}

func better(a, b Revision) bool {
	if a.Current != b.Current {
		return a.Current
	}
	if a.Pods != b.Pods {
		return a.Pods > b.Pods
	}
	return a.Number < b.Number
}

// Foreign is evidence that another tool or another app manages an object of an app.
type Foreign struct {
	Ref   Ref    // the app's object
	By    string // Argo Rollouts, Flagger …, or another app
	Sign  string // the evidence
	Fix   string // how the other owner releases the object
	Warns bool   // the other tool only applies files: the object is adopted, with a warning
}

// String returns "Deployment a/b is in the hands of X: the sign".
func (f Foreign) String() string {
	return fmt.Sprintf("%s is in the hands of %s: %s", f.Ref.Title(), f.By, f.Sign)
}
