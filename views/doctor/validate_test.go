package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/render/worktree"
)

const (
	configOf = "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\n"
	shop     = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: shop}\nspec: {selector: {matchLabels: {app: shop}}, template: {metadata: {labels: {app: shop}}, spec: {containers: [{name: shop, image: 'shop:v1'}]}}}\n" +
		"---\napiVersion: gitrollout.dev/v1alpha1\nkind: Rollout\nmetadata: {name: shop}\nspec: {workloadRef: {apiVersion: apps/v1, kind: Deployment, name: shop}, strategy: {canary: {steps: [{setWeight: 20}, {pause: {}}]}}}\n"
	promotes = "apiVersion: gitrollout.dev/v1alpha1\nkind: Promotion\nrelease: h1-1\ndecision: promote\n"
)

// TestCheck validates trees with expected errors, warnings, apps, and lines that would grant the missing rights.
func TestCheck(t *testing.T) {
	kustomization := func(files string) string { return "resources: [" + files + "]\n" }
	config := func(more string) map[string]string {
		return map[string]string{".gitrollout/prod/config.yaml": configOf + "apps: [{path: 'apps/*', namespace: shop}]\n" + more,
			"apps/shop/kustomization.yaml": kustomization("shop.yaml"), "apps/shop/shop.yaml": shop}
	}
	with := func(files map[string]string, more ...string) map[string]string {
		for i := 0; i < len(more); i += 2 {
			files[more[i]] = more[i+1]
		}
		return files
	}
	const ok = "shop: 1 objects, 1 staged"
	const promotions = ".gitrollout/prod/promote/"
	disk := "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: disk}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"
	data := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: data}\n"
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"all is well":     {config(""), ok},
		"a broken config": {config("intervall: 5s\n"), "error .gitrollout/prod/config.yaml: intervall: is not a known field; write interval"},
		"no apps":         {map[string]string{".gitrollout/prod/config.yaml": configOf + "apps: [{path: 'apps/*'}]\n"}, "warning .gitrollout/prod/config.yaml: apps: no path matches a folder with a kustomization; a chart needs helm: {} in its entry, a folder of manifests directory: {}"},
		"a path of no app": {with(config(""), ".gitrollout/prod/config.yaml", configOf+
			"apps: [{path: 'apps/*', namespace: shop}, {path: charts/pp}, {path: apps/shop}, {path: 'more/*'}]\n"),
			"warning .gitrollout/prod/config.yaml: apps[1].path: charts/pp matches no folder with a kustomization; " +
				"a chart needs helm: {} in its entry, a folder of manifests directory: {}\n" + ok},
		"an app that cannot be rendered": {with(config(""), "apps/shop/kustomization.yaml", kustomization("gone.yaml")),
			"shop: 0 objects, 0 staged, error apps/shop/kustomization.yaml: resources[0]: gone.yaml does not exist in this commit"},
		"a folder that is no name": {with(config(""), "apps/No_Name/kustomization.yaml", kustomization("")), "error .gitrollout/prod/config.yaml: apps[0].path: apps/No_Name would be the app \"No_Name\", which is not a name; rename the folder (lower-case letters, digits and -, at most 63), or list it by itself with a name\n" + ok},
		"an object in a foreign namespace": {with(config(""), "apps/shop/kustomization.yaml", kustomization("shop.yaml, far.yaml"), "apps/shop/far.yaml", strings.Replace(data, "name: data", "name: data, namespace: far", 1)),
			"shop: 2 objects, 1 staged, error apps/shop/far.yaml: metadata.namespace"},
		"a warning of a render":  {with(config(""), "apps/shop/kustomization.yaml", kustomization("shop.yaml, hpa.yaml"), "apps/shop/shop.yaml", strings.Replace(shop, "spec: {selector", "spec: {replicas: 3, selector", 1), "apps/shop/hpa.yaml", "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: shop}\nspec: {maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: shop}}\n"), "shop: 2 objects, 1 staged, warning Deployment/shop/shop: replicas are ignored"},
		"one object in two apps": {with(config(""), "apps/cart/kustomization.yaml", kustomization("data.yaml"), "apps/cart/data.yaml", data, "apps/till/kustomization.yaml", kustomization("data.yaml"), "apps/till/data.yaml", data), "cart: 1 objects, 0 staged\n" + ok + "\ntill: 1 objects, 0 staged, error ConfigMap shop/data is in app till and in app cart; keep it in one app: the app that has it already goes on, and the other one is held"},
		"a claim of two apps":    {with(config(""), "apps/cart/kustomization.yaml", kustomization("disk.yaml"), "apps/cart/disk.yaml", disk, "apps/till/kustomization.yaml", kustomization("disk.yaml"), "apps/till/disk.yaml", disk), "cart: 1 objects, 0 staged\n" + ok + "\ntill: 1 objects, 0 staged"},
		"a claim that differs":   {with(config(""), "apps/cart/kustomization.yaml", kustomization("disk.yaml"), "apps/cart/disk.yaml", disk, "apps/till/kustomization.yaml", kustomization("disk.yaml"), "apps/till/disk.yaml", strings.Replace(disk, "1Gi", "2Gi", 1)), "cart: 1 objects, 0 staged\n" + ok + "\ntill: 1 objects, 0 staged, error PersistentVolumeClaim shop/disk is in app till and in app cart"},
		"a freeze that is wrong": {with(config(""), ".gitrollout/prod/freeze.yaml", "apiVersion: gitrollout.dev/v1alpha1\nkind: Freeze\n"), "error .gitrollout/prod/freeze.yaml: reason: is missing; say why nothing is to be released: waiting users will read it\n" + ok},
		"a promotion":            {with(config(""), promotions+"shop.yaml", promotes), ok},
		"of no app":              {with(config(""), promotions+"cart.yaml", promotes), "warning .gitrollout/prod/promote/cart.yaml: cluster prod has no app \"cart\"\n" + ok},
		"that is wrong":          {with(config(""), promotions+"shop.yaml", promotes+"trough: 1\n"), "error .gitrollout/prod/promote/shop.yaml: trough: is not a known field; write through\n" + ok},
		"of an app that cannot be rendered": {with(config(""), promotions+"shop.yaml", promotes+"through: nowhere\n", "apps/shop/kustomization.yaml", kustomization("gone.yaml")),
			"shop: 0 objects, 0 staged, error apps/shop/kustomization.yaml: resources[0]: gone.yaml does not exist in this commit"},
		"of another name":   {with(config(""), promotions+"shop.yml", promotes), "warning .gitrollout/prod/promote/shop.yml: is not read: promotion files are called <app>.yaml\n" + ok},
		"in another folder": {with(config(""), promotions+"x.yaml/shop.yaml", promotes), "warning .gitrollout/prod/promote/x.yaml: is not read: promotion files are called <app>.yaml\n" + ok},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, content := range c.files {
				file = filepath.Join(dir, file)
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			tree, err := worktree.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			got, err := Check(tree, "prod", "gitrollout", nil, render.New(render.InProcess{}))
			if err != nil {
				t.Fatal(err)
			}
			var r Report
			r.Add(got)
			var lines []string
			for _, e := range got.Errors {
				lines = append(lines, "error "+e.Error())
			}
			for _, w := range got.Warnings {
				lines = append(lines, "warning "+w)
			}
			for _, a := range got.Apps {
				line := fmt.Sprintf("%s: %d objects, %d staged", a.App, a.Objects, a.Staged)
				if a.Error != nil {
					line += ", error " + a.Error.Error()
				}
				for _, w := range a.Warnings {
					line += ", warning " + w
				}
				if lines = append(lines, line); a.Staged > 0 && a.Release == "" || a.Path != "apps/"+a.App {
					t.Errorf("%+v", a)
				}
			}
			text := strings.Join(lines, "\n")
			if !strings.HasPrefix(text, c.want) || strings.HasSuffix(c.want, "staged") && text != c.want {
				t.Error(compare.Diff(c.want, text))
			}
			if r.Errors != strings.Count("\n"+text, "\nerror ")+strings.Count(text, ", error ") || r.Warnings != strings.Count("\n"+text, "\nwarning ")+strings.Count(text, ", warning ") {
				t.Errorf("%d errors and %d warnings are counted of:\n%s", r.Errors, r.Warnings, text)
			}
			if name == "an object in a foreign namespace" {
				want := []string{"- path: apps/*", "  namespaces: [far]"}
				if diff := compare.Diff(want, got.Allow); diff != "" {
					t.Errorf("the entry that would allow it (-want +got):\n%s", diff)
				}
			} else if len(got.Allow) > 0 {
				t.Errorf("allows %q", got.Allow)
			}
		})
	}
}
