package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// feed is a Reflector's store for one namespace or all namespaces.
type feed[R row] struct {
	*table[R]
	namespace string // "" for all, or for a cluster-scoped kind

	seen   string        // newest resource version from lists and watches
	newest string        // newest resource version, including gitrollout's writes
	asked  string        // newest resource version when the last list was requested
	synced chan struct{} // closed after the first list
	err    error
	begun  time.Time // time of an unanswered request, or zero
	lost   error     // first error since the last success, or nil
	since  time.Time
	failed chan struct{} // closed and replaced after each error
}

func (f *feed[R]) see(version string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !newer(f.seen, version) {
		f.seen = version
	}
	f.advance(version)
}

func (f *feed[R]) advance(version string) {
	if !newer(f.newest, version) {
		f.newest = version
	}
}

func (f *feed[R]) ask() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = f.newest
}

func (f *feed[R]) Add(obj any) error {
	r, err := f.read(obj)
	if err != nil {
		return err
	}
	f.put(r)
	f.see(r.at().version)
	return nil
}

func (f *feed[R]) Update(obj any) error { return f.Add(obj) }

func (f *feed[R]) Delete(obj any) error {
	m, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	f.drop(key{m.GetNamespace(), m.GetName()}, m.GetResourceVersion())
	f.see(m.GetResourceVersion())
	return nil
}

// Replace stores a complete list, but keeps newer rows. If the list is older than f.asked, the cluster was restored
// from a backup, so the list also replaces newer rows.
func (f *feed[R]) Replace(list []any, version string) error {
	listed := make(map[key]R, len(list))
	for _, obj := range list {
		r, err := f.rowOf(obj)
		if err != nil {
			return err
		}
		listed[r.at().key] = r
	}
	var gone []key
	for r := range f.each {
		_, isListed := listed[r.at().key]
		if isOurs := f.namespace == "" || f.namespace == r.at().namespace; isOurs && !isListed {
			gone = append(gone, r.at().key)
		}
	}
	asOf := version
	f.mu.Lock()
	if newer(f.asked, version) {
		asOf, f.seen, f.newest = "", version, version // with asOf "", f.drop and f.take also replace newer rows
	}
	f.mu.Unlock()
	for _, k := range gone {
		f.drop(k, asOf)
	}
	for _, r := range listed {
		f.take(r, asOf)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = version
	f.advance(version)
	if !f.inSync() {
		close(f.synced)
	}
	return nil
}

// Resync does nothing, because the table has no queue.
func (f *feed[R]) Resync() error { return nil }

// Transformer converts objects during the first list, because 10,000 whole pods would need too much memory.
func (f *feed[R]) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) {
		r, err := f.read(obj)
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

func (f *feed[R]) rowOf(obj any) (R, error) {
	if l, ok := obj.(*listedRow[R]); ok {
		return l.row, nil
	}
	return f.read(obj)
}

func (f *feed[R]) begin() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begun = time.Now()
}

func (f *feed[R]) report(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begun = time.Time{}
	switch {
	case err == nil:
		f.lost = nil
		return
	case f.lost == nil:
		f.lost, f.since = err, time.Now()
	}
	f.err = err
	close(f.failed)
	f.failed = make(chan struct{})
}

func (f *feed[R]) blind() (since time.Time, why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	// client-go reports a request without an answer only after ten tries, one per second.
	if f.lost == nil && !f.begun.IsZero() && time.Since(f.begun) > 2*time.Second {
		f.lost, f.since = errors.New("the API server does not answer"), f.begun
	}
	return f.since, f.lost
}

func (f *feed[R]) inSync() bool {
	select {
	case <-f.synced:
		return true
	default:
		return false
	}
}

// await waits for the first list. It returns a permanent error at once, and any other error after the timeout.
func (f *feed[R]) await(ctx context.Context, end <-chan time.Time) error {
	for !f.inSync() {
		f.mu.RLock()
		err, failed := f.err, f.failed
		f.mu.RUnlock()
		if permanent(err) {
			return err
		}
		if err == nil {
			err = errors.New("no answer yet")
		}
		select {
		case <-f.synced:
		case <-failed:
		case <-end:
			return err
		case <-ctx.Done():
			return fmt.Errorf("%w (%w)", ctx.Err(), err)
		}
	}
	return nil
}

func permanent(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) ||
		apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err)
}
