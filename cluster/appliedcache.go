package cluster

import (
	"maps"
	"sync"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

type known struct {
	app    string
	digest string
	print  string // fingerprint of gitrollout's fields after the apply

	repairs  int // number of consecutive repairs of the same digest
	repaired time.Time
	since    time.Time // first repair of a series; 30 s without a repair end a series of fewer than 5 repairs
	by       string    // writer whose change the last repair undid
}

// If another writer changes an object, the first five repairs are immediate. Later repairs wait 1 s, 2 s, 4 s up to 1
// min. Without these pauses, two programs would overwrite each other endlessly.
const (
	promptRepairs = 5
	longestRepair = time.Minute
	peaceful      = 5 * time.Minute  // after this time without a repair, the count of repairs restarts
	recent        = 30 * time.Second // longer than an HPA's period of 15 s
	lasting       = 10 * time.Second // minimum length of a series for ErrOverwritten
)

func (k known) fighting(now time.Time) bool {
	wait := min(time.Second<<min(max(k.repairs-promptRepairs, 0), 6), longestRepair)
	return k.repairs >= promptRepairs && now.Before(k.repaired.Add(wait))
}

// overwritten returns an error if another writer repeatedly changes an object. rollout.ErrOverwritten stops no release.
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

func (m *appliedCache) note(d *desired, l *live, by string, now time.Time) {
	// If the same digest was applied before, this apply has repaired another writer's change.
	m.mu.Lock()
	defer m.mu.Unlock()
	k, was := known{app: d.app(), digest: d.digest, print: l.print}, m.known[d.ref]
	if was.digest == d.digest && was.print != "" {
		k.repairs, k.repaired, k.since, k.by = 1, now, now, by
		if now.Before(was.repaired.Add(peaceful)) {
			k.repairs = was.repairs + 1
			if now.Before(was.repaired.Add(recent)) || was.repairs >= promptRepairs {
				k.since = was.since
			}
		}
	}
	m.known[d.ref] = k
}

func (m *appliedCache) doubt(d *desired) {
	// Despite the error, the API server may have stored the object. The next Apply writes the object again.
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known[d.ref] = known{app: d.app()}
}

// Forget drops the client's records of a removed app. The app's objects stay in the cluster.
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

func (m *appliedCache) forget(ref rollout.Ref) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.known, ref)
}
