package adapters_test

import (
	"context"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/reconciler/adapters"
)

func TestOutlive(t *testing.T) {
	parent, stop := context.WithCancel(t.Context())
	ctx, cancel := adapters.Outlive(parent)
	stop()
	if ctx.Err() != nil {
		t.Error("the context ended with its parent")
	}
	cancel()
	if ctx.Err() == nil {
		t.Error("cancel does not cancel")
	}
}

// TestSpread checks that Spread lengthens a duration by a random amount of at most a tenth.
func TestSpread(t *testing.T) {
	seen := map[time.Duration]bool{}
	for range 100 {
		d := adapters.Spread(time.Minute)
		if d < time.Minute || d > 66*time.Second {
			t.Fatalf("a minute becomes %s", d)
		}
		seen[d] = true
	}
	if len(seen) < 2 || adapters.Spread(0) != 0 {
		t.Errorf("%d times, and of nothing %s", len(seen), adapters.Spread(0))
	}
}
