package cluster

import (
	"maps"
	"sync"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// known is what this process knows of an object that it applied, or found applied by its predecessor.
type known struct {
	app    string // that it was applied for
	digest string // of what was applied
	print  string // fingerprint of the owned fields after it

	repairs  int       // how often in a row it was put back, with no change in Git and little time between
	repaired time.Time // when last
}

// The first few times an object that somebody changes is put back at once. Whoever goes on writes it by a program,
// and two programs that answer each other would do so at the speed of the watch: then there is a wait of 1 s, 2 s,
// 4 s … 1 min.
const (
	promptRepairs = 5
	longestRepair = time.Minute
	peaceful      = 5 * time.Minute // without a repair, after which a new one is a first one
)

// fighting reports whether an object was put back so often that the next time has to wait.
func (k known) fighting(now time.Time) bool {
	wait := min(time.Second<<min(max(k.repairs-promptRepairs, 0), 6), longestRepair)
	return k.repairs >= promptRepairs && now.Before(k.repaired.Add(wait))
}

// memory is what this process knows of all objects that it applied.
type memory struct {
	mu    sync.Mutex
	known map[rollout.Ref]known
}

// of returns what is known of an object.
func (m *memory) of(ref rollout.Ref) (known, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.known[ref]
	return k, ok
}

// note keeps what is now applied.
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

// doubt has an object written anew: whether its last write was made is not known, and the watches may not show it yet.
// What was asked for before is not what is there then.
func (m *memory) doubt(d *desired) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known[d.ref] = known{app: d.app()}
}

// Forget drops what is remembered of an app that is no more. Its objects stay as they are.
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

// forget makes an object new if it comes back.
func (m *memory) forget(ref rollout.Ref) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.known, ref)
}
