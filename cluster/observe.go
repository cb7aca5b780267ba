package cluster

import (
	"cmp"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// Observe returns what the cluster shows of the workloads of an app. It reads
// what the watches brought and sends no request; after an Apply it shows at
// least what that Apply wrote. A workload that does not exist is left out.
//
// Routes are the objects that a router acts on; what is not known of them, or
// has not been applied yet, is left out.
func (c *Client) Observe(app string, workloads []rollout.Workload, routes []rollout.Ref) rollout.Observed {
	observed := rollout.Observed{Workloads: make(map[rollout.Workload]rollout.ObservedWorkload, len(workloads)), Routes: c.observeRoutes(routes)}
	k := c.deployments()
	if k == nil {
		return observed
	}
	c.mu.Lock()
	for _, w := range workloads {
		c.owners[w] = app
	}
	c.mu.Unlock()
	for _, w := range workloads {
		if l, ok := k.live.get(key{w.Namespace, w.Name}); ok && l.deployment != nil {
			live := c.observeWorkload(l)
			if l.app != app {
				live.Serial = 0 // it comes from another app, whose records are none of this one's
			}
			observed.Workloads[w] = live
		}
	}
	return observed
}

func (c *Client) observeWorkload(l *live) rollout.ObservedWorkload {
	d := l.deployment
	out := rollout.ObservedWorkload{
		Replicas: d.replicas,
		Hash:     d.hash,
		Serial:   d.serial,
		Synced:   d.observed >= d.generation,
	}
	// As kubectl rollout status: all pods are of the newest template, all of them
	// are available, and none of an older one is left.
	out.Complete = out.Synced && d.updated == d.replicas && d.total == d.updated && d.available == d.updated

	sets := c.sets.ownedBy(l.uid)
	byRevision(sets)
	current := currentOf(d, out.Synced, sets)
	for _, r := range sets {
		revision := c.observeRevision(r)
		revision.Current = r == current
		if revision.Current && revision.Problem == "" && d.failure != "" {
			revision.Problem = d.failure
		}
		out.Revisions = append(out.Revisions, revision)
	}
	return out
}

// currentOf returns the ReplicaSet that the template matches now, nil if the
// Deployment controller has not made it yet. While the controller is in step
// the revision number tells. It lags behind a template that was just written,
// and the watches of Deployments and ReplicaSets are not in step with each
// other: then the template itself tells, and of several equal ones the oldest
// is right, because the controller takes that one too (FindNewReplicaSet).
func currentOf(d *deployment, synced bool, sets []*replicaSet) *replicaSet {
	var equal, numbered *replicaSet
	for _, r := range sets {
		if d.revision != 0 && r.revision == d.revision {
			numbered = r
		}
		if r.template == d.template && (equal == nil || r.created.Before(equal.created)) {
			equal = r
		}
	}
	switch {
	case numbered != nil && numbered.template == d.template:
		return numbered
	case equal != nil:
		return equal
	case synced:
		// An upgraded API server may default an old ReplicaSet's template otherwise.
		return numbered
	default:
		return nil
	}
}

func (c *Client) observeRevision(r *replicaSet) rollout.Revision {
	out := rollout.Revision{
		Name: r.name, Hash: r.hash, PodHash: r.podHash, Number: r.revision, Desired: r.desired,
	}
	pods := c.pods.ownedBy(r.uid)
	slices.SortFunc(pods, func(a, b *pod) int { return cmp.Compare(a.name, b.name) })
	worst := trouble{}
	if r.failure != "" {
		worst = trouble{rank: cannotCreate, text: "pods cannot be created: " + r.failure}
	}
	for _, p := range pods {
		ready := !p.readySince.IsZero()
		out.Members = append(out.Members, rollout.Pod{
			Name: p.name, Ready: ready, Terminating: p.terminating,
			Restarts: p.restarts, Status: p.status, Created: p.created.UTC(),
		})
		if p.terminating {
			continue
		}
		if !p.finished {
			out.Pods++
		}
		if ready && !p.finished {
			out.ReadySince = append(out.ReadySince, p.readySince.UTC())
		}
		if p.trouble.worseThan(worst) {
			worst = trouble{rank: p.trouble.rank, text: "pod " + p.name + ": " + p.trouble.text}
		}
	}
	slices.SortFunc(out.ReadySince, time.Time.Compare)
	out.Problem = worst.text
	return out
}
