package adapters

import (
	"context"
	"fmt"
	"time"
)

// Supervised returns a function that calls work. This function returns early if hung() reports a problem, or if work
// goes on too long after its context ended. The process may then end, because decisions are in Git or are made again.
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

// graceToEnd is the time for work to end after Grace, when the last write of the work is cancelled.
const graceToEnd = 5 * time.Second
