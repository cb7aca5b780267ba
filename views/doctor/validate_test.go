package doctor_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/render/worktree"
	"gitrollout.dev/gitrollout/views/doctor"
)

const (
	configOf = "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\n"
	shop     = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: shop}\nspec: {selector: {matchLabels: {app: shop}}, " +
		"template: {metadata: {labels: {app: shop}}, spec: {containers: [{name: shop, image: 'shop:v1'}]}}}\n" +
		"---\napiVersion: gitrollout.dev/v1alpha1\nkind: Rollout\nmetadata: {name: shop}\n" +
		"spec: {workloadRef: {apiVersion: apps/v1, kind: Deployment, name: shop}, strategy: {canary: {steps: [{setWeight: 20}, {pause: {}}]}}}\n"
	promotes = "apiVersion: gitrollout.dev/v1alpha1\nkind: Promotion\nrelease: h1-1\ndecision: promote\n"
)

// TestCheck checks the reports about several trees: errors, warnings, apps, and the lines to add to the configuration.
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
	const promotions, file = ".gitrollout/prod/promote/", ".gitrollout/prod/config.yaml"
	const noFolder = "write helm: {} in a chart's entry, or directory: {} for plain manifests"
	const notRead = ": is not read: promotion files are called <app>.yaml\n" + ok
	const unbuilt = "shop: 0 objects, 0 staged, error apps/shop/kustomization.yaml: resources[0]: gone.yaml does not exist in this commit"
	disk := "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: disk}\n" +
		"spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n"
	data := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: data}\n"
	crd := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: shops.example.com}\n" +
		"spec: {group: example.com, scope: Namespaced, names: {kind: Shop, plural: shops}, versions: [{name: v1, served: true, " +
		"storage: true, schema: {openAPIV3Schema: {type: object, properties: {size: {type: integer}}}}}]}\n"
	scaler := "apiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: shop}\n" +
		"spec: {maxReplicas: 9, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: shop}}\n"
	tree := func(more ...string) map[string]string { return with(config(""), more...) }
	shopOf := func(files string, more ...string) map[string]string {
		return with(tree("apps/shop/kustomization.yaml", kustomization(files)), more...)
	}
	cartAndTill := func(cart, till string) map[string]string {
		return tree("apps/cart/kustomization.yaml", kustomization("app.yaml"), "apps/cart/app.yaml", cart,
			"apps/till/kustomization.yaml", kustomization("app.yaml"), "apps/till/app.yaml", till)
	}
	const two = "cart: 1 objects, 0 staged\n" + ok + "\ntill: 1 objects, 0 staged"
	for name, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"all is well":     {tree(), ok},
		"a broken config": {config("intervall: 5s\n"), "error " + file + ": intervall: is not a known field; did you mean interval?"},
		"no apps": {map[string]string{file: configOf + "apps: [{path: 'apps/*'}]\n"},
			"warning " + file + ": apps: no path matches a folder with a kustomization; " + noFolder},
		"a path of no app": {tree(file, configOf+
			"apps: [{path: 'apps/*', namespace: shop}, {path: charts/pp}, {path: apps/shop}, {path: 'more/*'}]\n"),
			"warning " + file + ": apps[1].path: charts/pp matches no folder with a kustomization; " + noFolder + "\n" + ok},
		"an app that cannot be rendered": {shopOf("gone.yaml"), unbuilt},
		"a folder that is no name": {tree("apps/No_Name/kustomization.yaml", kustomization("")),
			"error " + file + ": apps[0].path: apps/No_Name would be the app \"No_Name\", which is not a name; " +
				"rename the folder (lower-case letters, digits and -, at most 63), or give it its own entry with a name\n" + ok},
		"an object in a foreign namespace": {
			shopOf("shop.yaml, far.yaml", "apps/shop/far.yaml", strings.Replace(data, "name: data", "name: data, namespace: far", 1)),
			"shop: 2 objects, 1 staged, error apps/shop/far.yaml: metadata.namespace"},
		"a warning of a render": {shopOf("shop.yaml, hpa.yaml", "apps/shop/hpa.yaml", scaler,
			"apps/shop/shop.yaml", strings.Replace(shop, "spec: {selector", "spec: {replicas: 3, selector", 1)),
			"shop: 2 objects, 1 staged, warning Deployment/shop/shop: replicas are ignored"},
		"one object in two apps": {cartAndTill(data, data), two + ", error ConfigMap shop/data is in app till and in app cart; " +
			"keep the object in one app; until then, the app that owns the object continues, and the other app is held"},
		"a claim of two apps": {cartAndTill(disk, disk), two},
		"a claim that differs": {cartAndTill(disk, strings.Replace(disk, "1Gi", "2Gi", 1)),
			two + ", error PersistentVolumeClaim shop/disk is in app till and in app cart"},
		"an object against the CRD of another app": {
			with(cartAndTill(crd, "apiVersion: example.com/v1\nkind: Shop\nmetadata: {name: till}\nsise: 1\n---\n"+data), file,
				configOf+"apps: [{path: 'apps/*', namespace: shop, clusterResources: ['*']}]\n"),
			"cart: 1 objects, 0 staged\n" + ok + "\ntill: 2 objects, 0 staged, error apps/till/app.yaml:4: sise: is not a field of " +
				"the CRD of Shop (Shop/shop/till); did you mean size?"},
		"a version that Kubernetes does not serve": {
			shopOf("shop.yaml, pdb.yaml", "apps/shop/pdb.yaml", "kind: PodDisruptionBudget\napiVersion: policy/v1beta1\nmetadata: {name: a}\n"),
			"shop: 2 objects, 1 staged, error apps/shop/pdb.yaml:2: apiVersion: Kubernetes 1.36 does not serve"},
		"a freeze that is wrong": {tree(".gitrollout/prod/freeze.yaml", "apiVersion: gitrollout.dev/v1alpha1\nkind: Freeze\n"),
			"error .gitrollout/prod/freeze.yaml: reason: is missing; " +
				"say why nothing is to be released: waiting users will read it\n" + ok},
		"stages that are wrong": {tree(".gitrollout/fleet.yaml",
			"apiVersion: gitrollout.dev/v1alpha1\nkind: Fleet\nstages:\n- {name: dev, clusters: [dev]}\n"),
			"error .gitrollout/fleet.yaml: stages[0].clusters[0]: \"dev\" is not a cluster: .gitrollout/dev/config.yaml does not exist; " +
				"name one of prod\n" + ok},
		"a promotion": {tree(promotions+"shop.yaml", promotes), ok},
		"of no app":   {tree(promotions+"cart.yaml", promotes), "warning " + promotions + "cart.yaml: cluster prod has no app \"cart\"\n" + ok},
		"that is wrong": {tree(promotions+"shop.yaml", promotes+"trough: 1\n"),
			"error " + promotions + "shop.yaml: trough: is not a known field; did you mean through?\n" + ok},
		"of an app that cannot be rendered": {shopOf("gone.yaml", promotions+"shop.yaml", promotes+"through: nowhere\n"), unbuilt},
		"of another name":                   {tree(promotions+"shop.yml", promotes), "warning " + promotions + "shop.yml" + notRead},
		"in another folder":                 {tree(promotions+"x.yaml/shop.yaml", promotes), "warning " + promotions + "x.yaml" + notRead},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			files := fstest.MapFS{}
			for file, content := range c.files {
				files[file] = &fstest.MapFile{Data: []byte(content), Mode: 0o600}
			}
			if err := os.CopyFS(dir, files); err != nil {
				t.Fatal(err)
			}
			tree, err := worktree.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			got, err := doctor.Check(tree, "prod", "gitrollout", nil, render.New(render.InProcess{}), nil)
			if err != nil {
				t.Fatal(err)
			}
			var r doctor.Report
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
			count := func(level string) int {
				return strings.Count("\n"+text, "\n"+level+" ") + strings.Count(text, ", "+level+" ")
			}
			compare.CheckNamed(t, "errors and warnings", [2]int{count("error"), count("warning")}, [2]int{r.Errors, r.Warnings})
			if name == "an object in a foreign namespace" {
				want := []string{"- path: apps/*", "  namespaces: [far]"}
				compare.CheckNamed(t, "the entry that would allow it", want, got.Allow)
			} else if len(got.Allow) > 0 {
				t.Errorf("allows %q", got.Allow)
			}
		})
	}
}
