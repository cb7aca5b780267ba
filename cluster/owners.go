package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"gitrollout.dev/gitrollout/rollout"
)

// Other release controllers set these labels and annotations.
const (
	argoHash      = "rollouts-pod-template-hash"
	argoManaged   = "argo-rollouts.argoproj.io/managed-by-rollouts"
	kruiseLabel   = "rollouts.kruise.io/workload-type"
	kruiseRelease = "rollouts.kruise.io/in-progressing"
)

var gitOps = map[string]string{
	"argocd-controller": "Argo CD", "kustomize-controller": "Flux", "helm-controller": "Flux",
}

// OtherOwners returns signs that other tools manage an app's objects. Only adoptions call it, because it reads each
// object.
func (c *Client) OtherOwners(
	ctx context.Context, app string, objects []rollout.Object, now time.Time,
) ([]rollout.Foreign, error) {
	var signs []rollout.Foreign
	ctx = As(ctx, "")
	for _, o := range objects {
		d, err := c.prepare(app, o)
		if err != nil {
			return nil, err
		}
		d.kind, err = c.kinds.of(ctx, d.gvk)
		if errors.Is(err, errUnknownKind) {
			continue
		}
		if err == nil {
			err = c.kinds.reach(d.kind, d.ref)
		}
		if err != nil {
			return nil, explain(err, d.ref, "list and watch")
		}
		if _, err = c.contested(app, d); err != nil {
			refused, is := errors.AsType[*Error](err)
			if !is || refused.Reason != Contested {
				return nil, err
			}
			signs = append(signs, rollout.Foreign{Ref: d.ref, By: "another app", Sign: "it " + refused.Msg, Fix: refused.Fix})
		}
	}
	others, err := c.kinds.anyKind.OtherOwners(ctx, objects, now)
	return append(signs, others...), err
}

func (a anyKind) OtherOwners(
	ctx context.Context, objects []rollout.Object, now time.Time,
) (signs []rollout.Foreign, err error) {
	for _, o := range objects {
		ref := o.Ref()
		live, err := a.live(ctx, ref, kindOfObject(o).Version)
		if err != nil {
			return nil, explain(err, ref, "get")
		}
		_, runsPods := rollout.WorkloadOf(ref)
		runsPods = runsPods || o.Map("spec", "selector", "matchLabels") != nil && o.Map("spec", "template") != nil
		sign := rollout.Foreign{Ref: ref}
		switch {
		case runsPods:
			sign, err = a.workload(ctx, o, live)
		case live != nil && ref.Group == "" && ref.Kind == "Service":
			sign = serviceSign(ref, live)
		}
		if err != nil {
			return nil, explain(err, ref, "list")
		}
		if sign.By == "" && live != nil {
			sign = toolSign(ref, live, now)
		}
		if sign.By != "" {
			signs = append(signs, sign)
		}
	}
	return signs, nil
}

func (a anyKind) live(ctx context.Context, ref rollout.Ref, version string) (*unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, found, err := a.get(ctx, ref, version)
	if errors.Is(err, errUnknownKind) {
		return nil, nil
	}
	return found, err
}

func (a anyKind) workload(
	ctx context.Context, o rollout.Object, live *unstructured.Unstructured,
) (rollout.Foreign, error) {
	ref := o.Ref()
	if sign := flagger(ref, live, "owns it"); sign.By != "" {
		return sign, nil
	}
	if live != nil {
		what, verb, key := "label", "label", kruiseLabel
		if live.GetLabels()[kruiseLabel] == "" {
			what, verb, key = "annotation", "annotate", kruiseRelease
		}
		if live.GetLabels()[kruiseLabel]+live.GetAnnotations()[kruiseRelease] != "" {
			return rollout.Foreign{Ref: ref, By: "Kruise Rollouts", Sign: "it has the " + what + " " + key, Fix: fmt.Sprintf(
				"delete its Rollout when no release is in flight, and then: kubectl -n %s %s %s/%s %s-", ref.Namespace, verb,
				strings.TrimSuffix(strings.ToLower(ref.Kind)+"."+ref.Group, ".apps"), ref.Name, key)}, nil
		}
	}
	primary := ref
	primary.Name += "-primary"
	copied, err := a.live(ctx, primary, "")
	if err != nil {
		return rollout.Foreign{}, err
	}
	if sign := flagger(ref, copied, "owns "+primary.Kind+" "+primary.Name); sign.By != "" {
		return sign, nil
	}
	return a.argo(ctx, o)
}

func (a anyKind) argo(ctx context.Context, o rollout.Object) (rollout.Foreign, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	ref := o.Ref()
	sets, err := a.resource(ctx, schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}, ref.Namespace, "v1")
	if err != nil {
		return rollout.Foreign{}, err
	}
	wanted, _, _ := unstructured.NestedStringMap(o, "spec", "selector", "matchLabels")
	if len(wanted) == 0 {
		return rollout.Foreign{}, nil
	}
	found, err := sets.List(ctx, metav1.ListOptions{LabelSelector: labels.FormatLabels(wanted)})
	if err != nil {
		return rollout.Foreign{}, err
	}
	for i := range found.Items {
		set := &found.Items[i]
		pods, _, _ := unstructured.NestedInt64(set.Object, "status", "replicas")
		if owner := ownedBy(set, "argoproj.io", "Rollout"); owner != "" && pods > 0 {
			return argoRollouts(ref, fmt.Sprintf("Rollout %s owns ReplicaSet %s, which has %d of the pods "+
				"that the workload's selector matches", owner, set.GetName(), pods)), nil
		}
	}
	return rollout.Foreign{}, nil
}

func serviceSign(ref rollout.Ref, live *unstructured.Unstructured) rollout.Foreign {
	selector, _, _ := unstructured.NestedStringMap(live.Object, "spec", "selector")
	switch {
	case selector[argoHash] != "":
		return argoRollouts(ref, "it selects pods by "+argoHash)
	case live.GetAnnotations()[argoManaged] != "":
		return argoRollouts(ref, fmt.Sprintf("it has the annotation %s: %s", argoManaged, live.GetAnnotations()[argoManaged]))
	}
	return flagger(ref, live, "owns the Service, so deleting the Canary deletes the Service")
}

// toolSign looks for a recent apply by a GitOps tool, because an active tool usually applies every few minutes.
func toolSign(ref rollout.Ref, live *unstructured.Unstructured, now time.Time) rollout.Foreign {
	for _, e := range live.GetManagedFields() {
		tool := gitOps[e.Manager]
		if tool == "" || e.Subresource != "" || e.Time == nil || now.Sub(e.Time.Time) > 10*time.Minute {
			continue
		}
		return rollout.Foreign{Ref: ref, By: tool, Warns: true,
			Sign: fmt.Sprintf("%s applied the object less than 10 minutes ago", e.Manager),
			Fix:  "have " + tool + " stop managing the object without deleting it, or both tools will write the object"}
	}
	return rollout.Foreign{Ref: ref}
}

func argoRollouts(ref rollout.Ref, sign string) rollout.Foreign {
	return rollout.Foreign{Ref: ref, By: "Argo Rollouts", Sign: sign,
		Fix: "migrate the object as docs/coming-from-argo-rollouts.md describes"}
}

func flagger(ref rollout.Ref, live *unstructured.Unstructured, does string) rollout.Foreign {
	canary := ownedBy(live, "flagger.app", "Canary")
	if canary == "" {
		return rollout.Foreign{Ref: ref}
	}
	return rollout.Foreign{Ref: ref, By: "Flagger", Sign: "Canary " + canary + " " + does, Fix: fmt.Sprintf(
		"migrate the object as docs/coming-from-flagger.md describes; do not delete Canary %s first", canary)}
}

func ownedBy(u *unstructured.Unstructured, group, kind string) string {
	if u == nil {
		return ""
	}
	owner := metav1.GetControllerOfNoCopy(u)
	if owner == nil || owner.Kind != kind || !strings.HasPrefix(owner.APIVersion, group+"/") {
		return ""
	}
	return owner.Name
}

// refuseForeign returns an error if a release generates d, but an object outside the app has the same name. At its end,
// the release would delete the existing object.
func (s *server) refuseForeign(ctx context.Context, d *desired) error {
	by, app := d.annotation(rollout.AnnotationGenerated), d.app()
	if by == "" || d.kind == nil {
		return nil
	}
	if l, ok := d.kind.get(d.ref); ok && l.app == app {
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
	whose := "is not in this app"
	if owner != "" {
		whose = "is in app " + owner
	}
	return &Error{Ref: d.ref, Reason: Contested,
		Msg: fmt.Sprintf("exists and %s, but Rollout %s needs this name for an object of its release", whose, by),
		Fix: "delete or rename the existing object, or rename the Rollout or the object that the name comes from"}
}

func (d *desired) annotation(name string) string { return rollout.Object(d.object).Annotation(name) }
func (d *desired) app() string                   { return rollout.Object(d.object).Label(rollout.LabelApp) }
