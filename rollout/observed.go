package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Observed is an app's observed state.
type Observed struct {
	Workloads map[Workload]ObservedWorkload // existing workloads, named in Git or the app's inventory
	Routes    map[Ref]ObservedRoute         // existing objects whose status a router writes
	Troubled  []Trouble                     // unhealthy objects, sorted; without a status, an object is healthy
	Nodes     map[string]map[string]string  // labels by node name; nil if unknown, or if no release needs them
	Unseen    string                        // a failed watch's error: the observation may be outdated; or ""
	Unread    []Workload                    // workloads in namespaces that gitrollout may not read
}

// Trouble is a live object that kstatus, as used by Flux, finds unhealthy.
type Trouble struct {
	Ref     Ref
	Failed  bool   // true: kstatus says Failed; false: may still become ready
	Message string // the controller's reason on one line; may change while the problem lasts
}

// ObservedRoute shows whether a router accepts an object.
type ObservedRoute struct {
	Generation int64          // metadata.generation
	Status     map[string]any // written by a router; nil without a status
}

// Read reports whether gitrollout knows if a workload exists.
func (o Observed) Read(w Workload) bool { return o.Workloads != nil && !slices.Contains(o.Unread, w) }

// Serial returns the workloads' highest LabelSerial.
func (o Observed) Serial() (newest int) {
	for _, w := range o.Workloads {
		newest = max(newest, w.Serial)
	}
	return newest
}

// ObservedWorkload is a live workload's observed state.
type ObservedWorkload struct {
	Replicas   int        // spec.replicas; DaemonSets: how many nodes should have a pod
	Hash       Hash       // AnnotationHash, "" if gitrollout never applied the workload
	Serial     int        // LabelSerial; 0 without the label, or if another app owns the workload
	BreakGlass string     // AnnotationBreakGlass; "" without, or if another app owns the workload
	Synced     bool       // the controller has seen the newest spec, and gitrollout has seen the newest revision
	Complete   bool       // all pods have the newest template and are available; no old pod is left
	Available  int        // status.availableReplicas
	Surge      int        // Deployments: how many pods the live strategy allows above Replicas
	First      int        // ordered kinds: lowest ordinal of a pod
	Floor      int        // ordered kinds: lowest ordinal with the newest template; others: how many pods stay old
	Unordered  bool       // Kruise's StatefulSets: pods at or above Floor may have the old template
	Strays     int        // nodes that should have no pod but keep one, for example after a NoSchedule taint
	Room       bool       // StatefulSets: the live object has maxUnavailable, so the API server supports this field
	Revisions  []Revision // one for each ReplicaSet or ControllerRevision, newest first
}

// Revision is a version of a workload's template: a ReplicaSet or ControllerRevision.
type Revision struct {
	Name       string
	Hash       Hash        // AnnotationHash, "" if unknown
	Pin        Pin         // zero if unknown
	Current    bool        // has the live template
	Base       bool        // is status.currentRevision; DaemonSets: has pods, but no known hash
	Number     int         // deployment.kubernetes.io/revision, or the ControllerRevision's revision
	Created    time.Time   // in whole seconds
	Desired    int         // a ReplicaSet's spec.replicas; other kinds: how many pods should have the revision
	Late       bool        // ReplicaSets: the controller has not seen spec.replicas, and may add pods
	Pods       int         // number of pods, without terminating and finished pods
	ReadySince []time.Time // when each Ready pod among Pods became Ready, oldest first
	Available  int         // ReplicaSets: status.availableReplicas
	Problem    string      // main reason why a pod is not Ready or cannot be created, or ""
	Members    []Pod       // all pods, including terminating pods, sorted by name
}

// Pin is a label that only one version's pods have, for a Service's selector.
type Pin struct{ Label, Value string }

// PodHash returns the Pin for LabelPodHash; zero for "".
func PodHash(value string) Pin {
	if value == "" {
		return Pin{}
	}
	return Pin{LabelPodHash, value}
}

// Pod is one pod, for display.
type Pod struct {
	Name        string    `json:"name"`
	Status      string    `json:"status"` // as kubectl shows: Running, CrashLoopBackOff, ImagePullBackOff …
	Ready       bool      `json:"ready"`
	Restarts    int       `json:"restarts"`
	Created     time.Time `json:"created"`
	Terminating bool      `json:"-"`
	UID         string    `json:"-"`
	Role        string    `json:"-"` // AnnotationRole, or ""
	Node        string    `json:"-"` // for kinds with a pod per node; "" before scheduling
}

// Ready returns how many pods are Ready.
func (r Revision) Ready() int { return len(r.ReadySince) }

// Serving returns how many pods have been Ready for the user's minReadySeconds. At a step, a Deployment has a huge
// minReadySeconds, so status.availableReplicas is useless.
func (r Revision) Serving(now time.Time, minReady time.Duration) (n int) {
	for _, since := range r.ReadySince {
		if now.Sub(since) >= minReady {
			n++
		}
	}
	return n
}

// Current returns the revision with the live template; zero until it exists.
func (w ObservedWorkload) Current() Revision {
	current, _ := Find(w.Revisions, func(r Revision) bool { return r.Current })
	return current
}

// Find returns the revision with a template hash. Edits of the live template may cause several such revisions. Find
// prefers the current revision, then the revision with more pods, then the older revision.
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
	return cmp.Or(cmp.Compare(b.Pods, a.Pods), cmp.Compare(a.Number, b.Number)) < 0
}

// Foreign is evidence that another tool or app manages an object.
type Foreign struct {
	Ref   Ref    // the app's object
	By    string // the other owner: Argo Rollouts, Flagger …, or another app
	Sign  string // the evidence, as text
	Fix   string // how users make the owner give up the object
	Warns bool   // true: gitrollout adopts the object with a warning, because the tool only applies files
}

// String returns "Deployment a/b is managed by X: the sign".
func (f Foreign) String() string {
	return fmt.Sprintf("%s is managed by %s: %s", f.Ref.Title(), f.By, f.Sign)
}
