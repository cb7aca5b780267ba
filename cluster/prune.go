package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"gitrollout.dev/gitrollout/rollout"
)

// Prune deletes objects that an app no longer has, in pruneRank's order. It returns the candidates that are deleted,
// missing or in another app, and the reasons why the other candidates stay. Prune continues after a refused deletion or
// an unreadable kind, but not after other errors.
func (c *Client) Prune(
	ctx context.Context, app string, candidates []rollout.Ref,
) (gone []rollout.Ref, kept []string, err error) {
	ordered := slices.SortedStableFunc(slices.Values(candidates), func(a, b rollout.Ref) int {
		return cmp.Compare(pruneRank(a), pruneRank(b))
	})
	for _, ref := range ordered {
		k, l, failed := c.candidate(ctx, app, ref)
		if failed = explain(failed, ref, "list and watch"); failed != nil {
			if err = errors.Join(err, failed); isRefused(failed) || apierrors.ReasonForError(failed) != "" {
				continue // deletions of other kinds may succeed
			}
			return gone, kept, err
		}
		if l == nil {
			gone = append(gone, ref)
			continue
		}
		if why := c.workloads.whyKept(l); why != "" {
			kept = append(kept, why)
			continue
		}
		if !l.terminating {
			if failed = explain(c.server.delete(ctx, k, l), ref, "delete"); failed != nil {
				if err = errors.Join(err, failed); isRefused(failed) {
					continue
				}
				return gone, kept, err
			}
			c.applied.forget(ref)
		}
		if l.terminating || l.finalizers != "" { // a later call reports the deletion
			kept = append(kept, ref.Title()+" "+deleting(l.finalizers))
		} else {
			gone = append(gone, ref)
		}
	}
	return gone, kept, err
}

// Removable returns the objects that Prune can delete, and the reasons why Prune never deletes other objects.
func (c *Client) Removable(
	ctx context.Context, app string, candidates []rollout.Ref,
) (there []rollout.Ref, kept []string, err error) {
	for _, ref := range candidates {
		_, l, err := c.candidate(ctx, app, ref)
		switch {
		case err != nil:
			return nil, nil, explain(err, ref, "list and watch")
		case l == nil || l.terminating:
		case staysForGood(l) != "":
			kept = append(kept, staysForGood(l))
		default:
			there = append(there, ref)
		}
	}
	return there, kept, nil
}

func (c *Client) candidate(ctx context.Context, app string, ref rollout.Ref) (*kind, *live, error) {
	k, err := c.kinds.ofRef(ctx, ref)
	if errors.Is(err, errUnknownKind) {
		return nil, nil, nil // without the CRD, the kind has no objects
	}
	if err != nil {
		return nil, nil, err
	}
	l, ok := k.get(ref)
	if !ok {
		c.applied.forget(ref)
	}
	if !ok || l.app != app || l.cluster != c.opts.Cluster {
		return k, nil, nil
	}
	return k, l, nil
}

func (w *workloads) whyKept(l *live) string {
	switch why := staysForGood(l); {
	case l.terminating:
		return ""
	case why != "":
		return why
	case l.ref.Group == "" && (l.ref.Kind == "ConfigMap" || l.ref.Kind == "Secret"):
		if user := w.userOf(l.ref); user != "" {
			return fmt.Sprintf("%s is used by %s", l.ref.Title(), user)
		}
	}
	return ""
}

// staysForGood returns the reason why Prune never deletes an object, or "". A Namespace contains users' objects.
func staysForGood(l *live) string {
	switch {
	case l.keep != "":
		return fmt.Sprintf("%s is annotated %s", l.ref.Title(), l.keep)
	case l.ref.HoldsData():
		return l.ref.Title() + " is never deleted automatically, because everything in it would be lost; delete it by hand"
	}
	return ""
}

func pruneRank(ref rollout.Ref) int {
	if _, runsPods := rollout.WorkloadOf(ref); runsPods {
		return 1
	}
	switch ref.Kind {
	case "HorizontalPodAutoscaler", "ScaledObject", "Ingress", "HTTPRoute":
		return 0
	case "Job", "CronJob":
		return 1
	case "ConfigMap", "Secret":
		return 3
	case "ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding":
		return 4
	case "CustomResourceDefinition", "Namespace":
		return 5
	}
	return 2
}
