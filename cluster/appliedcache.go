package cluster

import (
	"maps"
	"sync"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// known is the record of an object that this process applied or found already applied.
type known struct {
	app    string // the app that applied it
	digest string // the applied digest
	print  string // fingerprint of the owned fields after that apply

	repairs  int       // how often in a row the object was put back, with less than peaceful between repairs
	repaired time.Time // time of the last repair
	since    time.Time // time of the first repair in a series with less than recent between two repairs
	by       string    // the writer that changed the object last
}

// An object that another writer changes is put back immediately the first five times, then after 1 s, 2 s, 4 s, … 1
// min. Without these pauses two programs would overwrite each other at the speed of the watch.
const (
	promptRepairs = 5
	longestRepair = time.Minute
	peaceful      = 5 * time.Minute // after this time without a repair, counting starts again
)

// Changes by a HorizontalPodAutoscaler, which acts every 15 s, are reported from the second repair on.
const (
	recent  = 30 * time.Second
	lasting = 10 * time.Second
)

// fighting reports whether an object was put back so often that the next repair has to wait.
func (k known) fighting(now time.Time) bool {
	wait := min(time.Second<<min(max(k.repairs-promptRepairs, 0), 6), longestRepair)
	return k.repairs >= promptRepairs && now.Before(k.repaired.Add(wait))
}

// overwritten returns an error if another writer changes an object repeatedly, nil otherwise. The error wraps
// rollout.ErrOverwritten if the changes last: the object then does not stop a release, which depends on its own pods.
func (k known) overwritten(ref rollout.Ref, now time.Time) error {
	e := &Error{Ref: ref, Reason: Overwritten, Fix: "stop that writer, or take the fields that it sets out of Git",
		Msg: "is changed by " + k.by + " again and again"}
	fights := k.fighting(now)
	if k.repaired.Sub(k.since) >= lasting && (fights || now.Before(k.repaired.Add(longestRepair))) {
		e.Err = rollout.ErrOverwritten
		return e
	}
	if fights {
		return e
	}
	return nil
}

type appliedCache struct {
	mu    sync.Mutex
	known map[rollout.Ref]known
}

func (m *appliedCache) of(ref rollout.Ref) (known, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.known[ref]
	return k, ok
}

// note records an applied object. If Git did not change, the apply counts as a repair of another writer's change.
func (m *appliedCache) note(d *desired, l *live, by string, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, was := known{app: d.app(), digest: d.digest, print: l.print}, m.known[d.ref]
	if was.digest == d.digest && was.print != "" {
		k.repairs, k.repaired, k.since, k.by = 1, now, now, by
		if now.Before(was.repaired.Add(peaceful)) {
			k.repairs = was.repairs + 1
		}
		if now.Before(was.repaired.Add(recent)) || was.repairs >= promptRepairs {
			k.since = was.since
		}
	}
	m.known[d.ref] = k
}

// doubt makes the next Apply write an object again, after an error that leaves open whether the API server stored it.
func (m *appliedCache) doubt(d *desired) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known[d.ref] = known{app: d.app()}
}

// Forget drops all records of a removed app. The app's objects stay in the cluster.
func (c *Client) Forget(app string) {
	c.mu.Lock()
	maps.DeleteFunc(c.routes, func(_ rollout.Ref, of string) bool { return of == app })
	c.mu.Unlock()
	c.workloads.mu.Lock()
	maps.DeleteFunc(c.workloads.owners, func(_ rollout.Workload, of string) bool { return of == app })
	c.workloads.mu.Unlock()
	c.applied.mu.Lock()
	maps.DeleteFunc(c.applied.known, func(_ rollout.Ref, k known) bool { return k.app == app })
	c.applied.mu.Unlock()
}

// forget drops the record of an object. An object that is created again counts as new.
func (m *appliedCache) forget(ref rollout.Ref) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.known, ref)
}
