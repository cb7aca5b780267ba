package scaffold_test

import (
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/author/scaffold"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

// proposed returns the proposed entries for a repository, and the messages to the user. It renders the apps.
func proposed(t *testing.T, files map[string]string) string {
	t.Helper()
	return proposedFor(t, "prod", files)
}

func proposedFor(t *testing.T, cluster string, files map[string]string) string {
	t.Helper()
	tree, renderer := treeOf(files), render.New(render.InProcess{})
	p := propose(t, tree, cluster, func(a rollout.App) (*rollout.Render, error) { return renderer.Render(tree, a, rollout.Commit{}) })
	told := rollout.Mapped(p.LeftOut, func(l scaffold.LeftOut) string { return "left out " + l.Path + ": " + l.Why })
	for _, n := range p.Notes {
		told = append(told, "note "+n)
	}
	return entriesOf(p) + strings.Join(told, "\n")
}

const (
	fluxFolder  = "kustomize.toolkit.fluxcd.io/v1 Kustomization"
	helmRelease = "helm.toolkit.fluxcd.io/v2 HelmRelease"
	helmCharts  = "source.toolkit.fluxcd.io/v1 HelmRepository"
	artifact    = "source.toolkit.fluxcd.io/v1 OCIRepository"
	argoApp     = "argoproj.io/v1alpha1 Application"
)

// document returns an object's manifest. The kind includes the apiVersion, as in the constants above.
func document(kind, name, spec string) string {
	version, kind, _ := strings.Cut(kind, " ")
	return "---\napiVersion: " + version + "\nkind: " + kind + "\nmetadata: {name: " + name + "}\nspec: " + spec + "\n"
}

// built returns a kustomization with a generated ConfigMap.
func built(name, value string) string {
	return "configMapGenerator: [{name: " + name + ", literals: ['a=" + value + "']}]\n"
}

func podsOf(app string) string {
	return "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: " + app + "}\nspec: {selector: {matchLabels: {app: " + app +
		"}}, template: {metadata: {labels: {app: " + app + "}}, spec: {containers: [{name: a, image: a}]}}}\n"
}

const (
	chartOfShop = "apiVersion: v2\nname: shop\nversion: 0.1.0\n"
	shopOfChart = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {a: {{ .Values.a | quote }}}\n"
)

// withCharts adds a chart named shop to each of the folders.
func withCharts(files map[string]string, folders ...string) map[string]string {
	for _, dir := range folders {
		files[dir+"/Chart.yaml"], files[dir+"/values.yaml"], files[dir+"/templates/s.yaml"] = chartOfShop, "a: 1\n", shopOfChart
	}
	return files
}

// TestWhatIsNotHereIsNamed checks the messages about a deployed folder that cannot be an app, and about an Application that targets another
// cluster or a fixed version. The message about the folder flux-system mentions no other objects.
func TestWhatIsNotHereIsNamed(t *testing.T) {
	got := proposed(t, map[string]string{
		"clusters/prod/all.yaml": document(fluxFolder, "configs", "{path: ./configs}") + document(fluxFolder, "all", "{path: ./clusters/prod}"),
		"configs/issuer.yaml":    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
		"argocd/web.yaml": document(argoApp, "web",
			"{destination: {server: 'https://other.example.com', namespace: web}, source: {path: web, targetRevision: v1.4.2}}"),
		"argocd/own.yaml": document(argoApp, "own",
			"{destination: {server: 'https://kubernetes.default.svc', namespace: own}, source: {path: own, targetRevision: release-2}}"),
		"mixed/kustomization.yaml":       "resources: [release.yaml, app.yaml]\n",
		"mixed/release.yaml":             document(helmCharts, "x", "{url: 'https://x'}"),
		"mixed/app.yaml":                 podsOf("a"),
		"flux-system/kustomization.yaml": "resources: [gotk.yaml]\n",
		"flux-system/gotk.yaml":          podsOf("a") + document("source.toolkit.fluxcd.io/v1 GitRepository", "x", "{url: 'https://x'}"),
		"web/kustomization.yaml":         built("web", "b"),
		"own/kustomization.yaml":         built("own", "b"),
	})
	compare.Check(t, `- path: own
  namespace: own
- path: web
  namespace: web
left out clusters/prod/all.yaml: names the folder configs, which has no kustomization, no chart and no workload: `+
		`list it in config.yaml with directory: {}, or write a kustomization.yaml there
left out flux-system: has objects of Flux
left out mixed: has objects of Flux, and Deployment a beside them: move the objects that are not Flux's into another kustomization
note web: settings of argocd/web.yaml are not carried over `+
		`(destination.server https://other.example.com, source.targetRevision v1.4.2): put them into the folder`, got)
}

// TestApplicationsOfOneChart checks that each Application of a chart in the repository becomes an app with the Application's
// name, whether one file or several files have the Applications. Applications for another environment are omitted.
func TestApplicationsOfOneChart(t *testing.T) {
	of := func(name, namespace string) string {
		return document(argoApp, name, "{destination: {namespace: "+namespace+
			"}, source: {path: charts/shop, helm: {parameters: [{name: a, value: "+namespace+"}]}}}")
	}
	entry := func(name, namespace string) string {
		return "- path: charts/shop\n  name: " + name + "\n  namespace: " + namespace + "\n  helm:\n    releaseName: " + name +
			"\n    valuesObject:\n      a: " + namespace + "\n"
	}
	got := proposed(t, withCharts(map[string]string{"argocd/prod/all.yaml": of("shop-eu", "eu") + of("shop", "main"),
		"argocd/prod/more.yaml": of("shop-us", "us"), "argocd/dev/all.yaml": of("shop-dev", "dev")}, "charts/shop"))
	compare.Check(t, entry("shop-eu", "eu")+entry("shop", "main")+entry("shop-us", "us")+
		"note charts/shop has the settings of argocd/prod/all.yaml, and argocd/dev/all.yaml is left out", got)
}

// TestApplicationsAreCarriedOver checks that the entries get the settings of Argo CD's Applications, and that the notes list settings that
// an entry cannot have.
func TestApplicationsAreCarriedOver(t *testing.T) {
	got := proposed(t, withCharts(map[string]string{
		"argocd/guestbook.yaml": document(argoApp, "guestbook",
			`{destination: {namespace: guestbook}, source: {path: guestbook, directory: {recurse: true, exclude: "ci/*"}}}`) +
			document(argoApp, "my-shop", `
  destination: {namespace: shops}
  sources:
  - ref: values
  - path: charts/shop
    helm:
      valueFiles: [values-prod.yaml, $values/env/prod.yaml]
      parameters: [{name: image.tag, value: v2}]
      valuesObject: {image: {repository: shop}}
      values: "ignored: true"
      fileParameters: [{name: a, path: b}]`) +
			document(argoApp, "web", `{destination: {namespace: web}, source: {path: ./web/, kustomize: {images: ["web:v2"]}}}`) +
			"---\napiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: all}\n",
		"guestbook/a.yaml":             podsOf("a"),
		"guestbook/ci/x.yaml":          "no: object\n",
		"charts/shop/templates/c":      "",
		"charts/shop/values-prod.yaml": "a: 2\n",
		"env/prod.yaml":                "a: 3\n",
		"web/kustomization.yaml":       built("web", "b"),
	}, "charts/shop"))
	compare.Check(t, `- path: charts/shop
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
note web: settings of argocd/guestbook.yaml are not carried over (source.kustomize): put them into the folder`, got)
}

// TestFluxIsCarriedOver checks the same as TestApplicationsAreCarriedOver for Flux, in the layout of Flux's example with environments.
func TestFluxIsCarriedOver(t *testing.T) {
	cluster := func(env string) string {
		return document(fluxFolder, "apps, namespace: flux-system", `
  path: ./apps/web
  targetNamespace: web-`+env+`
  postBuild:
    substitute: {a: "1", of: `+env+`}
    substituteFrom:
    - {kind: ConfigMap, name: cluster-vars}
    - {kind: ConfigMap, name: absent, optional: true}
    - {kind: Secret, name: keys}`)
	}
	vars := func(region string) string {
		return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cluster-vars, namespace: flux-system}\ndata: {region: " + region + "}\n"
	}
	files := withCharts(map[string]string{
		"clusters/prod/apps.yaml": cluster("prod"), "clusters/staging/apps.yaml": cluster("staging"),
		"clusters/prod/vars.yaml": vars("eu"), "clusters/staging/vars.yaml": vars("us"),
		"releases/shop.yaml": document(helmRelease, "shop, namespace: shops", `
  chart: {spec: {chart: ./charts/shop, sourceRef: {kind: GitRepository, name: x}, valuesFiles: [./charts/shop/values.yaml]}}
  values: {a: 5}
  valuesFrom: [{kind: ConfigMap, name: x}]`) +
			document(helmRelease, "podinfo", "{chart: {spec: {chart: podinfo, sourceRef: {kind: HelmRepository, name: podinfo}}}}"),
		"apps/web/kustomization.yaml":  built("web", "${a} ${of} ${region}"),
		"apps/api/kustomization.yaml":  built("api", "${a}"),
		"apps/lost/kustomization.yaml": built("lost", "${key}"),
		"clusters/prod/lost.yaml": document(fluxFolder, "lost",
			"{path: apps/lost, postBuild: {substituteFrom: [{kind: Secret, name: keys}]}}"),
	}, "charts/shop")
	compare.Check(t, `- path: apps/api
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
left out releases/shop.yaml: HelmRelease podinfo uses the chart podinfo, which is not in this repository: `+
		`add it with gitrollout vendor --from releases, commit it, and run this again
left out apps/lost: cannot be rendered: apps/lost/kustomization.yaml: data.a: the variable key is not set (ConfigMap//lost-m9gb8k2g46); `+
		`give it a value in substitute or substituteFrom of the app's entry, write ${key:=default}, or $${key} for the text itself
note apps/lost: settings of clusters/prod/lost.yaml are not carried over (spec.postBuild.substituteFrom Secret/keys): `+
		`put them into the folder
note apps/web: settings of clusters/prod/apps.yaml are not carried over (spec.postBuild.substituteFrom ConfigMap/absent, `+
		`spec.postBuild.substituteFrom Secret/keys): put them into the folder
note apps/web has the settings of clusters/prod/apps.yaml, and clusters/staging/apps.yaml is left out
note charts/shop: settings of releases/shop.yaml are not carried over (spec.valuesFrom): put them into the folder`, proposed(t, files))
	compare.Contains(t, proposedFor(t, "staging", files), "namespace: web-staging", "of: staging", "- file: clusters/staging/vars.yaml")
}

// TestVariablesOfSeveral checks that folders with different variables get separate entries.
func TestVariablesOfSeveral(t *testing.T) {
	of := func(name, value string) string {
		return document(fluxFolder, name, "{path: svc/"+name+", postBuild: {substitute: {v: "+value+"}}}")
	}
	got := proposed(t, map[string]string{"flux/a.yaml": of("a", "one"), "flux/b.yaml": of("b", "two"),
		"svc/a/kustomization.yaml": built("a", "${v}"), "svc/b/kustomization.yaml": built("b", "${v}")})
	compare.Check(t, "- path: svc/a\n  substitute:\n    v: one\n- path: svc/b\n  substitute:\n    v: two\n", got)
}

// TestDecryptionOfFluxIsCarriedOver checks that an entry names the Secret with the decryption keys, and that a note
// names the Secret's namespace. Decryption without a Secret, such as with a cloud account's keys, is not carried over.
func TestDecryptionOfFluxIsCarriedOver(t *testing.T) {
	of := func(name, decryption string) string {
		return document(fluxFolder, name, "{path: svc/"+name+", targetNamespace: shop, decryption: {provider: sops"+decryption+"}}")
	}
	got := proposed(t, map[string]string{
		"clusters/prod/a.yaml": of("a", ", secretRef: {name: sops-age}"), "clusters/prod/b.yaml": of("b", ""),
		"svc/a/kustomization.yaml": built("a", "1"), "svc/b/kustomization.yaml": built("b", "1"),
	})
	compare.Check(t, `- path: svc/a
  namespace: shop
  decryption: {provider: sops, secretRef: {name: sops-age}}
- path: svc/b
  namespace: shop
note svc/a: the keys of its encrypted files must be in Secret sops-age of namespace shop
note svc/b: settings of clusters/prod/b.yaml are not carried over (spec.decryption): put them into the folder`, got)
}

// TestVersionsOfOneChart checks that a HelmRelease uses the vendored version in its range. Without a range, the first vendored version is
// used.
func TestVersionsOfOneChart(t *testing.T) {
	release := func(name, version string) string {
		return document(helmRelease, name+", namespace: "+name,
			"{chart: {spec: {chart: shop, "+version+"sourceRef: {kind: HelmRepository, name: charts}}}}")
	}
	got := proposed(t, withCharts(map[string]string{
		"all.yaml": document(helmCharts, "charts", "{url: 'https://charts.example.com'}") +
			release("new", "version: 2.x, ") + release("old", "version: 1.x, ") + release("any", ""),
		"vendor.yaml": "apiVersion: gitrollout.dev/v1alpha1\nkind: Vendor\nsources:\n" +
			"- {into: charts, chart: {repo: https://charts.example.com, name: shop, version: 1.x, flat: true}}\n" +
			"- {into: charts/2, chart: {repo: https://charts.example.com, name: shop, version: 2.x, flat: true}}\n",
	}, "charts/shop", "charts/2/shop"))
	entry := func(path, name string) string {
		return "- path: " + path + "\n  name: " + name + "\n  namespace: " + name + "\n  helm: {releaseName: " + name + "}\n"
	}
	compare.Check(t, entry("charts/2/shop", "new")+entry("charts/shop", "old")+entry("charts/shop", "any"), got)
}

// TestChartsOfElsewhereAreReleased checks that each HelmRelease or Application of a vendored chart becomes an app.
// The folder's name may include the version. A chart with the same name from another address is omitted.
func TestChartsOfElsewhereAreReleased(t *testing.T) {
	release := func(name, spec string) string { return document(helmRelease, name+", namespace: data", spec) }
	const shop = "chart: {spec: {chart: shop, version: 0.x, sourceRef: {kind: HelmRepository, name: charts}"
	files := withCharts(map[string]string{
		"infra/releases.yaml": release("cache", "{"+shop+", valuesFiles: [values-big.yaml]}}, values: {a: 5}}") +
			release("sessions", "{releaseName: s, "+shop+"}}}") + release("mail", "{chartRef: {kind: OCIRepository, name: mail}}") +
			release("other", "{chart: {spec: {chart: shop, sourceRef: {kind: HelmRepository, name: others}}}}"),
		"infra/sources/all.yaml": document(helmCharts, "charts", "{url: 'https://charts.example.com/'}") +
			document(helmCharts, "others", "{url: 'https://others.example.com'}") +
			document(artifact, "mail", "{url: 'oci://ghcr.io/org/charts/mail', ref: {semver: 1.x}}"),
		"argocd/guest.yaml": document(argoApp, "guest", "\n  destination: {namespace: guests}\n  sources: [{repoURL: ghcr.io/org/charts, "+
			"chart: guest, targetRevision: 1.2.3, helm: {valueFiles: [$v/env/guest.yaml]}}, {repoURL: x, ref: v}]"),
		"env/guest.yaml": "a: 9\n",
		"infra/vendor.yaml": "apiVersion: gitrollout.dev/v1alpha1\nkind: Vendor\nsources:\n" +
			"- {into: charts, chart: {repo: https://charts.example.com, name: shop, version: 0.x, flat: true}}\n" +
			"- {into: charts, chart: {repo: oci://ghcr.io/org/charts, name: mail, version: 1.x, flat: true}}\n",
		"argocd/vendor.yaml": "apiVersion: gitrollout.dev/v1alpha1\nkind: Vendor\nsources:\n" +
			"- {into: ., chart: {repo: oci://ghcr.io/org/charts, name: guest, version: 1.2.3}}\n",
		"infra/charts/shop/values-big.yaml": "a: 2\n",
	}, "infra/charts/shop", "infra/charts/mail", "argocd/guest-1.2.3/guest")
	files["infra/charts/mail/Chart.yaml"] = "apiVersion: v2\nname: mail\nversion: 1.0.0\n"
	files["argocd/guest-1.2.3/guest/Chart.yaml"] = "apiVersion: v2\nname: guest\nversion: 1.2.3\n"
	compare.Check(t, `- path: argocd/guest-1.2.3/guest
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
left out infra/releases.yaml: HelmRelease other uses the chart shop, which is not in this repository: `+
		"add it with gitrollout vendor --from infra, commit it, and run this again", proposed(t, files))
}

// TestAppsOfAnotherEnvironment checks that a folder and settings are omitted if only another environment deploys them. The environment
// comes from the object that deploys them: from its file, name, destination, namespace or value files.
func TestAppsOfAnotherEnvironment(t *testing.T) {
	of := func(name, destination, source string) string {
		return document(argoApp, name, "{destination: {"+destination+"}, source: {repoURL: https://git.example.com/x.git, "+source+"}}")
	}
	const own, try, till = "namespace: own", "namespace: try", "path: charts/till"
	const settings, ofDev = till + ", helm: {parameters: [{name: a, value: try}]", ", valueFiles: [values-dev.yaml]}"
	shop := func(destination string) string { return of("shop", destination, "path: apps/shop") }
	for name, c := range map[string]struct{ one, other, cluster, want string }{
		"folders":     {"dev/a.yaml " + shop(try), "production/a.yaml " + shop(own), "prod", own},
		"only dev's":  {"dev/a.yaml " + shop(try), "", "prod", "apps/shop: only argo/dev/a.yaml deploys it, for dev"},
		"files":       {"shop-dev.yaml " + shop(try), "shop-prod.yaml " + shop(own), "prod", own},
		"the likely":  {"shop-dev.yaml " + shop(try), "shop-prod.yaml " + shop(own), "", own},
		"only a file": {"shop-staging.yaml " + shop(try), "", "prod", "only argo/shop-staging.yaml deploys it, for staging"},
		"names":       {"a.yaml " + of("shop-dev", try, "path: apps/shop"), "b.yaml " + shop(own), "prod", own},
		"namespaces":  {"a.yaml " + shop("namespace: try-dev"), "b.yaml " + shop(own+"-live"), "prod", own + "-live"},
		"clusters":    {"a.yaml " + shop("name: dev-eu, "+try), "b.yaml " + shop(own), "prod-eu", own},
		"servers": {"a.yaml " + shop("server: 'https://dev.example.com:6443', "+try),
			"b.yaml " + shop("server: 'https://k8s.example.dev', "+own), "prod", own},
		"a chart":       {"a.yaml " + of("till", "name: dev", settings+ofDev), "", "prod", "till: only argo/a.yaml deploys it, for dev"},
		"values":        {"a.yaml " + of("till", try, settings+ofDev), "b.yaml " + of("till", own, till), "prod", own},
		"a file of all": {"a.yaml " + of("till-dev", try, settings+"}") + of("till-prod", own, till), "", "prod", own},
		"an app's name": {"a.yaml " + of("live-chat", own, "path: apps/live-chat"), "", "staging", own},
	} {
		files := map[string]string{"charts/till/Chart.yaml": chartOfShop, "charts/till/templates/s.yaml": shopOfChart,
			"charts/till/values-dev.yaml": "a: try\n", "apps/shop/kustomization.yaml": built("shop", "b"),
			"apps/live-chat/kustomization.yaml": built("live-chat", "b")}
		for _, file := range []string{c.one, c.other} {
			path, text, _ := strings.Cut(file, " ")
			files["argo/"+path] = text
		}
		if got := proposedFor(t, c.cluster, files); !strings.Contains(got, c.want) || strings.Contains(got, "try") {
			t.Errorf("%s:\n%s", name, got)
		}
	}
}

// TestAppsOfAnotherCluster checks that, in a repository of several clusters, each cluster's configuration lists only the cluster's folders.
func TestAppsOfAnotherCluster(t *testing.T) {
	flux := func(app string) string { return document(fluxFolder, "a", "{path: ./apps/"+app+"}") }
	for name, c := range map[string]struct{ ofCloud, ofHome, cluster, want string }{
		"folders of clusters": {"shop", "till", "home", "apps/shop: only clusters/cloud/a.yaml deploys it, for cloud"},
		"the first cluster":   {"till", "shop", "", "apps/shop: only clusters/home/a.yaml deploys it, for home; list it if cloud needs it"},
	} {
		files := map[string]string{
			"clusters/cloud/a.yaml": flux(c.ofCloud) + flux("web"), "clusters/home/a.yaml": flux(c.ofHome) + flux("web")}
		for _, app := range []string{"shop", "till", "web"} {
			files["apps/"+app+"/kustomization.yaml"] = built(app, "b")
		}
		got := proposedFor(t, c.cluster, files)
		if compare.Contains(t, got, c.want, "- path: apps/till\n- path: apps/web\n"); strings.Contains(got, "path: apps/shop") {
			t.Errorf("%s:\n%s", name, got)
		}
	}
}

// TestFoldersOfAnArtifact checks that, if a Kustomization's folder is not in the repository, the message names the Kustomization's source.
func TestFoldersOfAnArtifact(t *testing.T) {
	of := func(name string) string {
		return document(fluxFolder, name, "{path: ./apps/"+name+", targetNamespace: shops, sourceRef: {kind: OCIRepository, name: all}}")
	}
	got := proposed(t, map[string]string{"flux/a.yaml": of("shop") + of("gone"), "web/kustomization.yaml": built("web", "b"),
		"flux/s.yaml": document(artifact, "all", "{url: 'oci://ghcr.io/org/all'}")})
	const why = "left out flux/a.yaml: uses a folder of OCIRepository all (oci://ghcr.io/org/all), which is not in this repository"
	if strings.Count(got, why) != 2 {
		t.Errorf("got\n%s", got)
	}
}

// TestHelmReleasesOfAnEnvironment checks that a HelmRelease gets the patches of its environment's kustomization.
func TestHelmReleasesOfAnEnvironment(t *testing.T) {
	files := withCharts(map[string]string{
		"apps/base/kustomization.yaml": "namespace: shops\nresources: [release.yaml]\n",
		"apps/base/release.yaml": document(helmRelease, "shop",
			"{chart: {spec: {chart: charts/shop, sourceRef: {kind: GitRepository, name: flux-system}}}, values: {a: 1, b: 1}}"),
	}, "charts/shop")
	for _, env := range []string{"prod", "staging"} {
		files["apps/"+env+"/kustomization.yaml"] = "resources: [../base]\npatches: [{path: values.yaml}]\n"
		files["apps/"+env+"/values.yaml"] = document(helmRelease, "shop, namespace: shops", "{values: {a: "+env+"}}")
		want := "- path: charts/shop\n  namespace: shops\n  helm:\n    releaseName: shop\n    valuesObject:\n      a: " + env + "\n      b: 1\n"
		if got := proposedFor(t, env, files); !strings.Contains(got, want) || strings.Contains(got, "is what") {
			t.Errorf("for %s:\n%s", env, got)
		}
	}
}
