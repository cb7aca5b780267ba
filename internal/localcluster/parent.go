package main

import (
	"context"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// withParent cancels the context when the parent process has ended. It polls the parent's PID. Pdeathsig would end this
// process with the parent's thread, which a Go program can end at any time.
func withParent(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	parent := os.Getppid()
	hasEnded := func(context.Context) (bool, error) { return os.Getppid() != parent, nil }
	go func() {
		_ = wait.PollUntilContextCancel(ctx, 200*time.Millisecond, true, hasEnded)
		cancel()
	}()
	return ctx, cancel
}
