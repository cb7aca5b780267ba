package strategies

import (
	"math"
	"reflect"

	"gitrollout.dev/gitrollout/rollout"
)

// fileSeen is what the invariants remember of a promotion file: the try at which
// it was there first, and how many of each workload's steps have been the same
// since.
type fileSeen struct {
	try  string
	upTo map[rollout.Workload]int
}

// checkGates holds that nothing lets a release pass but what may: a gate is passed
// by the promotion of this try, of this workload and of this list of steps alone,
// a changed list passes nothing, and users who were moved are not moved back. It
// reads the user's documents, and not what strategies makes of them.
func (s *sim) checkGates(in Input, d Decision) {
	if in.State.Release == nil || in.Source == nil {
		return
	}
	seen := s.seeFile(in)
	if releaseID(in.State) != releaseID(d.State) || d.State.Phase == rollout.Aborting || in.State.Phase == rollout.Aborting {
		return
	}
	for _, p := range d.State.Progress {
		was, moves := in.State.ProgressOf(p.Workload)
		old, had := in.Source.Spec(p.Workload)
		spec, has := s.specAt(d.State.Source, p.Workload)
		if !moves || !had || !has || in.State.Release.Fast || isPromoting(in.State) {
			continue
		}
		same, moved := commonSteps(old, spec), usersMoved(old, was)
		switch {
		case d.State.Source != in.State.Source:
			if p.Weight < was.Weight { // pods go, and come again
				s.watch(p.Workload).disturbed = true
			}
			for _, f := range s.files {
				if n, limited := f.upTo[p.Workload]; same < n || !limited {
					f.upTo[p.Workload] = same
				}
			}
			if p.Step > min(was.Step, same) && !moved {
				s.fail("%s: other steps take it from step %d to %d, and the lists part at %d", p.Workload, was.Step, p.Step, same)
			}
			if moved && p.Step < p.Of && !usersMoved(spec, p) {
				s.fail("%s: users were on the new version, and are moved back to step %d", p.Workload, p.Step)
			}
		case moved:
		case was.Suspended: // a workload without pods goes along with the others
		default:
			for i := was.Step; i < p.Step; i++ {
				if isGate(spec, i) && !isKey(in, seen, spec, i) {
					s.fail("%s: the gate at step %d is passed without its key", p.Workload, i)
				}
			}
		}
	}
}

// seeFile notes when the promotion file was there first.
func (s *sim) seeFile(in Input) *fileSeen {
	if in.Promotion == nil {
		return nil
	}
	if s.files == nil {
		s.files = map[string]*fileSeen{}
	}
	f := s.files[in.Promotion.Digest]
	if f == nil && in.Promotion.Release == in.State.Release.Hash {
		f = &fileSeen{try: releaseID(in.State), upTo: map[rollout.Workload]int{}}
		s.files[in.Promotion.Digest] = f
	}
	return f
}

func (s *sim) specAt(commit string, w rollout.Workload) (rollout.Spec, bool) {
	r := s.git.at(commit)
	if r == nil {
		return rollout.Spec{}, false
	}
	return r.Spec(w)
}

// commonSteps is how many steps two documents have in common at their beginning;
// more than there are if they ask for the same.
func commonSteps(a, b rollout.Spec) int {
	if a.BlueGreen != nil || b.BlueGreen != nil {
		if reflect.DeepEqual(a.BlueGreen, b.BlueGreen) {
			return math.MaxInt
		}
		return 0 // at its preview, or wherever nothing has changed
	}
	for i := range max(len(a.Canary.Steps), len(b.Canary.Steps)) {
		if i >= len(a.Canary.Steps) || i >= len(b.Canary.Steps) {
			return i
		}
		one, other := a.Canary.Steps[i], b.Canary.Steps[i]
		one.Name, other.Name = "", ""
		if !reflect.DeepEqual(one, other) {
			return i
		}
	}
	return math.MaxInt
}

// usersMoved reports whether all users have the new version already: behind the
// switch of a blue-green release, or of a canary's Service.
func usersMoved(spec rollout.Spec, p rollout.Progress) bool {
	if spec.BlueGreen != nil {
		return p.Weight == 100 // it has no other weight than 0 and this
	}
	return p.Step > len(spec.Canary.Steps)
}

// isGate reports whether a step waits for a promotion alone.
func isGate(spec rollout.Spec, step int) bool {
	if spec.BlueGreen != nil {
		return !spec.BlueGreen.AutoPromotionEnabled && step == 1 // without analyses, behind the preview
	}
	if step >= len(spec.Canary.Steps) {
		return false
	}
	p := spec.Canary.Steps[step].Pause
	return p != nil && p.Duration == nil && p.Until == "" && p.Timeout == nil
}

// isKey reports whether the promotion file is the key of a gate.
func isKey(in Input, seen *fileSeen, spec rollout.Spec, step int) bool {
	p := in.Promotion
	if p == nil || seen == nil || p.Release != in.State.Release.Hash || seen.try != releaseID(in.State) {
		return false
	}
	if p.Through == rollout.Full {
		return true
	}
	names := []string{"preview", "promotion"}
	if spec.Canary != nil {
		names = nil
		for _, s := range spec.Canary.Steps {
			names = append(names, s.Name)
		}
	}
	last, found := p.Last(spec.Workload, append(names, "", "", ""))
	limit, limited := seen.upTo[spec.Workload]
	return found && step <= last && (!limited || last < limit)
}
