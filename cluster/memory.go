package cluster

import (
	"sync"

	"gitrollout.dev/gitrollout/rollout"
)

// known is what this process knows of an object that it applied, or found
// applied by its predecessor.
type known struct {
	digest string // of what was applied
	print  string // fingerprint of the owned fields after it
	app    string // for which app
	before string // the app that had it before, until that one has let go of it
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

// note keeps what is now applied, and from which app the object came.
func (m *memory) note(d *desired, l *live) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k := known{digest: d.digest, print: l.print, app: l.app}
	if was, ok := m.known[d.ref]; ok {
		k.before = was.before
		if was.app != k.app {
			k.before = was.app
		}
	}
	m.known[d.ref] = k
}

// contender returns the app that took an object from this one, which wants it
// back. An object may move between apps, but one that is in two of them would
// go to and fro with every pass.
func (m *memory) contender(app string, ref rollout.Ref) string {
	if k, ok := m.of(ref); ok && k.app != app && k.before == app {
		return k.app
	}
	return ""
}

// forget makes an object new if it comes back.
func (m *memory) forget(ref rollout.Ref) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.known, ref)
}

// release forgets an object that is not the app's any more, but not what another
// app knows of it.
func (m *memory) release(app string, ref rollout.Ref) {
	m.mu.Lock()
	defer m.mu.Unlock()
	k, ok := m.known[ref]
	switch {
	case !ok:
	case k.app == app:
		delete(m.known, ref)
	case k.before == app:
		k.before = ""
		m.known[ref] = k
	}
}
