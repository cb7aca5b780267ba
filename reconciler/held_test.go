package reconciler_test

import (
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/rollout"
)

// TestAHeldAppNamesTheCommitThatChangedIt pushes three commits together. The second commit causes a hold, which names this commit and its
// author. After a restart, the hold names no commit if the history cannot be read, or if a promotion file causes the hold.
func TestAHeldAppNamesTheCommitThatChangedIt(t *testing.T) {
	broken := map[string]string{"apps/shop/app.yaml": strings.Replace(version("v2"), "setWeight: 50", "setWeight: 500", 1)}
	in := func(namespace string) string {
		return strings.Replace(configMap, "name: shop", "name: shop, namespace: "+namespace, 1)
	}
	listed := func(more string) string { return plainConfig + "  namespaces: [" + more + "]\n" }
	foreign := map[string]string{"apps/shop/config.yaml": in("third")}
	promotion := map[string]string{rollout.PromotionPath("prod", "shop"): "kind: Nothing\n"}
	for name, c := range map[string]struct {
		changes map[string]string
		reason  rollout.HeldReason
		restart int    // the number of commits that can be read after a restart; 0 for no restart
		want    string // the named commit: "made", or "" for none
	}{
		"an error in a file":                        {broken, rollout.HeldInvalidInput, 0, "made"},
		"an error in a file, while away":            {broken, rollout.HeldInvalidInput, 100, "made"},
		"an error in a file, without history":       {broken, rollout.HeldInvalidInput, 1, ""},
		"an object that it may not have":            {foreign, rollout.HeldForbidden, 0, "made"},
		"a namespace that it may not have any more": {map[string]string{configFile: listed("")}, rollout.HeldForbidden, 0, "made"},
		"a promotion file":                          {promotion, rollout.HeldInvalidInput, 0, "made"},
		"a promotion file, while away":              {promotion, rollout.HeldInvalidInput, 100, ""},
		"a folder that is gone":                     {withoutShop, rollout.HeldInvalidInput, 0, "made"},
	} {
		t.Run(name, func(t *testing.T) {
			w := worldOf(t, map[string]string{
				configFile:                     listed("other"),
				"apps/shop/kustomization.yaml": "resources: [app.yaml, config.yaml]\n",
				"apps/shop/config.yaml":        in("other"),
				"apps/shop/app.yaml":           version("v1"),
			}, nil)
			w.commit("before", map[string]string{"README.md": "before\n"})
			w.git.author = "Bob"
			made := w.commit("changes", c.changes)
			w.git.author = "Cid"
			w.commit("after", readme)
			if c.restart > 0 {
				w.restart(&pastOf{mirror: w.git, most: c.restart})
			}
			w.settle()
			held := w.state().Held
			if held == nil || held.Reason != c.reason || held.Commit != map[string]string{"made": made}[c.want] ||
				held.Author != map[string]string{"made": "Bob"}[c.want] {
				t.Fatalf("it is held by %+v, want %s of commit %q by Bob, which is %s", held, c.reason, c.want, made)
			}
			w.follow("once more", map[string]string{"README.md": "once more\n"})
			if again := w.state().Held; again == nil || *again != *held {
				t.Errorf("after another commit it is held by %+v, want %+v", again, held)
			}
		})
	}
}
