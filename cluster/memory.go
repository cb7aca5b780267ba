package cluster

import (
	"maps"
	"sync"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// known is the record of an object that this process applied, or found applied by a previous one.
type known struct {
	app    string // the app that applied it
	digest string // the applied digest
	print  string // fingerprint of the owned fields after the apply

	repairs  int       // how often in a row it was put back, with no change in Git and little time between
	repaired time.Time // the last time
}

// An object that another writer changes is put back at once the first few times. A writer that goes on is a program,
// and two such programs would repeat their writes at the speed of the watch. So the next waits are 1 s, 2 s, 4 s … 1
// min.
const (
	promptRepairs = 5
	longestRepair = time.Minute
	peaceful      = 5 * time.Minute // without a repair, after which counting restarts
)

// fighting reports whether an object was put back so often that the next time has to wait.
func (k known) fighting(now time.Time) bool {
	wait := min(time.Second<<min(max(k.repairs-promptRepairs, 0), 6), longestRepair)
	return k.repairs >= promptRepairs && now.Before(k.repaired.Add(wait))
}

// memory holds the records of all objects that this process applied.
type memory struct {
	mu    sync.Mutex
	known map[rollout.Ref]known
}

// of returns the record of an object.
func (m *memory) of(ref rollout.Ref) (known, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.known[ref]
	return k, ok
}

// note records an applied object.
func (m *memory) note(d *desired, l *live, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, was := known{app: d.app(), digest: d.digest, print: l.print}, m.known[d.ref]
	if was.digest == d.digest && was.print != "" {
		if k.repairs, k.repaired = 1, now; now.Before(was.repaired.Add(peaceful)) {
			k.repairs = was.repairs + 1
		}
	}
	m.known[d.ref] = k
}

// doubt makes the next Apply write an object again: it is unknown whether its last write was made, and the watches may
// not show it yet. The digest before that write is out of date.
func (m *memory) doubt(d *desired) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known[d.ref] = known{app: d.app()}
}

// Forget drops the records of a removed app. Its objects stay as they are.
func (c *Client) Forget(app string) {
	c.mu.Lock()
	maps.DeleteFunc(c.routes, func(_ rollout.Ref, of string) bool { return of == app })
	c.mu.Unlock()
	c.workloads.mu.Lock()
	maps.DeleteFunc(c.workloads.owners, func(_ rollout.Workload, of string) bool { return of == app })
	c.workloads.mu.Unlock()
	c.memory.mu.Lock()
	maps.DeleteFunc(c.memory.known, func(_ rollout.Ref, k known) bool { return k.app == app })
	c.memory.mu.Unlock()
}

// forget drops the record of an object, which is new if it comes back.
func (m *memory) forget(ref rollout.Ref) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.known, ref)
}
