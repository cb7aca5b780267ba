package vendoring_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/author/vendoring"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// TestRemote checks the parts of common addresses, and of addresses in kustomize's documentation.
func TestRemote(t *testing.T) {
	const kustomize = "github.com/kubernetes-sigs/kustomize"
	for entry, want := range map[string]string{
		"https://" + kustomize + "//examples/multibases/dev/?timeout=120&ref=v3.3.1": "https://" + kustomize + " v3.3.1 examples/multibases/dev",
		"https://" + kustomize + "?ref=v3.3.1":                                       "https://" + kustomize + " v3.3.1 ",
		kustomize + "/examples/multibases/dev?ref=v1.0.6":                            "https://" + kustomize + " v1.0.6 examples/multibases/dev",
		"https://github.com/org/repo/deploy?ref=v1":                                  "https://github.com/org/repo v1 deploy",
		"git@github.com:org/repo//deploy?ref=v1":                                     "git@github.com:org/repo v1 deploy",
		"git@github.com:org/repo/deploy/a?version=v1":                                "git@github.com:org/repo v1 deploy/a",
		"git@github.com:org/repo.git/deploy?ref=v1":                                  "git@github.com:org/repo.git v1 deploy",
		"git::https://git.example.com/a/b/c.git//deploy?ref=v1":                      "https://git.example.com/a/b/c.git v1 deploy",
		"ssh://git@git.example.com:7999/a/b.git/deploy?ref=v1":                       "ssh://git@git.example.com:7999/a/b.git v1 deploy",
		"https://git.example.com/a/b/c":                                              "https://git.example.com/a/b/c  ",
	} {
		repo, ref, below := vendoring.Remote(entry)
		if got := repo + " " + ref + " " + below; got != want || !vendoring.IsRemote(entry) {
			t.Errorf("%s: %q, want %q", entry, got, want)
		}
	}
	for _, entry := range []string{"../base", "base.yaml", "github.com.yaml", "a/github.com", "x@y"} {
		if vendoring.IsRemote(entry) {
			t.Errorf("%s is taken for remote", entry)
		}
	}
}

// TestFrom checks that a kustomization is rewritten, that Update fetches its remote resources, and that a second From changes nothing.
func TestFrom(t *testing.T) {
	w := newWorld(t)
	w.remove("vendor.yaml")
	w.git.Write(map[string]string{"deploy/overlay/kustomization.yaml": "resources: [../base.yaml]\n"})
	w.git.Commit("an overlay")
	w.write("kustomization.yml", "# ours\nresources:\n- app.yaml # stays\n- "+w.gitURL+"//deploy/overlay?ref=main # theirs\n- \""+w.gitURL+
		"//deploy?ref=main\"\ncomponents: [\""+w.gitURL+"?ref=main\"]\n"+
		"helmCharts:\n- {name: redis, repo: http://"+w.host+"/charts, version: 20.1.5, releaseName: a}\n- {name: ours, releaseName: b}\n")
	said, err := vendoring.From(w.on())
	must(t, err)
	name := strings.TrimSuffix(filepath.Base(w.gitURL), ".git")
	want := "# ours\nresources:\n- app.yaml # stays\n- vendor/" + name + "-deploy/overlay # theirs\n- \"vendor/" + name +
		"-deploy\"\ncomponents: [\"vendor/" + name + "\"]\n"
	has := w.has()
	if got := has["kustomization.yml"]; !strings.HasPrefix(got, want) || len(said) != 4 {
		t.Errorf("said %q (-want +got):\n%s", said, compare.Diff(want, got))
	}
	w.update("")
	if has = w.has(); has["vendor/"+name+"-deploy/overlay/kustomization.yaml"] == "" || has["vendor/"+name+"/README.md"] == "" ||
		has["charts/redis-20.1.5/redis/Chart.yaml"] == "" {
		t.Errorf("there is %v", has)
	}
	before := w.read("vendor.yaml")
	if said, err := vendoring.From(w.on()); err != nil || len(said) > 0 {
		t.Errorf("the second time: %v, error %v", said, err)
	}
	w.write("kustomization.yml", strings.Replace(want, "app.yaml", "https://github.com/org/repo?ref=v1", 1))
	_, err = vendoring.From(w.on())
	must(t, err)
	if after := w.read("vendor.yaml"); len(w.listed()) != 4 || !strings.HasPrefix(after, before) {
		t.Errorf("vendor.yaml is\n%s", after)
	}
}

// TestFromBesideOthers checks that an existing vendor.yaml keeps its content, even without a final newline. Another tag of a listed
// repository gets another folder, and the field helmCharts stays unchanged.
func TestFromBesideOthers(t *testing.T) {
	w := withoutGit(t)
	const before = "apiVersion: gitrollout.dev/v1alpha1\nkind: Vendor\nsources:\n" +
		"- chart: {repo: https://example.com, name: a, version: 1.0.0, provenance: keys.asc}\n  into: charts\n" +
		"- git: {url: https://github.com/org/repo, ref: v1}\n  into: vendor/repo"
	w.write("vendor.yaml", before)
	const charts = "helmCharts: [{name: web, repo: \"oci://ghcr.io/charts\", version: 1.2.3}, " +
		"{name: a, repo: https://example.com, version: 1.0.0}]\n"
	w.write("kustomization.yml",
		"resources:\n- github.com/org/repo?ref=v2\n- github.com/org/repo?ref=v1\n- github.com/org/repo?ref=v3\n"+charts)
	_, err := vendoring.From(w.on())
	must(t, err)
	compare.Check(t, "resources:\n- vendor/repo-2\n- vendor/repo\n- vendor/repo-3\n"+charts, w.has()["kustomization.yml"])
	if after := w.read("vendor.yaml"); !strings.HasPrefix(after, before+"\n- ") {
		t.Errorf("vendor.yaml is\n%s", after)
	}
	compare.Check(t, []string{"charts chart https://example.com a 1.0.0 signed by keys.asc",
		"vendor/repo git https://github.com/org/repo v1 .", "vendor/repo-2 git https://github.com/org/repo v2 .",
		"vendor/repo-3 git https://github.com/org/repo v3 .", "charts chart oci://ghcr.io/charts web 1.2.3"}, w.listed())
}

// TestFromOutsideOfResources checks that every kind of address that rendering refuses is vendored, including single files from GitHub and
// GitLab. Text that merely contains an address stays.
func TestFromOutsideOfResources(t *testing.T) {
	const raw = "https://raw.githubusercontent.com/org/repo/v1/"
	w := withoutGit(t)
	w.write("kustomization.yml", `commonAnnotations: {docs: "https://example.com/docs.yaml"}
resources:
- https://gitlab.com/team/base/-/raw/v2/deploy/install.yaml
- bitbucket.org/team/base//deploy?ref=v3
crds:
- `+raw+`crds/a.yaml
configurations:
- https://github.com/org/repo/raw/v1/config/names.yaml
patches:
- path: https://github.com/org/repo/blob/refs/heads/main/patch.yaml
- patch: |-
    - {op: add, path: /metadata/annotations/docs, value: "https://example.com/x.yaml"}
replacements:
- path: `+raw+`config/replace.yaml
openapi:
  path: `+raw+`schema.json
configMapGenerator:
- name: a
  literals: ["url=https://example.com/y.yaml"]
  files:
  - key.yaml=`+raw+`config/data.yaml
transformers:
- |-
  {apiVersion: builtin, kind: NamespaceTransformer, metadata: {name: a, annotations: {docs: "https://example.com/z.yaml"}}}
helmCharts:
- {name: a, releaseName: a, valuesFile: `+raw+`config/v.yaml}
`)
	said, err := vendoring.From(w.on())
	must(t, err)
	compare.Check(t, `commonAnnotations: {docs: "https://example.com/docs.yaml"}
resources:
- vendor/base-deploy/install.yaml
- vendor/base-deploy-2
crds:
- vendor/repo-crds/a.yaml
configurations:
- vendor/repo-config/names.yaml
patches:
- path: vendor/repo/patch.yaml
- patch: |-
    - {op: add, path: /metadata/annotations/docs, value: "https://example.com/x.yaml"}
replacements:
- path: vendor/repo-config/replace.yaml
openapi:
  path: vendor/repo-2/schema.json
configMapGenerator:
- name: a
  literals: ["url=https://example.com/y.yaml"]
  files:
  - key.yaml=vendor/repo-config/data.yaml
transformers:
- |-
  {apiVersion: builtin, kind: NamespaceTransformer, metadata: {name: a, annotations: {docs: "https://example.com/z.yaml"}}}
helmCharts:
- {name: a, releaseName: a, valuesFile: vendor/repo-config/v.yaml}
`, w.has()["kustomization.yml"])
	if len(said) != 9 {
		t.Errorf("said %q", said)
	}
	compare.Check(t, []string{"vendor/base-deploy git https://gitlab.com/team/base v2 deploy",
		"vendor/base-deploy-2 git https://bitbucket.org/team/base v3 deploy",
		"vendor/repo git https://github.com/org/repo main .", "vendor/repo-crds git https://github.com/org/repo v1 crds",
		"vendor/repo-config git https://github.com/org/repo v1 config",
		"vendor/repo-2 git https://github.com/org/repo v1 ."}, w.listed())
}

// TestFromRefuses checks that the error for an unsupported address names the field and a fix, and that nothing is written.
func TestFromRefuses(t *testing.T) {
	for name, c := range map[string]struct{ kustomization, vendor, want string }{
		"no ref": {"resources: [https://github.com/org/repo//deploy]\n", "",
			"kustomization.yml: resources[0]: https://github.com/org/repo//deploy names no tag, branch or commit; append ?ref=TAG"},
		"a file": {"resources:\n- a.yaml\n- https://example.com/install.yaml\n", "",
			"resources[1]: https://example.com/install.yaml is not a folder of a Git repository; download the file"},
		"a file of a patch": {"patches:\n- path: https://example.com/patch.yaml\n", "",
			"patches[0].path: https://example.com/patch.yaml is not a folder of a Git repository; download the file"},
		"no version": {"helmCharts: [{name: a, repo: https://example.com}]\n", "", "helmCharts[0].version: is missing"},
		"charts above": {"helmGlobals: {chartHome: ../charts}\nhelmCharts: [{name: a, repo: https://example.com, version: 1.0.0}]\n", "",
			"helmGlobals.chartHome: ../charts is not below this folder"},
		"twice in a line": {"resources: [\"https://github.com/a/b?ref=v1\", \"https://github.com/a/b?ref=v1\"]\n", "",
			"resources[0]: https://github.com/a/b?ref=v1 cannot be replaced"},
		"a list in a line": {"resources: [\"https://github.com/a/b?ref=v1\"]\n",
			"apiVersion: gitrollout.dev/v1alpha1\nkind: Vendor\nsources: [{git: {url: https://github.com/a/c, ref: v1}, into: c}]\n",
			"vendor.yaml: has a sources list that gitrollout cannot append to"},
		"a bad vendor.yaml":   {"resources: [\"https://github.com/a/b?ref=v1\"]\n", "kind: Vendor\n", "vendor.yaml"},
		"no YAML":             {"resources: [\n", "", "kustomization.yml: cannot be read"},
		"no mapping":          {"- a\n", "", "kustomization.yml: cannot be read"},
		"not a kustomization": {"", "", "there is no kustomization.yaml"},
	} {
		w := withoutGit(t)
		if c.vendor != "" {
			w.write("vendor.yaml", c.vendor)
		}
		if c.kustomization != "" {
			w.write("kustomization.yml", c.kustomization)
		}
		before := w.has()
		_, err := vendoring.From(w.on())
		var invalid *rollout.InvalidError
		if err == nil || !strings.Contains(err.Error(), c.want) || errors.As(err, &invalid) && invalid.Fix == "" {
			t.Errorf("%s: error %v, want %s", name, err, c.want)
		}
		compare.CheckNamed(t, name+": written", before, w.has())
	}
}
