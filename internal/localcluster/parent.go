package main

import (
	"context"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// withParent cancels the context when the parent process has ended. It polls the parent's PID. With Pdeathsig, this
// process would end with the thread that started it. A Go program may end a thread at any time.
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
