package reconciler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// prune removes what the app no longer has, once nothing of it is in use.
func (r *Reconciler) prune(ctx context.Context, s *step) {
	next := &s.decision.State
	if s.decision.Subject != "" || next.Source == "" {
		return
	}
	objects, err := r.desired(ctx, s.app, *next, s.input.Now)
	if err != nil {
		return // applyState has reported it
	}
	all := strategies.Prunable(*next, objects)
	candidates := slices.DeleteFunc(slices.Clone(all), func(ref rollout.Ref) bool { return r.isElsewhere(s.app, ref) })
	if len(candidates) < len(all) {
		s.decision.Requeue = soonest(s.decision.Requeue, s.input.Now.Add(time.Minute))
	}
	if len(candidates) == 0 {
		return
	}
	gone, err := r.Applier.Prune(ctx, s.app.Name, candidates)
	if err != nil {
		s.err = errors.Join(s.err, fmt.Errorf("prune: %w", err))
	}
	if len(gone) > 0 {
		next.Inventory = slices.DeleteFunc(slices.Clone(next.Inventory), func(ref rollout.Ref) bool { return slices.Contains(gone, ref) })
		s.decision.Subject = fmt.Sprintf("%s pruned %s", s.app.Name, listed(gone))
	}
}

// isElsewhere reports whether an object that left an app has gone to another one,
// or may have, because there is one that cannot be rendered. It then waits for
// its new app, which may be held, and is not deleted.
func (r *Reconciler) isElsewhere(a *app, ref rollout.Ref) bool {
	for _, other := range r.apps {
		switch head := other.head; {
		case other == a:
		case head.Render != nil && slices.ContainsFunc(head.Render.Objects, func(o rollout.Object) bool { return o.Ref() == ref }):
			return true
		case head.Err != nil && !other.isOrphan:
			return true
		}
	}
	return false
}

func listed(refs []rollout.Ref) string {
	names := make([]string, len(refs))
	for i, ref := range refs {
		names[i] = ref.Kind + "/" + ref.Name
	}
	if len(names) > 3 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:3], ", "), len(names)-3)
	}
	return strings.Join(names, ", ")
}
