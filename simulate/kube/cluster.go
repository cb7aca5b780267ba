package kube

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// Cluster models an API server, workload controllers, and a kubelet. The Deployment controller follows
// pkg/controller/deployment of k8s.io/kubernetes v1.36.3. The next component is random, so that controllers may see
// changes late and in any order.
type Cluster struct {
	Now         time.Time
	rng         *rand.Rand
	Deployments map[rollout.Workload]*Deployment
	Pins        map[rollout.Ref]string         // each Service's selector: a pod-template-hash, or "" for all pods
	Routes      map[rollout.Ref]rollout.Object // the HTTPRoutes as last applied
	Fate        func(version string) Lifetime  // returns the Lifetime of a new pod of this version
	OnChange    func(what string)              // called after each change, with a description
	Restarts    bool                           // pods that never become ready show a growing number of restarts
	Nodes       int                            // the number of nodes, each with a pod of each DaemonSet
	Lag         bool                           // the Deployment controller may sync before ReplicaSets have reported
	Late        bool                           // the ReplicaSet controller may see a scale-down late, and create pods
	serial      int
	kinds       []rollout.Partitioned // the kinds added by Describe
}

// Lifetime says whether and when a new pod becomes ready.
type Lifetime struct {
	Ready time.Duration // the time from creation until the pod is ready
	Never bool          // the pod never becomes ready
}

// Deployment is one Deployment with its ReplicaSets, or a StatefulSet or DaemonSet with its ControllerRevisions.
type Deployment struct {
	Workload             rollout.Workload
	Generation, Observed int
	Annotations          map[string]string
	serial               int    // the label rollout.LabelSerial
	BreakGlass           string // the annotation rollout.AnnotationBreakGlass, which Apply does not change
	settings
	Sets    []*ReplicaSet // oldest first
	writes  []write       // the remaining writes of the Deployment controller's current sync
	status  struct{ Replicas, updated, available int }
	Started map[string]int // number of pods ever created, by version
	sets    *ordinals      // nil for a Deployment
}

// settings are a workload's fields that an update may change.
type settings struct {
	Template           string // the pod template in JSON
	Replicas           int
	minReady           int
	recreate, paused   bool
	surge, unavailable rollout.Amount
	partition          rollout.Amount // number of old (base) pods or, with countsNew, of new pods
	countsNew          bool           // partition is a number of new pods
	onDelete           bool           // DaemonSets only: the controller deletes no old pod
}

// ReplicaSet is one version of a Deployment, with its pods.
type ReplicaSet struct {
	Name, PodHash, Template string
	Annotations             map[string]string
	number                  int
	created                 time.Time
	Replicas                int // spec.replicas
	minReady                int
	desiredNote, maxNote    int // annotations deployment.kubernetes.io/desired-replicas, max-replicas
	Version                 int // resourceVersion: a write with an older version fails
	Pods                    []*Pod
	late                    int // number of pods that a controller may still create before it sees a scale-down
	status                  struct{ Replicas, available int }
}

// Pod is one pod.
type Pod struct {
	Name        string
	created     time.Time
	Due         time.Time // when the pod may become ready
	Never       bool
	Ready       bool
	Since       time.Time
	Terminating bool
	ordinal     int    // the ordinal in a StatefulSet or similar kind
	Role        string // the annotation rollout.AnnotationRole
	uid         string // differs between successive pods with one name
}

// write updates a ReplicaSet's spec.replicas. It fails unless Version is still the ReplicaSet's version.
type write struct {
	set      *ReplicaSet
	Version  int
	Replicas int
}

// New returns a cluster without objects. The same seed of rng gives the same run.
func New(rng *rand.Rand, now time.Time) *Cluster {
	return &Cluster{
		Now: now, rng: rng, Deployments: map[rollout.Workload]*Deployment{},
		Pins: map[rollout.Ref]string{}, Routes: map[rollout.Ref]rollout.Object{},
		Fate:     func(string) Lifetime { return Lifetime{} },
		OnChange: func(string) {}, Nodes: 10,
	}
}

// Micro makes one step of a random controller or the kubelet. It returns false if no step remains.
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
