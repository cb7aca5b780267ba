package strategies

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// An app at rest is well when every pod that it asks for is ready and no object of it says that it is not what it is to
// be. What is not well may be on its way: it has a deadline. Pods come and go, so that is on record only when it has
// been so for long, and what has been recorded is taken back when all has been well for a while: a record of each
// moment would be a commit for each node that drains.
const (
	healthDeadline = 10 * time.Minute // without progress, where no document says another one
	failedDeadline = time.Minute      // of what says that it does not get there by itself
	wellFor        = time.Minute
	takenFor       = 10 * time.Second // by the cluster, after which it is not undone at once by whoever wants otherwise
)

// Health is since when the parts of an app are as they are, as one process has seen
// it: another one waits longer. The zero value is of an app that nobody has seen.
type Health struct {
	Well   time.Time // since when all of it has been well; zero if it is not
	Unwell map[rollout.Ref]Unwell
	Why    string    // the cluster does not take what the app is to have, "" if it does
	Taken  time.Time // since when it does again, for a little while after Why; zero if it does not
}

// Unwell is since when an object is not well.
type Unwell struct {
	Since time.Time
	Ready int // most pods that were ready since: more of them are progress
}

// Seen is the health of an app after another look at it. It is not judged while a
// release moves its pods, which has deadlines of its own.
func (h Health) Seen(in Input) Health {
	if !isResting(in.State) || in.Observed.Workloads == nil {
		return Health{}
	}
	next := Health{Unwell: map[rollout.Ref]Unwell{}}
	if h.Taken.IsZero() || in.Now.Before(h.Taken.Add(takenFor)) {
		next.Why, next.Taken = h.Why, h.Taken
	}
	in.Health = next
	for _, a := range ailments(in) {
		seen, known := h.Unwell[a.ref]
		if !known || a.ready > seen.Ready {
			seen = Unwell{Since: in.Now, Ready: a.ready}
		}
		next.Unwell[a.ref] = seen
	}
	if next.Well = h.Well; len(next.Unwell) > 0 {
		next.Well = time.Time{}
	} else if next.Well.IsZero() {
		next.Well = in.Now
	}
	return next
}

// Applied is the health of an app after the cluster was asked to hold what the app is to have, with the error of that.
// All its pods may be ready while it does not, and be of what somebody else has put there.
func (h Health) Applied(err error, now time.Time) Health {
	switch {
	case err != nil:
		h.Why, h.Taken = rollout.OneLine(err.Error()), time.Time{}
	case h.Why != "" && h.Taken.IsZero():
		h.Taken = now
	}
	return h
}

func isResting(s rollout.State) bool {
	return s.Release == nil && (s.Phase == rollout.Healthy || s.Phase == rollout.Degraded)
}

// ailment is one object of an app that is not well now.
type ailment struct {
	ref      rollout.Ref
	why      string // for people: it differs each time
	ready    int    // pods
	deadline time.Duration
}

// Ailing says what of an app at rest is not well now, in words; "" if all is, or if a release moves its pods.
func Ailing(in Input) string {
	if !isResting(in.State) {
		return ""
	}
	return strings.Join(rollout.Mapped(ailments(in), ailment.text), "; ")
}

func (a ailment) text() string {
	if a.ref == (rollout.Ref{}) {
		return a.why // which names the object
	}
	return fmt.Sprintf("%s %s/%s: %s", a.ref.Kind, a.ref.Namespace, a.ref.Name, a.why)
}

// ailments are in the order of their references. Of Deployments, pods count: one
// that keeps the old version's pods says nothing else.
func ailments(in Input) (all []ailment) {
	if why := in.Health.Why; why != "" {
		all = append(all, ailment{why: why, deadline: failedDeadline})
	}
	for w, live := range in.Observed.Workloads {
		if !isCounted(in, w) {
			continue
		}
		current := live.Current()
		if is, want := live.Hash, wantedHash(in, w); is != want && is != "" && want != "" {
			all = append(all, ailment{ref: w.Ref(), deadline: failedDeadline,
				why: fmt.Sprintf("it runs %s, and %s is what it is to run: somebody else has it", is, want)})
			continue
		}
		if current.Ready() >= live.Replicas {
			continue
		}
		a := ailment{ref: w.Ref(), ready: current.Ready(), deadline: healthDeadline}
		pods := "pods"
		if slices.ContainsFunc(live.Revisions, func(r rollout.Revision) bool { return !r.Current && r.Ready() > 0 }) {
			pods = "new pods" // others are ready, too, and are not what is asked for
		}
		a.why = withProblem(fmt.Sprintf("%d of %d %s are ready", a.ready, live.Replicas, pods), current.Problem)
		if spec, staged := specOf(in, w); staged && spec.ProgressDeadlineSeconds > 0 {
			a.deadline = time.Duration(spec.ProgressDeadlineSeconds) * time.Second
		}
		all = append(all, a)
	}
	for _, t := range in.Observed.Troubled {
		if w, _ := rollout.WorkloadOf(t.Ref); hasKey(in.Observed.Workloads, w) && isCounted(in, w) {
			continue
		}
		if all := in.State.Inventory; len(all) > 0 && !slices.Contains(all, t.Ref) {
			continue // it has the app's label, and is none of what the app asks for
		}
		a := ailment{ref: t.Ref, why: t.Message, deadline: healthDeadline}
		if t.Failed {
			a.deadline = failedDeadline
		}
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b ailment) int { return a.ref.Compare(b.ref) })
	return all
}

// isCounted reports whether the pods of a workload say how it is. A StatefulSet without a document may keep pods of
// several versions for good, as its own strategy says.
func isCounted(in Input, w rollout.Workload) bool {
	_, staged := specOf(in, w)
	return staged || w.Kind == ""
}

// wantedHash is the version that a Deployment of an app at rest is to run, "" if that is not known.
func wantedHash(in Input, w rollout.Workload) rollout.Hash {
	if in.Source == nil || in.Source.Commit.ID != in.State.Source {
		return ""
	}
	return in.Source.Templates[w]
}

func specOf(in Input, w rollout.Workload) (rollout.Spec, bool) {
	if in.Source == nil {
		return rollout.Spec{}, false
	}
	return in.Source.Spec(w)
}

// withHealth records that an app at rest has not been well for longer than it may
// be, and that it is well again. What is recorded stays as it was first said.
func withHealth(in Input, d Decision) Decision {
	s := &d.State
	switch {
	case d.Stale:
		return d
	case !isResting(*s):
		s.Unhealthy = ""
		return d
	}
	in.State = *s
	all := ailments(in)
	for _, a := range all {
		seen, known := in.Health.Unwell[a.ref]
		due := seen.Since.Add(a.deadline)
		switch {
		case s.Unhealthy != "" || !known:
		case a.ref == (rollout.Ref{}) && !in.Health.Taken.IsZero(): // it may just have ended
		case in.Now.Before(due):
			d.Requeue = rollout.Soonest(d.Requeue, due)
		default:
			s.Unhealthy = a.text()
			d.Subject = cmp.Or(d.Subject, fmt.Sprintf("%s degraded: %s", s.App, s.Unhealthy))
		}
	}
	if taken := in.Health.Taken; !taken.IsZero() {
		d.Requeue = rollout.Soonest(d.Requeue, taken.Add(takenFor))
	}
	if well := in.Health.Well; s.Unhealthy != "" && len(all) == 0 && !well.IsZero() {
		if due := well.Add(wellFor); in.Now.Before(due) {
			d.Requeue = rollout.Soonest(d.Requeue, due)
		} else {
			s.Unhealthy = ""
			d.Subject = cmp.Or(d.Subject, s.App+" is well again")
		}
	}
	return d
}
