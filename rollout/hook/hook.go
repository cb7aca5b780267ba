// Package hook reads hooks from annotations of gitrollout, Argo CD or Helm.
package hook

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// If an object has annotations of several tools, only the first tool listed here counts.
const (
	Annotation     = "gitrollout.dev/hook"
	annotationArgo = "argocd.argoproj.io/hook"
	annotationHelm = "helm.sh/hook"

	annotationWeight    = "gitrollout.dev/hook-weight"
	annotationFailure   = "gitrollout.dev/hook-failure"
	annotationOn        = "gitrollout.dev/hook-on"
	annotationInterrupt = "gitrollout.dev/hook-interrupt"
	annotationLog       = rollout.AnnotationHookLog
)

const (
	LabelApp     = "gitrollout.dev/hook-of" // on hooks' Jobs: the app
	AnnotationID = "gitrollout.dev/hook-id" // on hooks' Jobs: ID of the run
)

type moment struct {
	when        rollout.HookWhen
	first       bool // only in a first deployment
	later       bool // only after a first deployment
	left        bool // the word selects no time (see IsLeftOut)
	never       bool // other words of the annotation have no effect
	unsupported string
}

type dialect struct {
	annotation string
	weight     string // annotation with hooks' order
	policy     string // annotation that sets when the Job is deleted, or ""
	words      map[string]moment
}

var dialects = []dialect{
	{Annotation, annotationWeight, "", map[string]moment{
		"before": {when: rollout.HookBefore}, "after": {when: rollout.HookAfter}, "abort": {when: rollout.HookAbort},
	}},
	{annotationArgo, "argocd.argoproj.io/sync-wave", "argocd.argoproj.io/hook-delete-policy", map[string]moment{
		"PreSync": {when: rollout.HookBefore}, "PostSync": {when: rollout.HookAfter}, "SyncFail": {when: rollout.HookAbort},
		"Skip": {left: true, never: true}, "PreDelete": {left: true}, "PostDelete": {left: true},
		"Sync": {unsupported: "write PreSync to have it run before the release, or take the annotation out to have the " +
			"object applied with the others"},
	}},
	{annotationHelm, "helm.sh/hook-weight", "helm.sh/hook-delete-policy", map[string]moment{
		"pre-install": {when: rollout.HookBefore, first: true}, "pre-upgrade": {when: rollout.HookBefore, later: true},
		"post-install": {when: rollout.HookAfter, first: true}, "post-upgrade": {when: rollout.HookAfter, later: true},
		"pre-rollback": {when: rollout.HookAbort}, "post-rollback": {when: rollout.HookAbort},
		"test": {left: true}, "test-success": {left: true}, "pre-delete": {left: true}, "post-delete": {left: true},
		"crd-install": {left: true},
	}},
}

// Hook is an object with a hook annotation. Hooks that are no Jobs are applied before the Jobs of the same time.
type Hook struct {
	Object    rollout.Object
	Order     int
	Continues bool // the Job's failure does not stop the release
	Interrupt bool // see rollout.HookRun
	Kept      int  // number of past runs' Jobs to keep
	onRelease bool
	onFast    bool // runs in releases without steps (Release.Fast)
	moments   []moment
}

// IsLeftOut reports whether the object is neither applied nor run.
func (h Hook) IsLeftOut() bool {
	return !slices.ContainsFunc(h.moments, func(m moment) bool { return !m.left })
}

// IsJob reports whether the hook is a Job.
func (h Hook) IsJob() bool { return isJob(h.Object) }

func isJob(o rollout.Object) bool {
	ref := o.Ref()
	return ref.Group == "batch" && ref.Kind == "Job"
}

// Name returns the hook's namespace/name in Git.
func (h Hook) Name() string { return h.Object.Namespace() + "/" + base(h.Object) }

func base(o rollout.Object) string {
	generated, _ := o.Map("metadata")["generateName"].(string)
	return cmp.Or(o.Name(), strings.TrimRight(generated, "-."))
}

// Is reports whether the object is a hook Job.
func Is(o rollout.Object) bool {
	return isJob(o) && slices.ContainsFunc(dialects, func(d dialect) bool { return o.Annotation(d.annotation) != "" })
}

// Without returns the objects except hook Jobs.
func Without(objects []rollout.Object) []rollout.Object {
	return slices.DeleteFunc(slices.Clone(objects), Is)
}

// Of reads an object's hook annotations, and reports whether there are any.
func Of(o rollout.Object) (h Hook, is bool, err error) {
	for _, d := range dialects {
		text := o.Annotation(d.annotation)
		if text == "" {
			continue
		}
		h = Hook{Object: o, onRelease: true, Kept: 3}
		for word := range strings.SplitSeq(text, ",") {
			m, known := d.words[strings.TrimSpace(word)]
			switch {
			case !known:
				return h, true, invalid(d.annotation, text, "%s is not a time for hooks", strings.TrimSpace(word)).
					WithFix("use %s", strings.Join(d.known(), ", "))
			case m.unsupported != "":
				return h, true, invalid(d.annotation, text, "a hook cannot run while other objects are applied").
					WithFix("%s", m.unsupported)
			}
			h.moments = append(h.moments, m)
		}
		if i := slices.IndexFunc(h.moments, func(m moment) bool { return m.never }); i >= 0 {
			h.moments = h.moments[i : i+1]
		}
		if d.policy != "" && o.Annotation(d.policy) != "" {
			h.Kept = 1
		}
		return h, true, h.read(d)
	}
	if err := stray(o); err != nil {
		return Hook{Object: o}, true, err
	}
	return Hook{}, false, nil
}

func stray(o rollout.Object) error {
	for _, key := range slices.Sorted(maps.Keys(o.Map("metadata", "annotations"))) {
		switch {
		case !strings.HasPrefix(key, Annotation) && (!isJob(o) || !strings.HasPrefix(key, "gitrollout.dev/ho")):
		case slices.Contains(ours, key):
			return invalid(key, o.Annotation(key), "no annotation says when the hook runs").
				WithFix("write %s: before, after or abort, or remove this annotation to apply the object with the others",
					Annotation)
		default:
			return invalid(key, o.Annotation(key), "is not known").WithFix("use %s", strings.Join(ours, ", "))
		}
	}
	return nil
}

func (d dialect) known() (words []string) {
	for word, m := range d.words {
		if m.unsupported == "" && !m.left {
			words = append(words, word)
		}
	}
	slices.Sort(words)
	return words
}

func (h *Hook) read(d dialect) error {
	if text := h.Object.Annotation(d.weight); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			return invalid(d.weight, text, "is not a whole number").
				WithFix("write a whole number, such as -1: the lowest is first")
		}
		h.Order = n
	}
	for _, a := range []struct {
		name, fix string
		words     []string
	}{
		{annotationFailure, "use abort or continue", []string{"", "abort", "continue"}},
		{annotationInterrupt, "use delete, or take the annotation out to let the Job finish", []string{"", "delete"}},
		{annotationLog, "use record, or take the annotation out to keep logs out of Git", []string{"", "record"}},
	} {
		if text := h.Object.Annotation(a.name); !slices.Contains(a.words, text) {
			return invalid(a.name, text, "is not known").WithFix("%s", a.fix)
		}
	}
	h.Continues = h.Object.Annotation(annotationFailure) == "continue"
	h.Interrupt = h.Object.Annotation(annotationInterrupt) == "delete"
	if text := h.Object.Annotation(annotationOn); text != "" {
		h.onRelease = false
		for word := range strings.SplitSeq(text, ",") {
			switch strings.TrimSpace(word) {
			case "release":
				h.onRelease = true
			case "rollback":
				h.onFast = true
			default:
				return invalid(annotationOn, text, "is not known").WithFix("use release, rollback, or both with a comma between")
			}
		}
	}
	return h.check()
}

var ours = []string{Annotation, annotationWeight, annotationFailure, annotationOn, annotationInterrupt, annotationLog}

// maxName leaves room for release and attempt in a Job's name, which must fit into a label.
const maxName = 63 - len("-00000000-000")

func (h *Hook) check() error {
	for key := range h.Object.Map("metadata", "annotations") {
		if strings.HasPrefix(key, Annotation) && !slices.Contains(ours, key) {
			return invalid(key, h.Object.Annotation(key), "is not known").WithFix("use %s", strings.Join(ours, ", "))
		}
	}
	ref := h.Object.Ref()
	_, isWorkload := rollout.WorkloadOf(ref)
	switch {
	case h.IsLeftOut():
		return nil
	case isWorkload || slices.Contains([]string{"Pod", "CronJob", "Workflow", "ReplicaSet"}, ref.Kind):
		return &rollout.InvalidError{Field: "kind", Msg: ref.Kind + " cannot be a hook",
			Fix: "make it a Job of batch/v1, or remove its annotation to apply it with the other objects"}
	case h.IsJob() && len(base(h.Object)) > maxName:
		return rollout.Invalidf("", "metadata.name", "%s has %d characters, and a hook's name may have %d",
			base(h.Object), len(base(h.Object)), maxName).WithFix("shorten it: a Job's name also contains the release")
	}
	return nil
}

func invalid(annotation, value, format string, args ...any) *rollout.InvalidError {
	return &rollout.InvalidError{Field: "metadata.annotations[" + annotation + "]",
		Msg: fmt.Sprintf("%q: ", value) + fmt.Sprintf(format, args...)}
}

// Release decides which hooks run.
type Release struct {
	First bool // no stable version yet
	Fast  bool // the version was verified before, so steps are skipped
}

// At returns the hooks of a time, sorted by order and name. It skips invalid hooks, which package render reports.
func At(objects []rollout.Object, when rollout.HookWhen, r Release) (all []Hook) {
	for _, o := range objects {
		h, is, err := Of(o)
		if !is || err != nil || r.Fast && !h.onFast || !r.Fast && !h.onRelease {
			continue
		}
		if slices.ContainsFunc(h.moments, func(m moment) bool {
			return m.when == when && !(m.first && !r.First) && !(m.later && r.First)
		}) {
			all = append(all, h)
		}
	}
	slices.SortFunc(all, func(a, b Hook) int {
		return cmp.Or(cmp.Compare(a.Order, b.Order), cmp.Compare(a.Name(), b.Name()))
	})
	return all
}

// defaultDeadline applies without activeDeadlineSeconds.
const defaultDeadline = 30 * time.Minute

// Deadline returns the Jobs' time limit.
func (h Hook) Deadline() time.Duration {
	if seconds, is := h.Object.Map("spec")["activeDeadlineSeconds"].(int64); is {
		return time.Duration(min(seconds, math.MaxInt32)) * time.Second
	}
	return defaultDeadline
}

// JobName returns the hook's name, eight digits of the release's hash, and the attempt.
func (h Hook) JobName(release rollout.Hash, attempt int) string {
	_, digits, _ := strings.Cut(string(release), "-")
	return fmt.Sprintf("%s-%s-%d", base(h.Object), digits[:min(8, len(digits))], attempt)
}

// Job returns a run's Job, without a TTL, because the result must stay readable.
func (h Hook) Job(app string, run rollout.HookRun) rollout.Object {
	o := h.Object.Copy()
	delete(o.Map("metadata"), "generateName")
	delete(o.Map("spec"), "ttlSecondsAfterFinished")
	if _, is := o.Map("spec")["activeDeadlineSeconds"]; !is {
		o.Set(int64(defaultDeadline/time.Second), "spec", "activeDeadlineSeconds")
	}
	o.Set(run.Job, "metadata", "name")
	o.Set(app, "metadata", "labels", LabelApp)
	o.Set(ID(app, run), "metadata", "annotations", AnnotationID)
	return o
}

// Jobs returns the Job of each hook's first attempt.
func Jobs(app string, objects []rollout.Object, release rollout.Hash) (all []rollout.Object) {
	for _, o := range objects {
		if h, is, err := Of(o); is && err == nil && h.IsJob() && !h.IsLeftOut() {
			run := rollout.HookRun{Name: h.Name(), Release: release, Job: h.JobName(release, 1), Attempt: 1}
			all = append(all, h.Job(app, run))
		}
	}
	return all
}

// Content returns the hash of a hook's manifest.
func Content(o rollout.Object) rollout.Hash {
	h, _ := rollout.HashTemplate(o) // a manifest always encodes
	return h
}

// Mended reports whether a commit changed or deleted the hook whose failure rejected a release.
func Mended(r rollout.Rejection, objects []rollout.Object) bool {
	return r.Hook != "" && !slices.ContainsFunc(objects, func(o rollout.Object) bool {
		return Is(o) && (Hook{Object: o}).Name() == r.Hook && Content(o) == r.Content
	})
}

// Known returns a run's Job with name and ID but without spec, for a hook whose manifest is unknown.
func Known(app string, run rollout.HookRun) rollout.Object {
	namespace, _, _ := strings.Cut(run.Name, "/")
	return rollout.Object{"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{
		"name": run.Job, "namespace": namespace, "annotations": map[string]any{AnnotationID: ID(app, run)},
	}}
}

// ID distinguishes a run's Job from Jobs with the same name.
func ID(app string, run rollout.HookRun) string {
	app = cmp.Or(run.App, app)
	return fmt.Sprintf("%s %s %s %d %s", app, run.Release, run.Name, run.Attempt, run.Since.Format(time.RFC3339))
}
