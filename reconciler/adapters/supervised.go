package adapters

import (
	"context"
	"fmt"
	"time"
)

// Supervised returns a function that runs the given work. It returns before the work ends if hung() reports a problem,
// or if the work outlasts the context for too long.
func Supervised(
	every time.Duration, hung func() string, work func(context.Context) error,
) func(context.Context) error {
	return func(ctx context.Context) error {
		ended := make(chan error, 1)
		go func() { ended <- work(ctx) }()
		look := time.NewTicker(every)
		defer look.Stop()
		for {
			select {
			case err := <-ended:
				return err
			case <-ctx.Done():
				select {
				case err := <-ended:
					return err
				case <-time.After(Grace + graceToEnd):
					return fmt.Errorf("the loop did not end within %s after the request to stop", Grace+graceToEnd)
				}
			case <-look.C:
				if what := hung(); what != "" {
					return fmt.Errorf("the loop hangs, so this process ends and another one continues: %s", what)
				}
			}
		}
	}
}

// graceToEnd is the work's time to return after Grace has passed.
const graceToEnd = 5 * time.Second
