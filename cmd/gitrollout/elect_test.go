package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/testcluster"
	"gitrollout.dev/gitrollout/reconciler/adapters"
)

// TestLeaseOfWorkThatHangs checks that a leader whose work hangs releases the Lease immediately, so that another replica takes over. The
// test lets Supervised return between two renewals, because a renewal in progress would conflict with the release of the Lease.
func TestLeaseOfWorkThatHangs(t *testing.T) {
	t.Parallel()
	kube := testcluster.Shared(t)
	options := electOptions{
		elect: true, namespace: kube.Namespace(t), lease: 5 * time.Minute, renew: 4 * time.Minute, retry: time.Second,
	}
	log := slog.New(slog.DiscardHandler)
	began := time.Now()
	err := options.lead(t.Context(), kube.Config, "test", "first", log, func(ctx context.Context) error {
		return adapters.Supervised(500*time.Millisecond, func() string { return "app web" }, func(context.Context) error { select {} })(ctx)
	})
	if err == nil || !strings.Contains(err.Error(), "app web") {
		t.Fatalf("it ends with %v", err)
	}
	err = options.lead(t.Context(), kube.Config, "test", "second", log, func(context.Context) error { return errors.ErrUnsupported })
	if !errors.Is(err, errors.ErrUnsupported) || time.Since(began) > options.lease {
		t.Errorf("the next one leads after %s: %v", time.Since(began), err)
	}
}
