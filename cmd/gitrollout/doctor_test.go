package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/internal/testcluster"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/doctor"
)

// doctorConfig is a configuration that allows apps to have objects in all namespaces.
const doctorConfig = testConfig + "  namespaces: ['*']\n"

// doctorRepo returns a repository with the given files, and with one app whose objects are in the given namespace.
func doctorRepo(t *testing.T, namespace string, more map[string]string) *gittest.Repo {
	t.Helper()
	files := map[string]string{
		rollout.ConfigPath("prod"):     doctorConfig,
		"apps/shop/kustomization.yaml": "namespace: " + namespace + "\nresources: [app.yaml]\n",
		"apps/shop/app.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec: {containers: [{name: shop, image: "shop:v1"}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: shop}
---
apiVersion: gitrollout.dev/v1alpha1
kind: Rollout
metadata: {name: shop}
spec:
  workloadRef: {apiVersion: apps/v1, kind: Deployment, name: shop}
  strategy: {canary: {steps: [{setWeight: 20}]}}
`,
	}
	repo := gittest.New(t)
	repo.CommitFiles("first", with(files, more))
	return repo
}

// wantFinding fails the test unless doctor's check has one finding, with the status want and the text says. It returns the finding's fix.
func wantFinding(t *testing.T, found map[string][]doctor.Finding, check string, want doctor.Health, says string) (fix string) {
	t.Helper()
	got := found[check]
	if len(got) != 1 || got[0].Status != want || !strings.Contains(got[0].Message, says) {
		t.Fatalf("%s: %+v, want %s: %s", check, got, want, says)
	}
	return got[0].Fix
}

// examined runs gitrollout doctor. It returns the exit code, and the findings grouped by check.
func examined(t *testing.T, args ...string) (code int, found map[string][]doctor.Finding) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), append([]string{"doctor", "--cluster", "prod", "-o", "json"}, args...), nil, &out, &errs)
	var e doctor.Examination
	if err := json.Unmarshal(out.Bytes(), &e); err != nil {
		t.Fatalf("exit code %d, %v:\n%s%s", code, err, out.String(), errs.String())
	}
	found = map[string][]doctor.Finding{}
	for _, f := range e.Findings {
		found[f.Check] = append(found[f.Check], f)
	}
	return code, found
}

// nowhere is a flag with the path of a kubeconfig that does not exist.
const nowhere = "--kubeconfig=/nonexistent/kubeconfig"

// TestDoctorPush checks the findings about Git servers that refuse pushes in different ways. doctor must delete the
// branch that it pushes as a test, unless the server refuses to delete branches.
func TestDoctorPush(t *testing.T) {
	tests := map[string]struct {
		hook string // an update hook of the Git server, called with REF OLD NEW
		user string
		want doctor.Health
		says string
		left int
	}{
		"may": {"", "", doctor.Healthy, "can be pushed and removed", 0},
		"a hook refuses": {
			"case $1 in refs/heads/gitrollout/*) echo protected >&2; exit 1;; esac", "", doctor.Problem,
			"refuses branches below gitrollout/", 0,
		},
		"a hook keeps":         {"case $3 in 0000*) echo kept >&2; exit 1;; esac", "", doctor.Problem, "but not removed", 1},
		"wrong credentials":    {"", "ann", doctor.Problem, "", 0},
		"read-only for others": {"exit 1", "", doctor.Problem, "refuses", 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			repo := doctorRepo(t, "shop", nil)
			if tt.hook != "" {
				repo.Hook("update", "#!/bin/sh\n"+tt.hook+"\nexit 0\n")
			}
			server := repo.HTTP(gittest.HTTPOptions{User: tt.user, Password: tt.user})
			before := len(repo.Refs())
			code, found := examined(t, "--repo", server.URL, nowhere)
			if code != int(exitFailed) {
				t.Errorf("exit code %d without a cluster", code)
			}
			check := "git.push"
			if tt.user != "" {
				check = "git.read"
			}
			if fix := wantFinding(t, found, check, tt.want, tt.says); tt.want == doctor.Problem && fix == "" {
				t.Errorf("%s has no fix", check)
			}
			if after := len(repo.Refs()); after != before+tt.left {
				t.Errorf("%d branches before, %d after: %v", before, after, repo.Refs())
			}
			_, found = examined(t, "--repo", server.URL, "--no-push", nowhere)
			if after := len(repo.Refs()); after != before+tt.left || tt.user == "" && found["git.push"][0].Status != doctor.Unknown {
				t.Errorf("with --no-push: %+v, %d branches", found["git.push"], after)
			}
		})
	}
}

// TestDoctorStateRepo checks that doctor also tries a push to the repository of the state branch.
func TestDoctorStateRepo(t *testing.T) {
	state := gittest.New(t)
	repo := doctorRepo(t, "shop", map[string]string{rollout.ConfigPath("prod"): doctorConfig + "stateRepo: " + state.Bare + "\n"})
	_, found := examined(t, "--repo", repo.Bare, nowhere)
	wantFinding(t, found, "git.state.push", doctor.Healthy, "can be pushed and removed")
	state.Hook("update", "#!/bin/sh\nexit 1\n")
	_, found = examined(t, "--repo", repo.Bare, nowhere)
	wantFinding(t, found, "git.push", doctor.Healthy, "can be pushed and removed")
	wantFinding(t, found, "git.state.push", doctor.Problem, "the server refuses branches below gitrollout/")
	compare.CheckNamed(t, "branches", 0, len(state.Refs()))
}

// TestDoctorFindings checks the findings about a repository with mistakes, without a cluster.
func TestDoctorFindings(t *testing.T) {
	repo := doctorRepo(t, "shop", map[string]string{"apps/broken/kustomization.yaml": "resources: [gone.yaml]\n"})
	_, found := examined(t, "--repo", repo.Bare, nowhere)
	for check, want := range map[string]doctor.Health{
		"git.read": doctor.Healthy, "git.config": doctor.Healthy, "git.apps": doctor.Problem, "git.push": doctor.Healthy,
		"git.state": doctor.Healthy, "clock.git": doctor.Unknown, "forge": doctor.Unknown, "cluster": doctor.Problem,
	} {
		wantFinding(t, found, check, want, "")
	}
	var out bytes.Buffer
	run(t.Context(), []string{"doctor", "--repo", repo.Bare, nowhere}, nil, &out, &out)
	for _, want := range []string{
		`(?m)^  ok       git\.read `, `(?m)^  problem  git\.apps .*1 app cannot be rendered`,
		`fix: run gitrollout validate`, `(?m)^2 problems, 0 warnings$`,
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("no %s in\n%s", want, out.String())
		}
	}
	repo.CommitFiles("forge", map[string]string{
		rollout.ConfigPath("prod"): doctorConfig + "forge: {type: gitea, url: \"http://127.0.0.1:1\", repository: a/b}\n",
	})
	t.Setenv("GITROLLOUT_FORGE_URL", "http://127.0.0.1:1")
	t.Setenv("GITROLLOUT_FORGE_TOKEN", "x")
	_, found = examined(t, "--repo", repo.Bare, nowhere)
	if got := found["forge.protection"]; len(got) != 2 || got[0].Status != doctor.Unknown {
		t.Errorf("a forge that does not answer: %+v", got)
	}
}

// TestDoctorOwners checks the finding about code owners. It is Unknown without a CODEOWNERS file, or without readable branch protection.
func TestDoctorOwners(t *testing.T) {
	branch, rule := "", ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/api/v1/repos/a/b/branches/main":
			_, _ = w.Write([]byte(branch))
		case "/api/v1/repos/a/b/branch_protections/main":
			_, _ = w.Write([]byte(rule))
		default:
			http.Error(w, `{"message": "not there"}`, http.StatusNotFound)
		}
	}))
	defer server.Close()
	repo := doctorRepo(t, "shop", map[string]string{
		rollout.ConfigPath("prod"): doctorConfig + "forge: {type: gitea, url: \"" + server.URL + "\", repository: a/b}\n",
	})
	t.Setenv("GITROLLOUT_FORGE_URL", server.URL)
	is := func(want doctor.Health, message, fix string) {
		t.Helper()
		_, found := examined(t, "--repo", repo.Bare, "--no-push", nowhere)
		compare.Contains(t, wantFinding(t, found, "forge.owners", want, message), fix)
	}
	t.Setenv("GITROLLOUT_FORGE_TOKEN", "x")
	branch = `{"protected": true, "effective_branch_protection_name": "main"}`
	rule = `{"block_on_official_review_requests": false}`
	is(doctor.Unknown, "main has no CODEOWNERS", "--promoters")
	repo.CommitFiles("owners", map[string]string{".gitea/CODEOWNERS": "\\.gitrollout/.* @ann\n"})
	is(doctor.Warning, "main can be changed without a review by the owners in .gitea", "Gitea: block merge on official review requests")
	rule = `{"block_on_official_review_requests": true}`
	is(doctor.Healthy, "changes of main need reviews", "")
	branch = `{"protected": true}`
	is(doctor.Unknown, "was not checked: the branch is protected", "")
	t.Setenv("GITROLLOUT_FORGE_TOKEN", "")
	is(doctor.Unknown, "was not checked: there is no token for the forge's API", "")
}

// TestDoctorRights checks the findings for an account that has no rights on a real API server. After the test grants the rights named in
// the fixes, the same findings must be healthy.
func TestDoctorRights(t *testing.T) {
	cluster := testcluster.Shared(t)
	ns := cluster.Namespace(t)
	repo := doctorRepo(t, ns, map[string]string{
		"apps/web/kustomization.yaml": "namespace: " + ns + "\nresources: [web.yaml]\n",
		"apps/web/web.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n---\n" +
			"apiVersion: example.com/v1\nkind: Unheard\nmetadata: {name: web}\n",
	})
	user := "doctor-" + ns
	args := []string{"--repo", repo.Bare, "--no-push", "--kubeconfig", cluster.Kubeconfig, "--as", user}

	code, found := examined(t, args...)
	if code != int(exitFailed) || len(found["cluster.rights"]) < 5 || found["cluster.uid"][0].Status != doctor.Problem {
		t.Fatalf("exit code %d: %+v", code, found)
	}
	wantFinding(t, found, "cluster.kinds", doctor.Problem, "example.com/v1 Unheard") // the cluster does not know the kind
	for _, check := range []string{"cluster.version", "clock.cluster"} {
		if found[check][0].Status != doctor.Healthy {
			t.Errorf("%s: %+v", check, found[check])
		}
	}
	kubeconfig, err := clientcmd.LoadFromFile(cluster.Kubeconfig)
	must(t, err)
	for _, who := range kubeconfig.AuthInfos {
		who.Impersonate = user
	}
	impersonates := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, clientcmd.WriteToFile(*kubeconfig, impersonates))
	_, same := examined(t, "--repo", repo.Bare, "--no-push", "--kubeconfig", impersonates)
	if len(same["cluster.rights"]) != len(found["cluster.rights"]) || same["cluster.uid"][0].Status != doctor.Problem {
		t.Errorf("the impersonated user has other rights: %+v", same)
	}
	everywhere := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}}
	within := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: user}}
	for _, f := range slices.Concat(found["cluster.rights"], found["cluster.uid"]) {
		_, text, ok := strings.Cut(f.Fix, ": ")
		var rule rbacv1.PolicyRule
		if err := yaml.UnmarshalStrict([]byte(text), &rule); err != nil || !ok {
			t.Fatalf("the fix %q is no rule: %v", f.Fix, err)
		}
		if strings.Contains(f.Fix, "ClusterRole") {
			everywhere.Rules = append(everywhere.Rules, rule)
		} else {
			within.Rules = append(within.Rules, rule)
		}
	}
	ctx, meta, options := context.Background(), metav1.ObjectMeta{Name: user}, metav1.CreateOptions{}
	subjects := []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: user}}
	refTo := func(kind string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: user}
	}
	rbac := cluster.Kube.RbacV1()
	t.Cleanup(func() {
		_ = rbac.ClusterRoles().Delete(ctx, user, metav1.DeleteOptions{})
		_ = rbac.ClusterRoleBindings().Delete(ctx, user, metav1.DeleteOptions{})
	})
	must(t, errorOf(rbac.ClusterRoles().Create(ctx, everywhere, options)))
	must(t, errorOf(rbac.Roles(ns).Create(ctx, within, options)))
	toAll := &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: refTo("ClusterRole")}
	must(t, errorOf(rbac.ClusterRoleBindings().Create(ctx, toAll, options)))
	toOne := &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: refTo("Role")}
	must(t, errorOf(rbac.RoleBindings(ns).Create(ctx, toOne, options)))
	for range 50 { // the API server takes a moment to see the new roles
		_, found = examined(t, args...)
		if found["cluster.rights"][0].Status == doctor.Healthy && found["cluster.uid"][0].Status == doctor.Healthy {
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
	t.Errorf("with all that the fixes say: %+v %+v", found["cluster.rights"], found["cluster.uid"])
}

// TestDoctorSecrets checks the finding about Secrets that the analyses of an app use: a missing Secret, a Secret without the label, and a
// usable Secret.
func TestDoctorSecrets(t *testing.T) {
	cluster := testcluster.Shared(t)
	ns := cluster.Namespace(t)
	repo, file := doctorRepo(t, ns, nil), "apps/shop/app.yaml"
	measured := strings.Replace(repo.Show("main", file), "{setWeight: 20}",
		"{setWeight: 20}, {analysis: {templates: [{templateName: ok}]}}", 1)
	repo.CommitFiles("an analysis", map[string]string{file: measured + `
---
apiVersion: gitrollout.dev/v1alpha1
kind: AnalysisTemplate
metadata: {name: ok}
spec:
  args: [{name: token, valueFrom: {secretKeyRef: {name: prometheus, key: token}}}]
  metrics:
  - name: up
    successCondition: 'result[0] == 1'
    provider: {prometheus: {address: "http://p", query: up, headers: [{key: Authorization, value: "{{args.token}}"}]}}
`})
	finds := func(want doctor.Health, says string) (fix string) {
		t.Helper()
		_, found := examined(t, "--repo", repo.Bare, "--no-push", "--kubeconfig", cluster.Kubeconfig)
		return wantFinding(t, found, "cluster.secrets", want, says)
	}
	finds(doctor.Problem, ns+"/prometheus") // the Secret does not exist
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "prometheus"}, StringData: map[string]string{"token": "t0ken"}}
	secret, err := cluster.Kube.CoreV1().Secrets(ns).Create(t.Context(), secret, metav1.CreateOptions{})
	must(t, err)
	if fix := finds(doctor.Problem, ""); fix != "kubectl -n "+ns+" label secret prometheus gitrollout.dev/analysis=true" {
		t.Errorf("the fix of a Secret that is not for analyses is %q", fix)
	}
	secret.Labels = map[string]string{rollout.LabelAnalysis: "true"}
	must(t, errorOf(cluster.Kube.CoreV1().Secrets(ns).Update(t.Context(), secret, metav1.UpdateOptions{})))
	finds(doctor.Healthy, "")
}
