package main

import (
	"context"
	"os"
	"time"
)

// withParent ends the context when the parent process has ended. It polls the parent's PID. The kernel's signal would
// come when the parent's thread ends, which in a Go program can be at any time.
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
