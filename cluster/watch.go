package cluster

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

type background struct {
	root    atomic.Pointer[context.Context] // nil before start
	running sync.WaitGroup
}

var errNotStarted = errors.New("cluster client is not started")

func (b *background) start(ctx context.Context) error {
	if !b.root.CompareAndSwap(nil, &ctx) {
		return errors.New("cluster client is already started")
	}
	return nil
}

func (b *background) context() context.Context {
	if root := b.root.Load(); root != nil {
		return *root
	}
	return nil
}

type source struct {
	list  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
}

type typedSource[L runtime.Object] interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}

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

func reading[O any, R row](read func(O) (R, error)) func(obj any) (R, error) {
	return func(obj any) (r R, err error) {
		o, is := obj.(O)
		if !is {
			return r, fmt.Errorf("a watch of %T brought a %T", o, obj)
		}
		return read(o)
	}
}

// errClosed means that the API server closed a watch's connections without a response. client-go hides this error after
// ten retries: it returns an empty watch.
var errClosed = errors.New("the API server closes connections without a response")

// runWatch fills a table until ctx ends. After a broken connection or an expired version, it lists again. client-go
// would watch from the last version, and get no events after the restore of a backup.
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
			if reflect.TypeOf(w) == reflect.TypeOf(watch.NewEmptyWatch()) {
				w, err = nil, errClosed
			}
			note(err)
			if err != nil && o.SendInitialEvents == nil && !overloaded(err) {
				err = errors.New(err.Error()) // drop the error's type, so that the reflector lists again
			}
			return w, err
		},
	}
	reflector := cache.NewReflectorWithOptions(lists, example, f, cache.ReflectorOptions{
		Name: name,
		// Most connections recover in milliseconds. Later tries are rarer, to spare a server that is down.
		Backoff: &wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10, Cap: 15 * time.Second},
	})
	b.running.Go(func() { reflector.RunWithContext(quiet(ctx)) })
}

func quiet(ctx context.Context) context.Context {
	return klog.NewContext(ctx, klog.Logger{})
}

// overloaded reports whether the API server is overloaded (429). While etcd is down, the server also returns 429, but
// with "initializing" (k8s.io/apiserver/pkg/storage/cacher).
func overloaded(err error) bool {
	return apierrors.IsTooManyRequests(err) && !strings.Contains(err.Error(), "initializing")
}
