package kube

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// Cluster models an API server, the controllers of workloads, and a kubelet. The Deployment controller follows
// pkg/controller/deployment of k8s.io/kubernetes v1.36.3. Each step makes one random change, so that controllers
// see each other's work late and in any order.
type Cluster struct {
	Now         time.Time
	rng         *rand.Rand
	Deployments map[rollout.Workload]*Deployment
	Pins        map[rollout.Ref]string         // each Service's selector: a pod-template-hash, or "" for all pods
	Routes      map[rollout.Ref]rollout.Object // HTTPRoutes as last applied
	Fate        func(version string) Lifetime  // the lifetime of a new pod
	OnChange    func(what string)              // called after each micro-step that changed something
	Restarts    bool                           // restart pods that never become ready, and count their restarts
	Nodes       int                            // the number of nodes for DaemonSets
	Lag         bool                           // the Deployment controller may sync before ReplicaSets have reported
	Late        bool                           // a ReplicaSet may still get pods that it requested before a scale-down
	serial      int
	kinds       []rollout.Partitioned // the kinds added by Describe
}

// Lifetime sets whether and when a new pod becomes ready.
type Lifetime struct {
	Ready time.Duration // how long the pod takes to become ready
	Never bool          // the pod never becomes ready
}

// Deployment is one Deployment with its ReplicaSets, or a StatefulSet or DaemonSet with its ControllerRevisions.
type Deployment struct {
	Workload             rollout.Workload
	Generation, Observed int
	Annotations          map[string]string
	serial               int    // rollout.LabelSerial
	BreakGlass           string // rollout.AnnotationBreakGlass, which Apply does not change
	settings
	Sets    []*ReplicaSet // oldest first
	writes  []write       // the remaining writes of the controller's current sync
	status  struct{ Replicas, updated, available int }
	Started map[string]int // number of pods ever created; the key is the version
	sets    *ordinals      // nil for a Deployment
}

// settings are the fields that an update may change.
type settings struct {
	Template           string // the pod template in JSON
	Replicas           int
	minReady           int
	recreate, paused   bool
	surge, unavailable rollout.Amount
	partition          rollout.Amount // how many pods keep the old (base) revision
	countsNew          bool           // the field partition is the number of new pods
	onDelete           bool           // DaemonSets only: the controller replaces no pod by itself
}

// ReplicaSet is a Deployment's version, with its pods.
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
	late                    int // how many pods the controller creates before it sees a scale-down
	status                  struct{ Replicas, available int }
}

// Pod is one pod.
type Pod struct {
	Name        string
	created     time.Time
	Due         time.Time // the earliest ready time
	Never       bool
	Ready       bool
	Since       time.Time
	Terminating bool
	ordinal     int    // the ordinal of a StatefulSet's pod
	uid         string // StatefulSets only: differs between successive pods with the same name
}

// write is an update of a ReplicaSet. Version is the version that the controller has seen.
type write struct {
	set      *ReplicaSet
	Version  int
	Replicas int
}

// New returns a cluster without objects. All random numbers come from rng, so that a seed repeats a run.
func New(rng *rand.Rand, now time.Time) *Cluster {
	return &Cluster{
		Now: now, rng: rng, Deployments: map[rollout.Workload]*Deployment{},
		Pins: map[rollout.Ref]string{}, Routes: map[rollout.Ref]rollout.Object{},
		Fate:     func(string) Lifetime { return Lifetime{} },
		OnChange: func(string) {}, Nodes: 10,
	}
}

// Micro makes one random micro-step. It returns false if no step is possible.
func (k *Cluster) Micro() bool {
	order := k.rng.Perm(4)
	if k.Late && k.rng.IntN(4) > 0 {
		order = []int{3, 0, 1} // create pods last, like a rate-limited controller
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
	return false
}

func (k *Cluster) shuffled() []*Deployment {
	all := slices.SortedFunc(maps.Values(k.Deployments), func(a, b *Deployment) int {
		return a.Workload.Compare(b.Workload)
	})
	k.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}
