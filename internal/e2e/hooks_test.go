package e2e

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/tier"
	"gitrollout.dev/gitrollout/rollout"
)

// dialects maps each dialect's name to its annotation, and to the annotation's values for hooks before, after, and on abort of a release.
var dialects = map[string][4]string{
	"gitrollout": {"gitrollout.dev/hook", "before", "after", "abort"},
	"argo cd":    {"argocd.argoproj.io/hook", "PreSync", "PostSync", "SyncFail"},
	"helm":       {"helm.sh/hook", "pre-upgrade", "post-install,post-upgrade", "post-rollback"},
}

// hooked returns the files of the test app with three hooks: a migration, a check, and an undo of the migration. The
// image tags migrate and check decide whether these Jobs succeed. The Jobs read a ConfigMap of the same commit.
func hooked(app shop, dialect [4]string, migrate, check string) map[string]string {
	files := app.files()
	files["kustomization.yaml"] += "- hooks.yaml\nconfigMapGenerator:\n- name: schema\n  literals: [version=" + app.version + "]\n"
	for i, h := range [][2]string{{"migrate", migrate}, {"check", check}, {"undo", "v1-run100ms"}} {
		files["hooks.yaml"] += fmt.Sprintf(`---
apiVersion: batch/v1
kind: Job
metadata:
  name: %[1]s
  annotations: {%[2]s: "%[3]s", gitrollout.dev/hook-log: record}
spec:
  backoffLimit: 0
  ttlSecondsAfterFinished: 1
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: %[1]s
        image: %[1]s:%[4]s
        envFrom: [{configMapRef: {name: schema}}]
        env: [{name: LOCALCLUSTER_LOG, value: "%[1]s: begun\n%[1]s: relation missing"}]
`, h[0], dialect[0], dialect[1+i], h[1])
	}
	return files
}

// withAndWithout runs a test for an app with a Rollout document, and for an app without a document.
func withAndWithout(t *testing.T, test func(t *testing.T, plain bool)) {
	t.Parallel()
	for with, plain := range map[string]bool{"a document": false, "none": true} {
		t.Run("with "+with, func(t *testing.T) {
			t.Parallel()
			tier.Rows(t, "with_a_document")
			test(t, plain)
		})
	}
}

// awaitSource waits until the app is healthy at a commit, whether or not that commit starts a release.
func (w *world) awaitSource(commit string) {
	w.t.Helper()
	w.await("at "+rollout.ShortID(commit), func(s rollout.State) bool {
		return s.Phase == rollout.Healthy && s.Source == commit && s.Release == nil
	})
}

// jobs returns the hooks' Jobs in the cluster, by name, with their results.
func (w *world) jobs() map[string]string {
	w.t.Helper()
	list, err := w.cluster.Kube.BatchV1().Jobs(w.ns).List(context.Background(),
		metav1.ListOptions{LabelSelector: "gitrollout.dev/hook-of=" + w.app})
	must(w.t, err)
	all := map[string]string{}
	for _, job := range list.Items {
		all[job.Name] = "runs"
		for _, c := range job.Status.Conditions {
			if c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed {
				all[job.Name] = strings.ToLower(string(c.Type))
			}
		}
	}
	return all
}

// hooksLife runs three releases with hooks: the first succeeds, the second has a failing migration, the third a failing check. gitrollout
// is killed before the given effects. plain omits the Rollout document. hooksLife returns all effects, and the hooks' records in Git.
func hooksLife(t *testing.T, dialect [4]string, plain bool, at ...int) (effects, records []string) {
	t.Helper()
	app := shop{plain: plain, version: "v1", replicas: "replicas: 2", strategy: canary("scaling: surge\nstableService: shop\n"+
		"canaryService: shop-preview\nscaleDownDelaySeconds: 1\nabortScaleDownDelaySeconds: 1", "setWeight: 50")}
	w := newWorld(t, app.files())
	g := w.startGated(at...)
	w.awaitSource(w.repo.Head())
	second := w.push("v2", hooked(app.at("v2"), dialect, "v1-run200ms", "v1-run200ms"))
	w.await("the migration", func(s rollout.State) bool {
		if s.Release == nil && w.pods.count("v2") > 0 {
			t.Error("pods of v2 were started before the migration has ended")
		}
		return s.Release != nil
	})
	w.awaitHealthy(second)

	w.push("v3", hooked(app.at("v3"), dialect, "v1-crash", "v1-run200ms"))
	w.await("the verdict", func(s rollout.State) bool { return s.Phase == rollout.Degraded })
	if w.repo.Ref("gitrollout/revert/test/"+w.app) == "" {
		t.Fatal("the verdict is on record, and no revert is proposed")
	}
	compare.Contains(t, w.repo.Message("gitrollout/revert/test/"+w.app), "\n    migrate: begun\n    migrate: relation missing")
	w.pods.wantStarted(t, map[string]int{"v3": 0}) // no pod, because the migration failed

	w.push("v4", hooked(app.at("v4"), dialect, "v1-run200ms", "v1-crash"))
	w.await("the rollback", func(s rollout.State) bool { return s.Phase == rollout.Degraded && w.pods.count("v4") > 0 })
	w.awaitRestart(g)
	s := w.state()
	made := map[string]bool{}
	for _, h := range s.Hooks {
		made[h.Job] = true
		records = append(records, fmt.Sprintf("%s %s %s %d", h.Name[strings.Index(h.Name, "/")+1:], h.When, h.Phase, h.Attempt))
	}
	jobs := w.jobs()
	for name := range jobs {
		if jobs[name] == "runs" {
			t.Errorf("Job %s runs: %v", name, records)
		}
	}
	compare.CheckNamed(t, "the Jobs on record, and in the cluster", slices.Sorted(maps.Keys(made)), slices.Sorted(maps.Keys(jobs)))
	effects = g.effects()
	if n := len(slices.DeleteFunc(slices.Clone(effects), func(e string) bool { return !strings.HasSuffix(e, "/jobs") })); n != len(jobs) {
		t.Errorf("%d Jobs were asked for, and there are %d", n, len(jobs))
	}
	return effects, records
}

// TestHooks runs hooks of each dialect as Jobs on a real control plane, with and without a Rollout document.
func TestHooks(t *testing.T) {
	want := []string{"migrate before Succeeded 1", "check after Succeeded 1", "migrate before Failed 1",
		"migrate before Succeeded 1", "check after Failed 1", "undo abort Succeeded 1"}
	withAndWithout(t, func(t *testing.T, plain bool) {
		for name, dialect := range dialects {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				_, got := hooksLife(t, dialect, plain)
				compare.CheckNamed(t, "the record", want, got)
			})
		}
	})
}

var everyDialect = flag.Bool("every-dialect", false, "kill gitrollout at each effect of the hooks of each dialect")

// TestHooksKilled kills gitrollout before each effect of releases with hooks. No Job may be created twice, and no result may be lost.
// Without -every-dialect, each run uses only one dialect, because all combinations take ten minutes.
func TestHooksKilled(t *testing.T) {
	withAndWithout(t, func(t *testing.T, plain bool) {
		effects, want := hooksLife(t, dialects["gitrollout"], plain)
		t.Logf("%d effects:\n%s", len(effects), strings.Join(effects, "\n"))
		names := slices.Sorted(maps.Keys(dialects))
		for _, at := range killsApart(len(effects)) {
			turn := names[at[0]%len(names):][:1]
			if *everyDialect {
				turn = names
			}
			for _, name := range turn {
				t.Run(fmt.Sprint(name, " ", at[0]), func(t *testing.T) {
					t.Parallel()
					_, got := hooksLife(t, dialects[name], plain, at...)
					compare.CheckNamed(t, "the record", want, got)
				})
			}
		}
	})
}

// TestHookWaits checks commits during a migration. A newer version waits for the migration's end, but a revert starts at once. A Job that
// is deleted while it runs is created again.
func TestHookWaits(t *testing.T) { withAndWithout(t, hookWaits) }

func hookWaits(t *testing.T, plain bool) {
	t.Helper()
	app := hookedShop()
	app.plain = plain
	w := newWorld(t, app.files()).start()
	w.awaitSource(w.repo.Head())
	second := w.push("v2", hooked(app.at("v2"), dialects["gitrollout"], "v1-run1h", "v1-run100ms"))
	s := w.await("the migration", func(s rollout.State) bool { return len(s.Hooks) == 1 && len(w.jobs()) == 1 })
	if s.Held == nil || s.Held.Reason != rollout.HeldHook {
		t.Errorf("held: %+v", s.Held)
	}
	compare.Contains(t, w.ran("get", w.app), "/migrate", "Running", "Healthy, running hooks")
	job := s.Hooks[0].Job
	before, err := w.cluster.Kube.BatchV1().Jobs(w.ns).Get(t.Context(), job, metav1.GetOptions{})
	must(t, err)
	w.kubectl("delete", "job", job, "--wait=false")
	w.until("the Job is made again", func() bool {
		again, err := w.cluster.Kube.BatchV1().Jobs(w.ns).Get(t.Context(), job, metav1.GetOptions{})
		return err == nil && again.UID != before.UID
	})
	run := w.await("that it is made again", func(s rollout.State) bool { return s.Hooks[0].Message != "" }).Hooks[0]
	if run.Phase != rollout.HookRunning || run.Message != "the hook's Job was created again, because the previous Job was deleted" {
		t.Errorf("on record: %+v", run)
	}
	w.repo.Revert(second)
	w.await("the revert", func(s rollout.State) bool { return s.Phase == rollout.Healthy && s.Held == nil })
	w.push("v3", hooked(app.at("v3"), dialects["gitrollout"], "v1-run100ms", "v1-run100ms"))
	w.await("the wait", func(s rollout.State) bool { return s.Held != nil && s.Held.Reason == rollout.HeldHook })
	time.Sleep(time.Second)
	if jobs := w.jobs(); len(jobs) != 1 || w.pods.count("v2")+w.pods.count("v3") > 0 {
		t.Errorf("the Jobs are %v while the first migration runs", jobs)
	}
	w.kubectl("delete", "job", job, "--wait=false")
	w.awaitHealthy(w.repo.Head())
}

// TestHooksWithTheirRole checks the rights of the component `hooks`, for gitrollout's account and for an app's account. Without these
// rights, no Job starts, and the app's message names a missing right. With these rights, the hooks run, and gitrollout doctor reports only
// that the right to read logs is missing.
func TestHooksWithTheirRole(t *testing.T) {
	t.Parallel()
	for name, account := range map[string]string{"its own": "", "a tenant's": "deployer"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app := hookedShop()
			w := newWorld(t, hooked(app, dialects["gitrollout"], "v1-run100ms", "v1-run100ms"))
			if out, _ := w.cli("diff", w.app); strings.Contains(out, "Job/") || !strings.Contains(out, "Deployment/") {
				t.Errorf("diff before the first deployment:\n%s", out)
			}
			w.installRights()
			a := audit(t, w, "gitrollout", w.ns)
			writer := "gitrollout"
			if account != "" {
				writer = account
				w.useAccount(account, "gitrollout-apps-"+w.ns)
			}
			w.start("--kubeconfig", a.kubeconfig)
			s := w.await("held", func(s rollout.State) bool { return s.Held != nil && s.Held.Reason == rollout.HeldForbidden })
			if !strings.Contains(s.Held.Message, `cannot create resource "jobs"`) || len(w.jobs()) > 0 {
				t.Errorf("without the role: held %+v, Jobs %v", s.Held, w.jobs())
			}
			role := w.createClusterRole("hooks/role.yaml")
			w.kubectl("create", "rolebinding", "hooks", "--clusterrole="+role.Name, "--serviceaccount="+w.ns+":"+writer)
			w.awaitHealthy(w.repo.Head())
			w.awaitHealthy(w.push("v2", hooked(app.at("v2"), dialects["gitrollout"], "v1-run100ms", "v1-run100ms")))
			if out, err := w.cli("doctor", "--no-push", "--as", "system:serviceaccount:"+w.ns+":"+writer); strings.Contains(out, "jobs") ||
				!strings.Contains(out, "pods/log") {
				t.Errorf("doctor wants more, or does not miss the logs: %v\n%s", err, out)
			}
			hasLog := func(text string) bool {
				return slices.ContainsFunc(w.state().Hooks, func(r rollout.HookRun) bool { return strings.HasPrefix(r.Log, text) })
			}
			if !hasLog("(there is no log: ") || hasLog("migrate: begun") {
				t.Errorf("without the right to logs: %+v", w.state().Hooks)
			}
			w.kubectl("create", "role", "logs", "--verb=get", "--resource=pods/log")
			w.kubectl("create", "rolebinding", "logs", "--role=logs", "--serviceaccount="+w.ns+":"+writer)
			w.awaitHealthy(w.push("v3", hooked(app.at("v3"), dialects["gitrollout"], "v1-run100ms", "v1-run100ms")))
			if !hasLog("migrate: begun") {
				t.Errorf("with the right to logs: %+v", w.state().Hooks)
			}
			a.mu.Lock()
			defer a.mu.Unlock()
			for what := range a.used {
				if verb, is := strings.CutSuffix(what, " jobs.batch"); is && !slices.Contains(role.Rules[0].Verbs, verb) {
					t.Errorf("the role does not allow: %s", what)
				}
			}
		})
	}
}

// TestHookThatIsRefused pushes a hook that the API server refuses, and a hook with an unknown field. In both cases, the app is held
// (State.Held) before the migration runs.
func TestHookThatIsRefused(t *testing.T) {
	t.Parallel()
	app := hookedShop()
	w := running(t, app.files())
	good := hooked(app.at("v2"), dialects["gitrollout"], "v1-run100ms", "v1-run100ms")
	for bad, says := range map[string]string{
		"restartPolicy: Always":                "the cluster refuses Job NS/undo-fc18dd81-1: spec.template.spec.restartPolicy",
		"restartPolicy: Never\n      nodes: 3": ": spec.template.spec.nodes: is not a field of Kubernetes",
	} {
		files := maps.Clone(good)
		at := strings.LastIndex(files["hooks.yaml"], "restartPolicy: Never")
		files["hooks.yaml"] = files["hooks.yaml"][:at] + bad + files["hooks.yaml"][at+len("restartPolicy: Never"):]
		commit := w.push(bad, files)
		s := w.await("held", func(s rollout.State) bool { return s.Held != nil && s.Held.Commit == commit })
		if s.Held.Reason != rollout.HeldInvalidInput || len(w.jobs()) > 0 || len(s.Rejected) > 0 ||
			!strings.Contains(s.Held.Message, strings.ReplaceAll(says, "NS", w.ns)) {
			t.Errorf("%s: %s, held %+v, Jobs %v", bad, s.Phase, s.Held, w.jobs())
		}
	}
	w.awaitHealthy(w.push("mended", good))
}

// TestHookAborted aborts a release by command during its migration. The reason is recorded, the release does not start,
// and the running Job is not deleted.
func TestHookAborted(t *testing.T) { withAndWithout(t, hookAborted) }

func hookAborted(t *testing.T, plain bool) {
	t.Helper()
	app := hookedShop()
	app.plain = plain
	w := newWorld(t, app.files()).start()
	w.awaitSource(w.repo.Head())
	w.push("v2", hooked(app.at("v2"), dialects["gitrollout"], "v1-run1h", "v1-run100ms"))
	w.await("the migration", func(s rollout.State) bool { return len(s.Hooks) == 1 && len(w.jobs()) == 1 })
	w.kubectl("patch", "job", w.state().Hooks[0].Job, "-p", `{"spec":{"suspend":true}}`)
	suspended := w.ran("get", w.app)
	compare.Contains(t, oneLine(suspended), "to end (it is suspended: spec.suspend is true)")
	compare.Contains(t, suspended, "kubectl -n "+w.ns+" describe job "+w.state().Hooks[0].Job)
	compare.Contains(t, w.ran("hold", w.app), "does not begin the release")
	compare.Contains(t, w.ran("get", w.app), "gitrollout hold "+w.app+" --off")
	w.repo.Pull()
	compare.Contains(t, w.ran("abort", w.app, "--reason", "not today"), "before the release begins")
	s := w.await("rejected", func(s rollout.State) bool { return s.Phase == rollout.Degraded })
	if reason := s.Rejected[0].Reason; !strings.HasSuffix(reason, ": not today") || w.pods.count("v2") > 0 ||
		w.jobs()[s.Hooks[0].Job] != "runs" || w.repo.Ref("gitrollout/revert/test/"+w.app) == "" {
		t.Errorf("rejected because it was %q; %d pods of v2, Jobs %v", reason, w.pods.count("v2"), w.jobs())
	}
}

// TestHookThatCannotStart checks that `get` reports a migration whose image is missing. gitrollout deletes the Job when a fixed version is
// pushed.
func TestHookThatCannotStart(t *testing.T) {
	t.Parallel()
	app := hookedShop()
	w := running(t, app.files())
	w.push("v2", hooked(app.at("v2"), dialects["gitrollout"], "v1-badimage", "v1-run100ms"))
	w.await("the migration", func(s rollout.State) bool { return len(s.Hooks) == 1 && len(w.jobs()) == 1 })
	stuck := w.state().Hooks[0].Job
	w.awaitGet("ImagePull")
	w.awaitHealthy(w.push("v3", hooked(app.at("v3"), dialects["gitrollout"], "v1-run100ms", "v1-run100ms")))
	if jobs := w.jobs(); jobs[stuck] != "" || len(jobs) != 2 {
		t.Errorf("the Jobs are %v, and %s could not start", jobs, stuck)
	}
}
