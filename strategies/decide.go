package strategies

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/cohort"
	"gitrollout.dev/gitrollout/strategies/plan"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

// Input holds the facts for a decision about an app.
type Input struct {
	Now       time.Time
	App       rollout.App
	Head      Head
	Source    *rollout.Render    // the render at State.Source; nil if unreadable
	State     rollout.State      // the recorded state; zero without a record
	Pending   *Decision          // the rollback that led to State; nil once Git has the record
	Handed    *rollout.State     // the newest state whose push has not finished, or nil
	Promotion *rollout.Promotion // nil without a file
	Observed  rollout.Observed
	Runs      []rollout.AnalysisRun // State.Analyses, with all measurements since State was recorded
	Ends      bool                  // the process ends next, so all measurements are recorded now
	Calendar  rollout.Calendar      // when the app's releases may advance
	Health    Health                // when the app and its objects became healthy or unhealthy
	Applied   time.Time             // when the present routes were applied; zero if unknown
	Left      *rollout.Render       // the render of the abandoned release or of Watch.Former; nil if unreadable
	Unread    bool                  // the commit of Left is being read
	Answers   Answers               // answers to the Ask of earlier decisions
	Entry     *cohort.Entry         // whether the app may take a change that many apps share; nil if not needed
	Place     *rollout.Place        // place in the head's shared change, for views; nil without a shared change
	Stage     *rollout.Stage        // the cluster's stage, or nil
	plans     plan.Cache
	unshares  bool // requests to an experiment must end before the step ends
}

// Head is the newest commit of the users' branch, with one app's render.
type Head struct {
	Commit rollout.Commit
	Render *rollout.Render // nil if Err is set
	Err    error           // why the render or the promotion file is unusable
}

// Decision holds the next state and the actions that lead to it.
type Decision struct {
	State    rollout.State
	Subject  string    // commit subject; "" without a change
	Rollback bool      // State is applied before it is recorded in Git
	Requeue  time.Time // time of the next decision; zero: no timer
	Waiting  string    // for users: the awaited condition, or ""
	Measure  []Measure
	Stale    bool // the cluster has objects of a newer state, so nothing is applied

	Ask *Ask
}

// Decide returns an app's next state, with at most one transition. The caller answers each Ask and decides again:
//
//	for d.Ask != nil { in = answer(in, d.Ask); d = Decide(in) }
//
//	                 ┌────────────── reverted, aborted, superseded ─────────────┐
//	Healthy ─push→ Progressing ⇄ Paused ─last step→ Promoting ─complete→ Healthy │
//	   ↑               ⇅ Stalled                                                 ↓
//	   └───────── complete, Git agrees ─────────── Aborting ─complete, Git does not→ Degraded
func Decide(in Input) Decision {
	if d, is := heldBehind(in); is {
		return d
	}
	given, in := in, in.prepared()
	in.State = workloads.Reopened(given.State)
	in.State.Progress = withPeaks(in)
	d := decide(in)
	if p := in.Pending; p != nil && !d.Stale { // no other transition until Git has the rollback's record
		if !d.Rollback {
			next := d.Requeue
			d = *p
			d.Requeue = rollout.Soonest(laterOnly(p.Requeue, in.Now), laterOnly(next, in.Now))
			return d
		}
		d.Subject = p.Subject
	}
	for _, adjust := range adjustments {
		d = adjust(in, given, d)
	}
	return d
}

// adjustments change each decision, in this order. The second input, given, is the caller's original input.
var adjustments = []func(in, given Input, d Decision) Decision{
	withKnownHold, // first, because a hold with an unchanged problem is no transition
	withWatch,     // begins a watch, whose analyses the next adjustment starts
	withAnalyses,  // runs before withDraining can make the release stable
	withReplicas,
	withEntry,
	withDraining, // makes a release stable once the release serves all users
	withIgnored,  // depends on State.Release and State.Stable, which are final here
	withHealth,
	withWell, // depends on State.Unhealthy, which is final here
	withSoaked,
	withRestart,
	withHooks, // observes a running Job only if the state is unchanged
	withMark,  // compares the final state with the recorded state
	withSubject,
	withQuestion, // depends on State.Source, which is final here
}

// withKnownHold keeps the recorded hold if its problem is unchanged. It makes a changed state's texts printable.
func withKnownHold(_, given Input, d Decision) Decision {
	if !d.State.Equal(&given.State) {
		d.State = d.State.Printable()
	}
	if h, old := d.State.Held, given.State.Held; h != nil && old != nil && h.Reason == old.Reason &&
		(h.Message == old.Message || h.Waits() && untilOnly(h.Message) == untilOnly(old.Message)) {
		d.State.Held = old
	}
	return d
}

func withSubject(in, given Input, d Decision) Decision {
	switch same := d.State.Equal(&given.State); {
	case same:
		d.Subject = ""
	case d.Subject == "" && d.State.Spent != given.State.Spent:
		d.Subject = fmt.Sprintf("%s ignores a decision about %s, which serves already", d.State.App, in.Promotion.Release)
	case d.Subject == "":
		d.Subject = d.State.App + " goes on"
	}
	d.Subject = rollout.Printable(d.Subject)
	return d
}

func decide(in Input) Decision {
	if live := in.Observed.Serial(); in.State.Phase != "" && live > in.State.Serial {
		return stale(in.State, live)
	}
	if in.Head.Err != nil {
		return decideHeld(in)
	}
	in.State.App, in.State.Path = in.App.Name, in.App.Path
	in.Promotion = whoHeld(in.Promotion, in.State.Held)
	in.State.Held = nil // set again below if the problem still exists
	switch {
	case in.State.Phase == "" || in.State.Phase == rollout.Pending:
		return decideFirst(in)
	case in.State.Phase == rollout.Aborting:
		return decideAborting(in)
	case in.State.Release != nil:
		return decideInFlight(in)
	}
	if d, failed := wayBack(in); failed {
		return d
	}
	return decideAtRest(in)
}

// decideHeld keeps the app's version while the head is unusable. Aborts, deadlines, rollbacks and hooks still take
// effect.
func decideHeld(in Input) Decision {
	s := in.State
	s.Phase = cmp.Or(s.Phase, rollout.Pending)
	s.App, s.Path = cmp.Or(s.App, in.App.Name), cmp.Or(s.Path, in.App.Path)
	if s.Phase == rollout.Aborting {
		if done, ok := finishRollback(in); ok {
			return done
		}
	}
	if reason := mustRetreat(in); reason != "" && s.Stable != nil {
		return rollback(in, cause{reason: reason, to: s.Stable.Commit, reject: true})
	}
	if s.Release == nil {
		if d, failed := wayBack(in); failed {
			return d
		}
	}
	d := hold(s, rollout.ReasonOf(in.Head.Err), in.Head.Err.Error(), in.Head.Commit)
	d.Requeue = heldUntil(in)
	if job, runs := hookInFlight(in); runs {
		if job.Subject != "" {
			return job
		}
		d.Ask, d.Requeue = job.Ask, rollout.Soonest(d.Requeue, job.Requeue)
	}
	return d
}

func heldUntil(in Input) time.Time {
	s := in.State
	switch {
	case s.Release == nil || s.Stable == nil:
		return time.Time{}
	case s.Phase == rollout.Aborting:
		return laterOnly(s.Rollback.Drain, in.Now)
	}
	late, _ := lateToAbort(in)
	tried, _ := lateExperiment(in)
	next := rollout.Soonest(laterOnly(late.at, in.Now), laterOnly(tried.at, in.Now))
	for _, m := range stagedIn(in) {
		next = rollout.Soonest(next, nextPod(m, in))
		if w, is := m.Stage().Wait.(plan.PromotionWait); is && w.OnTimeout == rollout.TimeoutAbort {
			next = rollout.Soonest(next, laterOnly(m.Entered.Add(w.Timeout), in.Now))
		}
	}
	return next
}

// stale holds an app whose objects in the cluster are newer than the recorded state. The state branch was reset, or a
// push is not fetched yet. An apply would undo a transition.
func stale(s rollout.State, live int) Decision {
	d := hold(s, rollout.HeldRolledBack, fmt.Sprintf(
		"%s has serial %d, and the cluster was written from serial %d: the state branch was rolled back; "+
			"push the newer commit again, or continue from the older record: gitrollout state repair %s",
		rollout.StatePath(s.App), s.Serial, live, s.App), rollout.Commit{})
	d.Stale = true
	return d
}

func hold(s rollout.State, reason rollout.HeldReason, message string, by rollout.Commit) Decision {
	s.Held = &rollout.Held{Reason: reason, Message: message, Commit: by.ID, Author: by.Author}
	return Decision{State: s, Waiting: message, Subject: fmt.Sprintf("%s held: %s", s.App, message)}
}

// Ask is a question that a decision asks the cluster. Exactly one field is set.
type Ask struct {
	Heal      bool             // apply State's objects and observe again
	Foreign   []rollout.Object // which of these objects does another manager own?
	Adoptable []rollout.Object // which objects could be applied without a restart of pods?
	Endpoints []Need           // which versions have a ready endpoint?
	Jobs      []HookJob        // create, delete or look up these Jobs, and return their states
	Accept    string           // does the API server accept State's objects at this commit?
}

// Need names a version that must have a ready endpoint in a Service.
type Need struct {
	Service rollout.Ref
	PodHash string // pod-template-hash of the version's pods
}

// Answers holds one pass's answers. Each field answers one field of Ask.
type Answers struct {
	Healed    *bool
	Foreign   *[]rollout.Foreign
	Adoptable map[rollout.Workload]bool
	Endpoints map[Need]bool
	Jobs      map[string]rollout.JobState // by HookJob.Key
	Accepted  map[string]error            // by commit: nil, or the API server's error
}

// IsHealed reports whether the cluster accepted the state's objects.
func (a Answers) IsHealed() bool { return a.Healed != nil && *a.Healed }

// HeadErr returns why the head is unreadable, empty or refused by the API server.
func (in Input) HeadErr() error {
	if in.Head.Err != nil {
		return in.Head.Err
	}
	if err := Emptied(in.Head.Render, len(in.State.Inventory)); err != nil {
		return err
	}
	return cmp.Or(slices.Collect(maps.Values(in.Answers.Accepted))...)
}

// Emptied returns an error for a render that would remove all objects, because a generator may have written an empty
// file.
func Emptied(r *rollout.Render, has int) error {
	if r == nil || len(r.Objects) > 0 || has == 0 {
		return nil
	}
	return rollout.Invalidf(r.App.Path, "", "has no objects, but the app still has %d: gitrollout deletes no object", has).
		WithFix("restore the objects, or remove the whole folder to remove the app")
}

// withQuestion sets the next question. It asks Heal first, because the apply may change other answers. It asks Accept
// last, because another answer may keep the old commit.
func withQuestion(in, _ Input, d Decision) Decision {
	a := in.Answers
	switch source := d.State.Source; {
	case d.Rollback || d.Stale:
		d.Ask = nil
	case a.Healed == nil:
		d.Ask = &Ask{Heal: true}
	case d.Ask != nil:
	case source != in.State.Source && !hasKey(a.Accepted, source):
		d.Ask = &Ask{Accept: source}
	}
	return d
}

func hasKey[K comparable, V any](m map[K]V, key K) bool {
	_, has := m[key]
	return has
}

func askAdoptable(in Input) *Ask {
	var objects []rollout.Object
	for _, w := range takenOver(in.Head.Render) {
		live, exists := in.Observed.Workloads[w]
		if !exists || live.Hash != "" || hasKey(in.Answers.Adoptable, w) {
			continue
		}
		if o, found := workloads.WorkloadOf(in.Head.Render, w); found {
			objects = append(objects, o)
		}
	}
	if objects == nil {
		return nil
	}
	return &Ask{Adoptable: objects}
}

func askEndpoints(in Input, needs []Need) *Ask {
	needs = slices.DeleteFunc(needs, func(n Need) bool { return hasKey(in.Answers.Endpoints, n) })
	if len(needs) == 0 {
		return nil
	}
	return &Ask{Endpoints: needs}
}

func needsOf(in Input, m workloads.Staged) []Need {
	_, canary := m.Services(in.State)
	if canary == "" || m.Want().Canary == 0 {
		return nil
	}
	service := rollout.Ref{Kind: "Service", Namespace: m.Workload.Namespace, Name: canary}
	return []Need{{Service: service, PodHash: m.Fresh.Pin.Value}}
}
