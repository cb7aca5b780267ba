package strategies

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

type cause struct {
	reason string
	to     string
	hook   rollout.HookRun // zero if no hook failed
	reject bool            // reject the release's hash; false after a revert or a newer version
}

// rollback routes all requests to stable immediately. New pods stay while proxies learn the routes and, if the release
// is rejected, at least for abortDelay. The app then applies the commit why.to.
func rollback(in Input, why cause) Decision {
	s := in.State
	r := &rollout.Rollback{Reject: why.reject, Routed: rollout.Second(in.Now), Drain: rollout.Second(in.Now), To: why.to}
	isLeft := func(m workloads.Staged) bool {
		return m.Live.Hash != s.StableHash(m.Workload) || m.Fresh.Pin != m.Stable.Pin && m.Fresh.Desired > 0 ||
			mayShare(m) && hasExperimentPods(in, m)
	}
	// Another process may have applied a requested abort without a record. In this case, no new pods are left to keep.
	if !workloads.IsPromoting(s) && (RequestedAbort(in) == "" || slices.ContainsFunc(stagedIn(in), isLeft)) {
		delay := settling(in)
		if why.reject {
			delay = max(delay, abortDelay(in))
		}
		if delay > 0 {
			r.Drain = rollout.NextTenth(in.Now).Add(delay)
		}
	}
	if r.Drain.Equal(r.Routed) {
		s.Source = why.to
	}
	if why.reject {
		s = rejected(in, s, *s.Release, why)
	}
	s.Hooks = pastHooks(s.Hooks)
	s.Phase, s.Reason, s.Rollback, s.Spent = rollout.Aborting, why.reason, r, spend(in, s)
	return Decision{
		State: s, Rollback: true, Requeue: laterOnly(r.Drain, in.Now),
		Subject: fmt.Sprintf("%s back to %s: %s", s.App, s.Stable.Hash, why.reason),
		Waiting: "all pods to have the stable version",
	}
}

func rejected(in Input, s rollout.State, release rollout.Release, why cause) rollout.State {
	rejection := rollout.Rejection{Hash: release.Hash, Commit: release.Commit, Reason: why.reason,
		At: rollout.Second(in.Now), Hook: why.hook.Name, Content: why.hook.Content}
	if in.Promotion != nil {
		rejection.Promotion = in.Promotion.Digest
	}
	s.Rejected = append([]rollout.Rejection{rejection}, s.Rejected...)
	if n := rollout.MaxHistory; len(s.Rejected) > n { // a soak before the dropped rejection may have the same content
		until := s.Rejected[n].At
		s.Rejected = s.Rejected[:n]
		for i := len(s.Soaked) - 1; i > 0 && !s.Soaked[i].At.After(until); i-- { // without any soak, returns skip stages
			s.Soaked = s.Soaked[:i]
		}
	}
	s.Verified = slices.DeleteFunc(slices.Clone(s.Verified), func(h rollout.Hash) bool { return h == release.Hash })
	return s
}

// abortDelay returns the longest abortScaleDownDelaySeconds. It returns 0 if both versions share a Service, because new
// pods would get requests. It returns 0 with in-place scaling, because stable pods replace new pods.
func abortDelay(in Input) (longest time.Duration) {
	for _, spec := range releaseSpecs(in) {
		p := in.plans.Of(spec)
		if p.AtOnce || spec.Scaling == rollout.InPlace {
			return 0
		}
		longest = max(longest, p.AbortDelay)
	}
	return longest
}

func decideAborting(in Input) Decision {
	if d, ok := finishRollback(in); ok {
		return d
	}
	s := in.State
	target := in.Head.Render.Release()
	if in.Promotion.OpensAll(target) && in.Promotion.Since.IsZero() && isAwaited(in) {
		return overtake(in)
	}
	texts, late := rollingBack(in)
	d := Decision{State: s, Waiting: strings.Join(texts, "; "), Requeue: laterOnly(drainAt(in), in.Now)}
	if !s.Rollback.Late && late.isOver(in.Now) {
		told := *s.Rollback
		told.Late = true
		d.State.Rollback, d.State.Reason = &told, s.Reason+"; "+late.reason
		d.Subject = fmt.Sprintf("%s still rolling back to %s: %s", s.App, s.Stable.Hash, late.reason)
	}
	d.Requeue = rollout.Soonest(d.Requeue, laterOnly(late.at, in.Now))
	if isAwaited(in) {
		d.Waiting += fmt.Sprintf("; commit %s by %s waits until then", in.Head.Commit.Short(), in.Head.Commit.Author)
	}
	if target == s.Stable.Hash && s.Source == s.Rollback.To && s.Source != in.Head.Commit.ID &&
		(in.Source == nil || in.Source.Digest != in.Head.Render.Digest) {
		// Git returned to stable meanwhile, so the newest commit becomes the target.
		to := *d.State.Rollback
		to.To = in.Head.Commit.ID
		d.State.Source, d.State.Rollback = to.To, &to
		d.Subject = fmt.Sprintf("%s back to %s as of %s", s.App, s.Stable.Hash, in.Head.Commit.Short())
	}
	return d
}

// CanOvertake reports whether a full promotion would end the rollback. A retried version cannot be promoted, because
// the promotion would replace the retry in the file.
func CanOvertake(in Input) bool {
	if in.State.Phase != rollout.Aborting || in.Head.Render == nil {
		return false
	}
	in.Promotion = &rollout.Promotion{Release: in.Head.Render.Release(), Decision: rollout.Promote, Through: rollout.Full}
	return isAwaited(in)
}

// overtake ends a rollback for a full promotion, because the stable version may be broken. The release has no steps: a
// rolling update replaces all pods, while Services select all pods.
func overtake(in Input) Decision {
	was := in
	in.State.Release, in.State.Rollback = nil, nil
	d := startRelease(in)
	if waits := started(was, d); waits.State.Phase == rollout.Aborting {
		return waits
	}
	d.State.Progress, d.State.Phase = nil, rollout.Promoting
	d.Subject = fmt.Sprintf("%s release %s, promoted by %s, overtakes the rollback",
		d.State.App, d.State.Release.Hash, promoter(in))
	return d
}

func finishRollback(in Input) (Decision, bool) {
	s := in.State
	if s.Source != s.Rollback.To {
		if in.Now.Before(drainAt(in)) {
			return Decision{}, false
		}
		s.Source = s.Rollback.To
		return Decision{State: s, Rollback: true, Subject: s.App + " removes the pods of " + string(s.Release.Hash)}, true
	}
	if texts, _ := rollingBack(in); in.Answers.Healed == nil || len(texts) > 0 {
		return Decision{}, false
	}
	if d, waits := rolledBack(in); waits {
		return d, true
	}
	s.Hooks = pastHooks(s.Hooks)
	if in.Head.Render == nil { // with an unreadable head, the app is Degraded
		if rejection, is := s.IsRejected(s.Release.Hash); is {
			s.Reason = rejectedText(rejection)
		}
		d := hold(s.AtRest(rollout.Degraded, s.Reason), rollout.ReasonOf(in.Head.Err), in.Head.Err.Error(), in.Head.Commit)
		d.Subject = s.App + " back at " + string(s.Stable.Hash)
		return d, true
	}
	in.State = s.AtRest(s.Phase, s.Reason)
	return decideAtRest(in), true
}

// drainAt returns when new pods may stop: at the recorded time, or earlier if the next release waits or new pods block
// stable pods. Proxies must always know the routes first.
func drainAt(in Input) time.Time {
	at, settle := in.State.Rollback.Drain, settling(in)
	isFull := func(m workloads.Staged) bool { // more stable pods cannot start before new pods stop
		n := workloads.Asked(in.State, m.Spec)
		return n != nil && *n > m.Live.Replicas && m.Fresh.Desired >= m.Live.Replicas
	}
	if isAwaited(in) || slices.ContainsFunc(stagedIn(in), isFull) {
		at = rollout.Soonest(at, rollout.NextTenth(in.State.Rollback.Routed).Add(settle))
	}
	if settle > 0 && !in.Applied.IsZero() && in.Applied.Add(settle).After(at) {
		return in.Applied.Add(settle)
	}
	return at
}

func isAwaited(in Input) bool {
	if _, isShut := in.Calendar.ShutAt(in.Now); in.Head.Render == nil || isShut {
		return false
	}
	target := in.Head.Render.Release()
	rejection, rejected := in.State.IsRejected(target)
	return target != "" && target != in.State.Stable.Hash && (!rejected || isTriedAgain(in, rejection))
}

func laterOnly(t, now time.Time) time.Time {
	if t.After(now) {
		return t
	}
	return time.Time{}
}

// settling returns how long proxies need to learn a rollback's routes, or 0 without a recorded route.
func settling(in Input) time.Duration {
	var longest time.Duration
	var specs []rollout.Spec
	if r := cmp.Or(in.Source, in.Head.Render); r != nil {
		specs = r.Specs
	}
	for _, m := range workloads.All(in.State, specs, in.Observed, in.plans) {
		// With dynamicStableScale, new pods need not stay, because the users' Service selects all pods. With in-place
		// scaling, new pods need not stay, because the new version's Service now selects stable pods.
		if m.Routed != nil && m.Routing != nil && !m.IsDynamic() && !m.SharesPods() {
			longest = max(longest, m.Routing.Settle)
		}
	}
	return longest
}
