package strategies

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies/plan"
	"gitrollout.dev/gitrollout/strategies/workloads"
)

// Input holds everything that a decision about one app needs.
type Input struct {
	Now       time.Time
	App       rollout.App
	Head      Head                  // the app at the head of the users' branch
	Source    *rollout.Render       // the render at State.Source; nil if it cannot be read
	State     rollout.State         // the recorded state; the zero value if there is none
	Pending   *Decision             // a rollback to State that is applied but not yet in Git; nil if there is none
	Handed    *rollout.State        // the newest decided state that is not pushed yet; nil if all are pushed
	Promotion *rollout.Promotion    // nil if there is no promotion file
	Observed  rollout.Observed      //
	Runs      []rollout.AnalysisRun // State.Analyses with all later measurements
	Ends      bool                  // the process ends after this decision, so all measurements are recorded now
	Calendar  rollout.Calendar      // when releases of the app may advance
	Health    Health                // since when the app and its objects are healthy or unhealthy
	Applied   time.Time             // when the present routes were applied to the cluster; zero if unknown
	Left      *rollout.Render       // the release that is rolled back; nil without a rollback, or if unreadable
	Unread    bool                  // Left is still being read
	Answers   Answers               // the answers to earlier decisions' questions
	plans     plan.Cache
}

// Head is the head of the users' branch, for one app.
type Head struct {
	Commit rollout.Commit
	Render *rollout.Render // nil if Err is set
	Err    error           // why the app cannot be rendered, or why its promotion file cannot be read
}

// Decision holds the next state and the actions that lead to it.
type Decision struct {
	State    rollout.State
	Subject  string    // the change in words, for the commit subject; "" if nothing changed
	Rollback bool      // the state is applied first and recorded afterwards
	Requeue  time.Time // when a timer must start the next decision; zero if no timer is needed
	Waiting  string    // what the app waits for, as text for users; "" if nothing
	Measure  []Measure // the measurements that are due
	Stale    bool      // the cluster holds a newer record's state, so nothing may be applied

	// Ask is the next question to the cluster; nil if none is left. The answer may change the decision.
	Ask *Ask
}

// Decide returns an app's next state, with at most one transition. The caller first answers the decision's questions:
//
//	for d.Ask != nil { in = answer(in, d.Ask); d = Decide(in) }
//
//	                 ┌────────────── reverted, aborted, superseded ─────────────┐
//	Healthy ─push→ Progressing ⇄ Paused ─last step→ Promoting ─complete→ Healthy │
//	   ↑               ⇅ Stalled                                                 ↓
//	   └───────── complete, Git agrees ─────────── Aborting ─complete, Git does not→ Degraded
func Decide(in Input) Decision {
	given, in := in, in.prepared()
	in.State = workloads.Reopened(given.State)
	in.State.Progress = withPeaks(in)
	d := decide(in)
	if p := in.Pending; p != nil && !d.Stale { // no transition follows a rollback before the rollback is recorded
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

// adjustments change each decision, in this order. The argument "given" is the input before Decide prepares it.
var adjustments = []func(in, given Input, d Decision) Decision{
	withKnownHold, // comes first, because a repeated hold must not look like a transition
	withAnalyses,  // starts runs before the release may become stable
	withReplicas,  // replicas follow Git in every decision
	withDraining,  // a release that has all users becomes stable
	withIgnored,   // compares the promotion with the recorded release
	withHealth,    // applies only to an app at rest
	withRestart,   // applies only to an app at rest
	withHooks,     // observes a Job only if nothing else changes
	withMark,      // compares the finished state with the recorded state
	withSubject,   // names a transition that has no subject yet
	withQuestion,  // depends on State.Source, which is final here
}

// withKnownHold keeps the recorded hold if its problem has not changed, and makes all texts printable.
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

// withSubject gives each transition a commit subject. A decision that does not change the state has no subject.
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
	in.State.Held = nil // set again below if the hold still applies
	switch {
	case in.State.Phase == "" || in.State.Phase == rollout.Pending:
		return decideFirst(in)
	case in.State.Phase == rollout.Aborting:
		return decideAborting(in)
	case in.State.Release != nil:
		return decideInFlight(in)
	default:
		return decideAtRest(in)
	}
}

// decideHeld keeps an app at its state if its head is unusable. Aborts, deadlines, rollbacks and hooks continue.
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

// heldUntil returns when to decide again about an app with an unreadable head. It is zero if only a push can help.
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

// stale holds an app because its cluster objects come from a newer record than its state. Either the state branch was
// rolled back, or a newer push is not fetched yet. Applying the old record would undo a transition.
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
	Heal      bool             // apply the objects of State and observe the cluster again
	Foreign   []rollout.Object // which of these does another manager own?
	Adoptable []rollout.Object // which of these could be applied without a restart of pods?
	Endpoints []Need           // which of these versions have a ready endpoint?
	Jobs      []HookJob        // what are these Jobs' states, after they are created or deleted?
	Accept    string           // does the API server accept Decision.State's objects at this commit?
}

// Need is a version that needs a ready endpoint behind a Service.
type Need struct {
	Service rollout.Ref
	PodHash string // pod-template-hash of its pods
}

// Answers holds the cluster's answers to one app's questions in one pass. Each field answers one field of Ask.
type Answers struct {
	Healed    *bool
	Foreign   *[]rollout.Foreign
	Adoptable map[rollout.Workload]bool
	Endpoints map[Need]bool
	Jobs      map[string]rollout.JobState // by HookJob.Key
	Accepted  map[string]error            // by commit: nil if accepted, else the API server's error
}

// IsHealed reports whether the cluster accepted the state's objects.
func (a Answers) IsHealed() bool { return a.Healed != nil && *a.Healed }

// HeadErr returns why the head cannot be followed: it is unreadable, the API server refuses it, or it has no objects.
func (in Input) HeadErr() error {
	if in.Head.Err != nil {
		return in.Head.Err
	}
	if err := Emptied(in.Head.Render, len(in.State.Inventory)); err != nil {
		return err
	}
	return cmp.Or(slices.Collect(maps.Values(in.Answers.Accepted))...)
}

// Emptied refuses a render without objects for an app that has objects, because a generator may have written an empty
// file. Argo CD's automated sync refuses such a render as well, unless allowEmpty is set.
func Emptied(r *rollout.Render, has int) error {
	if r == nil || len(r.Objects) > 0 || has == 0 {
		return nil
	}
	return rollout.Invalidf(r.App.Path, "", "has no objects, but the app still has %d: gitrollout deletes no object", has).
		WithFix("restore the objects, or remove the whole folder to remove the app")
}

// withQuestion sets a decision's next question. Rollbacks and stale decisions ask nothing. Ask.Heal is first, because
// the other answers describe the healed cluster. Ask.Accept is last, because other answers may keep the old commit.
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

// askAdoptable asks which live workloads without a hash annotation match Git. It returns nil if all answers are known.
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

// askEndpoints asks which of the given versions have a ready endpoint. It returns nil if all answers are known.
func askEndpoints(in Input, needs []Need) *Ask {
	needs = slices.DeleteFunc(needs, func(n Need) bool { return hasKey(in.Answers.Endpoints, n) })
	if len(needs) == 0 {
		return nil
	}
	return &Ask{Endpoints: needs}
}

// needsOf returns the versions that need a ready endpoint before a router sends them requests.
func needsOf(in Input, m workloads.Staged) []Need {
	_, canary := m.Services(in.State)
	if canary == "" {
		return nil
	}
	service := rollout.Ref{Kind: "Service", Namespace: m.Workload.Namespace, Name: canary}
	return []Need{{Service: service, PodHash: m.Fresh.Pin.Value}}
}
