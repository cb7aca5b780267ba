package scaffold

import (
	"maps"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

// proposed returns the configuration for a repository, with real renders, and its messages.
func proposed(t *testing.T, files map[string]string) string {
	t.Helper()
	return proposedFor(t, "prod", files)
}

func proposedFor(t *testing.T, cluster string, files map[string]string) string {
	t.Helper()
	tree, renderer := treeOf(files), render.New(render.InProcess{})
	p, err := Propose(tree, look(t, tree), cluster, "gitrollout", func(a rollout.App) (*rollout.Render, error) {
		return renderer.Render(tree, a, rollout.Commit{})
	})
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	for _, l := range p.LeftOut {
		told = append(told, "left out "+l.Path+": "+l.Why)
	}
	for _, n := range p.Notes {
		told = append(told, "note "+n)
	}
	return configText(p.Entries) + strings.Join(told, "\n")
}

const (
	chartOfShop = "apiVersion: v2\nname: shop\nversion: 0.1.0\n"
	shopOfChart = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {a: {{ .Values.a | quote }}}\n"
)

// TestWhatIsNotHereIsNamed reports a deployed folder that cannot be an app, another cluster, and a fixed version, but
// not the contents of an engine's folder.
func TestWhatIsNotHereIsNamed(t *testing.T) {
	got := proposed(t, map[string]string{
		"clusters/prod/all.yaml": "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: configs}\nspec: {path: ./configs}\n---\n" +
			"apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: all}\nspec: {path: ./clusters/prod}\n",
		"configs/issuer.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
		"argocd/web.yaml": "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: web}\nspec:\n" +
			"  destination: {server: https://other.example.com, namespace: web}\n  source: {path: web, targetRevision: v1.4.2}\n",
		"argocd/own.yaml": "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: own}\nspec:\n" +
			"  destination: {server: https://kubernetes.default.svc, namespace: own}\n  source: {path: own, targetRevision: release-2}\n",
		"mixed/kustomization.yaml":       "resources: [release.yaml, app.yaml]\n",
		"mixed/release.yaml":             "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: x}\nspec: {url: \"https://x\"}\n",
		"mixed/app.yaml":                 "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: " + podsOf("a"),
		"flux-system/kustomization.yaml": "resources: [gotk.yaml]\n",
		"flux-system/gotk.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: " + podsOf("a") + "\n---\n" +
			"apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: x}\nspec: {url: \"https://x\"}\n",
		"web/kustomization.yaml": "configMapGenerator: [{name: web, literals: [a=b]}]\n",
		"own/kustomization.yaml": "configMapGenerator: [{name: own, literals: [a=b]}]\n",
	})
	want := `apiVersion: gitrollout.dev/v1alpha1
kind: Config
apps:
- path: own
  namespace: own
- path: web
  namespace: web
left out clusters/prod/all.yaml: names the folder configs, which has no kustomization, no chart and no workload: list it in config.yaml with directory: {}, or write a kustomization.yaml there
left out flux-system: has objects of Flux
left out mixed: has objects of Flux, and Deployment a beside them: move the objects that are not Flux's into another kustomization
note web: settings of argocd/web.yaml are not carried over (destination.server https://other.example.com, source.targetRevision v1.4.2): put them into the folder`
	if diff := compare.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestApplicationsOfOneChart makes each Application of a chart in the repository an app with its name, whether they
// share a file or not. Applications for another environment are left out.
func TestApplicationsOfOneChart(t *testing.T) {
	application := func(name, namespace string) string {
		return "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: " + name + "}\nspec:\n  destination: {namespace: " +
			namespace + "}\n  source: {path: charts/shop, helm: {parameters: [{name: a, value: " + namespace + "}]}}\n---\n"
	}
	got := proposed(t, map[string]string{
		"argocd/prod/all.yaml": application("shop-eu", "eu") + application("shop", "main"), "argocd/prod/more.yaml": application("shop-us", "us"),
		"argocd/dev/all.yaml":          application("shop-dev", "dev"),
		"charts/shop/Chart.yaml":       chartOfShop,
		"charts/shop/values.yaml":      "a: 1\n",
		"charts/shop/templates/s.yaml": shopOfChart,
	})
	entry := func(name, namespace string) string {
		return "- path: charts/shop\n  name: " + name + "\n  namespace: " + namespace + "\n  helm:\n    releaseName: " + name + "\n    valuesObject:\n      a: " + namespace + "\n"
	}
	want := "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps:\n" + entry("shop-eu", "eu") + entry("shop", "main") + entry("shop-us", "us") +
		"note charts/shop is set as in argocd/prod/all.yaml, and not as in argocd/dev/all.yaml"
	if diff := compare.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestApplicationsAreCarriedOver copies settings of Argo CD's Applications for folders to the entries, and reports
// those that an entry cannot have.
func TestApplicationsAreCarriedOver(t *testing.T) {
	got := proposed(t, map[string]string{
		"argocd/guestbook.yaml": `apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: guestbook}
spec:
  destination: {namespace: guestbook}
  source: {path: guestbook, directory: {recurse: true, exclude: "ci/*"}}
---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: my-shop}
spec:
  destination: {namespace: shops}
  sources:
  - ref: values
  - path: charts/shop
    helm:
      valueFiles: [values-prod.yaml, $values/env/prod.yaml]
      parameters: [{name: image.tag, value: v2}]
      valuesObject: {image: {repository: shop}}
      values: "ignored: true"
      fileParameters: [{name: a, path: b}]
---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: web}
spec:
  destination: {namespace: web}
  source: {path: ./web/, kustomize: {images: ["web:v2"]}}
---
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: all}
`,
		"guestbook/a.yaml":             "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: " + podsOf("a"),
		"guestbook/ci/x.yaml":          "no: object\n",
		"charts/shop/Chart.yaml":       chartOfShop,
		"charts/shop/values.yaml":      "a: 1\n",
		"charts/shop/templates/c":      "",
		"charts/shop/templates/s.yaml": shopOfChart,
		"charts/shop/values-prod.yaml": "a: 2\n",
		"env/prod.yaml":                "a: 3\n",
		"web/kustomization.yaml":       "configMapGenerator: [{name: web, literals: [a=b]}]\n",
	})
	want := `apiVersion: gitrollout.dev/v1alpha1
kind: Config
apps:
- path: charts/shop
  namespace: shops
  helm:
    releaseName: my-shop
    valueFiles:
    - values-prod.yaml
    - ../../env/prod.yaml
    valuesObject:
      image:
        repository: shop
        tag: v2
- path: guestbook
  namespace: guestbook
  directory:
    exclude: ci/*
    recurse: true
- path: web
  namespace: web
left out argocd/guestbook.yaml: ApplicationSet all is not read: list the folders that it deploys, with patterns such as apps/*
note charts/shop: settings of argocd/guestbook.yaml are not carried over (source.helm.fileParameters): put them into the folder
note web: settings of argocd/guestbook.yaml are not carried over (source.kustomize): put them into the folder`
	if diff := compare.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func podsOf(app string) string {
	return "{selector: {matchLabels: {app: " + app + "}}, template: {metadata: {labels: {app: " + app +
		"}}, spec: {containers: [{name: a, image: a}]}}}\n"
}

// TestFluxIsCarriedOver does the same for Flux, in the layout of its example with environments.
func TestFluxIsCarriedOver(t *testing.T) {
	cluster := func(env string) string {
		return `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: apps, namespace: flux-system}
spec:
  path: ./apps/web
  targetNamespace: web-` + env + `
  postBuild:
    substitute: {a: "1", of: ` + env + `}
    substituteFrom: [{kind: ConfigMap, name: cluster-vars}, {kind: ConfigMap, name: absent, optional: true}, {kind: Secret, name: keys}]
`
	}
	release := `apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: shop, namespace: shops}
spec:
  chart: {spec: {chart: ./charts/shop, sourceRef: {kind: GitRepository, name: x}, valuesFiles: [./charts/shop/values.yaml]}}
  values: {a: 5}
  valuesFrom: [{kind: ConfigMap, name: x}]
---
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: podinfo}
spec: {chart: {spec: {chart: podinfo, sourceRef: {kind: HelmRepository, name: podinfo}}}}
`
	vars := func(region string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cluster-vars, namespace: flux-system}\ndata: {region: " + region + "}\n"
	}
	files := map[string]string{
		"clusters/prod/apps.yaml": cluster("prod"), "clusters/staging/apps.yaml": cluster("staging"),
		"clusters/prod/vars.yaml": vars("eu"), "clusters/staging/vars.yaml": vars("us"),
		"releases/shop.yaml":           release,
		"apps/web/kustomization.yaml":  "configMapGenerator: [{name: web, literals: ['a=${a} ${of} ${region}']}]\n",
		"apps/api/kustomization.yaml":  "configMapGenerator: [{name: api, literals: ['a=${a}']}]\n",
		"apps/lost/kustomization.yaml": "configMapGenerator: [{name: lost, literals: ['a=${key}']}]\n",
		"clusters/prod/lost.yaml": "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: lost}\n" +
			"spec: {path: apps/lost, postBuild: {substituteFrom: [{kind: Secret, name: keys}]}}\n",
		"charts/shop/Chart.yaml":       chartOfShop,
		"charts/shop/values.yaml":      "a: 1\n",
		"charts/shop/templates/s.yaml": shopOfChart,
	}
	got := proposed(t, files)
	want := `apiVersion: gitrollout.dev/v1alpha1
kind: Config
apps:
- path: apps/api
- path: apps/web
  namespace: web-prod
  substitute:
    a: "1"
    of: prod
  substituteFrom:
  - file: clusters/prod/vars.yaml
- path: charts/shop
  namespace: shops
  helm:
    releaseName: shop
    valueFiles:
    - values.yaml
    valuesObject:
      a: 5
left out releases/shop.yaml: HelmRelease podinfo has the chart podinfo of elsewhere: bring it with gitrollout vendor --from releases, commit that, and run this again
left out apps/lost: cannot be rendered: apps/lost/kustomization.yaml: data.a: the variable key is not set (ConfigMap//lost-m9gb8k2g46); give it a value in substitute or substituteFrom of the app's entry, write ${key:=default}, or $${key} where the text is meant
note apps/lost: settings of clusters/prod/lost.yaml are not carried over (spec.postBuild.substituteFrom Secret/keys): put them into the folder
note apps/web: settings of clusters/prod/apps.yaml are not carried over (spec.postBuild.substituteFrom ConfigMap/absent, spec.postBuild.substituteFrom Secret/keys): put them into the folder
note apps/web is set as in clusters/prod/apps.yaml, and not as in clusters/staging/apps.yaml
note charts/shop: settings of releases/shop.yaml are not carried over (spec.valuesFrom): put them into the folder`
	if diff := compare.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	other := proposedFor(t, "staging", files)
	for _, line := range []string{"namespace: web-staging", "of: staging", "- file: clusters/staging/vars.yaml"} {
		if !strings.Contains(other, line) {
			t.Errorf("%s is not in the proposal for staging:\n%s", line, other)
		}
	}
}

// TestVariablesOfSeveral makes separate entries for folders with different variables.
func TestVariablesOfSeveral(t *testing.T) {
	of := func(name, substitute string) string {
		return "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: " + name + "}\nspec: {path: svc/" + name + ", postBuild: {substitute: " + substitute + "}}\n"
	}
	got := proposed(t, map[string]string{
		"flux/a.yaml": of("a", "{v: one}"), "flux/b.yaml": of("b", "{v: two}"),
		"svc/a/kustomization.yaml": "configMapGenerator: [{name: a, literals: ['v=${v}']}]\n",
		"svc/b/kustomization.yaml": "configMapGenerator: [{name: b, literals: ['v=${v}']}]\n",
	})
	want := "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps:\n- path: svc/a\n  substitute:\n    v: one\n- path: svc/b\n  substitute:\n    v: two\n"
	if diff := compare.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestDecryptionOfFluxIsCarriedOver names the Secret of the keys in the entry, and the namespace that needs it.
// Decryption without a Secret, as by a cloud account, is not carried over.
func TestDecryptionOfFluxIsCarriedOver(t *testing.T) {
	of := func(name, decryption string) string {
		return "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: " + name + "}\n" +
			"spec: {path: svc/" + name + ", targetNamespace: shop, decryption: " + decryption + "}\n"
	}
	got := proposed(t, map[string]string{
		"clusters/prod/a.yaml": of("a", "{provider: sops, secretRef: {name: sops-age}}"), "clusters/prod/b.yaml": of("b", "{provider: sops}"),
		"svc/a/kustomization.yaml": "configMapGenerator: [{name: a, literals: [a=1]}]\n", "svc/b/kustomization.yaml": "configMapGenerator: [{name: b, literals: [a=1]}]\n",
	})
	want := `apiVersion: gitrollout.dev/v1alpha1
kind: Config
apps:
- path: svc/a
  namespace: shop
  decryption: {provider: sops, secretRef: {name: sops-age}}
- path: svc/b
  namespace: shop
note svc/a: the keys of its encrypted files are to be in Secret sops-age of namespace shop
note svc/b: settings of clusters/prod/b.yaml are not carried over (spec.decryption): put them into the folder`
	if diff := compare.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestVersionsOfOneChart has two vendored versions of a chart: each HelmRelease uses the matching version, or else the
// first.
func TestVersionsOfOneChart(t *testing.T) {
	release := func(name, version string) string {
		return "---\napiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: " + name + ", namespace: " + name +
			"}\nspec: {chart: {spec: {chart: shop, " + version + "sourceRef: {kind: HelmRepository, name: charts}}}}\n"
	}
	got := proposed(t, map[string]string{
		"all.yaml": "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: charts}\nspec: {url: https://charts.example.com}\n" +
			release("new", "version: 2.x, ") + release("old", "version: 1.x, ") + release("any", ""),
		"vendor.yaml": "apiVersion: gitrollout.dev/v1alpha1\nkind: Vendor\nsources:\n" +
			"- {into: charts, chart: {repo: https://charts.example.com, name: shop, version: 1.x, flat: true}}\n" +
			"- {into: charts/2, chart: {repo: https://charts.example.com, name: shop, version: 2.x, flat: true}}\n",
		"charts/shop/Chart.yaml": chartOfShop, "charts/shop/templates/s.yaml": shopOfChart,
		"charts/2/shop/Chart.yaml": chartOfShop, "charts/2/shop/templates/s.yaml": shopOfChart,
	})
	want := "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps:\n- path: charts/2/shop\n  name: new\n  namespace: new\n  helm: {releaseName: new}\n" +
		"- path: charts/shop\n  name: old\n  namespace: old\n  helm: {releaseName: old}\n" +
		"- path: charts/shop\n  name: any\n  namespace: any\n  helm: {releaseName: any}\n"
	if diff := compare.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestChartsOfElsewhereAreReleased uses a vendored chart for HelmReleases and Applications, one app for each, whether
// its folder has the version in its name or not. A chart from another address is left out.
func TestChartsOfElsewhereAreReleased(t *testing.T) {
	helmRelease := func(name, spec string) string {
		return "---\napiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: " + name + ", namespace: data}\nspec: " + spec + "\n"
	}
	files := map[string]string{
		"infra/releases.yaml": helmRelease("cache", "{chart: {spec: {chart: shop, version: 0.x, sourceRef: {kind: HelmRepository, name: charts}, valuesFiles: [values-big.yaml]}}, values: {a: 5}}") +
			helmRelease("sessions", "{releaseName: s, chart: {spec: {chart: shop, version: 0.x, sourceRef: {kind: HelmRepository, name: charts}}}}") +
			helmRelease("mail", "{chartRef: {kind: OCIRepository, name: mail}}") +
			helmRelease("other", "{chart: {spec: {chart: shop, sourceRef: {kind: HelmRepository, name: others}}}}"),
		"infra/sources/all.yaml": "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: charts}\nspec: {url: https://charts.example.com/}\n" +
			"---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: others}\nspec: {url: https://others.example.com}\n" +
			"---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: {name: mail}\nspec: {url: oci://ghcr.io/org/charts/mail, ref: {semver: 1.x}}\n",
		"argocd/guest.yaml": "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: guest}\nspec:\n  destination: {namespace: guests}\n" +
			"  sources: [{repoURL: ghcr.io/org/charts, chart: guest, targetRevision: 1.2.3, helm: {valueFiles: [$v/env/guest.yaml]}}, {repoURL: x, ref: v}]\n",
		"env/guest.yaml": "a: 9\n",
		"infra/vendor.yaml": "apiVersion: gitrollout.dev/v1alpha1\nkind: Vendor\nsources:\n" +
			"- {into: charts, chart: {repo: https://charts.example.com, name: shop, version: 0.x, flat: true}}\n" +
			"- {into: charts, chart: {repo: oci://ghcr.io/org/charts, name: mail, version: 1.x, flat: true}}\n",
		"argocd/vendor.yaml": "apiVersion: gitrollout.dev/v1alpha1\nkind: Vendor\nsources:\n" +
			"- {into: ., chart: {repo: oci://ghcr.io/org/charts, name: guest, version: 1.2.3}}\n",
		"infra/charts/shop/Chart.yaml": chartOfShop, "infra/charts/shop/values-big.yaml": "a: 2\n", "infra/charts/shop/templates/s.yaml": shopOfChart,
		"infra/charts/mail/Chart.yaml": "apiVersion: v2\nname: mail\nversion: 1.0.0\n", "infra/charts/mail/templates/s.yaml": shopOfChart,
		"argocd/guest-1.2.3/guest/Chart.yaml": "apiVersion: v2\nname: guest\nversion: 1.2.3\n", "argocd/guest-1.2.3/guest/templates/s.yaml": shopOfChart,
	}
	want := `apiVersion: gitrollout.dev/v1alpha1
kind: Config
apps:
- path: argocd/guest-1.2.3/guest
  namespace: guests
  helm:
    releaseName: guest
    valueFiles:
    - ../../../env/guest.yaml
- path: infra/charts/mail
  namespace: data
  helm: {releaseName: mail}
- path: infra/charts/shop
  name: cache
  namespace: data
  helm:
    releaseName: cache
    valueFiles:
    - values-big.yaml
    valuesObject:
      a: 5
- path: infra/charts/shop
  name: sessions
  namespace: data
  helm: {releaseName: s}
left out infra/releases.yaml: HelmRelease other has the chart shop of elsewhere: bring it with gitrollout vendor --from infra, commit that, and run this again`
	if diff := compare.Diff(want, proposed(t, files)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAppsOfAnotherEnvironment leaves out a folder that only another environment deploys, and that one's settings. Of
// an engine's object, the folder, names, destination, namespace or files of values name the environment.
func TestAppsOfAnotherEnvironment(t *testing.T) {
	of := func(name, destination, source string) string {
		return "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: " + name + "}\nspec: {destination: {" + destination +
			"}, source: {repoURL: https://git.example.com/x.git, " + source + "}}\n"
	}
	const folder, own, settings = "path: apps/shop", "namespace: own", "path: charts/till, helm: {parameters: [{name: a, value: try}]"
	for name, c := range map[string]struct{ one, other, cluster, want string }{
		"folders":     {"dev/a.yaml " + of("shop", "namespace: try", folder), "production/a.yaml " + of("shop", own, folder), "prod", own},
		"only dev's":  {"dev/a.yaml " + of("shop", "namespace: try", folder), "", "prod", "apps/shop: only argo/dev/a.yaml deploys it, for dev"},
		"files":       {"shop-dev.yaml " + of("shop", "namespace: try", folder), "shop-prod.yaml " + of("shop", own, folder), "prod", own},
		"the likely":  {"shop-dev.yaml " + of("shop", "namespace: try", folder), "shop-prod.yaml " + of("shop", own, folder), "", own},
		"only a file": {"shop-staging.yaml " + of("shop", "namespace: try", folder), "", "prod", "only argo/shop-staging.yaml deploys it, for staging"},
		"names":       {"a.yaml " + of("shop-dev", "namespace: try", folder), "b.yaml " + of("shop", own, folder), "prod", own},
		"namespaces":  {"a.yaml " + of("shop", "namespace: try-dev", folder), "b.yaml " + of("shop", own+"-live", folder), "prod", own + "-live"},
		"clusters":    {"a.yaml " + of("shop", "name: dev-eu, namespace: try", folder), "b.yaml " + of("shop", own, folder), "prod-eu", own},
		"servers": {"a.yaml " + of("shop", "server: 'https://dev.example.com:6443', namespace: try", folder),
			"b.yaml " + of("shop", "server: 'https://k8s.example.dev', "+own, folder), "prod", own},
		"a chart":       {"a.yaml " + of("till", "name: dev", settings+", valueFiles: [values-dev.yaml]}"), "", "prod", "till: only argo/a.yaml deploys it, for dev"},
		"values":        {"a.yaml " + of("till", "namespace: try", settings+", valueFiles: [values-dev.yaml]}"), "b.yaml " + of("till", own, "path: charts/till"), "prod", own},
		"a file of all": {"a.yaml " + of("till-dev", "namespace: try", settings+"}") + "---\n" + of("till-prod", own, "path: charts/till"), "", "prod", own},
		"an app's name": {"a.yaml " + of("live-chat", own, "path: apps/live-chat"), "", "staging", own},
	} {
		files := map[string]string{"charts/till/Chart.yaml": chartOfShop, "charts/till/templates/s.yaml": shopOfChart,
			"charts/till/values-dev.yaml": "a: try\n"}
		for _, app := range []string{"shop", "live-chat"} {
			files["apps/"+app+"/kustomization.yaml"] = "configMapGenerator: [{name: " + app + ", literals: [a=b]}]\n"
		}
		for _, file := range []string{c.one, c.other} {
			path, text, _ := strings.Cut(file, " ")
			files["argo/"+path] = text
		}
		if got := proposedFor(t, c.cluster, files); !strings.Contains(got, c.want) || strings.Contains(got, "try") {
			t.Errorf("%s:\n%s", name, got)
		}
	}
}

// TestAppsOfAnotherCluster selects the folders of each cluster in a repository with several.
func TestAppsOfAnotherCluster(t *testing.T) {
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "
	flux := func(path string) string {
		return "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: a}\nspec: {path: ./apps/" + path + "}\n---\n"
	}
	apps := map[string]string{}
	for _, app := range []string{"shop", "till", "web"} {
		apps["apps/"+app+"/kustomization.yaml"], apps["apps/"+app+"/a.yaml"] = "resources: [a.yaml]\n", object+app+"}\n"
	}
	for name, c := range map[string]struct {
		files         map[string]string
		cluster, want string
	}{
		"folders of clusters": {map[string]string{"clusters/cloud/a.yaml": flux("shop") + flux("web"), "clusters/home/a.yaml": flux("till") + flux("web")}, "home", "apps/shop: only clusters/cloud/a.yaml deploys it, for cloud"},
		"the first cluster":   {map[string]string{"clusters/cloud/a.yaml": flux("till") + flux("web"), "clusters/home/a.yaml": flux("shop") + flux("web")}, "", "apps/shop: only clusters/home/a.yaml deploys it, for home; list it if cloud is to have it"},
	} {
		maps.Copy(c.files, apps)
		got := proposedFor(t, c.cluster, c.files)
		if !strings.Contains(got, c.want) || !strings.Contains(got, "- path: apps/till\n- path: apps/web\n") || strings.Contains(got, "path: apps/shop") {
			t.Errorf("%s:\n%s", name, got)
		}
	}
}

// TestFoldersOfAnArtifact names the source of a Kustomization whose folder is not in the repository.
func TestFoldersOfAnArtifact(t *testing.T) {
	of := func(name string) string {
		return "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: " + name + "}\nspec: {path: ./apps/" + name +
			", targetNamespace: shops, sourceRef: {kind: OCIRepository, name: all}}\n---\n"
	}
	got := proposed(t, map[string]string{
		"flux/a.yaml": of("shop") + of("gone"), "web/kustomization.yaml": "configMapGenerator: [{name: web, literals: [a=b]}]\n",
		"flux/s.yaml": "apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: {name: all}\nspec: {url: 'oci://ghcr.io/org/all'}\n",
	})
	const why = "left out flux/a.yaml: has its folder of OCIRepository all (oci://ghcr.io/org/all), and not in this repository"
	if strings.Count(got, why) != 2 {
		t.Errorf("got\n%s", got)
	}
}

// TestHelmReleasesOfAnEnvironment builds a HelmRelease with the kustomization of its environment, patches included.
func TestHelmReleasesOfAnEnvironment(t *testing.T) {
	const kind = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: shop}\n"
	files := map[string]string{
		"apps/base/kustomization.yaml": "namespace: shops\nresources: [release.yaml]\n",
		"apps/base/release.yaml":       kind + "spec: {chart: {spec: {chart: charts/shop, sourceRef: {kind: GitRepository, name: flux-system}}}, values: {a: 1, b: 1}}\n",
		"charts/shop/Chart.yaml":       chartOfShop, "charts/shop/templates/s.yaml": shopOfChart,
	}
	for _, env := range []string{"prod", "staging"} {
		files["apps/"+env+"/kustomization.yaml"] = "resources: [../base]\npatches: [{path: values.yaml}]\n"
		files["apps/"+env+"/values.yaml"] = strings.Replace(kind, "name: shop", "name: shop, namespace: shops", 1) + "spec: {values: {a: " + env + "}}\n"
		want := "- path: charts/shop\n  namespace: shops\n  helm:\n    releaseName: shop\n    valuesObject:\n      a: " + env + "\n      b: 1\n"
		if got := proposedFor(t, env, files); !strings.Contains(got, want) || strings.Contains(got, "is what") {
			t.Errorf("for %s:\n%s", env, got)
		}
	}
}
