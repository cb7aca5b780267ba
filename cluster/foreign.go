package cluster

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"gitrollout.dev/gitrollout/rollout"
)

// refuseForeign refuses to generate an object that exists outside the app: the end of the release would delete it.
func (s *server) refuseForeign(ctx context.Context, d *desired) error {
	by, app := d.annotation(rollout.AnnotationGenerated), d.app()
	if by == "" || d.kind == nil {
		return nil
	}
	if l, ok := d.kind.live.get(d.kind.key(d.ref)); ok && l.app == app {
		return nil
	}
	live, err := s.get(ctx, d.kind, d.ref)
	if err != nil {
		return explain(utilerrors.FilterOut(err, apierrors.IsNotFound), d.ref, "get")
	}
	owner := live.GetLabels()[rollout.LabelApp]
	if owner == app {
		return nil
	}
	whose := "is none of this app's objects"
	if owner != "" {
		whose = "is in app " + owner
	}
	return &Error{Ref: d.ref, Reason: Contested,
		Msg: fmt.Sprintf("exists and %s, and Rollout %s would make an object of this name for its release", whose, by),
		Fix: "delete or rename the existing object, or rename the Rollout or the object that the name comes from"}
}

func (d *desired) annotation(name string) string { return rollout.Object(d.object).Annotation(name) }
func (d *desired) app() string                   { return rollout.Object(d.object).Label(rollout.LabelApp) }
