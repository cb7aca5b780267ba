package console

import (
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/author/images"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/rollout"
)

// TestSetImagesNamesOtherApps sets an image in a file that apps of this cluster and of another cluster share. A push to the users' branch
// is refused. A proposal is accepted, and lists these apps.
func TestSetImagesNamesOtherApps(t *testing.T) {
	const pods = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  selector: {matchLabels: {app: web}}\n" +
		"  template:\n    metadata: {labels: {app: web}}\n    spec: {containers: [{name: web, image: 'web:v1'}]}\n"
	repo := gittest.New(t)
	repo.CommitFiles("apps", map[string]string{
		rollout.ConfigPath("prod"):          config,
		rollout.ConfigPath("test"):          strings.Replace(config, "apps/*", "test/*", 1),
		rollout.ConfigPath("broken"):        "apps: 1\n",
		rollout.ConfigPath("nested") + "/x": "config.yaml is a folder\n",
		"base/pods.yaml":                    pods,
		"base/kustomization.yaml":           "resources: [pods.yaml]\n",
		"apps/shop/kustomization.yaml":      "resources: [../../base]\n",
		"apps/cart/kustomization.yaml":      "resources: [../../base]\nnamePrefix: cart-\n",
		"apps/pinned/kustomization.yaml":    "resources: [../../base]\nnamePrefix: pinned-\nimages: [{name: web, newTag: v0}]\n",
		"apps/invalid/kustomization.yaml":   "resources: [../../base, gone.yaml]\n",
		"apps/denied/kustomization.yaml":    "resources: [../../base, role.yaml]\nnamePrefix: denied-\n",
		"apps/denied/role.yaml":             "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: all}\nrules: []\n",
		"test/shop/kustomization.yaml":      "resources: [../../base]\n",
		"lone/pods.yaml":                    strings.ReplaceAll(pods, "web", "lone"),
		"lone/kustomization.yaml":           "resources: [pods.yaml]\n",
		"apps/lonely/kustomization.yaml":    "resources: [../../lone]\n",
		"apps/unrelated/kustomization.yaml": "configMapGenerator: [{name: unrelated, literals: [a=web:v1]}]\n",
	})
	w := worldOf(t, repo, rollout.State{App: "shop", Path: "apps/shop", Phase: rollout.Pending})
	w.Now, w.Command = time.Now, func(line string) string { return line }
	_, err := w.Refresh(t.Context())
	must(t, err)
	for name, c := range map[string]struct{ app, order, branch, want string }{
		"refused": {"shop", "web=v2", "", "shop: the change of base/pods.yaml also changes cart, shop (cluster test); set the image in a " +
			"file that only shop uses, or release all of them by a pull request: --propose BRANCH"},
		"proposed": {"shop", "web=v2", "next", "Set the image of shop to web:v2\n\nweb:v1 becomes web:v2 in base/pods.yaml\n" +
			"This also changes cart, shop (cluster test)\n"},
		"a base of one app": {"lonely", "lone=v2", "", "Set the image of lonely to lone:v2\n\nlone:v1 becomes lone:v2 in lone/pods.yaml\n"},
	} {
		t.Run(name, func(t *testing.T) {
			order, err := images.Parse(c.order)
			must(t, err)
			o, err := SetImages(w, c.app, []images.Order{order}, c.branch)
			got := o.Message
			if err != nil {
				got = err.Error()
			} else {
				compare.Contains(t, o.Effect, "\nwarning: apps of cluster broken were not compared: "+rollout.ConfigPath("broken")+": ",
					"\nwarning: apps of cluster nested were not compared: "+rollout.ConfigPath("nested")+": is a folder")
			}
			compare.Check(t, c.want, got)
		})
	}
}
