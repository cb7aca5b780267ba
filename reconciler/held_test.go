package reconciler

import (
	"errors"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/rollout"
)

// TestAHeldAppNamesTheCommitThatChangedIt checks the commit named for a held app when several were pushed at once,
// some of them reverted. Without history no commit is named.
func TestAHeldAppNamesTheCommitThatChangedIt(t *testing.T) {
	const config = ".gitrollout/prod/config.yaml"
	with := func(file, content string) func(*world) map[string]string {
		return func(*world) map[string]string { return map[string]string{file: content} }
	}
	broken := with("apps/shop/app.yaml", strings.Replace(version("v2"), "setWeight: 50", "setWeight: 500", 1))
	readme := map[string]string{"README.md": "not of the app\n"}
	listed := func(more string) string {
		return "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps:\n- path: apps/*\n  namespaces: [" + more + "]\n"
	}
	const never = "never"
	for name, c := range map[string]struct {
		changes func(*world) map[string]string
		reason  rollout.HeldReason
		restart string // the restart during which the commits are pushed: none, with history, or without
		want    string // "made", or "" for none
	}{
		"an error in a file":                  {broken, rollout.HeldInvalidInput, never, "made"},
		"an error in a file, while away":      {broken, rollout.HeldInvalidInput, "", "made"},
		"an error in a file, without history": {broken, rollout.HeldInvalidInput, "no route", ""},
		"an object that it may not have": {
			with("apps/shop/config.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shop, namespace: third}\n"),
			rollout.HeldForbidden, never, "made"},
		"a namespace that it may not have any more": {with(config, listed("")), rollout.HeldForbidden, never, "made"},
		"a promotion file": {func(w *world) map[string]string {
			return map[string]string{rollout.PromotionPath("prod", "shop"): "kind: Nothing\n"}
		}, rollout.HeldInvalidInput, never, "made"},
		"a promotion file, while away": {func(w *world) map[string]string {
			return map[string]string{rollout.PromotionPath("prod", "shop"): "kind: Nothing\n"}
		}, rollout.HeldInvalidInput, "", ""},
		"a folder that is gone": {func(w *world) map[string]string {
			return map[string]string{"apps/shop/kustomization.yaml": "", "apps/shop/app.yaml": "", "apps/shop/config.yaml": ""}
		}, rollout.HeldInvalidInput, never, "made"},
	} {
		t.Run(name, func(t *testing.T) {
			w := worldOf(t, map[string]string{
				config:                         listed("other"),
				"apps/shop/kustomization.yaml": "resources: [app.yaml, config.yaml]\n",
				"apps/shop/config.yaml":        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: shop, namespace: other}\n",
				"apps/shop/app.yaml":           version("v1"),
			}, nil)
			w.commit("before", map[string]string{"README.md": "before\n"})
			made := w.commit("changes", c.changes(w))
			w.commit("after", readme)
			if c.restart != never {
				past := &pastOf{origin: w.git, then: func() error { return nil }}
				if c.restart != "" {
					past.then = func() error { return errors.New(c.restart) }
				}
				o := w.r.Options
				o.Past = past
				w.r = New(o)
			}
			w.settle()
			held := w.state().Held
			if held == nil || held.Reason != c.reason || held.Commit != map[string]string{"made": made}[c.want] {
				t.Fatalf("it is held by %+v, want %s of commit %q, which is %s", held, c.reason, c.want, made)
			}
			w.commit("once more", map[string]string{"README.md": "once more\n"})
			w.settle()
			if again := w.state().Held; again == nil || *again != *held {
				t.Errorf("after another commit it is held by %+v, want %+v", again, held)
			}
		})
	}
}
