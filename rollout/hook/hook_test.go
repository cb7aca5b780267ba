package hook_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/hook"
)

// object returns an object with annotations. The parameter annotations lists key, value, key, value.
func object(kind, name string, annotations ...string) rollout.Object {
	all := map[string]any{}
	for i := 0; i < len(annotations); i += 2 {
		all[annotations[i]] = annotations[i+1]
	}
	version := map[string]string{"Job": "batch/v1", "CronJob": "batch/v1", "Workflow": "argoproj.io/v1alpha1", "Deployment": "apps/v1"}[kind]
	if version == "" {
		version = "v1"
	}
	return rollout.Object{"apiVersion": version, "kind": kind,
		"metadata": map[string]any{"name": name, "namespace": "shop", "annotations": all},
		"spec":     map[string]any{"template": map[string]any{"spec": map[string]any{}}}}
}

// TestWhen checks which hooks run in a first release, in a later release, and in a release that skips its steps.
func TestWhen(t *testing.T) {
	type times struct{ first, later, quick string }
	for annotations, want := range map[string]times{
		"gitrollout.dev/hook=before":                                         {"before", "before", ""},
		"gitrollout.dev/hook=after":                                          {"after", "after", ""},
		"gitrollout.dev/hook=abort":                                          {"abort", "abort", ""},
		"gitrollout.dev/hook=before, after":                                  {"before after", "before after", ""},
		"argocd.argoproj.io/hook=PreSync":                                    {"before", "before", ""},
		"argocd.argoproj.io/hook=PostSync,SyncFail":                          {"after abort", "after abort", ""},
		"argocd.argoproj.io/hook=Skip":                                       {"", "", ""},
		"argocd.argoproj.io/hook=PreSync,Skip":                               {"", "", ""},
		"argocd.argoproj.io/hook=PreSync,PostDelete":                         {"before", "before", ""},
		"helm.sh/hook=pre-install":                                           {"before", "", ""},
		"helm.sh/hook=pre-upgrade":                                           {"", "before", ""},
		"helm.sh/hook=pre-install,pre-upgrade":                               {"before", "before", ""},
		"helm.sh/hook=post-install":                                          {"after", "", ""},
		"helm.sh/hook=post-upgrade,test":                                     {"", "after", ""},
		"helm.sh/hook=pre-rollback":                                          {"abort", "abort", ""},
		"helm.sh/hook=test":                                                  {"", "", ""},
		"gitrollout.dev/hook=before;gitrollout.dev/hook-on=rollback":         {"", "", "before"},
		"gitrollout.dev/hook=after;gitrollout.dev/hook-on=release, rollback": {"after", "after", "after"},
		"gitrollout.dev/hook=after;argocd.argoproj.io/hook=PreSync":          {"after", "after", ""},
		"argocd.argoproj.io/hook=PreSync;helm.sh/hook=post-upgrade":          {"before", "before", ""},
		"unrelated=before":                                                   {"", "", ""},
	} {
		o := object("Job", "migrate", strings.FieldsFunc(annotations, func(r rune) bool { return r == '=' || r == ';' })...)
		at := func(r hook.Release) string {
			var whens []string
			for _, when := range []rollout.HookWhen{rollout.HookBefore, rollout.HookAfter, rollout.HookAbort} {
				if len(hook.At([]rollout.Object{o}, when, r)) > 0 {
					whens = append(whens, string(when))
				}
			}
			return strings.Join(whens, " ")
		}
		compare.CheckNamed(t, annotations, want, times{at(hook.Release{First: true}), at(hook.Release{}), at(hook.Release{Fast: true})})
		compare.CheckNamed(t, annotations+" is a hook", strings.Contains(annotations, "/hook"), hook.Is(o))
	}
}

// TestRefused checks that the error for an invalid hook names the annotation, its value and the fix.
func TestRefused(t *testing.T) {
	long := strings.Repeat("m", 50+1)
	for _, c := range []struct {
		object       rollout.Object
		field, words string
		fix          string
	}{
		{object("Job", "a", hook.Annotation, "sync"), hook.Annotation, `"sync": sync is not a time for hooks`, "abort, after, before"},
		{object("Job", "a", hook.Annotation, "before,later"), hook.Annotation, "later is not a time", "abort, after, before"},
		{object("Job", "a", "argocd.argoproj.io/hook", "Sync"), "argocd.argoproj.io/hook", "cannot run while other objects are applied",
			"PreSync"},
		{object("Job", "a", "argocd.argoproj.io/hook", "presync"), "argocd.argoproj.io/hook", "presync is not a time",
			"PostSync, PreSync, SyncFail"},
		{object("Job", "a", "helm.sh/hook", "pre-sync"), "helm.sh/hook", "pre-sync is not a time", "pre-install"},
		{object("Job", "a", hook.Annotation, "before", "gitrollout.dev/hook-weight", "first"), "gitrollout.dev/hook-weight",
			`"first": is not a whole number`,
			"the lowest is first"},
		{object("Job", "a", "helm.sh/hook", "pre-upgrade", "helm.sh/hook-weight", "x"), "helm.sh/hook-weight",
			"is not a whole number", "such as"},
		{object("Job", "a", hook.Annotation, "before", "gitrollout.dev/hook-failure", "ignore"), "gitrollout.dev/hook-failure",
			`"ignore": is not known`, "abort or continue"},
		{object("Job", "a", hook.Annotation, "before", "gitrollout.dev/hook-on", "revert"), "gitrollout.dev/hook-on", `"revert": is not known`,
			"release, rollback"},
		{object("Job", "a", hook.Annotation, "before", "gitrollout.dev/hook-interrupt", "yes"), "gitrollout.dev/hook-interrupt",
			`"yes": is not known`, "delete"},
		{object("Job", "a", hook.Annotation, "before", "gitrollout.dev/hook-log", "yes"), "gitrollout.dev/hook-log", `"yes": is not known`,
			"use record"},
		{object("Job", "a", hook.Annotation, "before", "gitrollout.dev/hook-logs", "record"), "gitrollout.dev/hook-logs",
			`"record": is not known`,
			"gitrollout.dev/hook-weight"},
		{object("Job", "a", hook.Annotation, ""), hook.Annotation, `"": no annotation says when the hook runs`, "before, after or abort"},
		{object("ConfigMap", "a", hook.Annotation, ""), hook.Annotation, `"": no annotation says when the hook runs`, "before, after or abort"},
		{object("Job", "a", "gitrollout.dev/hook-on", "rollback"), "gitrollout.dev/hook-on", `"rollback": no annotation says when the hook runs`,
			"before, after or abort"},
		{object("Job", "a", "gitrollout.dev/hooks", "before"), "gitrollout.dev/hooks", `"before": is not known`, hook.Annotation + ", "},
		{object("Job", "a", "gitrollout.dev/hok", "before"), "gitrollout.dev/hok", `"before": is not known`, hook.Annotation + ", "},
		{object("CronJob", "a", hook.Annotation, "before"), "kind", "CronJob cannot be a hook", "Job of batch/v1"},
		{object("Pod", "a", "helm.sh/hook", "pre-install"), "kind", "Pod cannot be a hook", "Job of batch/v1"},
		{object("Workflow", "a", "argocd.argoproj.io/hook", "PreSync"), "kind", "Workflow cannot be a hook", "Job of batch/v1"},
		{object("Deployment", "a", hook.Annotation, "before"), "kind", "Deployment cannot be a hook", "Job of batch/v1"},
		{object("Job", long, hook.Annotation, "before"), "metadata.name", "a hook's name may have", "shorten it"},
	} {
		_, is, err := hook.Of(c.object)
		var invalid *rollout.InvalidError
		if !is || !errors.As(err, &invalid) || !strings.Contains(invalid.Field, c.field) || !strings.Contains(invalid.Msg, c.words) ||
			!strings.Contains(invalid.Fix, c.fix) {
			t.Errorf("%v: %v, want %s: %s; %s", c.object.Map("metadata"), err, c.field, c.words, c.fix)
		}
		if got := hook.At([]rollout.Object{c.object}, rollout.HookBefore, hook.Release{}); len(got) > 0 {
			t.Errorf("%v runs: %+v", c.object.Map("metadata"), got)
		}
	}
	for _, o := range []rollout.Object{
		object("Pod", "a", "helm.sh/hook", "test"), object("Job", long),
		object("Job", long[1:], hook.Annotation, "before"), object("ConfigMap", long, hook.Annotation, "before"),
	} {
		if _, _, err := hook.Of(o); err != nil {
			t.Errorf("%v: %v", o.Map("metadata"), err)
		}
	}
}

// TestOrder checks that hooks are ordered by the weight annotation of their tool, then by name.
func TestOrder(t *testing.T) {
	objects := []rollout.Object{
		object("Job", "c", hook.Annotation, "before"), object("Job", "a", hook.Annotation, "before", "gitrollout.dev/hook-weight", "2"),
		object("Job", "b", hook.Annotation, "before", "helm.sh/hook-weight", "-9"),
		object("Job", "d", "helm.sh/hook", "pre-upgrade", "helm.sh/hook-weight", "-1"),
		object("Job", "e", "argocd.argoproj.io/hook", "PreSync", "argocd.argoproj.io/sync-wave", "1"),
		object("ConfigMap", "f", hook.Annotation, "before"),
	}
	names := rollout.Mapped(hook.At(objects, rollout.HookBefore, hook.Release{}), hook.Hook.Name)
	compare.Check(t, []string{"shop/d", "shop/b", "shop/c", "shop/f", "shop/e", "shop/a"}, names)
}

// TestJob checks that a hook's Job has a unique name and a deadline, but no TTL after which the cluster would delete it. The object in Git
// stays unchanged.
func TestJob(t *testing.T) {
	o := object("Job", "migrate", hook.Annotation, "before", "helm.sh/hook-delete-policy", "hook-succeeded")
	o.Map("spec")["ttlSecondsAfterFinished"] = int64(5)
	o.Map("metadata")["labels"] = map[string]any{"team": "shop"}
	before := o.Copy()
	h := hookOf(t, o)
	run := rollout.HookRun{Name: h.Name(), Release: "h1-7b4e2a91d0", Attempt: 2, Since: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)}
	run.Job = h.JobName(run.Release, run.Attempt)
	job := h.Job("shop", run)
	compare.CheckNamed(t, "the object in Git", before, o)
	spec := job.Map("spec")
	if job.Name() != "migrate-7b4e2a91-2" || spec["ttlSecondsAfterFinished"] != nil || spec["activeDeadlineSeconds"] != int64(1800) {
		t.Errorf("the Job is %v", job)
	}
	if labels := job.Map("metadata", "labels"); labels[hook.LabelApp] != "shop" || labels["team"] != "shop" {
		t.Errorf("the labels are %v", labels)
	}
	id := "shop h1-7b4e2a91d0 shop/migrate 2 2026-11-23T12:00:00Z"
	if known := hook.Known("shop", run); job.Annotation(hook.AnnotationID) != id || known.Annotation(hook.AnnotationID) != id ||
		known.Ref() != job.Ref() {
		t.Errorf("%v and %v, want %s", job.Map("metadata"), known, id)
	}
	if h.Kept != 3 || h.Deadline() != 30*time.Minute {
		t.Errorf("kept %d, deadline %s", h.Kept, h.Deadline())
	}
	o.Map("spec")["activeDeadlineSeconds"] = int64(60)
	delete(o.Map("metadata"), "name")
	o.Map("metadata")["generateName"] = "load-"
	if h = hookOf(t, o); h.Name() != "shop/load" || h.Deadline() != time.Minute || h.JobName("h1-7b4e2a91d0", 1) != "load-7b4e2a91-1" {
		t.Errorf("%+v", h)
	}
	bare := hook.Hook{Object: rollout.Object{"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"name": "x"}}}
	if bare.Job("shop", run).Map("spec")["activeDeadlineSeconds"] == nil {
		t.Error("a Job without a spec has no deadline")
	}
}

func hookOf(t *testing.T, o rollout.Object) hook.Hook {
	t.Helper()
	h, _, err := hook.Of(o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestNeeds checks that Needs returns the missing objects that a Job needs. It also returns all ConfigMaps that have the Job's hook
// annotation.
func TestNeeds(t *testing.T) {
	o := object("Job", "migrate", hook.Annotation, "before")
	o.Map("spec", "template")["spec"] = map[string]any{
		"serviceAccountName": "migrator", "imagePullSecrets": []any{map[string]any{"name": "pull"}},
		"containers": []any{map[string]any{"name": "c",
			"envFrom": []any{map[string]any{"configMapRef": map[string]any{"name": "env"}},
				map[string]any{"secretRef": map[string]any{"name": "senv"}}},
			"env": []any{map[string]any{"name": "A", "valueFrom": map[string]any{"configMapKeyRef": map[string]any{"name": "key", "key": "k"}}},
				map[string]any{"name": "B", "valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": "skey", "key": "k"}}}}}},
		"initContainers": []any{map[string]any{"name": "i", "envFrom": []any{map[string]any{"configMapRef": map[string]any{"name": "init"}}}}},
		"volumes": []any{map[string]any{"name": "a", "configMap": map[string]any{"name": "vol"}},
			map[string]any{"name": "b", "secret": map[string]any{"secretName": "svol"}},
			map[string]any{"name": "c", "persistentVolumeClaim": map[string]any{"claimName": "data"}},
			map[string]any{"name": "d", "projected": map[string]any{"sources": []any{map[string]any{"configMap": map[string]any{"name": "pro"}},
				map[string]any{"secret": map[string]any{"name": "spro"}}}}}},
	}
	objects := []rollout.Object{o, object("ConfigMap", "other"), object("ConfigMap", "with", hook.Annotation, "before"),
		object("ConfigMap", "later", hook.Annotation, "after")}
	for _, needed := range []struct{ kind, names string }{
		{"ConfigMap", "env key init vol pro"}, {"Secret", "pull senv skey svol spro"},
		{"ServiceAccount", "migrator"}, {"PersistentVolumeClaim", "data"},
	} {
		for _, name := range strings.Fields(needed.names) {
			objects = append(objects, object(needed.kind, name))
		}
	}
	objects = append(objects, rollout.Object{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "shop"}})
	elsewhere := object("ConfigMap", "env")
	elsewhere.Map("metadata")["namespace"] = "elsewhere"
	objects = append(objects, elsewhere)
	h := hookOf(t, o)
	had := map[rollout.Ref]rollout.Object{}
	names := func() string {
		return strings.Join(rollout.Mapped(hook.Needs(h, rollout.HookBefore, hook.Release{}, objects, had), rollout.Object.Name), " ")
	}
	compare.CheckNamed(t, "needed", "with env key init vol pro pull senv skey svol spro migrator data shop", names())
	for _, o := range objects {
		had[o.Ref()] = o
	}
	compare.CheckNamed(t, "needed with all objects present: the hook's own", "with", names())
}

// FuzzOf checks that any annotations are read without a panic, and that the Job of a valid hook has a valid name.
func FuzzOf(f *testing.F) {
	f.Add(hook.Annotation, "before,after", "gitrollout.dev/hook-on", "release")
	f.Add("argocd.argoproj.io/hook", "PreSync", "argocd.argoproj.io/sync-wave", "-1")
	f.Add("helm.sh/hook", "pre-install,test", "helm.sh/hook-weight", "x")
	f.Fuzz(func(t *testing.T, key, value, other, more string) {
		o := object("Job", "migrate", key, value, other, more)
		h, is, err := hook.Of(o)
		if err == nil && is != hook.Is(o) { // for valid annotations, Of and Is must agree
			t.Fatalf("it is a hook: %t, and as a Job %t", is, hook.Is(o))
		}
		if !is || err != nil {
			return
		}
		if job := h.Job("shop", rollout.HookRun{Job: h.JobName("h1-0123456789", 1)}); len(job.Name()) > 63 {
			t.Fatalf("the Job's name is %s", job.Name())
		}
	})
}

// TestDeadlines checks the default deadline of a hook, and that a very long deadline does not overflow.
func TestDeadlines(t *testing.T) {
	for seconds, want := range map[any]time.Duration{
		nil: 30 * time.Minute, int64(60): time.Minute, int64(math.MaxInt64): math.MaxInt32 * time.Second,
	} {
		h := hook.Hook{Object: rollout.Object{"spec": map[string]any{"activeDeadlineSeconds": seconds}}}
		compare.CheckNamed(t, fmt.Sprint(seconds), want, h.Deadline())
	}
}
