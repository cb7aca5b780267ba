package vendoring_test

import (
	"fmt"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/author/vendoring"
	"gitrollout.dev/gitrollout/internal/compare"
)

const (
	fluxRepository = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: HelmRepository\nmetadata: {name: charts}\n" +
		"spec: {url: \"https://charts.example.com\"}\n"
	fluxRelease = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: redis}\nspec:\n  chart:\n    spec: " +
		"{chart: redis, version: 20.x, sourceRef: {kind: HelmRepository, name: charts}}\n"
	fluxReference = "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: web}\n" +
		"spec: {chartRef: {kind: OCIRepository, name: web}}\n"
	fluxArtifact = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: {name: web}\n" +
		"spec: {url: \"oci://ghcr.io/org/charts/web\", ref: {semver: 6.x}}\n"
	fluxGit = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: base}\n" +
		"spec: {url: \"https://github.com/org/base\", ref: {tag: v1.4.2}}\n"
	fluxFolder = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: base}\n" +
		"spec: {path: ./deploy/prod, sourceRef: {kind: GitRepository, name: base}}\n"
	fluxBundle = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: web}\n" +
		"spec: {path: ./, sourceRef: {kind: OCIRepository, name: web}}\n"
	argoChart = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: guest}\nspec:\n" +
		"  source: {repoURL: ghcr.io/org/charts, chart: guest, targetRevision: 1.2.3}\n"
	argoSources = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: two}\nspec:\n  sources:\n" +
		"  - {repoURL: \"https://charts.example.com\", chart: mail}\n  - {repoURL: \"https://git.example.com/ours\", path: values, ref: values}\n"
)

// TestFromEngines checks that external sources of Flux's and Argo CD's objects are added to vendor.yaml only once, and that the objects
// stay unchanged. Sources in the repository get no entry.
func TestFromEngines(t *testing.T) {
	own := strings.ReplaceAll(fluxFolder, "kind: GitRepository, name: base", "kind: GitRepository, name: flux-system")
	for name, c := range map[string]struct {
		files map[string]string
		want  []string // the entries of vendor.yaml
	}{
		"a chart of a repository": {map[string]string{"release.yaml": fluxRelease, "sources/charts.yaml": fluxRepository},
			[]string{"charts chart https://charts.example.com redis 20.x flat"}},
		"two releases of one": {
			map[string]string{"all.yaml": fluxRelease + "--- # another\n" + strings.Replace(fluxRelease, "name: redis}", "name: cache}", 1) +
				"---\n" + fluxRepository},
			[]string{"charts chart https://charts.example.com redis 20.x flat"},
		},
		"two versions of one": {
			map[string]string{"all.yaml": fluxRelease + "---\n" +
				strings.NewReplacer("name: redis}", "name: cache}", "20.x", "21.0.0").Replace(fluxRelease) + "---\n" + fluxRepository},
			[]string{"charts chart https://charts.example.com redis 20.x flat", "charts/2 chart https://charts.example.com redis 21.0.0 flat"},
		},
		"a chart of a registry": {map[string]string{"all.yml": fluxReference + "---\n" + fluxArtifact},
			[]string{"charts chart oci://ghcr.io/org/charts web 6.x flat"}},
		"a folder of Git": {map[string]string{"all.yaml": fluxFolder + "---\n" + fluxGit},
			[]string{"vendor/base-deploy git https://github.com/org/base v1.4.2 deploy"}},
		"an artifact": {map[string]string{"all.yaml": fluxBundle + "---\n" + fluxArtifact},
			[]string{"vendor/web oci oci://ghcr.io/org/charts/web 6.x"}},
		"an Application":            {map[string]string{"a.yaml": argoChart}, []string{"charts chart oci://ghcr.io/org/charts guest 1.2.3 flat"}},
		"sources of an Application": {map[string]string{"a.yaml": argoSources}, []string{"charts chart https://charts.example.com mail * flat"}},
		"objects beside a kustomization": {
			map[string]string{"kustomization.yaml": "resources: [release.yaml]\nhelmCharts:\n- {name: redis, repo: " +
				"\"https://charts.example.com\", version: 20.x}\n",
				"release.yaml": fluxRelease + "---\n" + fluxRepository},
			[]string{"charts chart https://charts.example.com redis 20.x"},
		},
		"sources in this repository": {map[string]string{"all.yaml": own, "charts/x/templates/a.yaml": fluxRelease}, nil},
		"a patch of a release": {map[string]string{"a.yaml": fluxRelease + "---\n" + fluxRepository,
			"p.yaml": "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {name: redis}\nspec: {chart: {spec: {version: 21.x}}}\n"},
			[]string{"charts chart https://charts.example.com redis 20.x flat"}},
		"a listed source": {map[string]string{"a.yaml": argoChart,
			"vendor.yaml": "apiVersion: gitrollout.dev/v1alpha1\nkind: Vendor\nsources:\n- chart: {repo: \"oci://ghcr.io/org/charts\", name: " +
				"guest, version: 1.2.3, provenance: k.asc}\n  into: ours\n"},
			[]string{"ours chart oci://ghcr.io/org/charts guest 1.2.3 signed by k.asc"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := withoutGit(t)
			for name, content := range c.files {
				w.write(name, content)
			}
			for range 2 {
				_, err := vendoring.From(w.on())
				must(t, err)
			}
			compare.Check(t, c.want, w.listed())
			for name, content := range c.files {
				compare.CheckNamed(t, name, content, w.read(name))
			}
		})
	}
}

// TestFromEnginesLeavesOut checks that a source that vendor.yaml cannot express is reported, and that other sources get an entry.
func TestFromEnginesLeavesOut(t *testing.T) {
	w := withoutGit(t)
	w.write("all.yaml", fluxRelease+"---\n"+fluxFolder+"---\n"+strings.Replace(fluxGit, "tag: v1.4.2", `semver: ">=1"`, 1)+"---\n"+argoChart)
	for _, isFirst := range []bool{true, false} {
		said, err := vendoring.From(w.on())
		text := strings.Join(said, "\n")
		compare.Contains(t, text, "left out all.yaml: HelmRelease redis uses HelmRepository charts, which is not",
			"left out all.yaml: Kustomization base uses")
		if err != nil || strings.Contains(text, "Application guest") != isFirst {
			t.Errorf("error %v, said %s", err, text)
		}
	}
	compare.Contains(t, w.read("vendor.yaml"), "name: guest")
}

// TestFromEnginesRefuses checks that the error names the object with an invalid source, and that nothing is written.
func TestFromEnginesRefuses(t *testing.T) {
	for name, c := range map[string]struct{ files, want string }{
		"no source": {fluxRelease,
			"all.yaml: HelmRelease redis uses HelmRepository charts, which is not in this folder; name a folder that has both"},
		"no url": {fluxRelease + "---\n" + strings.Replace(fluxRepository, "url:", "uri:", 1),
			"HelmRelease redis uses HelmRepository charts, whose url cannot be read"},
		"a range of tags": {fluxFolder + "---\n" + strings.Replace(fluxGit, "tag: v1.4.2", `semver: ">=1"`, 1),
			"Kustomization base uses a repository without a tag, a branch or a commit"},
		"only a digest": {fluxBundle + "---\n" + strings.Replace(fluxArtifact, "semver: 6.x", "digest: sha256:x", 1),
			"Kustomization web uses an artifact without a tag or a semver"},
		"another form":      {strings.Replace(argoChart, "chart: guest", "chart: [guest]", 1), "Application guest cannot be read"},
		"nothing of theirs": {"apiVersion: v1\nkind: Service\nmetadata: {name: a}\n", "there is no kustomization.yaml in "},
	} {
		t.Run(name, func(t *testing.T) {
			w := withoutGit(t)
			w.write("all.yaml", c.files)
			_, err := vendoring.From(w.on())
			compare.Contains(t, fmt.Sprint(err), c.want)
			compare.CheckNamed(t, "vendor.yaml", "", w.read("vendor.yaml"))
		})
	}
}
