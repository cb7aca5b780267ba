package reconciler

import (
	"context"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/attacks"
	"gitrollout.dev/gitrollout/rollout"
)

// counting notes the writer of each object.
type counting struct {
	Applier
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

// tenantConfig lets the app evil have objects in namespace evil, and in default, the namespace of shop.
const tenantConfig = "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps:\n" +
	"- {path: apps/evil, namespace: evil, namespaces: [default, evil-*]}\n- path: apps/shop\n"

// TestTenantAttacks tries attacks by a user with the right to push one app's folder and its included files. Each is
// held with the rule's message, nothing of it is written, and the other app continues.
func TestTenantAttacks(t *testing.T) {
	for name, tt := range attacks.Of("evil", attacks.Victim{App: "shop", Objects: "shop", Namespace: "default"}) {
		if tt.Config == "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			by := map[string]int{}
			w := newWorld(t, func(o *Options) { o.Applier = counting{o.Applier, by} })
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
			if h := w.stateOf("evil").Held; h == nil || !strings.Contains(h.Message, tt.Config) {
				t.Errorf("held %+v, want %s", h, tt.Config)
			}
			if by["evil"] > 0 || w.images() != "v1" {
				t.Errorf("%d writes, %s runs", by["evil"], w.images())
			}
			w.follow("the other one goes on", shopAt("v2"))
			if s := w.state(); s.Held != nil || s.Release == nil || w.pods("v2") == 0 {
				t.Errorf("the other one is %s, held %+v", s.Phase, s.Held)
			}
		})
	}
}
