package cluster

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"gitrollout.dev/gitrollout/rollout"
)

type key struct{ namespace, name string }

type stamp struct {
	key
	uid     types.UID
	version string    // resourceVersion
	owner   types.UID // the controller's uid, or ""
}

func (s *stamp) at() *stamp { return s }

// stampOf stores the owner's uid, because names are reused and labels do not prove ownership.
func stampOf(m *metav1.ObjectMeta) stamp {
	owner := types.UID("")
	if ref := metav1.GetControllerOfNoCopy(m); ref != nil {
		owner = ref.UID
	}
	return stamp{key: key{m.Namespace, m.Name}, uid: m.UID, version: m.ResourceVersion, owner: owner}
}

// row is an immutable record of a few hundred bytes. The recorded object has 5 to 20 kB.
type row interface {
	comparable
	at() *stamp
}

type record[T any] interface {
	*T
	row
}

func sameRow[T any, R record[T]](a, b R) bool {
	x, y := *a, *b
	R(&x).at().version, R(&y).at().version = "", ""
	return reflect.DeepEqual(x, y)
}

// table contains the state that gitrollout last wrote, or a newer state.
type table[R row] struct {
	read    func(obj any) (R, error)
	changed func(was, is R) // "was" is zero for a new row, "is" for a deleted one
	feeds   []*feed[R]

	mu    sync.RWMutex // also guards the feeds' fields
	rows  map[key]R
	byUID map[types.UID]R
	owned map[types.UID]map[key]R
}

func newTable[R row](read func(any) (R, error), changed func(was, is R), namespaces ...string) *table[R] {
	t := &table[R]{
		read: read, changed: changed,
		rows: map[key]R{}, byUID: map[types.UID]R{}, owned: map[types.UID]map[key]R{},
	}
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	for _, namespace := range namespaces {
		t.feeds = append(t.feeds, &feed[R]{
			table: t, namespace: namespace, synced: make(chan struct{}), failed: make(chan struct{}),
		})
	}
	return t
}

func (t *table[R]) feedOf(namespace string) *feed[R] {
	f, _ := rollout.Find(t.feeds, func(f *feed[R]) bool { return f.namespace == "" || f.namespace == namespace })
	return f
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

func (t *table[R]) ownedBy(uid types.UID) []R {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.Collect(maps.Values(t.owned[uid]))
}

// each calls the given function while it holds the table's lock.
func (t *table[R]) each(yield func(R) bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, r := range t.rows {
		if !yield(r) {
			return
		}
	}
}

func (t *table[R]) put(r R) { t.take(r, r.at().version) }

// take stores a row that was read at the resource version asOf, unless the table is newer.
func (t *table[R]) take(r R, asOf string) {
	t.mu.Lock()
	was, exists := t.rows[r.at().key]
	by := t.feedOf(r.at().namespace)
	if by == nil || exists && newer(was.at().version, asOf) || !exists && newer(by.seen, asOf) {
		t.mu.Unlock()
		return
	}
	t.set(was, exists, r)
	by.advance(r.at().version)
	t.mu.Unlock()
	t.changed(was, r)
}

// drop removes a row that was missing at the resource version asOf, unless the row is newer.
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

// swap replaces a row of the same version without a notification.
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
	siblings := t.owned[s.owner]
	if delete(siblings, s.key); len(siblings) == 0 {
		delete(t.owned, s.owner)
	}
}

// newer returns false if a version is no number.
func newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order > 0
}

func (t *table[R]) blind() (since time.Time, why error) {
	for _, f := range t.feeds {
		if at, err := f.blind(); err != nil && (why == nil || at.Before(since)) {
			since, why = at, err
		}
	}
	return since, why
}

func (t *table[R]) inSync() bool {
	return !slices.ContainsFunc(t.feeds, func(f *feed[R]) bool { return !f.inSync() })
}

func (t *table[R]) await(ctx context.Context, timeout time.Duration) error {
	end := time.NewTimer(timeout)
	defer end.Stop()
	for _, f := range t.feeds {
		if err := f.await(ctx, end.C); err != nil {
			return err
		}
	}
	return nil
}
