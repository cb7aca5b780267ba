package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"
)

// errUnknownKind is returned inside an Error for kinds that the API server does
// not serve.
var errUnknownKind = errors.New("is not known to the cluster")

// resources knows under which resource the API server serves each kind. A kind
// that the last look found is answered at once; only who asks for another one
// waits for a new look, because its CRD may be new. client-go's deferred mapper
// lets everybody wait for whoever looks.
type resources struct {
	server discovery.DiscoveryInterface

	mu   sync.Mutex
	last *look // the newest one that has succeeded, nil before
	next *look // the one under way, nil if there is none
}

// look is one look at all that the API server serves.
type look struct {
	done   chan struct{} // closed when the other fields are set
	mapper meta.RESTMapper
	err    error
}

// find returns the resource of a kind, in the version that the API server
// prefers if gvk names none.
func (r *resources) find(ctx context.Context, gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	var versions []string
	if gvk.Version != "" {
		versions = []string{gvk.Version}
	}
	r.mu.Lock()
	seen := r.last
	r.mu.Unlock()
	// A look that was under way when we asked may have passed a CRD that is there
	// now: the second one has begun after that.
	for range 2 {
		if seen != nil {
			mapping, err := seen.mapper.RESTMapping(gvk.GroupKind(), versions...)
			if !meta.IsNoMatchError(err) {
				return mapping, err
			}
		}
		var joined bool
		var err error
		if seen, joined, err = r.look(ctx); err != nil {
			return nil, fmt.Errorf("find the resource of %s: %w", gvk.Kind, err)
		}
		if !joined {
			break
		}
	}
	mapping, err := seen.mapper.RESTMapping(gvk.GroupKind(), versions...)
	if meta.IsNoMatchError(err) {
		return nil, errUnknownKind
	}
	return mapping, err
}

// look waits for a look, and reports whether it had begun before.
func (r *resources) look(ctx context.Context) (l *look, joined bool, err error) {
	l, joined = r.begin()
	select {
	case <-l.done:
		return l, joined, l.err
	case <-ctx.Done():
		return nil, joined, ctx.Err()
	}
}

// begin starts a look unless one is under way. It ends by itself, at the latest
// after requestTimeout for each of its requests.
func (r *resources) begin() (l *look, joined bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next != nil {
		return r.next, true
	}
	l = &look{done: make(chan struct{})}
	r.next = l
	go func() {
		groups, err := restmapper.GetAPIGroupResources(r.server)
		l.mapper, l.err = restmapper.NewDiscoveryRESTMapper(groups), err
		r.mu.Lock()
		defer r.mu.Unlock()
		r.next = nil
		if err == nil {
			r.last = l
		}
		close(l.done)
	}()
	return l, false
}
