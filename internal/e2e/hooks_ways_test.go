package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// jobWatch records every Job that is created in a namespace.
type jobWatch struct {
	mu   sync.Mutex
	made map[string][]string // UIDs, by name
}

func (w *world) watchJobs() *jobWatch {
	w.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	events, err := w.cluster.Kube.BatchV1().Jobs(w.ns).Watch(ctx, metav1.ListOptions{})
	must(w.t, err)
	j, ended := &jobWatch{made: map[string][]string{}}, make(chan struct{})
	go func() {
		defer close(ended)
		for e := range events.ResultChan() {
			if job, is := e.Object.(*batchv1.Job); is && e.Type == watch.Added {
				j.mu.Lock()
				j.made[job.Name] = append(j.made[job.Name], string(job.UID))
				j.mu.Unlock()
			}
		}
	}()
	w.t.Cleanup(func() { stop(); events.Stop(); <-ended })
	return j
}

// names returns the names of a hook's created Jobs. It repeats the name of a Job that was created several times.
func (j *jobWatch) names(hook string) (all []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(j.made)) {
		if strings.HasPrefix(name, hook+"-") {
			all = append(all, slices.Repeat([]string{name}, len(j.made[name]))...)
		}
	}
	return all
}

// want checks the number of created Jobs of each hook.
func (j *jobWatch) want(t *testing.T, when string, want map[string]int) {
	t.Helper()
	got := map[string]int{}
	for hook := range want {
		got[hook] = len(j.names(hook))
	}
	compare.CheckNamed(t, "Jobs that were made "+when, want, got)
}

// wantOneEach checks that two releases have created two Jobs of each hook, one per release.
func (j *jobWatch) wantOneEach(t *testing.T, hooks ...string) {
	t.Helper()
	for _, hook := range hooks {
		if jobs := j.names(hook); len(jobs) != 2 || jobs[0] == jobs[1] {
			t.Errorf("of %s the Jobs %v were made, want one for each of two releases", hook, jobs)
		}
	}
}

// job returns the manifest of a hook's Job with the given name, image tag and annotations. spec has further lines of the Job's spec.
func job(name, tag, annotations, spec string) string {
	return fmt.Sprintf(`---
apiVersion: batch/v1
kind: Job
metadata: {name: %[1]s, annotations: {%[3]s}}
spec:
  backoffLimit: 0
  ttlSecondsAfterFinished: 1
%[4]s  template: {spec: {restartPolicy: Never, containers: [{name: %[1]s, image: "%[1]s:%[2]s"}]}}
`, name, tag, annotations, spec)
}

func withJobs(app shop, jobs ...string) map[string]string {
	app.more = map[string]string{"hooks.yaml": strings.Join(jobs, "")}
	return app.files()
}

func hookedShop() shop {
	return newShop(2, "scaling: surge", "setWeight: 50")
}

// TestTwoReconcilersMakeOneJob checks that two processes without leader election create each Job of two releases only once.
func TestTwoReconcilersMakeOneJob(t *testing.T) {
	t.Parallel()
	app := hookedShop()
	w := newWorld(t, app.files())
	made := w.watchJobs()
	w.start()
	w.twin().start()
	w.awaitHealthy(w.repo.Head())
	for _, version := range []string{"v2", "v3"} {
		w.awaitHealthy(w.push(version, withJobs(app.at(version),
			job("migrate", "v1-run300ms", "gitrollout.dev/hook: before", ""),
			job("check", "v1-run300ms", "gitrollout.dev/hook: after", ""))))
	}
	made.wantOneEach(t, "migrate", "check")
	for _, run := range w.state().Hooks {
		if run.Phase != rollout.HookSucceeded || run.Attempt != 1 {
			t.Errorf("on record: %+v", run)
		}
	}
}

// TestHookInterrupted checks that a newer push deletes the running Job if the hook's annotation allows the deletion. The Job is not created
// again.
func TestHookInterrupted(t *testing.T) {
	t.Parallel()
	app := hookedShop()
	w := newWorld(t, app.files())
	made := w.watchJobs()
	w.start().awaitHealthy(w.repo.Head())
	const interrupt = `gitrollout.dev/hook: before, gitrollout.dev/hook-interrupt: delete`
	w.push("v2", withJobs(app.at("v2"), job("migrate", "v1-run1h", interrupt, "")))
	s := w.await("the migration", func(s rollout.State) bool { return len(s.Hooks) == 1 && len(w.jobs()) == 1 })
	w.awaitHealthy(w.push("v3", withJobs(app.at("v3"), job("migrate", "v1-run100ms", interrupt, ""))))
	if jobs := made.names("migrate"); len(jobs) != 2 || w.jobs()[s.Hooks[0].Job] != "" {
		t.Errorf("the Jobs %v were made, and %v are there; %s makes room", jobs, w.jobs(), s.Hooks[0].Job)
	}
	if first := w.state().Hooks[0]; first.Phase != rollout.HookFailed || first.Message != "deleted for a newer release" {
		t.Errorf("on record: %+v", first)
	}
	w.pods.wantStarted(t, map[string]int{"v2": 0})
}

// TestHooksOfManyReleases checks that a hook's newest three Jobs exist after several releases, although their TTL has passed. With a
// deletion policy, only the hook's newest Job exists. A revert runs only the hook for rollbacks. A commit that changes only a hook runs
// only this hook.
func TestHooksOfManyReleases(t *testing.T) {
	t.Parallel()
	app := hookedShop()
	at := func(version, check string) map[string]string {
		return withJobs(app.at(version), job("migrate", "v1-run100ms", "gitrollout.dev/hook: before", ""),
			job("check", check, "argocd.argoproj.io/hook: PostSync, argocd.argoproj.io/hook-delete-policy: HookSucceeded", ""),
			job("restore", "v1-run100ms", "gitrollout.dev/hook: before, gitrollout.dev/hook-on: rollback", ""))
	}
	w := newWorld(t, at("v1", "v1-run100ms"))
	made := w.watchJobs()
	w.start().awaitHealthy(w.repo.Head())
	var last string
	for _, version := range []string{"v2", "v3", "v4", "v5"} {
		last = w.push(version, at(version, "v1-run100ms"))
		w.awaitHealthy(last)
	}
	time.Sleep(2 * time.Second) // enough for the TTL controller
	kept := map[string]int{}
	for name, is := range w.jobs() {
		kept[name[:strings.Index(name, "-")]]++
		if is != "complete" {
			t.Errorf("Job %s %s", name, is)
		}
	}
	compare.CheckNamed(t, "Jobs that are kept after five releases", map[string]int{"migrate": 3, "check": 1}, kept)
	made.want(t, "after five releases", map[string]int{"migrate": 5, "check": 5})
	w.repo.Revert(last)
	w.await("v4 again", func(s rollout.State) bool {
		return s.Phase == rollout.Healthy && s.Release == nil && s.Stable.Subject != "v5" && s.Held == nil
	})
	made.want(t, "once a version that served before is back", map[string]int{"migrate": 5, "check": 5, "restore": 1})
	alone := w.push("another check", at("v4", "v1-run200ms"))
	w.await("followed", func(s rollout.State) bool { return s.Source == alone && s.Held == nil && s.Phase == rollout.Healthy })
	made.want(t, "once a hook has changed alone", map[string]int{"migrate": 5, "check": 6, "restore": 1})
	w.pods.wantStarted(t, map[string]int{"v4": 4}) // 2 at first, and 2 after the revert
}

// TestHookThatHangs checks a migration that exceeds its deadline, and a migration that exceeds its retries. The
// release does not start, no new pod is created, and gitrollout proposes a revert. The hook's record has the reason.
func TestHookThatHangs(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ tag, spec, says string }{
		"hangs":               {"v1-run1h", "  activeDeadlineSeconds: 2\n", "active longer than specified deadline"},
		"crashes three times": {"v1-crash", "  backoffLimit: 2\n", "reached the specified backoff limit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app := hookedShop()
			w := running(t, app.files())
			migrate := job("migrate", test.tag, "gitrollout.dev/hook: before", test.spec)
			if strings.Contains(test.spec, "backoffLimit") {
				migrate = strings.Replace(migrate, "  backoffLimit: 0\n", "", 1)
			}
			w.push("v2", withJobs(app.at("v2"), migrate))
			s := w.await("the verdict", func(s rollout.State) bool { return s.Phase == rollout.Degraded })
			if w.repo.Ref("gitrollout/revert/test/"+w.app) == "" {
				t.Error("the verdict is on record, and no revert is proposed")
			}
			if run := s.Hooks[0]; run.Phase != rollout.HookFailed || !strings.Contains(run.Message, test.says) {
				t.Errorf("on record: %+v, want %s", run, test.says)
			}
			if n := w.pods.count("v2"); n > 0 || len(w.jobs()) != 1 {
				t.Errorf("%d pods of v2 were started, and the Jobs are %v", n, w.jobs())
			}
		})
	}
}

// TestHookSeesWhatWasThere checks the content that a migration reads from a ConfigMap with a fixed name: the new content if
// the ConfigMap is also a hook, or else the old content. A ConfigMap that does not exist yet is applied before the migration.
func TestHookSeesWhatWasThere(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ annotation, seen string }{
		"an object like others": {"", "v1"},
		"a hook, too":           {"  annotations: {gitrollout.dev/hook: before}\n", "v2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app := hookedShop()
			at := func(version, tag string, more ...string) map[string]string {
				migrate := strings.Replace(job("migrate", tag, "gitrollout.dev/hook: before", ""), "containers: [{",
					"containers: [{envFrom: [{configMapRef: {name: settings}}, {configMapRef: {name: more, optional: true}}], ", 1)
				return withJobs(app.at(version), append(more, migrate, "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\n"+
					test.annotation+"data: {version: "+version+"}\n")...)
			}
			w := running(t, at("v1", "v1-run100ms"))
			w.push("v2", at("v2", "v1-run1h", "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\n"))
			s := w.await("the migration", func(s rollout.State) bool {
				return len(s.Hooks) == 2 && len(w.jobs()) == 2
			})
			settings := w.kubectl("get", "configmap", "settings", "-o", "jsonpath={.data.version}")
			compare.CheckNamed(t, "settings while the migration runs", test.seen, settings)
			w.kubectl("get", "configmap", "more") // it was missing, and the migration refers to it
			if n := w.pods.count("v2"); n > 0 || s.Release != nil {
				t.Errorf("%d pods of v2 while the migration runs, release %+v", n, s.Release)
			}
		})
	}
}

// TestMigrationOfArgoCD runs hooks with the annotations of Argo CD's documentation: a migration with a fixed name, a
// sync wave, a deletion policy and a TTL, and a notification with a generated name.
func TestMigrationOfArgoCD(t *testing.T) {
	t.Parallel()
	const jobs = `apiVersion: batch/v1
kind: Job
metadata:
  name: db-migrate
  annotations:
    argocd.argoproj.io/hook: PreSync
    argocd.argoproj.io/hook-delete-policy: HookSucceeded
    argocd.argoproj.io/sync-wave: '-1'
spec:
  ttlSecondsAfterFinished: 1
  backoffLimit: 1
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: client
        image: 'client:11.5'
        imagePullPolicy: Always
        env:
        - {name: DATABASE, value: db}
        - {name: LOCALCLUSTER_RUN_FOR, value: 100ms}
        command: [psql, '-h=db', '-f preload.sql']
---
apiVersion: batch/v1
kind: Job
metadata:
  generateName: tell-
  annotations:
    argocd.argoproj.io/hook: PostSync
    argocd.argoproj.io/hook-delete-policy: HookSucceeded
spec:
  backoffLimit: 2
  template:
    spec:
      restartPolicy: Never
      containers:
      - name: tell
        image: 'tell:1-run100ms'
        command: [curl, -X, POST, 'https://example.com/hook']
`
	app := hookedShop()
	w := newWorld(t, withJobs(app, jobs))
	made := w.watchJobs()
	w.start().awaitHealthy(w.repo.Head())
	w.awaitHealthy(w.push("v2", withJobs(app.at("v2"), jobs)))
	made.wantOneEach(t, "db-migrate", "tell")
	time.Sleep(2 * time.Second)
	if jobs := w.jobs(); len(jobs) != 2 {
		t.Errorf("the Jobs are %v, want the newest of each hook", jobs)
	}
}
