package strategies

import (
	"fmt"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

// withoutDocument decides for a release whose Rollout document or Deployment left Git. Aborts, reverts, full promotions
// and promotions in progress use the last applied documents. Otherwise the app is held.
func withoutDocument(in Input, held Decision) Decision {
	s, head, asked := in.State, in.Head.Commit, askedFor(in)
	switch reason := mustRetreat(in); {
	case s.Stable != nil && reason != "":
		return rollback(in, cause{reason: reason, to: s.Stable.Commit, reject: true})
	case s.Stable != nil && asked == s.Stable.Hash:
		reason := fmt.Sprintf("reverted by %s in %s", head.Author, head.Short())
		return rollback(in, cause{reason: reason, to: s.Stable.Commit})
	case in.Source != nil && asked == s.Release.Hash && workloads.IsPromoting(s):
		in.Head.Render = in.Source
		return decidePromoting(in)
	case in.Source != nil && asked == s.Release.Hash && in.Promotion.OpensAll(asked):
		in.Head.Render = followed(in)
		return advance(in)
	}
	if in.Source != nil { // the release's pods may still reach a deadline
		in.Head.Render = followed(in)
	}
	held.Requeue = heldUntil(in)
	return held
}

// followed returns in.Source with "paused" from the head, because users may edit this field.
func followed(in Input) *rollout.Render {
	r := *in.Source
	r.Specs = slices.Clone(r.Specs)
	for i := range r.Specs {
		spec, _ := in.Head.Render.Spec(r.Specs[i].Workload)
		r.Specs[i].Paused = spec.Paused
	}
	return &r
}

func renamed(in Input) (what string, is bool) {
	if in.State.Stable == nil {
		return "", false
	}
	return Renamed(in.State.Stable.Templates, in.Head.Render)
}

// Renamed describes a stable workload that left Git, and a new workload with another version. All pods of the new
// workload would start together, without steps.
func Renamed(stable map[rollout.Workload]rollout.Hash, head *rollout.Render) (what string, is bool) {
	served := map[rollout.Hash]bool{}
	var left []rollout.Workload
	for w, hash := range stable {
		if _, still := head.Templates[w]; !still {
			left, served[hash] = append(left, w), true
		}
	}
	for _, spec := range head.Specs {
		w := spec.Workload
		if len(left) == 0 || stable[w] != "" || served[head.Templates[w]] {
			continue
		}
		from := slices.MinFunc(left, rollout.Workload.Compare)
		return fmt.Sprintf("%s left Git and %s came with another version", from.Title(),
			strings.TrimPrefix(w.Title(), from.Ref().Kind+" ")), true
	}
	return "", false
}

// askedFor returns the release hash that the head would have if no workload had lost its document.
func askedFor(in Input) rollout.Hash {
	templates := in.Head.Render.Staged()
	for _, r := range []*rollout.Release{in.State.Stable, in.State.Release} {
		if r == nil {
			continue
		}
		for w := range r.Templates {
			if hash, exists := in.Head.Render.Templates[w]; exists {
				templates[w] = hash
			}
		}
	}
	return rollout.ReleaseHash(templates)
}

// LacksDocument reports whether a head lacks the document of a workload in flight. The app is then held, except during
// promotion. If the head has the stable pod templates, the release is reverted instead.
func LacksDocument(s rollout.State, head *rollout.Render) (w rollout.Workload, isHeld, isReverted bool) {
	in := Input{State: s, Head: Head{Render: head}}
	w, isHeld = lostSpec(in)
	isReverted = isHeld && askedFor(in) == s.Stable.Hash
	return w, isHeld && !isReverted && !workloads.IsPromoting(s), isReverted
}

// lostSpec returns a workload in flight whose Rollout document left Git. An apply of the workload's object would
// replace all pods.
func lostSpec(in Input) (rollout.Workload, bool) {
	p, lost := rollout.Find(in.State.Progress, func(p rollout.Progress) bool {
		_, has := in.Head.Render.Spec(p.Workload)
		return !has && hasKey(in.Head.Render.Templates, p.Workload)
	})
	return p.Workload, lost
}

func stagedIn(in Input) []workloads.Staged {
	if in.State.Release == nil {
		return nil
	}
	return workloads.All(in.State, releaseSpecs(in), in.Observed, in.plans)
}

// releaseSpecs returns the head's specs for the release in flight. If the head has another version or lacks a document,
// the specs come from in.Source.
func releaseSpecs(in Input) []rollout.Spec {
	isLost := func(p rollout.Progress) bool { _, has := in.Head.Render.Spec(p.Workload); return !has }
	switch {
	case in.Head.Render != nil && in.Head.Render.Release() == in.State.Release.Hash &&
		(in.Source == nil || !slices.ContainsFunc(in.State.Progress, isLost)):
		if keeps, _ := keepsOldList(in); keeps {
			return followed(in).Specs
		}
		return in.Head.Render.Specs
	case in.Source != nil:
		return in.Source.Specs
	}
	return nil
}
