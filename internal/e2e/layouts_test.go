package e2e

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/internal/testcluster"
	"gitrollout.dev/gitrollout/rollout"
)

// TestLayouts runs gitrollout init in repositories with common layouts, and releases all apps that init found. init
// states a reason for each folder that it omits.
func TestLayouts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files map[string]string
		mend  func(w *world) // the user's changes after reading the list of omitted folders
		apps  string
		left  []string

		deployments int
	}{
		"argo-cd": {files: layout(t, "argo-cd"), apps: "blue-green guestbook helm-guestbook kustomize-guestbook", deployments: 4, left: []string{
			"jsonnet-guestbook/guestbook.jsonnet: is jsonnet, which is not run here: have CI run it, and commit the manifests that it prints",
			"apps: has objects of Argo CD",
			"helm-dependency: cannot be rendered: helm-dependency/Chart.yaml: dependencies[0]: the chart wordpress is not in charts/; " +
				"run helm dependency build, and commit its output: charts are read from Git alone",
			"sync-waves: cannot be rendered: sync-waves: kustomize: manifests.yaml: missing metadata.name in object batch/v1 Job; " +
				"add apiVersion, kind and metadata.name to the object, or remove its file from resources",
		}},
		"flux": {files: layout(t, "flux"), mend: bringCharts, apps: "podinfo", deployments: 1, left: []string{
			"infrastructure/controllers/kustomization.yaml: HelmRelease cert-manager uses the chart cert-manager, which is not in this " +
				"repository: add it with gitrollout vendor --from infrastructure/controllers, commit it, and run this again",
			"apps/base/podinfo: has objects of Flux",
			"apps/production: has objects of Flux",
			"clusters/production/flux-system: has objects of Flux",
			"infrastructure/controllers: has objects of Flux",
		}},
		"twelve services": {files: twelveServices(), apps: "kustomize", deployments: 12, left: []string{
			"kubernetes-manifests: has objects that kustomize also has, such as ServiceAccount default/ad; an object belongs to one app: " +
				"list only one of the two apps, or give this app another namespace",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := testcluster.Shared(t)
			w := &world{t: t, repo: gittest.New(t), cluster: cluster, ns: cluster.Namespace(t), log: &lockedBuffer{}}
			w.repo.CommitFiles("as it is", c.files)
			if c.mend != nil {
				c.mend(w)
			}
			out := w.here("init", "--cluster", "test")
			var left, apps []string
			for line := range strings.Lines(out) {
				if text, is := strings.CutPrefix(line, "left out "); is {
					left = append(left, strings.TrimSpace(text))
				}
				if text, is := strings.CutPrefix(line, "app "); is {
					name, _, _ := strings.Cut(strings.TrimSpace(text), ":")
					apps = append(apps, name)
				}
			}
			if diff := compare.Diff(c.left, left); diff != "" || strings.Join(apps, " ") != c.apps {
				t.Errorf("apps %q, left out (-want +got):\n%s\n%s", apps, diff, out)
			}
			// All apps of the written configuration get the test's namespace.
			text := regexp.MustCompile(`(?m)^  namespace: .*\n`).ReplaceAllString(readText(t, filepath.Join(w.repo.Work, configFile)), "")
			text = strings.ReplaceAll(text, "- path: ", "- namespace: "+w.ns+"\n  path: ")
			head := w.repo.CommitFiles("gitrollout init", map[string]string{configFile: text})
			w.server = w.repo.HTTP(gittest.HTTPOptions{})
			w.start()
			for _, w.app = range apps {
				w.seen.head = ""
				w.await("healthy", func(s rollout.State) bool { return s.Phase == rollout.Healthy && s.Source == head && s.Held == nil })
			}
			w.until("all Deployments are available", func() bool {
				list, err := cluster.Kube.AppsV1().Deployments(w.ns).List(t.Context(), metav1.ListOptions{})
				isAway := func(d appsv1.Deployment) bool { return d.Status.AvailableReplicas != *d.Spec.Replicas }
				return err == nil && len(slices.DeleteFunc(list.Items, isAway)) == c.deployments
			})
		})
	}
}

// here runs a gitrollout command in the repository's folder.
func (w *world) here(args ...string) string {
	w.t.Helper()
	path, err := binary()
	must(w.t, err)
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Env = w.repo.Work, append(gittest.Env(), "HOME="+w.t.TempDir())
	return output(w.t, cmd)
}

// layout returns the files of a repository in testdata/layouts.
func layout(t *testing.T, name string) map[string]string {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("testdata", "layouts", name+".txtar"))
	must(t, err)
	files := map[string]string{}
	for _, f := range archive.Files {
		files[f.Name] = string(f.Data)
	}
	return files
}

// podinfoCharts serves a chart repository with one chart, whose version may change.
func podinfoCharts(t *testing.T, version *atomic.Value) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		version := version.Load().(string)
		if strings.HasSuffix(in.URL.Path, "index.yaml") {
			fmt.Fprintf(out, "apiVersion: v1\nentries: {podinfo: [{name: podinfo, version: %s, urls: [podinfo-%s.tgz]}]}\n", version, version)
			return
		}
		zip := gzip.NewWriter(out)
		archive := tar.NewWriter(zip)
		for _, file := range [][2]string{{"Chart.yaml", "apiVersion: v2\nname: podinfo\nversion: " + version + "\n"},
			{"values.yaml", "replicaCount: 1\nimage: {tag: v1}\n"},
			{"templates/web.yaml", "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: {{ .Release.Name }}}\n" +
				"spec:\n  replicas: {{ .Values.replicaCount }}\n  selector: {matchLabels: {app: web}}\n  template:\n" +
				"    metadata: {labels: {app: web}}\n" +
				"    spec: {containers: [{name: web, image: \"podinfo:{{ .Values.image.tag }}\"}]}\n"}} {
			name, text := file[0], file[1]
			_ = archive.WriteHeader(&tar.Header{Name: "podinfo/" + name, Size: int64(len(text)), Mode: 0o644})
			_, _ = archive.Write([]byte(text))
		}
		_ = archive.Close()
		_ = zip.Close()
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// bringCharts vendors the chart of a HelmRelease from the test's chart repository, as init advises.
func bringCharts(w *world) {
	var version atomic.Value
	version.Store("1.2.0")
	w.repo.CommitFiles("a repository of charts that is there",
		map[string]string{"apps/base/podinfo/repository.yaml": "apiVersion: source.toolkit.fluxcd.io/v1\n" +
			"kind: HelmRepository\nmetadata: {name: podinfo}\nspec: {interval: 5m, url: " + podinfoCharts(w.t, &version) + "}\n"})
	w.here("vendor", "--from", "apps")
	w.here("vendor", "apps")
}

// twelveServices returns a base with a Deployment, a Service and a ServiceAccount for each of twelve services. It also returns a component,
// and the base's objects as plain manifests.
func twelveServices() map[string]string {
	files := map[string]string{
		"kustomize/kustomization.yaml": "resources: [base]\n",
		"kustomize/components/without-load/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n" +
			"patches: [{patch: '{$patch: delete, apiVersion: apps/v1, kind: Deployment, metadata: {name: loadgenerator}}'}]\n",
	}
	var all []string
	for name := range strings.FieldsSeq("ad cart checkout currency email frontend payment catalog recommendation " +
		"shipping redis loadgenerator") {
		files["kustomize/base/"+name+".yaml"] = strings.ReplaceAll("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: NAME}\nspec:\n"+
			"  selector: {matchLabels: {app: NAME}}\n"+
			"  template:\n    metadata: {labels: {app: NAME}}\n    spec: {serviceAccountName: NAME, containers: [{name: server, image: "+
			"\"NAME:v1\"}]}\n---\n"+
			"apiVersion: v1\nkind: Service\nmetadata: {name: NAME}\nspec: {ports: [{port: 80}], selector: {app: NAME}}\n---\n"+
			"apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: NAME}\n", "NAME", name)
		files["kubernetes-manifests/"+name+".yaml"] = files["kustomize/base/"+name+".yaml"]
		files["src/"+name+"/Dockerfile"] = "FROM scratch\n"
		all = append(all, name+".yaml")
	}
	files["kustomize/base/kustomization.yaml"] = "resources: [" + strings.Join(all, ", ") + "]\n"
	return files
}
