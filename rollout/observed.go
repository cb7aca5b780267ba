package rollout

import (
	"fmt"
	"time"
)

// Observed is one app's observed state in the cluster.
type Observed struct {
	Workloads map[Workload]ObservedWorkload // every existing workload of the app
	Routes    map[Ref]ObservedRoute         // every existing object with a router's status
	Troubled  []Trouble                     // by reference; objects without a status count as healthy
	Nodes     map[string]map[string]string  // labels by node, if nodes are ordered by labels; nil: unknown
	Unseen    string                        // why the observation may be outdated: nothing can be watched; "" if it can
}

// Trouble is a live object of the app that its controller has not reconciled, by the rules of kstatus, as in Flux.
type Trouble struct {
	Ref     Ref
	Failed  bool   // it does not recover by itself; otherwise it may be in progress
	Message string // the controller's reason, on one line: it may differ each time
}

// ObservedRoute is the status that a router writes on an object.
type ObservedRoute struct {
	Generation int64          // of the object, incremented by changes of its spec
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
	Serial    int        // LabelSerial on it, 0 if it has none or belongs to another app
	Synced    bool       // the controller has observed the newest spec (observedGeneration)
	Complete  bool       // every pod has the newest template and is available, no old pod is left
	Available int        // available pods by the controller's count (status.availableReplicas)
	Surge     int        // of a Deployment: pods beyond Replicas that its present strategy allows
	First     int        // of a StatefulSet: the lowest ordinal
	Floor     int        // of a StatefulSet: the first ordinal with the newest template; or nodes that stay
	Room      bool       // of a StatefulSet: the API server keeps its maxUnavailable
	Revisions []Revision // one for each ReplicaSet, newest first
}

// Revision is one ReplicaSet of a Deployment.
type Revision struct {
	Name       string      // the ReplicaSet's name
	Hash       Hash        // AnnotationHash, "" if unknown
	Pin        Pin         // the label that only its pods have; the zero value if unknown
	Current    bool        // the Deployment's template matches it now
	Base       bool        // of a StatefulSet: pods below the partition have it; of a DaemonSet: it was adopted
	Number     int         // deployment.kubernetes.io/revision
	Created    time.Time   // of a ReplicaSet, in seconds
	Desired    int         // spec.replicas
	Late       bool        // of a ReplicaSet: its controller has not seen its size yet, and may create pods
	Pods       int         // pods that exist and are not terminating
	ReadySince []time.Time // since when each Ready, not terminating pod is Ready, oldest first
	Available  int         // of a ReplicaSet: available pods by the controller's count (status.availableReplicas)
	Problem    string      // the most important reason why a pod is not Ready or not created, "" if none
	Members    []Pod       // pods, including terminating ones, by name
}

// Pin is the label that only the pods of one version have. A Service for one version selects it.
type Pin struct{ Label, Value string }

// PodHash returns the pin of a ReplicaSet whose pods have a value of LabelPodHash.
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

// Serving returns how many pods have been Ready for the user's minReadySeconds at now: a held Deployment's own value
// is huge and its availableReplicas mean nothing.
func (r Revision) Serving(now time.Time, minReady time.Duration) int {
	n := 0
	for _, since := range r.ReadySince {
		if now.Sub(since) >= minReady {
			n++
		}
	}
	return n
}

// Current returns the newest template's revision, zero if there is none yet.
func (w ObservedWorkload) Current() Revision {
	current, _ := Find(w.Revisions, func(r Revision) bool { return r.Current })
	return current
}

// Find returns the ReplicaSet of a template hash. If a user's edit of the live template makes two, it is the one that
// matches the Deployment, then with most pods, then the oldest.
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

// Foreign is a sign that another tool, or another app, manages an object of an app.
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
