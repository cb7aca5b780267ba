package rollout

import (
	"fmt"
	"time"
)

// Observed is what the cluster shows of one app at one moment.
type Observed struct {
	Workloads map[Workload]ObservedWorkload // every Deployment of the app that exists
	Routes    map[Ref]ObservedRoute         // every object that a router acts on, as far as it exists
	Troubled  []Trouble                     // by reference; objects of which nobody says how they are, are well
	Nodes     map[string]map[string]string  // labels by node, for who orders nodes by them; nil: not known
	Unseen    string                        // why all this may be over: nothing can be watched; "" if it can be
}

// Trouble is a live object of the app, of any kind, that is not what its controller is to make of it: by kstatus, the
// rules for that which Flux and others share.
type Trouble struct {
	Ref     Ref
	Failed  bool   // it does not get there by itself; otherwise it may be on its way
	Message string // why, on one line, in the words of its controller: it may differ each time
}

// ObservedRoute is what a router says of one of its objects.
type ObservedRoute struct {
	Generation int64          // of the object, which its spec's changes count up
	Status     map[string]any // nil if it says nothing
}

// Serial is the newest record that the cluster carries the mark of.
func (o Observed) Serial() int {
	newest := 0
	for _, w := range o.Workloads {
		newest = max(newest, w.Serial)
	}
	return newest
}

// ObservedWorkload is one live Deployment.
type ObservedWorkload struct {
	Replicas  int        // spec.replicas; of a DaemonSet: the nodes that are to have a pod
	Hash      Hash       // AnnotationHash on the Deployment, "" if gitrollout never applied it
	Serial    int        // LabelSerial on it, 0 if it has none or is another app's
	Synced    bool       // the Deployment controller has seen the newest spec (observedGeneration)
	Complete  bool       // every pod is of the newest template and available, no old pod is left
	Available int        // pods that the Deployment controller counts as available (status.availableReplicas)
	First     int        // of a StatefulSet: the lowest ordinal
	Floor     int        // of a StatefulSet: the ordinal from which on pods are of the newest template; or nodes that stay
	Room      bool       // of a StatefulSet: its cluster knows how many of its pods may be missing at a time
	Revisions []Revision // one for each ReplicaSet, newest first
}

// Revision is one ReplicaSet of a Deployment.
type Revision struct {
	Name       string      // the ReplicaSet's name
	Hash       Hash        // AnnotationHash, "" if unknown
	Pin        Pin         // the label that its pods have and no other version's; the zero value if unknown
	Current    bool        // it is the one that the Deployment's template matches now
	Base       bool        // of a StatefulSet: pods below its partition are made of it; of a DaemonSet: was adopted
	Number     int         // deployment.kubernetes.io/revision
	Desired    int         // spec.replicas
	Pods       int         // pods that exist and are not terminating
	ReadySince []time.Time // since when each Ready, not terminating pod is Ready, oldest first
	Available  int         // of a ReplicaSet: pods that its controller counts as available (status.availableReplicas)
	Problem    string      // the most telling reason why a pod is not Ready or not created, "" if none
	Members    []Pod       // pods, terminating ones included, by name
}

// Pin is the label that tells the pods of a version from those of all others: what a
// Service selects that is for one version.
type Pin struct{ Label, Value string }

// PodHash is the pin of a ReplicaSet whose pods have that value of LabelPodHash.
func PodHash(value string) Pin {
	if value == "" {
		return Pin{}
	}
	return Pin{LabelPodHash, value}
}

// Pod is one pod, for people to look at.
type Pod struct {
	Name        string
	Ready       bool
	Terminating bool
	Restarts    int
	Status      string // as kubectl prints it: Running, CrashLoopBackOff, ImagePullBackOff …
	Created     time.Time
	UID         string
	Node        string // of a DaemonSet's pod: the node that it is on, "" before it is on one
}

// Ready returns the number of Ready pods.
func (r Revision) Ready() int { return len(r.ReadySince) }

// Serving returns how many pods have been Ready for at least minReady at now. It is the user's own minReadySeconds that
// counts: while a release is held, the Deployment's is huge and its availableReplicas mean nothing.
func (r Revision) Serving(now time.Time, minReady time.Duration) int {
	n := 0
	for _, since := range r.ReadySince {
		if now.Sub(since) >= minReady {
			n++
		}
	}
	return n
}

// Current is the revision of the newest template, the zero value if there is none yet.
func (w ObservedWorkload) Current() Revision {
	current, _ := Find(w.Revisions, func(r Revision) bool { return r.Current })
	return current
}

// Find returns the ReplicaSet of a template hash. Two can carry one hash when somebody edited the live template by
// hand: then the one that matches the Deployment wins, then the one with most pods, then the oldest revision.
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
	Sign  string // what shows it
	Fix   string // how that one lets go
	Warns bool   // it only applies from files, as gitrollout does: the object is taken over, and that is to be known
}

// String returns "Deployment a/b is in the hands of X: the sign".
func (f Foreign) String() string {
	return fmt.Sprintf("%s is in the hands of %s: %s", f.Ref.Title(), f.By, f.Sign)
}
