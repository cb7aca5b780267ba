package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"gitrollout.dev/gitrollout/rollout"
)

// What other tools leave behind on an object: kubectl apply's manager and the
// annotation in which it keeps what was applied.
const (
	clientSideApply       = "kubectl-client-side-apply"
	lastAppliedAnnotation = "kubectl.kubernetes.io/last-applied-configuration"
)

// attempts bounds how often a write is repeated that lost a race.
const attempts = 4

// SameTemplate reports whether applying a Deployment would leave the live pod
// template as it is, so that adopting it restarts no pod. It asks the API
// server with a dry run, because only that knows defaults and admission. Fields
// that an earlier kubectl apply set and that the object does not name will be
// removed (see takeOver), so they count as a change. A Deployment that does not
// exist has no same template.
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
	stale := child1(child1(staleFields(after.Object, c.opts.Manager), "f:spec"), "f:template")
	return len(stale) == 0, nil
}

// templateOnly leaves out what has nothing to do with the question and could
// fail, such as labels of the app.
func templateOnly(d *desired) []byte {
	spec, _ := d.object["spec"].(map[string]any)
	metadata, _ := d.object["metadata"].(map[string]any)
	raw, _ := json.Marshal(map[string]any{ // of JSON values: cannot fail
		"apiVersion": d.object["apiVersion"], "kind": d.object["kind"],
		"metadata": map[string]any{"name": metadata["name"], "namespace": metadata["namespace"]},
		"spec":     spec,
	})
	return raw
}

func podTemplate(u *unstructured.Unstructured) map[string]any {
	return rollout.Object(u.Object).Map("spec", "template")
}

// handOverReplicas lets go of spec.replicas when Git stops naming it because an
// autoscaler takes over. Server-side apply removes a field that its only owner
// stops naming, and a Deployment without replicas is defaulted to one pod. So a
// second manager first states the number that is live, without force: it then
// owns the field too and it stays, until the autoscaler's first scaling takes
// it. Losing the race means that somebody scales already, which is as good.
func (c *Client) handOverReplicas(ctx context.Context, d *desired) error {
	l, ok := d.kind.live.get(d.kind.key(d.ref))
	if !ok || !l.ownsReplicas || l.replicas == nil || !d.omitsReplicas() {
		return nil
	}
	body, err := json.Marshal(map[string]any{
		"apiVersion": d.object["apiVersion"], "kind": d.object["kind"],
		"metadata": map[string]any{"name": d.ref.Name},
		"spec":     map[string]any{"replicas": l.replicas},
	})
	if err != nil {
		return fmt.Errorf("encode replicas of %s: %w", describe(d.ref), err)
	}
	_, _, err = c.server.patch(ctx, patch{kind: d.kind, ref: d.ref, body: body, manager: c.opts.Manager + "-replicas"})
	if isConflict(err) {
		return nil
	}
	return err
}

// takeOver makes us the only owner of the fields in Git when the object was
// made by other tools, so that a field which leaves Git later leaves the
// cluster too. It is given the object after an apply, and for an object that
// nobody else touched it sends nothing.
//
//   - kubectl apply says what it applied: in an annotation, or by owning exactly
//     that if it applied on the server's side. What of it is not in Git is
//     removed, as the next kubectl apply would have done; a field that it owns
//     only because the API server had defaulted it stays. The annotation goes.
//   - Of kubectl create, edit, patch, set or rollout and of Helm nobody knows
//     which fields were meant. What is not in Git stays, owned by nobody:
//     removing a "kubectl rollout restart" would restart every pod.
//
// spec.replicas is never removed when Git omits it. client-go's csaupgrade
// takes over every field that kubectl owns, defaulted ones and replicas
// included, and then removes those: an immutable one could never be applied.
func (c *Client) takeOver(
	ctx context.Context, d *desired, u *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	for range attempts {
		change, again := ownershipChange(u.Object, c.opts.Manager, d.omitsReplicas())
		if change == nil {
			return u, nil
		}
		body, err := json.Marshal(change)
		if err != nil {
			return nil, fmt.Errorf("encode owners of %s: %w", describe(d.ref), err)
		}
		changed, _, err := c.server.patch(ctx, patch{kind: d.kind, ref: d.ref, form: types.JSONPatchType, body: body})
		switch {
		case isConflict(err):
			if u, err = c.server.get(ctx, d.kind, d.ref); err != nil {
				return nil, err
			}
			continue
		case err != nil:
			return nil, err
		case !again:
			return changed, nil
		}
		u, _, err = c.server.apply(ctx, d)
		return u, err
	}
	return nil, errors.New("taking over the fields of other tools lost every race against another writer")
}

type jsonPatch struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// ownershipChange returns the patch that makes us the only owner, nil if we
// are, and whether another apply then has fields to remove. The patch names the
// resource version, so that it fails if anything changed meanwhile.
func ownershipChange(object map[string]any, manager string, omitsReplicas bool) (patch []jsonPatch, again bool) {
	ours := ownedFields(object, manager)
	stale := staleFields(object, manager)
	if spec, ok := child(stale, "f:spec"); ok && omitsReplicas {
		delete(spec, "f:replicas")
		if len(spec) == 0 {
			delete(stale, "f:spec")
		}
	}
	var entries []any
	removed := false
	for _, e := range managedEntries(object) {
		from := originOf(e)
		switch {
		case e["manager"] == manager && e["operation"] == "Apply" && len(stale) > 0:
			own := maps.Clone(e)
			own["fieldsV1"] = union(ours, stale)
			entries = append(entries, own)
		case from == applied, from == edited && overlap(ours, child1(e, "fieldsV1")):
			removed = true
		default:
			entries = append(entries, e)
		}
	}
	if !removed {
		return nil, false
	}
	metadata, _ := object["metadata"].(map[string]any)
	patch = []jsonPatch{
		{Op: "replace", Path: "/metadata/managedFields", Value: entries},
		{Op: "replace", Path: "/metadata/resourceVersion", Value: metadata["resourceVersion"]},
	}
	if rollout.Object(object).Annotation(lastAppliedAnnotation) != "" {
		name := strings.ReplaceAll(lastAppliedAnnotation, "/", "~1")
		patch = append(patch, jsonPatch{Op: "remove", Path: "/metadata/annotations/" + name})
	}
	return patch, len(stale) > 0
}

// staleFields returns the fields that a kubectl apply meant to set, that it
// still owns, and that we do not name.
func staleFields(object map[string]any, manager string) map[string]any {
	ours := ownedFields(object, manager)
	var meant map[string]any
	for _, e := range managedEntries(object) {
		if originOf(e) != applied || e["apiVersion"] != object["apiVersion"] {
			continue // of another version: its paths may mean other fields
		}
		fields := child1(e, "fieldsV1")
		if e["operation"] == "Update" {
			fields = within(fields, lastApplied(object))
		}
		meant = union(meant, fields)
	}
	return minus(meant, ours)
}

func lastApplied(object map[string]any) map[string]any {
	var last map[string]any
	if json.Unmarshal([]byte(rollout.Object(object).Annotation(lastAppliedAnnotation)), &last) != nil {
		return nil
	}
	return last
}

// origin is who has written a manager's entry in the managed fields.
type origin int

const (
	foreign origin = iota // controllers, autoscalers, other GitOps tools: left alone
	applied               // kubectl apply: tells which fields were meant
	edited                // kubectl edit and the like, Helm: does not
)

// originOf recognises the tools that people use by hand before they put an
// object into Git. What writes subresources is a controller or an autoscaler.
func originOf(entry map[string]any) origin {
	name, _ := entry["manager"].(string)
	sub, _ := entry["subresource"].(string)
	byKubectl := name == "kubectl" || name == "helm"
	switch {
	case sub != "":
		return foreign
	case entry["operation"] == "Apply" && byKubectl, name == clientSideApply:
		return applied
	case entry["operation"] != "Update":
		return foreign
	case byKubectl, strings.HasPrefix(name, "kubectl-"), name == "before-first-apply":
		return edited
	default:
		return foreign
	}
}
