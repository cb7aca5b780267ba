package edge

import (
	"context"
	"fmt"
	"time"
)

// Supervised is work that is given up when hung, which is asked now and then, says that it hangs, or when it goes on
// for longer than Grace after it was told to end: the process then ends without it. What was decided is in
// Git, or will be decided again.
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
					return fmt.Errorf("it did not end within %s of being told to", Grace+graceToEnd)
				}
			case <-look.C:
				if what := hung(); what != "" {
					return fmt.Errorf("the loop hangs, and another process is to go on: %s", what)
				}
			}
		}
	}
}

// graceToEnd is for what is left to do after the last request has been given up.
const graceToEnd = 5 * time.Second
