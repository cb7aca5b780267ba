package kube

import (
	"fmt"
	"slices"
	"time"
)

func (k *Cluster) microReplicaSet() string {
	for _, d := range k.shuffled() {
		if d.sets != nil {
			continue
		}
		for _, i := range k.rng.Perm(len(d.Sets)) {
			rs := d.Sets[i]
			live := rs.Live()
			if k.Late && rs.late > 0 {
				if rs.late--; k.rng.IntN(2) == 0 {
					return k.createPod(d, rs)
				}
				rs.late = 0
				return "ReplicaSet " + rs.Name + " seen"
			}
			if (len(live) == rs.Replicas || k.rng.IntN(2) == 0) && k.report(rs) {
				return "ReplicaSet " + rs.Name + " status"
			}
			switch {
			case len(live) < rs.Replicas:
				return k.createPod(d, rs)
			case len(live) > rs.Replicas:
				return k.deletePod(live)
			}
		}
	}
	return ""
}

func (k *Cluster) report(rs *ReplicaSet) bool {
	was := rs.status
	rs.status.Replicas = len(rs.Live())
	rs.status.available = rs.Serving(k.Now, time.Duration(rs.minReady)*time.Second)
	if was == rs.status {
		return false
	}
	rs.Version++
	return true
}

// Live returns pods that are not terminating. The ReplicaSet controller counts only these.
func (rs *ReplicaSet) Live() []*Pod {
	return slices.DeleteFunc(slices.Clone(rs.Pods), func(p *Pod) bool { return p.Terminating })
}

// Ready counts ready pods that are not terminating.
func (rs *ReplicaSet) Ready() int {
	return rs.count(func(p *Pod) bool { return p.Ready })
}

// Serving counts pods that have been ready for at least minReady and are not terminating.
func (rs *ReplicaSet) Serving(now time.Time, minReady time.Duration) int {
	return rs.count(func(p *Pod) bool { return p.Ready && now.Sub(p.Since) >= minReady })
}

func (rs *ReplicaSet) count(is func(*Pod) bool) (n int) {
	for _, p := range rs.Pods {
		if !p.Terminating && is(p) {
			n++
		}
	}
	return n
}

func (k *Cluster) createPod(d *Deployment, rs *ReplicaSet) string {
	k.serial++
	version := VersionOf(rs.Template)
	d.Started[version]++
	life := k.Fate(version)
	p := &Pod{Name: fmt.Sprintf("%s-%d", rs.Name, k.serial), created: k.Now, Due: k.Now.Add(life.Ready), Never: life.Never}
	p.uid, rs.Pods = p.Name, append(rs.Pods, p)
	return "pod " + p.Name + " (" + version + ") created"
}

// deletePod deletes an unready pod or, if all are ready, the pod that became ready last. The real ReplicaSet controller
// also compares the nodes' numbers of pods.
func (k *Cluster) deletePod(live []*Pod) string {
	pick := k.rng.Perm(len(live))
	victim := live[pick[0]]
	for _, i := range pick {
		p := live[i]
		if p.Ready != victim.Ready && victim.Ready || p.Ready == victim.Ready && p.Since.After(victim.Since) {
			victim = p
		}
	}
	victim.Terminating = true
	return fmt.Sprintf("pod %s deleted (ready %t)", victim.Name, victim.Ready)
}

func (k *Cluster) microKubelet() string {
	for _, d := range k.shuffled() {
		for _, i := range k.rng.Perm(len(d.Sets)) {
			rs := d.Sets[i]
			for _, j := range k.rng.Perm(len(rs.Pods)) {
				switch p := rs.Pods[j]; {
				case p.Terminating:
					rs.Pods = slices.Delete(rs.Pods, j, j+1)
					return "pod " + p.Name + " gone"
				case !p.Ready && !p.Never && !k.Now.Before(p.Due):
					p.Ready, p.Since = true, k.Now
					return "pod " + p.Name + " (" + VersionOf(rs.Template) + ") ready"
				}
			}
		}
	}
	return ""
}
