package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"gitrollout.dev/gitrollout/rollout"
)

// Election describes the Lease that elects the working process. Two working processes would do no harm, because Git
// accepts only the first of two pushes.
type Election struct {
	Namespace, Name string
	ID              string
	Duration        time.Duration
	Renew, Retry    time.Duration
	Leading         func()              // this process holds the Lease
	Waiting         func(leader string) // another process holds the Lease
}

// Lead waits for the Lease, calls the function work, and then releases the Lease. If the Lease is lost, Lead ends the
// function's context and returns an error. The process should then restart.
func (e Election) Lead(ctx context.Context, config *rest.Config, work func(context.Context) error) error {
	client, err := coordination.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("leader election: %w", err)
	}
	electing, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	turn := &turn{begun: make(chan struct{}), ended: make(chan struct{})}
	var elector *leaderelection.LeaderElector
	// The negative duration makes Check fail at RenewDeadline, at which client-go gives up the Lease.
	holds := func() bool { return elector.IsLeader() && elector.Check(e.Renew-e.Duration) == nil }
	elector, err = leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Name: "gitrollout", LeaseDuration: e.Duration, RenewDeadline: e.Renew, RetryPeriod: e.Retry, ReleaseOnCancel: true,
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: e.Namespace, Name: e.Name},
			Client:     client,
			LockConfig: resourcelock.ResourceLockConfig{Identity: e.ID},
		},
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) {
				e.Leading()
				turn.take(context.WithValue(ctx, leaseKey{}, holds), leading, work)
				stop()
			},
			OnStoppedLeading: func() {},
			OnNewLeader: func(leader string) {
				if leader != e.ID {
					e.Waiting(leader)
				}
			},
		},
	})
	if err != nil {
		return fmt.Errorf("leader election: %w", err)
	}
	waiting := context.AfterFunc(ctx, func() {
		select {
		case <-turn.begun: // the running function needs the Lease
		default:
			stop()
		}
	})
	defer waiting()
	elector.Run(electing)
	select {
	case <-turn.begun:
		<-turn.ended
		return turn.err
	default:
		return nil // ctx ended before work began
	}
}

// Leader returns the holder of an unexpired Lease in any namespace, or "".
func Leader(ctx context.Context, c *Client, name string, now time.Time) (holder string, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	all, err := c.kube.leases.Leases("").List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		return "", explain(err, rollout.Ref{Group: "coordination.k8s.io", Kind: "Lease", Name: name}, "list")
	}
	for _, l := range all.Items {
		by, at, lasts := l.Spec.HolderIdentity, l.Spec.RenewTime, l.Spec.LeaseDurationSeconds
		if by != nil && at != nil && lasts != nil && now.Before(at.Add(time.Duration(*lasts)*time.Second)) {
			holder = *by
		}
	}
	return holder, nil
}

type turn struct {
	begun, ended chan struct{}
	err          error
}

func (t *turn) take(ctx, leading context.Context, work func(context.Context) error) {
	close(t.begun)
	defer close(t.ended)
	working, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(leading, stop)()
	if t.err = work(working); t.err == nil && leading.Err() != nil {
		t.err = errLeaseLost
	}
}

var errLeaseLost = errors.New("the Lease is lost: another replica continues")

type leaseKey struct{}

// fenced sends changes only while this process holds the context's Lease. A suspended process may resume before
// client-go notices that the Lease is lost.
type fenced struct{ next http.RoundTripper }

func (t fenced) RoundTrip(r *http.Request) (*http.Response, error) {
	if holds, elected := r.Context().Value(leaseKey{}).(func() bool); elected && r.Method != http.MethodGet && !holds() {
		return nil, errLeaseLost
	}
	return t.next.RoundTrip(r)
}
