package strategies

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/hook"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

func decideAtRest(in Input) Decision {
	if s := in.State.Stable; s == nil || isContent(s) && len(in.Head.Render.Specs) > 0 {
		in.State.Stable = standing(in)
		if in.State.Stable == nil { // without a stable version, the app is not Degraded
			in.State.Phase, in.State.Reason = rollout.Healthy, ""
		}
	} else {
		in.State = joined(in)
	}
	in = withRetry(withoutLate(in))
	s, head := in.State, in.Head.Render
	target := head.Release()
	asked := askedFor(in)
	if rejection, is := s.IsRejected(asked); is && s.Stable != nil && asked != target {
		return degraded(in, rejection) // the rejected version lacks a document, so it would have no steps
	}
	// A renamed workload counts as new, even with an equal hash.
	if target == "" || s.Stable != nil && target == s.Stable.Hash && !noneRuns(in) {
		return changed(in, follow(in))
	}
	if name, is := renamed(in); is && !in.Promotion.OpensAll(target) {
		return leftAtRest(in, rollout.HeldRenamed, fmt.Sprintf("%s, so all new pods would start together, without steps; "+
			"push the new name first and then the version, or accept this: gitrollout promote %s --full", name, in.App.Name))
	}
	if why, is := unsettled(in); is && !in.Promotion.OpensAll(target) {
		return leftAtRest(in, rollout.HeldAdoption, why)
	}
	if in.Promotion.Says(rollout.Abort, target) && !isFast(in, target) { // a closed calendar delays no abort
		if _, is := s.IsRejected(target); !is {
			return refuse(in, newRelease(in), cause{reason: abortedBy(in.Promotion)})
		}
	}
	if s.Stable == nil || noneRuns(in) {
		if d, shut := waitForWindow(in, "release "+string(target)); shut {
			return d
		}
		return started(in, startFirst(in))
	}
	if rejection, ok := s.IsRejected(target); ok {
		return degraded(in, rejection)
	}
	i := runningHook(s) // the calendar does not delay a release with started hooks
	if d, shut := waitForWindow(in, "release "+string(target)); shut && !isFast(in, target) &&
		(i < 0 || s.Hooks[i].Release != target) {
		return d
	}
	return started(in, startRelease(in))
}

func leftAtRest(in Input, reason rollout.HeldReason, why string) Decision {
	s := in.State
	if rejection, is := s.IsRejected(in.Head.Render.Release()); is && s.Stable != nil {
		return degraded(in, rejection)
	}
	return hold(s.AtRest(rollout.Healthy, ""), reason, why, in.Head.Commit)
}

// standing returns the running version of an app that had no documents, or nil if unknown. The version's hash covers
// the templates that unstaged returns. If the app has hooks and still no documents, the hash is Source.Content.
func standing(in Input) *rollout.Release {
	templates, head := unstaged(in), in.Head.Render
	hash, runs := rollout.ReleaseHash(templates), len(templates) > 0
	if in.Source != nil && len(head.Specs) == 0 && head.Release() != "" {
		hash = in.Source.Content
		runs = hash != "" && len(in.Source.Objects) > 0 // a rollback to no objects would remove all objects
	}
	if !runs {
		return nil
	}
	return &rollout.Release{Commit: in.State.Source, Hash: hash, Author: in.Source.Commit.Author,
		Subject: in.Source.Commit.Subject, Since: rollout.Second(in.Now), Templates: templates,
		Images: in.Source.Images()}
}

// unstaged returns the templates of workloads that get their first document and run only State.Source's version.
func unstaged(in Input) map[rollout.Workload]rollout.Hash {
	templates := map[rollout.Workload]rollout.Hash{}
	if in.Source == nil {
		return templates
	}
	for _, spec := range in.Head.Render.Specs {
		_, was := in.Source.Spec(spec.Workload)
		live, hash := in.Observed.Workloads[spec.Workload], in.Source.Templates[spec.Workload]
		if !was && hash != "" && in.State.StableHash(spec.Workload) == "" && live.Hash == hash && !halfway(live, hash) {
			templates[spec.Workload] = hash
		}
	}
	return templates
}

// unsettled returns why a workload would skip steps. This happens if a commit adds the workload's first document and a
// new version, while the previous version is unknown or not on all pods. A return to a version with pods is allowed.
func unsettled(in Input) (why string, is bool) {
	if in.Source == nil {
		return "", false
	}
	for _, spec := range in.Head.Render.Specs {
		w := spec.Workload
		_, was := in.Source.Spec(w)
		before, had := workloads.WorkloadOf(in.Source, w)
		live, runs := in.Observed.Workloads[w]
		older, _ := live.Find(in.Head.Render.Templates[w])
		if was || !had || !runs || in.State.StableHash(w) != "" || older.Desired > 0 {
			continue
		}
		after, _ := workloads.WorkloadOf(in.Head.Render, w)
		if reflect.DeepEqual(before.Map("spec", "template"), after.Map("spec", "template")) {
			continue
		}
		why, way := "not all its pods have the previous version in Git", "wait until they do"
		if !isObserved(w) {
			why, way = "only the document makes it a workload, so no earlier version is on record for a rollback",
				"push the document first, and the version when the app is Healthy"
		}
		return fmt.Sprintf("%s gets its Rollout document and another version in one commit, and %s; %s, or replace all "+
			"its pods together: gitrollout promote %s --full", w.Title(), why, way, in.App.Name), true
	}
	return "", false
}

// joined adds workloads with a first document to the stable version, so that the next version has steps.
func joined(in Input) rollout.State {
	s, templates := in.State, unstaged(in)
	if len(templates) == 0 {
		return s
	}
	for w, hash := range s.Stable.Templates {
		if in.Source.Templates[w] != hash {
			return s
		}
	}
	stable := *newestStable(in)
	maps.Copy(templates, stable.Templates)
	stable.Templates, stable.Hash = templates, rollout.ReleaseHash(templates)
	s.Stable, s.Verified = &stable, remember(s.Verified, stable.Hash)
	return s
}

func noneRuns(in Input) bool {
	return len(in.Head.Render.Specs) > 0 && !slices.ContainsFunc(in.Head.Render.Specs, func(spec rollout.Spec) bool {
		return in.State.StableHash(spec.Workload) != ""
	})
}

func follow(in Input) Decision {
	s, was := in.State.AtRest(rollout.Healthy, ""), in.State.Phase
	if s.Stable != nil && in.Head.Render.Release() == "" {
		s.Stable = nil // no documents are left, only plain Deployments
	}
	if in.Source == nil || in.Source.Digest != in.Head.Render.Digest {
		s.Source = in.Head.Commit.ID
	}
	if was != rollout.Healthy {
		return Decision{State: s, Subject: fmt.Sprintf("%s healthy: Git agrees with the stable version", s.App)}
	}
	if s.Source == in.State.Source {
		return Decision{State: s}
	}
	return Decision{State: s, Subject: fmt.Sprintf("%s follows %s", s.App, rollout.ShortID(s.Source))}
}

func degraded(in Input, rejection rollout.Rejection) Decision {
	s, was := in.State.AtRest(rollout.Degraded, rejectedText(rejection)), in.State.Phase
	if !isOf(in.Source, s.Stable.Hash) {
		s.Source = s.Stable.Commit
	}
	_, can := Retryable(in)
	retry := map[bool]string{true: "decision: retry", false: "its Rollout document"}[can]
	other := ""
	if rejection.Hook != "" {
		other = "another hook " + rejection.Hook + ", "
	}
	waiting := fmt.Sprintf("a revert of %s in Git, a new version, %sor %s", rejection.Hash, other, retry)
	d := Decision{State: s, Waiting: waiting}
	if was != rollout.Degraded {
		d.Subject = fmt.Sprintf("%s degraded: %s was rejected, %s serves", s.App, rejection.Hash, s.Stable.Hash)
	}
	return d
}

func rejectedText(r rollout.Rejection) string {
	return fmt.Sprintf("Git asks for %s, which was rejected: %s", r.Hash, r.Reason)
}

func withRetry(in Input) Input {
	if r, is := Rejection(in); is && isTriedAgain(in, r) {
		in.State.Rejected = notRejected(in.State.Rejected, r.Hash)
	}
	return in
}

func isTriedAgain(in Input, rejection rollout.Rejection) bool {
	p := in.Promotion
	isRetried := p.Says(rollout.Retry, rejection.Hash) && p.Digest != rejection.Promotion
	return isRetried || hook.Mended(rejection, in.Head.Render.Objects)
}

// Rejection returns the rejection of the head's version, unless the version is stable. It also finds the rejection of a
// version that lost documents (askedFor).
func Rejection(in Input) (rollout.Rejection, bool) {
	if in.Head.Render == nil {
		return rollout.Rejection{}, false
	}
	for _, hash := range []rollout.Hash{in.Head.Render.Release(), askedFor(in)} {
		if r, is := in.State.IsRejected(hash); is && (in.State.Stable == nil || in.State.Stable.Hash != hash) {
			return r, true
		}
	}
	return rollout.Rejection{}, false
}

// Retryable returns the rejection that a retry would end. While the head waits for the previous stage, the rejection
// may be of an older commit. Retryable returns false if a document is missing.
func Retryable(in Input) (rollout.Rejection, bool) {
	s, e := in.State, in.Entry
	if r, is := Rejection(in); is {
		return r, r.Hash == in.Head.Render.Release()
	}
	waits := e != nil && !e.Open && e.Held == rollout.HeldStage && in.Head.Render != nil
	if !waits || s.Phase != rollout.Degraded || s.Held != nil || len(s.Rejected) == 0 {
		return rollout.Rejection{}, false
	}
	i := slices.IndexFunc(s.Rejected, func(r rollout.Rejection) bool { // the newest rejection may be of another commit
		return strings.HasPrefix(s.Reason, rejectedText(rollout.Rejection{Hash: r.Hash}))
	})
	return s.Rejected[max(0, i)], true
}
