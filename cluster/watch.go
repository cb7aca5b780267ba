package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// background holds a client's goroutines until its start's context ends.
type background struct {
	mu      sync.Mutex
	root    context.Context // nil before start
	running sync.WaitGroup
}

var errNotStarted = errors.New("cluster client is not started")

func (b *background) start(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.root != nil {
		return errors.New("cluster client is already started")
	}
	b.root = ctx
	return nil
}

// context returns the context of all watches, nil before start.
func (b *background) context() context.Context {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.root
}

// source lists and watches one kind.
type source struct {
	list  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// typedSource has the methods of a typed client's resource.
type typedSource[L runtime.Object] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

// watchTyped fills a table with a built-in kind's objects, by each namespace's client.
func watchTyped[R row, L runtime.Object, C typedSource[L]](
	b *background, t *table[R], name string, example runtime.Object, in func(namespace string) C,
) {
	for _, f := range t.feeds {
		client := in(f.namespace)
		runWatch(b.context(), b, f, name, example, source{
			list:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return client.List(ctx, o) },
			watch: client.Watch,
		})
	}
}

// reading returns a function that makes rows of a watch's objects of one type.
func reading[O any, R row](read func(O) (R, error)) func(obj any) (R, error) {
	return func(obj any) (r R, err error) {
		o, is := obj.(O)
		if !is {
			return r, fmt.Errorf("a watch of %T brought a %T", o, obj)
		}
		return read(o)
	}
}

// runWatch fills a table through a feed until ctx ends. The reflector restarts after a broken connection or a too old
// version. It lists the newest objects, also after a refused watch: a list older than the known objects shows a
// restored cluster. client-go would ask for changes after its version, of which that cluster sends none.
func runWatch[R row](ctx context.Context, b *background, f *feed[R], name string, example runtime.Object, s source) {
	note := func(err error) {
		if ctx.Err() == nil {
			f.report(err)
		}
	}
	lists := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			if o.ResourceVersion, o.ResourceVersionMatch = "", ""; o.Continue == "" {
				f.ask()
			}
			f.begin()
			list, err := s.list(ctx, o)
			note(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			if o.SendInitialEvents != nil {
				o.ResourceVersion = ""
				f.ask()
			}
			f.begin()
			w, err := s.watch(ctx, o)
			note(err)
			if err != nil && o.SendInitialEvents == nil && !overloaded(err) {
				err = errors.New(err.Error()) // without a class, so that the reflector does not retry this version
			}
			return w, err
		},
	}
	reflector := cache.NewReflectorWithOptions(lists, example, f, cache.ReflectorOptions{
		Name: name,
		// A broken connection heals in milliseconds; a server that is down should not be hammered.
		Backoff: &wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10, Cap: 15 * time.Second},
	})
	// The table reports what the reflector would log.
	ctx = klog.NewContext(ctx, klog.Logger{}) // a logger without a sink discards
	b.running.Go(func() { reflector.RunWithContext(ctx) })
}

// overloaded reports a running server under load that a list would increase. One without etcd, maybe in a restore,
// also returns 429, with initializing storage (k8s.io/apiserver/pkg/storage/cacher).
func overloaded(err error) bool {
	return apierrors.IsTooManyRequests(err) && !strings.Contains(err.Error(), "initializing")
}
