package kube

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// Cluster models an API server, workload controllers, and a kubelet. The Deployment controller follows
// pkg/controller/deployment of k8s.io/kubernetes v1.36.3. At each step, a random component acts, so controllers may see
// changes late.
type Cluster struct {
	Now         time.Time
	rng         *rand.Rand
	Deployments map[rollout.Workload]*Deployment
	Pins        map[rollout.Ref]string         // each Service's pod-template-hash, or "" for all pods
	Routes      map[rollout.Ref]rollout.Object // HTTPRoutes as last applied
	Fate        func(version string) Lifetime  // of a new pod
	OnChange    func(what string)
	Restarts    bool // restart pods that never become ready
	Nodes       int  // each has a pod of each DaemonSet
	Lag         bool // Deployments may sync before ReplicaSets report status
	Late        bool // scale-downs may be seen late
	Sparse      bool // skips Deployments at rest, to save time
	serial      int
	sorted      []*Deployment
	kinds       []rollout.Partitioned // from Describe
}

// Lifetime says whether and when a new pod becomes ready.
type Lifetime struct {
	Ready time.Duration // from creation until ready
	Never bool
}

// Deployment is a Deployment with ReplicaSets, or a StatefulSet or DaemonSet with ControllerRevisions.
type Deployment struct {
	Workload             rollout.Workload
	Generation, Observed int
	Annotations          map[string]string
	serial               int    // rollout.LabelSerial
	BreakGlass           string // rollout.AnnotationBreakGlass, unchanged by Apply
	settings
	Sets    []*ReplicaSet // oldest first
	writes  []write       // of the sync in progress
	status  struct{ Replicas, updated, available int }
	Started map[string]int // pods ever created, by version
	sets    *ordinals      // nil for a Deployment
	Rests   bool           // no step remains until the time due, an Apply or another change
	due     time.Time      // when a pod next becomes ready or available, or zero
}

type settings struct {
	Template           string // in JSON
	Replicas           int
	minReady           int
	recreate, paused   bool
	surge, unavailable rollout.Amount
	partition          rollout.Amount // old (base) pods or, if countsNew is set, new pods
	countsNew          bool
	onDelete           bool // DaemonSets keep old pods
}

// ReplicaSet is a Deployment's version with its pods.
type ReplicaSet struct {
	Name, PodHash, Template string
	Annotations             map[string]string
	number                  int
	created                 time.Time
	Replicas                int // spec.replicas
	minReady                int
	desiredNote, maxNote    int // deployment.kubernetes.io/desired-replicas, max-replicas
	Version                 int // resourceVersion: a write with an older version fails
	Pods                    []*Pod
	late                    int // pods that the controller may create before it sees a scale-down
	status                  struct{ Replicas, available int }
}

// Pod is one pod.
type Pod struct {
	Name        string
	created     time.Time
	Due         time.Time // when it may become ready
	Never       bool
	Ready       bool
	Since       time.Time
	Terminating bool
	ordinal     int
	Role        string // rollout.AnnotationRole
	uid         string // unique despite equal names
}

// write updates a ReplicaSet's spec.replicas.
type write struct {
	set               *ReplicaSet
	Version, Replicas int
	desired, most     int // the new desiredNote and maxNote
}

// New returns an empty cluster. Equal seeds of rng give equal runs.
func New(rng *rand.Rand, now time.Time) *Cluster {
	return &Cluster{
		Now: now, rng: rng, Deployments: map[rollout.Workload]*Deployment{},
		Pins: map[rollout.Ref]string{}, Routes: map[rollout.Ref]rollout.Object{},
		Fate:     func(string) Lifetime { return Lifetime{} },
		OnChange: func(string) {}, Nodes: 10,
	}
}

// Micro makes a step of a random controller or of the kubelet. It returns false if no step remains.
func (k *Cluster) Micro() bool {
	if k.Sparse && len(k.awake()) == 0 {
		return false
	}
	order := k.rng.Perm(4)
	if k.Late && k.rng.IntN(4) > 0 {
		order = []int{3, 0, 1} // ReplicaSets act last, as if rate-limited
	}
	for _, i := range order {
		var did string
		switch i {
		case 0:
			did = k.microDeployment()
		case 1, 2:
			did = k.microReplicaSet()
		case 3:
			did = k.microKubelet()
		}
		if did != "" {
			k.OnChange(did)
			return true
		}
	}
	for _, d := range k.awake() {
		alone := Cluster{Now: k.Now, Deployments: map[rollout.Workload]*Deployment{d.Workload: d}}
		d.Rests, d.due = true, alone.NextDue()
	}
	return false
}

func (k *Cluster) awake() (all []*Deployment) {
	if len(k.sorted) != len(k.Deployments) {
		byName := func(a, b *Deployment) int { return a.Workload.Compare(b.Workload) }
		k.sorted = slices.SortedFunc(maps.Values(k.Deployments), byName)
	}
	for _, d := range k.sorted {
		if !k.Sparse || !d.Rests || !d.due.IsZero() && !k.Now.Before(d.due) {
			all = append(all, d)
		}
	}
	return all
}

func (k *Cluster) shuffled() []*Deployment {
	all := k.awake()
	k.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}
