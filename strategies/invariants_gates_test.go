package strategies_test

import (
	"math"
	"reflect"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

// fileSeen is the history of a promotion file. It holds the release attempt during which the file first appeared. For each workload, it
// holds how many of the first steps have not changed since.
type fileSeen struct {
	try  string
	upTo map[rollout.Workload]int
}

// checkGates checks that a gate opens only by a promotion for the same attempt, workload and list of steps. A change of the list opens no
// gate, and does not move users back. The check reads the Rollout documents, not the compiled plan.
func (s *sim) checkGates(in strategies.Input, d strategies.Decision) {
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
		if !moves || !had || !has || in.State.Release.Fast || workloads.IsPromoting(in.State) {
			continue
		}
		same, moved := commonSteps(old, spec), usersMoved(old, was)
		switch {
		case d.State.Source != in.State.Source:
			if p.Weight < was.Weight { // after a smaller weight, stopped pods may start again
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
		case was.Suspended: // a workload without replicas follows the others
		default:
			for i := was.Step; i < p.Step; i++ {
				if isGate(spec, i) && !isKey(in, seen, spec, i) {
					s.fail("%s: the gate at step %d is passed without its key", p.Workload, i)
				}
			}
		}
	}
}

// seeFile returns the history of the promotion file, which begins when the file is first seen.
func (s *sim) seeFile(in strategies.Input) *fileSeen {
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

// commonSteps returns how many steps at the beginning of two documents are equal, or math.MaxInt for equal documents.
func commonSteps(a, b rollout.Spec) int {
	if a.BlueGreen != nil || b.BlueGreen != nil {
		if reflect.DeepEqual(a.BlueGreen, b.BlueGreen) {
			return math.MaxInt
		}
		return 0 // a changed blue-green document differs from its first stage on
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

// usersMoved reports whether all users are on the new version, because a Service has switched.
func usersMoved(spec rollout.Spec, p rollout.Progress) bool {
	if spec.BlueGreen != nil {
		return p.Weight == 100 // a blue-green weight is 0 or 100
	}
	return p.Step > len(spec.Canary.Steps)
}

// isGate reports whether only a promotion can end the wait of a step.
func isGate(spec rollout.Spec, step int) bool {
	if spec.BlueGreen != nil {
		return !spec.BlueGreen.AutoPromotionEnabled && step == 1 // the gate follows the preview, because these documents have no analyses
	}
	if step >= len(spec.Canary.Steps) {
		return false
	}
	p := spec.Canary.Steps[step].Pause
	return p != nil && p.Duration == nil && p.Until == "" && p.Timeout == nil
}

// isKey reports whether the promotion file may open the gate of a step.
func isKey(in strategies.Input, seen *fileSeen, spec rollout.Spec, step int) bool {
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
