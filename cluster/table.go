package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
)

// key names an object among those of its kind.
type key struct{ namespace, name string }

// stamp is what a table needs to know of each record.
type stamp struct {
	key
	uid     types.UID
	version string    // resourceVersion
	owner   types.UID // of the controller, "" for none
}

func (s *stamp) at() *stamp { return s }

// stampOf takes the owner from the controller reference, by uid: names can be
// used again, and labels say nothing about who owns an object.
func stampOf(m *metav1.ObjectMeta) stamp {
	owner := types.UID("")
	if ref := metav1.GetControllerOfNoCopy(m); ref != nil {
		owner = ref.UID
	}
	return stamp{key: key{m.Namespace, m.Name}, uid: m.UID, version: m.ResourceVersion, owner: owner}
}

// row is a record of one object: what is kept of it, usually a few hundred
// bytes of the 5 to 20 kB that it has. Rows are not changed once they are in.
type row interface {
	comparable
	at() *stamp
}

// table holds the newest known state of every object of one kind. A watch fills
// it, and so does the answer to each of our own writes: a reader that has just
// written never sees what was before. It is the store of a client-go Reflector,
// which lists, watches and recovers.
type table[R row] struct {
	read    func(obj any) (R, error)
	changed func(was, is R) // either may be the zero value

	mu     sync.RWMutex
	rows   map[key]R
	byUID  map[types.UID]R
	owned  map[types.UID]map[key]R
	seen   string        // the newest version that the watch has brought
	newest string        // and the newest one that anybody has
	asked  string        // what was newest when the list was asked for that comes next
	synced chan struct{} // closed when the first list is in
	err    error         // newest error of the watch
	begun  time.Time     // of the list or watch that is not answered yet
	lost   error         // the first error since it worked last, nil while it works
	since  time.Time     // of lost
	failed chan struct{} // closed, and replaced, when err changes
}

func newTable[R row](read func(any) (R, error), changed func(was, is R)) *table[R] {
	return &table[R]{
		read: read, changed: changed,
		rows: map[key]R{}, byUID: map[types.UID]R{}, owned: map[types.UID]map[key]R{},
		synced: make(chan struct{}), failed: make(chan struct{}),
	}
}

func (t *table[R]) get(k key) (R, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	r, ok := t.rows[k]
	return r, ok
}

func (t *table[R]) withUID(uid types.UID) (R, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	r, ok := t.byUID[uid]
	return r, ok
}

// ownedBy returns the objects that a controller owns, in no order.
func (t *table[R]) ownedBy(uid types.UID) []R {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.Collect(maps.Values(t.owned[uid]))
}

// each calls f for every row until it returns false.
func (t *table[R]) each(f func(R) bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, r := range t.rows {
		if !f(r) {
			return
		}
	}
}

// put takes a row unless a newer one is there, or the watch has shown already that it is gone again: it may be faster
// than the answer to the request that made the object.
func (t *table[R]) put(r R) { t.take(r, r.at().version) }

// take takes a row as it is in a version of the cluster, unless what is there is newer than that.
func (t *table[R]) take(r R, asOf string) {
	t.mu.Lock()
	was, exists := t.rows[r.at().key]
	known := t.seen
	if exists {
		known = was.at().version
	}
	if newer(known, asOf) {
		t.mu.Unlock()
		return
	}
	t.set(was, exists, r)
	t.advance(r.at().version)
	t.mu.Unlock()
	t.changed(was, r)
}

// drop removes a row that is not in a version of the cluster, unless what is there is newer than that.
func (t *table[R]) drop(k key, asOf string) {
	t.mu.Lock()
	was, exists := t.rows[k]
	if !exists || newer(was.at().version, asOf) {
		t.mu.Unlock()
		return
	}
	t.unset(was)
	t.mu.Unlock()
	var none R
	t.changed(was, none)
}

// see notes how far the watch has come.
func (t *table[R]) see(version string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !newer(t.seen, version) {
		t.seen = version
	}
	t.advance(version)
}

func (t *table[R]) advance(version string) {
	if !newer(t.newest, version) {
		t.newest = version
	}
}

// ask notes that a list is asked for, of how things are now.
func (t *table[R]) ask() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asked = t.newest
}

// swap replaces a row by one of the same version, without telling anybody.
func (t *table[R]) swap(was, is R) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.rows[was.at().key] == was {
		t.set(was, true, is)
	}
}

func (t *table[R]) set(was R, exists bool, r R) {
	if exists {
		t.unset(was)
	}
	s := r.at()
	t.rows[s.key], t.byUID[s.uid] = r, r
	if s.owner != "" {
		if t.owned[s.owner] == nil {
			t.owned[s.owner] = map[key]R{}
		}
		t.owned[s.owner][s.key] = r
	}
}

func (t *table[R]) unset(r R) {
	s := r.at()
	delete(t.rows, s.key)
	delete(t.byUID, s.uid)
	if siblings := t.owned[s.owner]; siblings != nil {
		delete(siblings, s.key)
		if len(siblings) == 0 {
			delete(t.owned, s.owner)
		}
	}
}

// newer reports whether resource version a is newer than b. Kubernetes defines
// this order for one resource since 1.35; a server whose versions are not
// numbers gets the order in which events arrive.
func newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}

// Add, Update, Delete, Replace and Resync are cache.ReflectorStore.

// Add takes an object that came into view.
func (t *table[R]) Add(obj any) error {
	r, err := t.read(obj)
	if err != nil {
		return err
	}
	t.put(r)
	t.see(r.at().version)
	return nil
}

// Update takes a newer state of an object.
func (t *table[R]) Update(obj any) error { return t.Add(obj) }

// Delete takes the last state of an object that is gone or out of view.
func (t *table[R]) Delete(obj any) error {
	m, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	t.drop(key{m.GetNamespace(), m.GetName()}, m.GetResourceVersion())
	t.see(m.GetResourceVersion())
	return nil
}

// Replace takes a whole new list, from the start or after a watch was lost. A list that is older than what was known
// when it was asked for is of a cluster that was restored from a backup: it is the truth then. So it is about rows
// that are not newer than the list, also where it has them in an older version.
func (t *table[R]) Replace(list []any, version string) error {
	listed := make(map[key]R, len(list))
	for _, obj := range list {
		r, err := t.rowOf(obj)
		if err != nil {
			return err
		}
		listed[r.at().key] = r
	}
	var gone []key
	t.each(func(r R) bool {
		if _, ok := listed[r.at().key]; !ok {
			gone = append(gone, r.at().key)
		}
		return true
	})
	asOf := version
	t.mu.Lock()
	if newer(t.asked, version) {
		asOf, t.seen, t.newest = "", version, version // nothing is newer than ""
	}
	t.mu.Unlock()
	for _, k := range gone {
		t.drop(k, asOf)
	}
	for _, r := range listed {
		t.take(r, asOf)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.seen = version
	t.advance(version)
	select {
	case <-t.synced:
	default:
		close(t.synced)
	}
	return nil
}

// Resync has nothing to do: there is no queue behind the table.
func (t *table[R]) Resync() error { return nil }

// Transformer makes rows of objects while the reflector still collects its
// first list, so that 10,000 pods never are in memory whole.
func (t *table[R]) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		r, err := t.read(obj)
		if err != nil {
			return nil, err
		}
		k := r.at().key
		return &listedRow[R]{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: k.name}, row: r}, nil
	}
}

type listedRow[R row] struct {
	metav1.ObjectMeta
	row R
}

func (t *table[R]) rowOf(obj any) (R, error) {
	if l, ok := obj.(*listedRow[R]); ok {
		return l.row, nil
	}
	return t.read(obj)
}

// begin notes that a list or a watch is asked for.
func (t *table[R]) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begun = time.Now()
}

// report notes what became of it: nil, or why it does not work.
func (t *table[R]) report(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begun = time.Time{}
	switch {
	case err == nil:
		t.lost = nil
		return
	case t.lost == nil:
		t.lost, t.since = err, time.Now()
	}
	t.err = err
	close(t.failed)
	t.failed = make(chan struct{})
}

// unanswered is how long the server may take to say that it lets the client watch. client-go tries ten times, a second
// each, where connections break, before it says that it does not.
const unanswered = 2 * time.Second

// blind is since when the table is not brought what changes, and why; nil while it is.
func (t *table[R]) blind() (since time.Time, why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lost == nil && !t.begun.IsZero() && time.Since(t.begun) > unanswered {
		t.lost, t.since = errors.New("the API server does not answer"), t.begun
	}
	return t.since, t.lost
}

// inSync reports whether the first list is in.
func (t *table[R]) inSync() bool {
	select {
	case <-t.synced:
		return true
	default:
		return false
	}
}

// await returns when the table holds all objects, or with the newest error of
// its watch: at once if waiting does not heal it, or else when patience is over.
func (t *table[R]) await(ctx context.Context, patience time.Duration) error {
	end := time.NewTimer(patience)
	defer end.Stop()
	for !t.inSync() {
		t.mu.RLock()
		err, failed := t.err, t.failed
		t.mu.RUnlock()
		if permanent(err) {
			return err
		}
		if err == nil {
			err = errors.New("no answer yet")
		}
		select {
		case <-t.synced:
		case <-failed:
		case <-end.C:
			return err
		case <-ctx.Done():
			return fmt.Errorf("%w (%w)", ctx.Err(), err)
		}
	}
	return nil
}

// permanent reports errors of a list or watch that only a person can heal.
func permanent(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) ||
		apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
}
