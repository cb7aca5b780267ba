package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"gitrollout.dev/gitrollout/rollout"
)

// lastAppliedAnnotation is where tools that apply on the client's side, such as kubectl apply and Argo CD, keep what
// they applied.
const lastAppliedAnnotation = "kubectl.kubernetes.io/last-applied-configuration"

// tools are the field managers of those who bring objects from files to a cluster, as we do, besides all that begin
// with "kubectl-". What any other manager sets, a controller or an autoscaler, is left alone.
var tools = []string{
	"kubectl", "before-first-apply", // the latter is what the API server calls who came before managers had names
	"helm", "helm-controller", "kustomize-controller", "flux", "argocd-controller", "argocd-application-controller",
}

// races bounds how often a write is repeated that another writer overtook. The pauses add up to 2.5 s: a Deployment
// whose pods start has its status written several times a second.
var races = wait.Backoff{Steps: 8, Duration: 20 * time.Millisecond, Factor: 2, Jitter: 0.1}

// SameTemplate reports whether applying a Deployment would leave the live pod template as it is, so that adopting it
// restarts no pod. It asks with a dry run, which alone knows defaults and admission. Fields of other tools that the
// object lacks will be removed (takeOver), so they count as a change. A Deployment that does not exist has no same
// template.
func (c *Client) SameTemplate(ctx context.Context, object rollout.Object) (bool, error) {
	ref := object.Ref()
	d, err := c.prepare("", object)
	if err != nil {
		return false, err
	}
	k, err := c.kinds.of(ctx, d.gvk)
	if err != nil {
		return false, explain(err, ref, "list and watch")
	}
	live, err := c.server.get(ctx, k, ref)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, explain(err, ref, "get")
	}
	after, _, err := c.server.patch(ctx, patch{kind: k, ref: ref, body: templateOnly(d), force: true, dryRun: true})
	if err != nil {
		return false, explain(err, ref, "patch")
	}
	if !reflect.DeepEqual(podTemplate(live), podTemplate(after)) {
		return false, nil
	}
	meant := child1(child1(meantFields(live.Object), "f:spec"), "f:template")
	return minus(meant, within(meant, rollout.Object(d.object).Map("spec", "template"))) == nil, nil
}

// templateOnly returns the object with its name and spec alone: a wrong label of the app must not fail the dry run.
func templateOnly(d *desired) []byte {
	metadata := rollout.Object(d.object).Map("metadata")
	raw, _ := json.Marshal(map[string]any{ // of JSON values: cannot fail
		"apiVersion": d.object["apiVersion"], "kind": d.object["kind"],
		"metadata": map[string]any{"name": metadata["name"], "namespace": metadata["namespace"]},
		"spec":     rollout.Object(d.object).Map("spec"),
	})
	return raw
}

func podTemplate(u *unstructured.Unstructured) map[string]any {
	return rollout.Object(u.Object).Map("spec", "template")
}

// handOverReplicas lets go of spec.replicas when Git stops naming it for an autoscaler. Server-side apply removes a
// field that its only owner stops naming, and a Deployment without replicas has one pod. So a second manager first
// states the live number, without force, and owns the field until the autoscaler's first scaling.
func (s *server) handOverReplicas(ctx context.Context, d *desired) error {
	l, ok := d.kind.live.get(d.kind.key(d.ref))
	if !ok || !l.ownsReplicas || l.replicas < 0 || !d.omitsReplicas() {
		return nil
	}
	body, err := json.Marshal(map[string]any{
		"apiVersion": d.object["apiVersion"], "kind": d.object["kind"],
		"metadata": map[string]any{"name": d.ref.Name},
		"spec":     map[string]any{"replicas": l.replicas},
	})
	if err != nil {
		return fmt.Errorf("encode replicas of %s: %w", d.ref.Title(), err)
	}
	_, _, err = s.patch(ctx, patch{kind: d.kind, ref: d.ref, body: body, manager: manager + "-replicas"})
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// takeOver makes gitrollout the only owner of the fields that other tools have applied: a field that leaves Git then
// leaves the cluster too. An object that only gitrollout has written costs no request.
//
//   - Tools that apply record their fields, in an annotation or in managedFields. Fields that Git lacks are removed;
//     defaulted ones stay, and the annotation goes.
//   - kubectl create, edit, patch, set or rollout and Helm 3 record no intent. Fields that Git lacks stay, without an
//     owner: removing a "kubectl rollout restart" would restart every pod.
//
// The template of a workload only changes with the next version, and spec.replicas is never removed. client-go's
// csaupgrade would remove defaulted fields and replicas.
func (s *server) takeOver(ctx context.Context, d *desired) error {
	l, seen := d.kind.live.get(d.kind.key(d.ref))
	if seen && (!l.shared || l.isVersion(d.annotation(rollout.AnnotationHash))) {
		return nil
	}
	for again := races; again.Steps > 0; {
		u, err := s.get(ctx, d.kind, d.ref)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return err
		}
		change := ownershipChange(u.Object, d)
		if change == nil {
			return nil
		}
		body, err := json.Marshal(change)
		if err != nil {
			return fmt.Errorf("encode owners of %s: %w", d.ref.Title(), err)
		}
		_, _, err = s.patch(ctx, patch{kind: d.kind, ref: d.ref, form: types.JSONPatchType, body: body})
		if !apierrors.IsConflict(err) {
			return err
		}
		if err := pause(ctx, again.Step()); err != nil {
			return err
		}
	}
	return errors.New("taking over the fields of other tools lost every race against another writer")
}

// pause waits before a request is repeated. It returns the context's error if that ends first.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

type jsonPatch struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// ownershipChange returns the patch that gives us what other tools meant to set, nil if there is nothing of
// theirs. It names the resource version, so that it fails if anything changed meanwhile.
func ownershipChange(object map[string]any, d *desired) []jsonPatch {
	claimed := meantFields(object)
	var entries []any
	removed := false
	for _, e := range managedEntries(object) {
		shared := within(child1(e, "fieldsV1"), d.object)
		switch {
		case isOwn(e):
			claimed = union(claimed, child1(e, "fieldsV1"))
		case isTools(e) && (shared != nil || e["operation"] == "Apply"):
			removed = true
			if e["apiVersion"] == object["apiVersion"] {
				claimed = union(claimed, shared)
			}
		default:
			entries = append(entries, e)
		}
	}
	if !removed {
		return nil
	}
	if spec, ok := child(claimed, "f:spec"); ok && d.omitsReplicas() {
		delete(spec, "f:replicas")
	}
	entries = append(entries, map[string]any{
		"manager": manager, "operation": "Apply", "apiVersion": object["apiVersion"],
		"fieldsType": "FieldsV1", "fieldsV1": claimed,
	})
	patch := []jsonPatch{
		{Op: "replace", Path: "/metadata/managedFields", Value: entries},
		{Op: "replace", Path: "/metadata/resourceVersion", Value: rollout.Object(object).Map("metadata")["resourceVersion"]},
	}
	if rollout.Object(object).Annotation(lastAppliedAnnotation) != "" {
		name := strings.ReplaceAll(lastAppliedAnnotation, "/", "~1")
		patch = append(patch, jsonPatch{Op: "remove", Path: "/metadata/annotations/" + name})
	}
	return patch
}

// meantFields returns the fields that other tools meant to set and still own.
func meantFields(object map[string]any) map[string]any {
	var last, meant map[string]any
	_ = json.Unmarshal([]byte(rollout.Object(object).Annotation(lastAppliedAnnotation)), &last) // nil if it is none
	for _, e := range managedEntries(object) {
		if !isTools(e) || e["apiVersion"] != object["apiVersion"] {
			continue // of another version: its paths may mean other fields
		}
		fields := child1(e, "fieldsV1")
		if e["operation"] != "Apply" {
			fields = within(fields, last)
		}
		meant = union(meant, fields)
	}
	return meant
}

// isShared reports whether another tool owns a field of ours, too, or has applied the object.
func isShared(object map[string]any, ours map[string]any) bool {
	return slices.ContainsFunc(managedEntries(object), func(e map[string]any) bool {
		return isTools(e) && (ours == nil || e["operation"] == "Apply" || overlap(ours, child1(e, "fieldsV1")))
	})
}

// isTools reports whether an entry of the managed fields is of one of tools. What
// writes subresources is a controller or an autoscaler, whatever it is called.
func isTools(entry map[string]any) bool {
	name, _ := entry["manager"].(string)
	sub, _ := entry["subresource"].(string)
	return sub == "" && (slices.Contains(tools, name) || strings.HasPrefix(name, "kubectl-"))
}
