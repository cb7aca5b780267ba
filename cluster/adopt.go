package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/wait"

	"gitrollout.dev/gitrollout/rollout"
)

const lastAppliedAnnotation = "kubectl.kubernetes.io/last-applied-configuration"

// tools lists field managers that apply manifests. Managers with the prefix "kubectl-" also count.
var tools = []string{
	"kubectl", "before-first-apply", // owns fields that are older than managedFields
	"helm", "helm-controller", "kustomize-controller", "flux", "argocd-controller", "argocd-application-controller",
}

// races is the backoff after a conflicting write: 8 attempts within 2.5 s.
var races = wait.Backoff{Steps: 8, Duration: 20 * time.Millisecond, Factor: 2, Jitter: 0.1}

// SameTemplate reports whether an apply would keep a workload's pod template and pods. It sends a dry run, because API
// defaults and admission may change the template. If Git lacks a field that a tool applied, the template counts as
// changed.
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
	if err != nil {
		return false, explain(utilerrors.FilterOut(err, apierrors.IsNotFound), ref, "get")
	}
	// The dry run sends only the spec, so that invalid metadata in Git causes no error.
	only := d.only(rollout.Object(d.object).Map("spec"))
	after, err := c.server.patch(ctx, patch{kind: k, ref: ref, body: only, force: true, dryRun: true})
	if err != nil {
		return false, explain(err, ref, "patch")
	}
	return keepsTemplate(live.Object, after.Object, d.object), nil
}

func keepsTemplate(live, after, wanted rollout.Object) bool {
	meant := childOf(childOf(union(ownedFields(live), meantFields(live)), "f:spec"), "f:template")
	return reflect.DeepEqual(podTemplate(live), podTemplate(after)) && dropped(meant, podTemplate(wanted)) == nil
}

func (d *desired) only(spec map[string]any) []byte {
	raw, _ := json.Marshal(map[string]any{
		"apiVersion": d.object["apiVersion"], "kind": d.object["kind"],
		"metadata": map[string]any{"name": d.ref.Name}, "spec": spec,
	})
	return raw
}

func podTemplate(o rollout.Object) map[string]any { return o.Map("spec", "template") }

// handOverReplicas keeps the number of pods when spec.replicas leaves Git for an autoscaler. Otherwise, server-side
// apply would remove the field, and one pod would be left. A second field manager therefore owns the live number until
// the autoscaler changes it.
func (s *server) handOverReplicas(ctx context.Context, d *desired) error {
	l, ok := d.kind.get(d.ref)
	if !ok || !l.ownsReplicas || l.replicas < 0 || !d.omitsReplicas() {
		return nil
	}
	body := d.only(map[string]any{"replicas": l.replicas})
	_, err := s.patch(ctx, patch{kind: d.kind, ref: d.ref, body: body, manager: manager + "-replicas"})
	return utilerrors.FilterOut(err, apierrors.IsConflict)
}

// takeOver makes gitrollout the only owner of fields that left Git. Otherwise, the next apply would not delete them. If
// adopts is true, takeOver also takes fields that other tools applied, but not spec.replicas or fields that users
// edited. client-go's csaupgrade would also remove fields that Git never had (docs/adr/0031-fields-that-leave-git.md).
func (s *server) takeOver(ctx context.Context, d *desired, adopts bool) error {
	l, seen := d.kind.get(d.ref)
	if seen && !l.shared || !seen && !adopts { // an unseen object has no app label
		return nil
	}
	hash := rollout.Hash(d.annotation(rollout.AnnotationHash))
	if seen && hash != "" && l.workload != nil && l.workload.hash == hash {
		adopts = false // only a new version may remove fields from the pod template
	}
	return repeated(ctx, races, apierrors.IsConflict, func() error {
		u, err := s.get(ctx, d.kind, d.ref)
		if err != nil {
			return utilerrors.FilterOut(err, apierrors.IsNotFound)
		}
		change, taken := ownershipChange(u.Object, d, adopts)
		if change == nil {
			return nil
		}
		body, err := json.Marshal(change)
		if err != nil {
			return fmt.Errorf("encode owners of %s: %w", d.ref.Title(), err)
		}
		_, err = s.patch(ctx, patch{kind: d.kind, ref: d.ref, form: types.JSONPatchType, body: body})
		if err == nil && len(taken) > 0 && s.taken != nil {
			s.taken(d.ref, strings.Join(taken, "; "))
		}
		return err
	})
}

func repeated(ctx context.Context, again wait.Backoff, isPassing func(error) bool, do func() error) error {
	// client-go's retry.OnError returns nil if a deadline passes during do.
	err := do()
	for again.Steps > 1 && isPassing(err) {
		select {
		case <-ctx.Done():
			return err
		case <-time.After(again.Step()):
		}
		err = do()
	}
	return err
}

// ownershipChange returns takeOver's patch (or nil). The patch fails if the object changes meanwhile.
func ownershipChange(object map[string]any, d *desired, adopts bool) (patch []map[string]any, taken []string) {
	if own, is := rollout.Find(managedEntries(object), isOwn); is && own["apiVersion"] != object["apiVersion"] {
		return nil, nil // paths of another API version may mean other fields
	}
	claimed, isChanged := ownedFields(object), false
	if adopts {
		claimed = union(claimed, meantFields(object))
	}
	if spec, ok := child(claimed, "f:spec"); ok && d.omitsReplicas() {
		delete(spec, "f:replicas")
	}
	gone := dropped(claimed, d.object)
	var entries []any
	for _, e := range managedEntries(object) {
		fields := childOf(e, "fieldsV1")
		switch leave := difference(gone, difference(gone, fields)); {
		case isOwn(e):
			continue
		case adopts && isTools(e) && (e["operation"] == "Apply" || existing(fields, d.object) != nil):
			isChanged = true
			continue
		case leave != nil:
			isChanged = true
			taken = append(taken, fmt.Sprintf("%s of %s", strings.Join(paths(leave, ""), ", "), e["manager"]))
			if fields = difference(fields, gone); fields == nil {
				continue
			}
			e = maps.Clone(e)
			e["fieldsV1"] = fields
		}
		entries = append(entries, e)
	}
	if !isChanged {
		return nil, nil
	}
	entries = append(entries, map[string]any{
		"manager": manager, "operation": "Apply", "apiVersion": object["apiVersion"],
		"fieldsType": "FieldsV1", "fieldsV1": claimed,
	})
	version := rollout.Object(object).Map("metadata")["resourceVersion"]
	patch = []map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": entries},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": version},
	}
	if adopts && rollout.Object(object).Annotation(lastAppliedAnnotation) != "" {
		name := strings.ReplaceAll(lastAppliedAnnotation, "/", "~1")
		patch = append(patch, map[string]any{"op": "remove", "path": "/metadata/annotations/" + name})
	}
	return patch, taken
}

func meantFields(object map[string]any) map[string]any {
	var last, meant map[string]any
	_ = json.Unmarshal([]byte(rollout.Object(object).Annotation(lastAppliedAnnotation)), &last)
	for _, e := range managedEntries(object) {
		if !isTools(e) || e["apiVersion"] != object["apiVersion"] {
			continue
		}
		fields := childOf(e, "fieldsV1")
		if e["operation"] != "Apply" {
			fields = existing(fields, last)
		}
		meant = union(meant, fields)
	}
	return meant
}

func isShared(object map[string]any, ours map[string]any) bool {
	return slices.ContainsFunc(managedEntries(object), func(e map[string]any) bool {
		return !isOwn(e) && overlap(ours, childOf(e, "fieldsV1")) || isTools(e) && (ours == nil || e["operation"] == "Apply")
	})
}

// isTools reports whether a managed-fields entry belongs to a tool, and to no subresource such as status.
func isTools(entry map[string]any) bool {
	name, _ := entry["manager"].(string)
	sub, _ := entry["subresource"].(string)
	return sub == "" && (slices.Contains(tools, name) || strings.HasPrefix(name, "kubectl-"))
}
