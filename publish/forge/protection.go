package forge

import (
	"context"

	"gitrollout.dev/gitrollout/rollout"
)

// IsProtected asks the forge whether it protects a branch, which has to exist:
// against pushes by everybody, or against those without a review. What the rules
// are, the forge tells its administrators only.
func IsProtected(ctx context.Context, o Options, config rollout.Forge, branch string) (bool, error) {
	h, err := o.connect(config)
	if err != nil {
		return false, err
	}
	return h.isProtected(ctx, branch)
}
