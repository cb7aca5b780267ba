package plan

import (
	"fmt"
	"reflect"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/hook"
)

func (c comparison) hooks(a App) (all []Note) {
	if a.Change == Apply {
		return c.changedHooks()
	}
	if a.Change != First && a.Change != Release && a.Change != Fast {
		return nil
	}
	which := hook.Release{First: a.Change == First, Fast: a.Change == Fast}
	for _, t := range []struct {
		when rollout.HookWhen
		text string
	}{
		{rollout.HookBefore, "runs before the release, which does not begin if %s fails"},
		{rollout.HookAfter, "runs when all pods are new, and the release is rolled back if %s fails"},
		{rollout.HookAbort, "runs after a rollback of the release"},
	} {
		for _, h := range hook.At(c.in.Head.Render.Objects, t.when, which) {
			if !h.IsJob() {
				continue
			}
			text := strings.Replace(t.text, "%s", "the Job", 1)
			if h.Continues {
				text, _, _ = strings.Cut(text, ",")
			}
			all = append(all, Note{Level: Hint, Code: "Hook", Object: h.Object.Ref().String(),
				Message: fmt.Sprintf("Job %s %s", h.Object.Name(), text)})
			if t.when == rollout.HookBefore {
				all = append(all, c.seesOld(h, which)...)
			}
		}
	}
	return all
}

func (c comparison) changedHooks() (all []Note) {
	if s := c.in.State; s != nil && s.Release != nil || c.in.Head.Render.Release() == "" {
		return nil
	}
	for _, when := range []rollout.HookWhen{rollout.HookBefore, rollout.HookAfter} {
		for _, h := range hook.At(c.in.Head.Render.Objects, when, hook.Release{}) {
			was, had := c.before[h.Object.Ref()]
			if !h.IsJob() || !had || !hook.Is(was) || reflect.DeepEqual(was, h.Object) {
				continue
			}
			all = append(all, Note{Level: Hint, Code: "Hook", Object: h.Object.Ref().String(), Message: fmt.Sprintf(
				"Job %s has changed and therefore runs; nothing else is applied until the Job has succeeded", h.Object.Name())})
			all = append(all, c.seesOld(h, hook.Release{})...)
		}
	}
	return all
}

func (c comparison) seesOld(h hook.Hook, which hook.Release) (all []Note) {
	for _, o := range hook.Named(h, c.in.Head.Render.Objects) {
		was, had := c.before[o.Ref()]
		if !had || reflect.DeepEqual(was, o) || hook.GoesWith(o, rollout.HookBefore, which) {
			continue
		}
		all = append(all, Note{Level: AtOnce, Code: "HookSeesOld", Object: h.Object.Ref().String(),
			Message: fmt.Sprintf("Job %s runs before the release and reads %s %s, which has its old content "+
				"until the release begins", h.Object.Name(), o.Kind(), o.Name()),
			Fix: fmt.Sprintf("annotate the %s with %s: before, or use a generator, which names content by its hash",
				o.Kind(), hook.Annotation)})
	}
	return all
}
