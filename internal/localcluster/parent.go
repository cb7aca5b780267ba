package main

import (
	"context"
	"os"
	"time"
)

// withParent cancels the context when the parent process has ended. It polls the parent's PID. The kernel's
// signal (Pdeathsig) depends on the thread that started this process, which may end at any time in a Go program.
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
