package strategies

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// kube is Kubernetes as far as a release can see it: an API server that takes
// the objects of Desired, the Deployment controller with the arithmetic of
// k8s.io/kubernetes v1.36.3 pkg/controller/deployment (rolling.go, sync.go,
// util/deployment_util.go), the ReplicaSet controller and a kubelet.
//
// Everything happens in micro-steps: one write to a ReplicaSet, one pod created
// or deleted, one status written, one pod that becomes ready. Which one is next
// is drawn at random, so that controllers see each other's work late and in any
// order, as they do.
type kube struct {
	now      time.Time
	rng      *rand.Rand
	deps     map[rollout.Workload]*deployment
	pins     map[rollout.Ref]string        // what each Service selects: a pod-template-hash, or "" for all pods
	fate     func(version string) lifetime // what becomes of a pod
	onChange func(what string)             // called after each micro-step that changed something
	lag      bool                          // the Deployment controller may sync before ReplicaSets have reported
	serial   int
}

// lifetime is what becomes of a pod after its creation.
type lifetime struct {
	ready time.Duration // until it is ready
	never bool          // it never becomes ready
}

type deployment struct {
	workload             rollout.Workload
	generation, observed int
	annotations          map[string]string
	template             string // JSON
	replicas             int
	minReady             int
	recreate             bool
	surge, unavailable   rollout.Amount
	sets                 []*replicaSet // oldest first
	writes               []write       // what the controller's present sync has yet to write
	status               struct{ replicas, updated, available int }
	started              map[string]int // pods ever created, by version
}

type replicaSet struct {
	name, podHash, template string
	annotations             map[string]string
	number                  int
	replicas                int // spec.replicas
	minReady                int
	desiredNote, maxNote    int // deployment.kubernetes.io/desired-replicas, max-replicas
	version                 int // resourceVersion: a write against an older one fails
	pods                    []*pod
	status                  struct{ replicas, available int }
}

type pod struct {
	name        string
	created     time.Time
	due         time.Time // from when it may be ready
	never       bool
	ready       bool
	since       time.Time
	terminating bool
}

// write is one update of a ReplicaSet, made against the version that the
// controller has seen.
type write struct {
	set      *replicaSet
	version  int
	replicas int
}

func newKube(rng *rand.Rand, now time.Time) *kube {
	return &kube{
		now: now, rng: rng, deps: map[rollout.Workload]*deployment{}, pins: map[rollout.Ref]string{},
		fate:     func(string) lifetime { return lifetime{} },
		onChange: func(string) {},
	}
}

// versionOf is the version in a template, which these tests write as its only
// field.
func versionOf(template string) string {
	var t struct {
		Version string `json:"version"`
	}
	if err := json.Unmarshal([]byte(template), &t); err != nil {
		return "?"
	}
	return t.Version
}

// apply is a server-side apply with force by one field manager.
func (k *kube) apply(o rollout.Object) error {
	switch ref := o.Ref(); {
	case ref.Kind == "Service":
		pin, _ := o.Map("spec", "selector")[rollout.LabelPodHash].(string)
		if was, ok := k.pins[ref]; !ok || was != pin {
			k.pins[ref] = pin
			k.onChange(fmt.Sprintf("Service %s selects %q", ref.Name, pin))
		}
		return nil
	case ref.Kind == "Deployment":
		return k.applyDeployment(o)
	default:
		return nil
	}
}

func (k *kube) applyDeployment(o rollout.Object) error {
	w := rollout.Workload{Namespace: o.Namespace(), Name: o.Name()}
	template, err := json.Marshal(o.Map("spec")["template"])
	if err != nil {
		return err
	}
	next := deployment{workload: w, template: string(template), annotations: map[string]string{}, replicas: 1}
	for key, v := range o.Map("metadata", "annotations") {
		next.annotations[key], _ = v.(string)
	}
	was, exists := k.deps[w]
	if exists {
		next.replicas = was.replicas
	}
	if n, ok := o.Map("spec")["replicas"].(int64); ok {
		next.replicas = int(n)
	}
	if n, ok := o.Map("spec")["minReadySeconds"].(int64); ok {
		next.minReady = int(n)
	}
	next.recreate = o.Map("spec", "strategy")["type"] == "Recreate"
	next.surge, next.unavailable = rollout.Amount{Value: 25, Percent: true}, rollout.Amount{Value: 25, Percent: true}
	if r := o.Map("spec", "strategy", "rollingUpdate"); r != nil {
		next.surge, next.unavailable = amountOf(r["maxSurge"]), amountOf(r["maxUnavailable"])
	}
	if err := validate(o, next); err != nil {
		return err
	}
	if !exists {
		next.generation, next.started = 1, map[string]int{}
		k.deps[w] = &next
		k.onChange("Deployment " + w.Name + " created")
		return nil
	}
	changed := was.template != next.template || was.replicas != next.replicas || was.minReady != next.minReady ||
		was.recreate != next.recreate || was.surge != next.surge || was.unavailable != next.unavailable
	if !changed && maps.Equal(was.annotations, next.annotations) {
		return nil
	}
	if changed {
		was.generation++
	}
	was.template, was.annotations, was.replicas, was.minReady = next.template, next.annotations, next.replicas, next.minReady
	was.recreate, was.surge, was.unavailable = next.recreate, next.surge, next.unavailable
	k.onChange(fmt.Sprintf("Deployment %s is %s, minReady %d, surge %s, unavailable %s",
		w.Name, versionOf(was.template), was.minReady, was.surge, was.unavailable))
	return nil
}

func amountOf(v any) rollout.Amount {
	switch v := v.(type) {
	case int64:
		return rollout.Amount{Value: int(v)}
	case string:
		n, err := strconv.Atoi(strings.TrimSuffix(v, "%"))
		if err != nil || !strings.HasSuffix(v, "%") {
			return rollout.Amount{Value: -1}
		}
		return rollout.Amount{Value: n, Percent: true}
	default:
		return rollout.Amount{Value: 25, Percent: true}
	}
}

// validate is pkg/apis/apps/validation ValidateDeploymentSpec, as far as it
// concerns these fields.
func validate(o rollout.Object, d deployment) error {
	deadline := 600
	if n, ok := o.Map("spec")["progressDeadlineSeconds"].(int64); ok {
		deadline = int(n)
	}
	switch {
	case d.surge.Value < 0 || d.unavailable.Value < 0:
		return errors.New("maxSurge and maxUnavailable must be numbers or percentages")
	case !d.recreate && d.surge.Value == 0 && d.unavailable.Value == 0:
		return errors.New("maxUnavailable may not be 0 when maxSurge is 0")
	case d.unavailable.Percent && d.unavailable.Value > 100:
		return errors.New("maxUnavailable must not be greater than 100%")
	case d.replicas < 0 || d.minReady < 0 || deadline <= d.minReady || deadline > 1<<31-1:
		return fmt.Errorf("replicas %d, minReadySeconds %d, progressDeadlineSeconds %d", d.replicas, d.minReady, deadline)
	}
	return nil
}

// fenceposts is util.ResolveFenceposts, with MaxUnavailable's limit.
func (d *deployment) fenceposts() (surge, unavailable int) {
	if d.recreate {
		return 0, 0
	}
	surge, unavailable = d.surge.RoundUp(d.replicas), d.unavailable.RoundDown(d.replicas)
	if surge == 0 && unavailable == 0 {
		unavailable = 1
	}
	if d.replicas == 0 {
		return surge, 0
	}
	return surge, min(unavailable, d.replicas)
}

// micro makes one random micro-step and reports whether there was one to make.
func (k *kube) micro() bool {
	for _, i := range k.rng.Perm(4) {
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
			k.onChange(did)
			return true
		}
	}
	return false
}

// shuffled returns the Deployments in random order.
func (k *kube) shuffled() []*deployment {
	all := slices.SortedFunc(maps.Values(k.deps), func(a, b *deployment) int {
		return strings.Compare(a.workload.String(), b.workload.String())
	})
	k.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// microReplicaSet is the ReplicaSet controller: one pod, or one status.
func (k *kube) microReplicaSet() string {
	for _, d := range k.shuffled() {
		for _, i := range k.rng.Perm(len(d.sets)) {
			rs := d.sets[i]
			live := rs.live()
			if (len(live) == rs.replicas || k.rng.IntN(2) == 0) && k.report(rs) {
				return "ReplicaSet " + rs.name + " status"
			}
			switch {
			case len(live) < rs.replicas:
				return k.createPod(d, rs)
			case len(live) > rs.replicas:
				return k.deletePod(live)
			}
		}
	}
	return ""
}

// report writes the ReplicaSet's status.
func (k *kube) report(rs *replicaSet) bool {
	was := rs.status
	live := rs.live()
	rs.status.replicas, rs.status.available = len(live), 0
	for _, p := range live {
		if p.ready && k.now.Sub(p.since) >= time.Duration(rs.minReady)*time.Second {
			rs.status.available++
		}
	}
	if was == rs.status {
		return false
	}
	rs.version++
	return true
}

// live are the pods that the ReplicaSet controller counts.
func (rs *replicaSet) live() []*pod {
	return slices.DeleteFunc(slices.Clone(rs.pods), func(p *pod) bool { return p.terminating })
}

func (rs *replicaSet) ready() int {
	n := 0
	for _, p := range rs.pods {
		if p.ready && !p.terminating {
			n++
		}
	}
	return n
}

// serving is how many pods have been ready for that long.
func (rs *replicaSet) serving(now time.Time, minReady time.Duration) int {
	n := 0
	for _, p := range rs.pods {
		if p.ready && !p.terminating && now.Sub(p.since) >= minReady {
			n++
		}
	}
	return n
}

func (k *kube) createPod(d *deployment, rs *replicaSet) string {
	k.serial++
	version := versionOf(rs.template)
	d.started[version]++
	life := k.fate(version)
	p := &pod{name: fmt.Sprintf("%s-%d", rs.name, k.serial), created: k.now, due: k.now.Add(life.ready), never: life.never}
	rs.pods = append(rs.pods, p)
	return "pod " + p.name + " (" + version + ") created"
}

// deletePod deletes the pod that the ReplicaSet controller deletes first where
// nodes are evenly used: one that is not ready, then the one that became ready
// last. (On uneven nodes it takes a pod with a neighbour first, and so may take
// one that serves before one that does not yet. A plain Deployment loses the
// same pod, so this model does not hold it against a release.)
func (k *kube) deletePod(live []*pod) string {
	pick := k.rng.Perm(len(live))
	victim := live[pick[0]]
	for _, i := range pick {
		p := live[i]
		if p.ready != victim.ready && victim.ready || p.ready == victim.ready && p.since.After(victim.since) {
			victim = p
		}
	}
	victim.terminating = true
	return fmt.Sprintf("pod %s deleted (ready %t)", victim.name, victim.ready)
}

// microKubelet lets one pod become ready or end.
func (k *kube) microKubelet() string {
	for _, d := range k.shuffled() {
		for _, i := range k.rng.Perm(len(d.sets)) {
			rs := d.sets[i]
			for _, j := range k.rng.Perm(len(rs.pods)) {
				switch p := rs.pods[j]; {
				case p.terminating:
					rs.pods = slices.Delete(rs.pods, j, j+1)
					return "pod " + p.name + " gone"
				case !p.ready && !p.never && !k.now.Before(p.due):
					p.ready, p.since = true, k.now
					return "pod " + p.name + " (" + versionOf(rs.template) + ") ready"
				}
			}
		}
	}
	return ""
}

// nextDue is the earliest time at which something happens by itself.
func (k *kube) nextDue() time.Time {
	var due time.Time
	for _, d := range k.deps {
		for _, rs := range d.sets {
			for _, p := range rs.live() {
				at := p.due
				if p.ready {
					at = p.since.Add(time.Duration(rs.minReady) * time.Second)
				}
				if !p.never && at.After(k.now) && rs.minReady < holdMinReadySeconds {
					due = soonest(due, at)
				}
				if !p.never && !p.ready && at.After(k.now) {
					due = soonest(due, at)
				}
			}
		}
	}
	return due
}

// observe is what the cluster package would report now.
func (k *kube) observe() rollout.Observed {
	o := rollout.Observed{Workloads: map[rollout.Workload]rollout.ObservedWorkload{}}
	for w, d := range k.deps {
		fresh, _ := d.split()
		live := rollout.ObservedWorkload{
			Replicas: d.replicas, Hash: rollout.Hash(d.annotations[rollout.AnnotationHash]), Synced: d.observed == d.generation,
			Complete: d.observed == d.generation && d.status.updated == d.replicas &&
				d.status.replicas == d.replicas && d.status.available == d.replicas,
		}
		for _, rs := range d.sets {
			r := rollout.Revision{
				Name: rs.name, Hash: rollout.Hash(rs.annotations[rollout.AnnotationHash]), PodHash: rs.podHash,
				Current: rs == fresh, Number: rs.number, Desired: rs.replicas, Pods: len(rs.live()),
			}
			for _, p := range rs.live() {
				if p.ready {
					r.ReadySince = append(r.ReadySince, p.since)
				} else if p.never {
					r.Problem = "CrashLoopBackOff"
				}
			}
			slices.SortFunc(r.ReadySince, time.Time.Compare)
			live.Revisions = append(live.Revisions, r)
		}
		slices.SortFunc(live.Revisions, func(a, b rollout.Revision) int { return b.Number - a.Number })
		o.Workloads[w] = live
	}
	return o
}
