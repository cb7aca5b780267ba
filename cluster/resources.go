package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"
)

var errUnknownKind = errors.New("its kind is not known to the cluster; install its CRD")

// unserved is an errUnknownKind for a kind that the API server serves in another version.
type unserved struct{ asked, served string }

func (e unserved) Error() string {
	return fmt.Sprintf("is not served by the cluster as %s, but as %s", e.asked, e.served)
}

func (e unserved) Is(target error) bool { return target == errUnknownKind }

// resources maps kinds to API resources. Only a call for an unknown kind waits for discovery, because the kind's CRD
// may be new. With client-go's deferred mapper, all calls would wait.
type resources struct {
	server discovery.DiscoveryInterface

	mu   sync.Mutex
	last *look // newest successful discovery, or nil
	next *look // discovery in progress, or nil
}

type look struct {
	done   chan struct{} // closed when the other fields are set
	mapper meta.RESTMapper
	unseen map[schema.GroupVersion]error // errors of API groups that did not answer
	err    error
}

// find returns the resource of a kind. If the group's server did not answer, the error is not errUnknownKind.
func (l *look) find(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	mapping, err := l.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if !meta.IsNoMatchError(err) {
		return mapping, err
	}
	byName := func(a, b schema.GroupVersion) int { return strings.Compare(a.String(), b.String()) }
	for _, gv := range slices.SortedFunc(maps.Keys(l.unseen), byName) { // so that repeated errors are equal
		if gv.Group == gvk.Group && (gvk.Version == "" || gv.Version == gvk.Version) {
			return nil, fmt.Errorf("the API server cannot reach the server of %s: %w", gv, l.unseen[gv])
		}
	}
	if other, err := l.mapper.RESTMapping(gvk.GroupKind()); err == nil {
		return nil, unserved{asked: gvk.Version, served: other.GroupVersionKind.Version}
	}
	return nil, errUnknownKind
}

// candid stores the errors of API groups, because restmapper ignores them.
type candid struct {
	discovery.DiscoveryInterface
	unseen map[schema.GroupVersion]error
}

func (c *candid) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	groups, all, err := c.DiscoveryInterface.ServerGroupsAndResources()
	c.unseen, _ = discovery.GroupDiscoveryFailedErrorGroups(err)
	return groups, all, err
}

func (r *resources) find(ctx context.Context, gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	r.mu.Lock()
	seen := r.last
	r.mu.Unlock()
	if seen != nil {
		if mapping, err := seen.find(gvk); err == nil {
			return mapping, nil
		}
	}
	// A discovery that another call began may be older than the CRD, so look once more.
	for again := true; ; again = false {
		seen, joined, err := r.look(ctx)
		if err != nil {
			return nil, fmt.Errorf("find the resource of %s: %w", gvk.Kind, err)
		}
		if mapping, err := seen.find(gvk); err == nil || !joined || !again {
			return mapping, err
		}
	}
}

// look waits for a discovery. joined is true if another call began the discovery.
func (r *resources) look(ctx context.Context) (l *look, joined bool, err error) {
	l, joined = r.begin()
	select {
	case <-l.done:
		return l, joined, l.err
	case <-ctx.Done():
		return nil, joined, ctx.Err()
	}
}

func (r *resources) begin() (l *look, joined bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next != nil {
		return r.next, true
	}
	l = &look{done: make(chan struct{})}
	r.next = l
	go func() {
		server := &candid{DiscoveryInterface: r.server}
		groups, err := restmapper.GetAPIGroupResources(server)
		l.mapper, l.unseen, l.err = restmapper.NewDiscoveryRESTMapper(groups), server.unseen, err
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
