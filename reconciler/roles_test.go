package reconciler_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/rollout"
)

// roleWriter counts the calls of SetRole. The first calls fail; "refused" is their number. No pod is changed.
type roleWriter struct{ asked, refused int }

func (r *roleWriter) SetRole(context.Context, string, rollout.Pod, string) error {
	if r.asked++; r.asked <= r.refused {
		return rollout.ErrUnlabelled
	}
	return nil
}

func (*roleWriter) Unannotate(context.Context, rollout.Ref, string, string) error { return nil }

// TestRefusedRoles checks that a pass ends after five refused patches of pods. All 16 pods lack the metadata of their role.
func TestRefusedRoles(t *testing.T) {
	app := strings.NewReplacer("replicas: 4", "replicas: 16",
		"{canary: {", "{canary: {stableMetadata: {labels: {role: stable}}, ").Replace(version("v1"))
	for refused, want := range map[int]int{0: 16, 4: 16, 5: 5, 16: 5} {
		t.Run(fmt.Sprint(refused), func(t *testing.T) {
			roles := &roleWriter{}
			w := newWorld(t, func(o *reconciler.Options) { o.Annotations = roles })
			w.follow("16 pods", map[string]string{"apps/shop/app.yaml": app})
			roles.asked, roles.refused = 0, refused
			err := w.once()
			compare.CheckNamed(t, "patches in one pass", want, roles.asked)
			compare.CheckNamed(t, "the pass has an error", refused > 0, errors.Is(err, rollout.ErrUnlabelled))
		})
	}
}
