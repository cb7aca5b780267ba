package reconciler_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/attacks"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/rollout"
)

const (
	open = plainConfig + "  namespaces: [edge]\n"
	edge = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shop, namespace: edge}\n"
)

// TestForbidden checks that an object outside of the permitted namespaces holds its app, and that no object of the commit is applied. The
// message names the configuration line that permits the object.
func TestForbidden(t *testing.T) {
	w := newWorld(t, nil)
	w.follow("to another namespace, with v2", map[string]string{"apps/shop/config.yaml": edge, "apps/shop/app.yaml": version("v2")})
	s := w.state()
	if h := s.Held; h == nil || h.Reason != rollout.HeldForbidden || s.Release != nil || w.pods("v2") > 0 ||
		!strings.HasSuffix(h.Message, "add to the app's entry in .gitrollout/prod/config.yaml: namespaces: [edge]") {
		t.Fatalf("%s, held %+v, %d pods of v2", s.Phase, s.Held, w.pods("v2"))
	}
	w.follow("allow it", map[string]string{configFile: open})
	w.wantBegun()
}

// stopsNoRollback checks an app that a rule holds while its release waits at a gate. The function begin returns the test environment. An
// abort and a revert must roll the app back. Another version must not start.
func stopsNoRollback(t *testing.T, begin func(t *testing.T) *world) {
	t.Run("abort", func(t *testing.T) {
		w := begin(t)
		w.follow("abort", decision(w, "decision: abort"))
		w.wantBack()
	})
	t.Run("revert", func(t *testing.T) {
		w := begin(t)
		w.follow("back to v1", shopAt("v1"))
		w.wantBack()
	})
	t.Run("another version", func(t *testing.T) {
		w := begin(t)
		w.follow("v3", shopAt("v3"))
		compare.CheckNamed(t, "pods of v3, and held", []any{0, true}, []any{w.pods("v3"), w.state().Held != nil})
	})
}

// TestRulesThatComeLater checks that new rules stop neither a rollback nor the pruning of objects that the app already had.
func TestRulesThatComeLater(t *testing.T) {
	begin := func(t *testing.T) *world {
		w := newWorld(t, nil)
		w.follow("another namespace", map[string]string{configFile: open, "apps/shop/config.yaml": edge})
		w.follow("v2", shopAt("v2"))
		if w.state().Release == nil || w.pods("v2") == 0 {
			t.Fatalf("no release is in flight: %+v", w.state())
		}
		w.follow("a rule", map[string]string{configFile: plainConfig})
		if h := w.state().Held; h == nil || h.Reason != rollout.HeldForbidden || w.pods("v2") == 0 {
			t.Fatalf("the rule: held %+v, %d pods of v2", h, w.pods("v2"))
		}
		return w
	}
	stopsNoRollback(t, begin)
	t.Run("prune", func(t *testing.T) {
		w := begin(t)
		w.commit("back to v1", shopAt("v1"))
		w.follow("and out of the namespace", withoutConfigMap)
		for _, ref := range w.state().Inventory {
			compare.CheckNamed(t, ref.String()+" is not pruned", false, ref.Namespace == "edge")
		}
		compare.CheckNamed(t, "the app", "Healthy, held <nil>", fmt.Sprintf("%s, held %v", w.state().Phase, w.state().Held))
	})
}

// counting is an Applier that counts the objects of each app's applies and prunes.
type counting struct {
	reconciler.Applier
	by map[string]int
}

func (c counting) Apply(ctx context.Context, app string, objects []rollout.Object) error {
	c.by[app] += len(objects)
	return c.Applier.Apply(ctx, app, objects)
}

func (c counting) Prune(ctx context.Context, app string, refs []rollout.Ref) ([]rollout.Ref, error) {
	c.by[app] += len(refs)
	return c.Applier.Prune(ctx, app, refs)
}

// tenantConfig permits the app evil to have objects in its namespace evil, and in the app shop's namespace default.
const tenantConfig = "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps:\n" +
	"- {path: apps/evil, namespace: evil, namespaces: [default, evil-*]}\n- path: apps/shop\n"

// TestTenantAttacks tries attacks by a user who may write to one app's folder and to the files that this folder includes. The attacker's
// app must be held with the rule's message. No object of this app may be applied or pruned, and the other app must continue.
func TestTenantAttacks(t *testing.T) {
	for name, tt := range attacks.Of("evil", attacks.Victim{App: "shop", Objects: "shop", Namespace: "default"}) {
		if tt.Config == "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			by := map[string]int{}
			w := newWorld(t, func(o *reconciler.Options) { o.Applier = counting{o.Applier, by} })
			commit := map[string]string{configFile: tenantConfig}
			if tt.Files["kustomization.yaml"] == "" {
				commit["apps/evil/kustomization.yaml"] = "resources: [app.yaml]\n"
			}
			for file, content := range tt.Files {
				if root, is := strings.CutPrefix(file, "/"); is {
					commit[root] = content
				} else {
					commit["apps/evil/"+file] = content
				}
			}
			w.follow("an attack", commit)
			compare.Contains(t, fmt.Sprintf("%+v", w.stateOf("evil").Held), tt.Config)
			compare.CheckNamed(t, "writes, and versions that run", []any{0, "v1"}, []any{by["evil"], w.images()})
			w.follow("the other one goes on", shopAt("v2"))
			w.wantBegun()
		})
	}
}
