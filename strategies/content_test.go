package strategies_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/hook"
	"gitrollout.dev/gitrollout/simulate/kube"
	"gitrollout.dev/gitrollout/strategies"
)

// contentWorld simulates an app without Rollout documents, the app's Jobs, and the content of its ConfigMap in the cluster.
type contentWorld struct {
	*loop
	t       *testing.T
	config  string
	made    []string        // created Jobs, oldest first
	fail    map[string]bool // hooks whose Jobs fail
	records int
}

func newContentWorld(t *testing.T, hooks ...string) *contentWorld {
	first := source{workloads: []staged{{spec: plainWeb(2), version: "v1", plain: true}}, hooks: contentHooks(hooks...)}
	w := &contentWorld{loop: newLoop(newHistory(first), newKube()), t: t, fail: map[string]bool{}}
	w.fate = func(job string) rollout.JobState {
		name, _, _ := strings.Cut(strings.TrimPrefix(job, "shop/"), "-")
		if w.fail[name] {
			return rollout.JobState{Failed: true, Message: "BackoffLimitExceeded"}
		}
		return rollout.JobState{Complete: true}
	}
	w.madeJob = func(j strategies.HookJob) { w.made = append(w.made, w.config+":"+j.Object.Name()) }
	w.applied = func(_ rollout.State, objects []rollout.Object) {
		for _, o := range objects {
			if hook.Is(o) {
				t.Errorf("%s is applied", o.Name())
			} else if o.Kind() == "ConfigMap" {
				w.config = o.Map("data")["n"].(string)
			}
		}
	}
	w.commits = func(_, _ rollout.State, _ string) { w.records++ }
	return w
}

// contentHooks returns Jobs with Helm's annotations from texts such as check=post-upgrade.
func contentHooks(hooks ...string) (all []rollout.Object) {
	for _, h := range hooks {
		name, when, _ := strings.Cut(h, "=")
		all = append(all, jobOf(name, map[string]any{"helm.sh/hook": when}))
	}
	return all
}

// content returns a change that sets the ConfigMap's content and the Deployment's version.
func content(config int, version string) func(*source) {
	return func(s *source) { s.config, s.workloads[0].version = config, version }
}

// push pushes a change to Git and advances the clock by a minute. It returns the new Jobs' names. Each name is prefixed with the
// ConfigMap's content at the creation of the Job.
func (w *contentWorld) push(change func(*source)) string {
	w.git.push(change)
	return w.settle()
}

func (w *contentWorld) settle() string {
	w.made = nil
	for range 12 {
		w.kube.Now = w.kube.Now.Add(5 * time.Second)
		if !w.rest() {
			w.t.Fatalf("it does not come to rest: %s", dump(w.state))
		}
	}
	for i, job := range w.made { // remove the digest from the name
		parts := strings.Split(job, "-")
		w.made[i] = strings.Join(slices.Delete(parts, len(parts)-2, len(parts)-1), "-")
	}
	return strings.Join(w.made, " ")
}

func (w *contentWorld) is(made, wantMade string, phase rollout.Phase, config, version string) {
	w.t.Helper()
	live := kube.VersionOf(w.kube.Deployments[web].Template)
	if made != wantMade || w.state.Phase != phase || w.config != config || live != version {
		w.t.Errorf("Jobs %q, %s, configuration %s, %s; want %q, %s, %s, %s\nheld %+v, %s", made, w.state.Phase, w.config, live,
			wantMade, phase, config, version, w.state.Held, w.state.Reason)
	}
}

const allTimes = "migrate=pre-install,pre-upgrade"

// TestContentHooks checks that hooks of an app without Rollout documents run once for each content. Hooks before a change see the old
// content, and hooks after the change see the whole new content. If a hook fails, the old content stays or is restored.
func TestContentHooks(t *testing.T) {
	w := newContentWorld(t, allTimes, "load=pre-install", "check=post-upgrade", "undo=post-rollback")
	w.is(w.settle(), ":load-1 :migrate-1", rollout.Healthy, "0", "v1")
	if s := w.state; s.Stable == nil || !strings.HasPrefix(string(s.Stable.Hash), "c1-") || s.Release != nil {
		t.Errorf("stable is %+v", s.Stable)
	}
	w.is(w.push(content(1, "v1")), "0:migrate-1 1:check-1", rollout.Healthy, "1", "v1")
	w.is(w.push(content(1, "v2")), "1:migrate-1 1:check-1", rollout.Healthy, "1", "v2")

	// A manual change is drift, which gitrollout undoes.
	w.kube.Deployments[web].Replicas = 1
	w.is(w.settle(), "", rollout.Healthy, "1", "v2")
	other := &rollout.Promotion{Release: "h1-other", Decision: rollout.Hold}
	w.is(w.push(func(s *source) { s.promotion = other }), "", rollout.Healthy, "1", "v2")

	w.fail["migrate"] = true
	w.is(w.push(content(2, "v3")), "1:migrate-1", rollout.Degraded, "1", "v2")
	if r, is := strategies.Rejection(w.input(w.state, true)); !is || r.Hook != "shop/migrate" {
		t.Errorf("rejected: %+v", r)
	}
	w.is(w.settle(), "", rollout.Degraded, "1", "v2")
	delete(w.fail, "migrate")
	w.is(w.push(func(s *source) { s.hooks[0] = s.hooks[0].Copy(); s.hooks[0].Map("spec")["completions"] = int64(2) }),
		"1:migrate-1 2:check-1", rollout.Healthy, "2", "v3")

	w.fail["check"] = true
	count := w.madeJob
	w.kube.Fate = func(string) kube.Lifetime { return kube.Lifetime{Ready: 3 * time.Second} }
	w.madeJob = func(j strategies.HookJob) {
		live := w.kube.Observe().Workloads[web]
		if count(j); !live.Complete {
			t.Errorf("%s is made while pods of another version are there", j.Object.Name())
		}
	}
	w.is(w.push(content(3, "v4")), "2:migrate-1 3:check-1 2:undo-1", rollout.Degraded, "2", "v3")
	delete(w.fail, "check")
	w.is(w.push(content(2, "v3")), "", rollout.Healthy, "2", "v3")
	// An earlier release had this content with other hooks, so the hooks run.
	w.is(w.push(content(1, "v2")), "2:migrate-1 1:check-1", rollout.Healthy, "1", "v2")
	// An earlier release had this content with the same hooks, so no hook runs.
	w.is(w.push(content(2, "v3")), "", rollout.Healthy, "2", "v3")
	w.is(w.push(func(s *source) { s.hooks, s.config = nil, 5 }), "", rollout.Healthy, "5", "v3")
	if w.state.Stable != nil {
		t.Errorf("without hooks stable is %+v", w.state.Stable)
	}
}

// TestContentHooksFailAtFirst checks that nothing is applied if a hook of the first content fails, and that the next content runs its
// hooks.
func TestContentHooksFailAtFirst(t *testing.T) {
	w := newContentWorld(t, allTimes)
	w.fail["migrate"] = true
	if made := w.settle(); made != ":migrate-1" || w.config != "" || len(w.kube.Deployments) > 0 ||
		w.state.Held == nil || w.state.Held.Reason != rollout.HeldHookFailed {
		t.Errorf("Jobs %s, %s, held %+v, configuration %q", made, w.state.Phase, w.state.Held, w.config)
	}
	delete(w.fail, "migrate")
	w.is(w.push(content(1, "v1")), ":migrate-1", rollout.Healthy, "1", "v1")
}

// TestContentHooksOfWhatRuns checks that a failed hook changes nothing in an app that ran without hooks before. If the state is lost, hooks
// of a first deployment run only if the app differs from Git.
func TestContentHooksOfWhatRuns(t *testing.T) {
	w := newContentWorld(t)
	w.is(w.settle(), "", rollout.Healthy, "0", "v1")
	w.fail["migrate"] = true
	w.is(w.push(func(s *source) { s.config, s.hooks = 1, contentHooks(allTimes, "load=pre-install") }), "0:migrate-1",
		rollout.Degraded, "0", "v1")
	delete(w.fail, "migrate")
	w.is(w.push(content(2, "v1")), "0:migrate-1", rollout.Healthy, "2", "v1")

	w.state = rollout.State{} // the recorded state is lost, or another tool managed the app until now
	w.is(w.settle(), "", rollout.Healthy, "2", "v1")
	if w.state.Stable == nil || w.state.Stable.Hash != w.git.at(w.git.headID()).Release() {
		t.Errorf("taken over: stable %+v", w.state.Stable)
	}
	w.state = rollout.State{}
	w.is(w.push(version("v2")), "2:load-1 2:migrate-1", rollout.Healthy, "2", "v2")
}

// TestContentOfAnOlderProgram checks that no hook runs for content that an older version of gitrollout applied. That version ignored or
// refused hooks.
func TestContentOfAnOlderProgram(t *testing.T) {
	w := newContentWorld(t, allTimes)
	w.settle()
	w.state.Stable, w.state.Verified, w.state.Hooks = nil, nil, nil
	w.is(w.settle(), "", rollout.Healthy, "0", "v1")
	w.is(w.push(content(1, "v1")), "0:migrate-1", rollout.Healthy, "1", "v1")
}

// TestContentThatDoesNotServe checks content whose pods never become ready. The hooks after the change do not run, and after the deadline
// the app is Stalled. Newer content does not wait for these pods.
func TestContentThatDoesNotServe(t *testing.T) {
	w := newContentWorld(t, allTimes, "check=post-upgrade", "undo=post-rollback")
	w.settle()
	w.kube.Fate = func(version string) kube.Lifetime { return kube.Lifetime{Never: version == "v2"} }
	w.is(w.push(version("v2")), "0:migrate-1", rollout.Promoting, "0", "v2")
	d := strategies.Decide(w.input(w.state, true))
	if want := "Deployment shop/web: 0 of 2 new pods are ready"; !strings.HasPrefix(d.Waiting, want) {
		t.Errorf("waits for %q, want %q", d.Waiting, want)
	}
	w.kube.Now = w.kube.Now.Add(10 * time.Minute)
	w.is(w.settle(), "", rollout.Stalled, "0", "v2")
	if want := "no progress for 600s at promote: Deployment shop/web: 0 of 2"; !strings.HasPrefix(w.state.Reason, want) {
		t.Errorf("stalled: %q, want %q", w.state.Reason, want)
	}
	w.is(w.push(version("v3")), "0:undo-1 0:migrate-1 0:check-1", rollout.Healthy, "0", "v3")
}

// TestContentWithADocument checks an app with hooks that first gets a Rollout document and then loses it. State.Stable lists the workload
// after the first change, and no workload after the second.
func TestContentWithADocument(t *testing.T) {
	w := newContentWorld(t, allTimes)
	w.settle()
	w.is(w.push(func(s *source) { s.workloads[0].plain = false }), "", rollout.Healthy, "0", "v1")
	if s := w.state.Stable; s == nil || len(s.Templates) != 1 {
		t.Errorf("stable is %+v", s)
	}
	w.is(w.push(version("v2")), "0:migrate-1", rollout.Healthy, "0", "v2")
	w.is(w.push(func(s *source) { s.workloads[0].plain = true }), "0:migrate-1", rollout.Healthy, "0", "v2")
	if s := w.state.Stable; s == nil || len(s.Templates) != 0 {
		t.Errorf("stable is %+v", s)
	}
}

// TestContentWithoutHooks checks that an app without Rollout documents or hooks records one state for each content. The state has no field
// that only releases or hooks need.
func TestContentWithoutHooks(t *testing.T) {
	w := newContentWorld(t)
	w.settle()
	for i := range 3 {
		w.push(content(i+1, "v1"))
		w.push(func(s *source) {
			s.promotion = &rollout.Promotion{Release: "h1-other", Decision: rollout.Hold, At: fmt.Sprint(i)}
		})
	}
	want := rollout.State{App: "shop", Path: testApp.Path, Phase: rollout.Healthy, Source: commitID(5), Inventory: w.state.Inventory}
	if !w.state.Equal(&want) || w.records != 4 || w.config != "3" {
		t.Errorf("%d records, configuration %s: %s", w.records, w.config, dump(w.state))
	}
}
