package main

import (
	"context"
	"os"
	"time"
)

// withParent ends the context when the parent process is gone. It compares the parent's PID instead of using the
// kernel's signal, which comes when the parent's *thread* ends: in a Go parent at any time.
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
