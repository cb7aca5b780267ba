package rollout

import (
	"fmt"
	"slices"
	"time"
)

// Observed is the observed state of one app.
type Observed struct {
	Workloads map[Workload]ObservedWorkload // each existing workload that the app has in Git or in its inventory
	Routes    map[Ref]ObservedRoute         // each existing object whose status shows whether a router accepts it
	Troubled  []Trouble                     // unhealthy objects, sorted; an object without a status counts as healthy
	Nodes     map[string]map[string]string  // labels by node name; nil if unknown, or if no release orders nodes
	Unseen    string                        // error of a failed watch: the observation may be outdated; "" if none
	Unread    []Workload                    // not in Workloads, because the user may not read their namespaces
}

// Trouble is a live object that is unhealthy by kstatus, as in Flux.
type Trouble struct {
	Ref     Ref
	Failed  bool   // true: kstatus reports a failure; false: the object may still become ready
	Message string // the controller's reason on one line; the text may change while the problem lasts
}

// ObservedRoute shows whether a router accepts an object.
type ObservedRoute struct {
	Generation int64          // metadata.generation, which the API server increments at each change of the spec
	Status     map[string]any // the status that a router has written; nil without a status
}

// Read reports whether a workload's state is known, even if the workload does not exist.
func (o Observed) Read(w Workload) bool { return o.Workloads != nil && !slices.Contains(o.Unread, w) }

// Serial returns the highest LabelSerial on the app's workloads.
func (o Observed) Serial() (newest int) {
	for _, w := range o.Workloads {
		newest = max(newest, w.Serial)
	}
	return newest
}

// ObservedWorkload is the observed state of one live workload.
type ObservedWorkload struct {
	Replicas   int        // spec.replicas; for a DaemonSet, the number of nodes that should have a pod
	Hash       Hash       // AnnotationHash on the workload, "" if gitrollout never applied it
	Serial     int        // LabelSerial on the workload; 0 without the label, or if another app owns the workload
	BreakGlass string     // AnnotationBreakGlass on the workload; "" without it, or if another app owns the workload
	Synced     bool       // the controller has seen the newest spec, and the watch has shown its newest revision
	Complete   bool       // all pods have the newest template and are available, and no old pod is left
	Available  int        // the controller's count of available pods (status.availableReplicas)
	Surge      int        // Deployments only: how many pods more than Replicas the live strategy allows
	First      int        // ordered kinds only: the lowest ordinal of a pod
	Floor      int        // ordered kinds: lowest ordinal with the newest template; others: how many pods keep the old one
	Unordered  bool       // Kruise's StatefulSets only: pods at or above Floor may keep the old template
	Strays     int        // nodes that should have no pod but keep one, such as nodes that got a NoSchedule taint
	Room       bool       // StatefulSets only: the live object has the field maxUnavailable, so the API server knows it
	Revisions  []Revision // one Revision for each ReplicaSet or ControllerRevision, newest first
}

// Revision is one version of a workload's template: a Deployment's ReplicaSet, or a ControllerRevision.
type Revision struct {
	Name       string      // the ReplicaSet's or ControllerRevision's name
	Hash       Hash        // AnnotationHash, "" if unknown
	Pin        Pin         // the label that only this revision's pods have; zero if unknown
	Current    bool        // the revision has the workload's live template
	Base       bool        // the status has it as currentRevision; DaemonSets: it has pods, but no known hash
	Number     int         // deployment.kubernetes.io/revision of a ReplicaSet, or the revision of a ControllerRevision
	Created    time.Time   // creation time, in whole seconds
	Desired    int         // spec.replicas of a ReplicaSet; for other kinds, how many pods should have the revision
	Late       bool        // ReplicaSets only: the controller has not seen spec.replicas yet, so it may still add pods
	Pods       int         // number of pods, without terminating and finished pods
	ReadySince []time.Time // when each Ready pod among these pods became Ready, oldest first
	Available  int         // ReplicaSets only: the controller's count of available pods (status.availableReplicas)
	Problem    string      // the most important reason why a pod is not Ready or cannot be created, "" if none
	Members    []Pod       // all pods, including terminating pods, sorted by name
}

// Pin is a label that only one version's pods have. A Service for the version selects by this label.
type Pin struct{ Label, Value string }

// PodHash returns the Pin for a value of LabelPodHash, zero for "".
func PodHash(value string) Pin {
	if value == "" {
		return Pin{}
	}
	return Pin{LabelPodHash, value}
}

// Pod is one pod, for display.
type Pod struct {
	Name        string    `json:"name"`
	Status      string    `json:"status"` // as in the output of kubectl: Running, CrashLoopBackOff, ImagePullBackOff …
	Ready       bool      `json:"ready"`
	Restarts    int       `json:"restarts"`
	Created     time.Time `json:"created"`
	Terminating bool      `json:"-"`
	UID         string    `json:"-"`
	Role        string    `json:"-"` // AnnotationRole, "" without it
	Node        string    `json:"-"` // for kinds with a pod on each node: the pod's node, "" before it has one
}

// Ready returns the number of Ready pods.
func (r Revision) Ready() int { return len(r.ReadySince) }

// Serving returns how many pods have been Ready for minReady, the user's minReadySeconds. It avoids
// status.availableReplicas: gitrollout sets a huge minReadySeconds while a Deployment is at a step.
func (r Revision) Serving(now time.Time, minReady time.Duration) (n int) {
	for _, since := range r.ReadySince {
		if now.Sub(since) >= minReady {
			n++
		}
	}
	return n
}

// Current returns the revision with the live template, zero until the controller creates it.
func (w ObservedWorkload) Current() Revision {
	current, _ := Find(w.Revisions, func(r Revision) bool { return r.Current })
	return current
}

// Find returns the revision with a template hash. After edits of the live template, several may match: Find prefers the
// current revision, then more pods, then the older revision.
func (w ObservedWorkload) Find(h Hash) (best Revision, found bool) {
	for _, r := range w.Revisions {
		if h != "" && r.Hash == h && (!found || better(r, best)) {
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

// Foreign is evidence that another tool or app manages an object.
type Foreign struct {
	Ref   Ref    // the app's object
	By    string // the other owner: Argo Rollouts, Flagger …, or another app
	Sign  string // the evidence, as text
	Fix   string // how users can make the other owner give up the object
	Warns bool   // true: gitrollout adopts the object with a warning, because the other tool only applies files
}

// String returns a clause such as "Deployment a/b is in the hands of X: the sign".
func (f Foreign) String() string {
	return fmt.Sprintf("%s is in the hands of %s: %s", f.Ref.Title(), f.By, f.Sign)
}
