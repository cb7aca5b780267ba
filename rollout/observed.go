package rollout

import (
	"fmt"
	"slices"
	"time"
)

// Observed is one app's observed state in the cluster.
type Observed struct {
	Workloads map[Workload]ObservedWorkload // every existing workload of the app
	Routes    map[Ref]ObservedRoute         // every existing object with a router's status
	Troubled  []Trouble                     // sorted by reference; an object without a status is treated as healthy
	Nodes     map[string]map[string]string  // labels by node name; nil if they are unknown, or if no Spec has a NodeOrder
	Unseen    string                        // error of a watch: the observation may be outdated; "" while all watches work
	Unread    []Workload                    // not in Workloads, because the user may not read their namespaces
}

// Trouble is a live object that its controller has not reconciled. The rules are from kstatus, which Flux uses, too.
type Trouble struct {
	Ref     Ref
	Failed  bool   // true: the object does not recover by itself; false: it may still become ready
	Message string // the controller's reason on one line; its text may change while the problem lasts
}

// ObservedRoute is the status that a router writes on an object.
type ObservedRoute struct {
	Generation int64          // metadata.generation, which the API server increments when the spec changes
	Status     map[string]any // nil without a status
}

// Read reports whether a workload was observed, even if it does not exist.
func (o Observed) Read(w Workload) bool { return o.Workloads != nil && !slices.Contains(o.Unread, w) }

// Serial returns the highest value of LabelSerial on the app's workloads.
func (o Observed) Serial() int {
	newest := 0
	for _, w := range o.Workloads {
		newest = max(newest, w.Serial)
	}
	return newest
}

// ObservedWorkload is one live workload.
type ObservedWorkload struct {
	Replicas   int        // spec.replicas; for a DaemonSet, the number of nodes that should have a pod
	Hash       Hash       // AnnotationHash on the workload, "" if gitrollout never applied it
	Serial     int        // LabelSerial on the workload; 0 if it has none or another app owns it
	BreakGlass string     // AnnotationBreakGlass on the workload, "" if it has none or another app owns it
	Synced     bool       // the controller has seen the newest spec (status.observedGeneration)
	Complete   bool       // every pod has the newest template and is available, and no old pod is left
	Available  int        // the controller's count of available pods (status.availableReplicas)
	Surge      int        // Deployments only: number of extra pods, beyond Replicas, that the live strategy allows
	First      int        // StatefulSets only: the lowest ordinal
	Floor      int        // StatefulSets: lowest ordinal with the newest template; other kinds: number of old pods to keep
	Room       bool       // StatefulSets only: the live object has maxUnavailable, so the API server knows the field
	Revisions  []Revision // one for each ReplicaSet or ControllerRevision, newest first
}

// Revision is one version of a workload's template. It is a ReplicaSet or, for other kinds, a ControllerRevision.
type Revision struct {
	Name       string      // the ReplicaSet's or ControllerRevision's name
	Hash       Hash        // AnnotationHash, "" if unknown
	Pin        Pin         // the label that only this revision's pods have; zero if unknown
	Current    bool        // the revision has the workload's live template
	Base       bool        // StatefulSets: used for pods below the partition; DaemonSets: has pods, but no known hash
	Number     int         // deployment.kubernetes.io/revision
	Created    time.Time   // ReplicaSets only, in whole seconds
	Desired    int         // spec.replicas of a ReplicaSet; for other kinds, how many pods should have this revision
	Late       bool        // ReplicaSets only: the controller has not seen spec.replicas yet, and may still add pods
	Pods       int         // pods that exist and are not terminating
	ReadySince []time.Time // when each non-terminating pod became Ready, oldest first
	Available  int         // ReplicaSets only: the controller's count of available pods (status.availableReplicas)
	Problem    string      // the most important reason why a pod is not Ready or not created, "" if none
	Members    []Pod       // all pods, including terminating pods, sorted by name
}

// Pin is a label that only the pods of one version have. The version's Service selects its pods with the label.
type Pin struct{ Label, Value string }

// PodHash returns the pin for a value of the label LabelPodHash. For "", it returns the zero Pin.
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
	Node        string // DaemonSets only: the pod's node, "" before the pod is scheduled
}

// Ready returns the number of Ready pods.
func (r Revision) Ready() int { return len(r.ReadySince) }

// Serving returns how many pods have been Ready for minReady, the user's minReadySeconds. It does not use
// status.availableReplicas, because gitrollout sets a huge minReadySeconds while it holds a Deployment back.
func (r Revision) Serving(now time.Time, minReady time.Duration) int {
	n := 0
	for _, since := range r.ReadySince {
		if now.Sub(since) >= minReady {
			n++
		}
	}
	return n
}

// Current returns the revision with the live template, the zero value if the controller has not made one yet.
func (w ObservedWorkload) Current() Revision {
	current, _ := Find(w.Revisions, func(r Revision) bool { return r.Current })
	return current
}

// Find returns the revision with a template hash. After an edit of the live template, two revisions may have the same
// hash. Find prefers the current revision, then the revision with more pods, then the older revision.
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

// Foreign is evidence that another tool or another app manages one of the app's objects.
type Foreign struct {
	Ref   Ref    // the app's object
	By    string // Argo Rollouts, Flagger …, or another app
	Sign  string // the evidence
	Fix   string // how users make the other owner release the object
	Warns bool   // true: adopt the object with a warning, because the other tool only applies files
}

// String returns a clause such as "Deployment a/b is in the hands of X: the sign".
func (f Foreign) String() string {
	return fmt.Sprintf("%s is in the hands of %s: %s", f.Ref.Title(), f.By, f.Sign)
}
