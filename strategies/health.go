package strategies

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// Without a release in flight, an app is healthy when its pods are ready and no object reports a problem. gitrollout
// records a problem after a deadline, and clears it after a minute of health, so that node drains make no commit.
const (
	healthDeadline = 10 * time.Minute // time without progress, unless a document sets a deadline
	failedDeadline = time.Minute      // for an object that reports a failure
	wellFor        = time.Minute
	takenFor       = 10 * time.Second // within this time, another manager would undo an apply
)

// Health holds since when an app and its objects are healthy or unhealthy, as this process observed.
type Health struct {
	HealthySince time.Time // zero if unhealthy
	Unhealthy    map[rollout.Ref]Unhealthy
	Lasts        string    // failures that stop no release and outlast retries: rollout.ErrOverwritten, ErrUnlabelled
	Why          string    // other failures of the last apply, also in a release, or ""
	Taken        time.Time // first successful apply after a failure; zero again after takenFor
}

// Unhealthy records when an object became unhealthy.
type Unhealthy struct {
	Since time.Time
	Ready int // peak of ready pods since then; a larger number is progress
	Left  int // pods that a restart has yet to delete, or -1 without a restart; a smaller number is progress
}

// Seen returns the health after another observation, or zero during a release, because releases have their own
// deadlines.
func (h Health) Seen(in Input) Health {
	if !isResting(in.State) || in.Observed.Workloads == nil {
		return Health{}
	}
	next := Health{Unhealthy: map[rollout.Ref]Unhealthy{}}
	if h.Taken.IsZero() || in.Now.Before(h.Taken.Add(takenFor)) {
		next.Why, next.Lasts, next.Taken = h.Why, h.Lasts, h.Taken
	}
	in.Health = next
	for _, a := range unhealthy(in) {
		seen, known := h.Unhealthy[a.ref]
		if !known || a.ready > seen.Ready || a.left >= 0 && a.left < seen.Left {
			seen = Unhealthy{Since: in.Now, Ready: a.ready}
		}
		seen.Left = a.left
		next.Unhealthy[a.ref] = seen
	}
	if next.HealthySince = h.HealthySince; len(next.Unhealthy) > 0 {
		next.HealthySince = time.Time{}
	} else if next.HealthySince.IsZero() {
		next.HealthySince = in.Now
	}
	return next
}

// Applied returns the health after an apply. The apply's errors go to Lasts and Why. Seen clears both fields when
// takenFor has passed since a successful apply.
func (h Health) Applied(lasting, other error, now time.Time) Health {
	if errors.Is(other, rollout.ErrOverwritten) { // returned by an apply without a release in flight
		lasting, other = errors.Join(other, lasting), nil
	}
	switch none := errors.New(""); {
	case lasting != nil || other != nil:
		h.Lasts, h.Why = rollout.OneLine(cmp.Or(lasting, none).Error()), rollout.OneLine(cmp.Or(other, none).Error())
		h.Taken = time.Time{}
	case h.Lasts+h.Why != "" && h.Taken.IsZero():
		h.Taken = now
	}
	return h
}

func isResting(s rollout.State) bool {
	return s.Release == nil && (s.Phase == rollout.Healthy || s.Phase == rollout.Degraded)
}

type ailment struct {
	ref      rollout.Ref
	why      string // for users; changes often
	ready    int
	left     int // see Unhealthy.Left
	deadline time.Duration
}

// Ailing describes the unhealthy objects, except during a release.
func Ailing(in Input) string {
	if !isResting(in.State) {
		return ""
	}
	return strings.Join(rollout.Mapped(unhealthy(in), ailment.text), "; ")
}

func (a ailment) text() string {
	if a.ref == (rollout.Ref{}) {
		return a.why
	}
	return fmt.Sprintf("%s %s/%s: %s", a.ref.Kind, a.ref.Namespace, a.ref.Name, a.why)
}

// unhealthy returns the app's problems, sorted by object. It counts only ready pods with the current template. A
// workload's status would also count old pods.
func unhealthy(in Input) (all []ailment) {
	for _, a := range []ailment{{why: in.Health.Lasts}, {why: in.Health.Why, deadline: failedDeadline}} {
		if a.why != "" {
			all = append(all, a)
		}
	}
	var wanted map[rollout.Workload]rollout.Hash // versions that workloads should run; empty if unknown
	if in.Source != nil && in.Source.Commit.ID == in.State.Source {
		wanted = in.Source.Templates
	}
	for w, live := range in.Observed.Workloads {
		if !isCounted(in, w) {
			continue
		}
		current := live.Current()
		if is, want := live.Hash, wanted[w]; is != want && is != "" && want != "" {
			all = append(all, ailment{ref: w.Ref(), deadline: failedDeadline,
				why: fmt.Sprintf("it runs %s and should run %s: another client has changed the object", is, want)})
			continue
		}
		if current.Ready() >= live.Replicas {
			continue
		}
		spec, _ := in.Source.Spec(w)
		deadline := cmp.Or(time.Duration(spec.ProgressDeadlineSeconds)*time.Second, healthDeadline)
		a := ailment{ref: w.Ref(), ready: current.Ready(), left: -1, deadline: deadline}
		isOf := func(r restart) bool { return r.spec.Workload == w && !in.Now.Before(r.at.Add(apart)) }
		if r, begun := rollout.Find(restarts(in), isOf); begun {
			a.left = len(r.left)
		}
		pods := "pods"
		if slices.ContainsFunc(live.Revisions, func(r rollout.Revision) bool { return !r.Current && r.Ready() > 0 }) {
			pods = "new pods"
		}
		a.why = withProblem(fmt.Sprintf("%d of %d %s are ready", a.ready, live.Replicas, pods), current.Problem)
		all = append(all, a)
	}
	for _, t := range in.Observed.Troubled {
		if w, _ := rollout.WorkloadOf(t.Ref); hasKey(in.Observed.Workloads, w) && isCounted(in, w) {
			continue
		}
		if all := in.State.Inventory; len(all) > 0 && !slices.Contains(all, t.Ref) {
			continue // the object is labelled, but not in the inventory
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

// isCounted reports whether a workload's pods affect health. Without a document, only Deployments count.
func isCounted(in Input, w rollout.Workload) bool {
	_, staged := in.Source.Spec(w)
	return staged || w.Kind == ""
}

func withHealth(in, _ Input, d Decision) Decision {
	s := &d.State
	switch {
	case d.Stale:
		return d
	case !isResting(*s):
		s.Unhealthy = ""
		return d
	}
	in.State = *s
	all := unhealthy(in)
	for _, a := range all {
		seen, known := in.Health.Unhealthy[a.ref]
		due := seen.Since.Add(a.deadline)
		switch {
		case s.Unhealthy != "" || !known:
		case a.ref == (rollout.Ref{}) && !in.Health.Taken.IsZero(): // Seen drops the failure after takenFor
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
	if well := in.Health.HealthySince; s.Unhealthy != "" && len(all) == 0 && !well.IsZero() {
		if due := well.Add(wellFor); in.Now.Before(due) {
			d.Requeue = rollout.Soonest(d.Requeue, due)
		} else {
			s.Unhealthy = ""
			d.Subject = cmp.Or(d.Subject, s.App+" is well again")
		}
	}
	return d
}
