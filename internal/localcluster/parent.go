package main

import (
	"context"
	"os"
	"time"
)

// withParent ends the context when the process that started this one is gone.
// It compares the parent's id instead of asking the kernel for a signal: that
// signal comes when the parent's *thread* ends, which in a Go parent is any time.
func withParent(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	parent := os.Getppid()
	go func() {
		ticker := time.NewTicker(200 * time.Millisecond)
		defer ticker.Stop()
		for os.Getppid() == parent {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return
			}
		}
		cancel()
	}()
	return ctx, cancel
}
