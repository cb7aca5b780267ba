package propose

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// Undo is the verb for the revert of a release. All other verbs are decisions in promotion files.
const Undo rollout.Verb = "undo"

// Verbs lists all verbs.
func Verbs() []rollout.Verb { return append(rollout.Verbs(), Undo) }

// Action is a user's request for one app.
type Action struct {
	Verb        rollout.Verb `json:"verb"`
	Release     rollout.Hash `json:"release"`               // that the user saw; see StillAbout
	Reason      string       `json:"reason,omitempty"`      // for "hold", "abort", "undo"
	Full        bool         `json:"full,omitempty"`        // for "promote": open all gates and skip the remaining weights
	Through     string       `json:"through,omitempty"`     // for "promote": the last step to pass, by name or by number from 1
	AdoptAnyway bool         `json:"adoptAnyway,omitempty"` // for "promote": adopt although another controller owns objects
	Off         bool         `json:"off,omitempty"`         // for "hold": end the hold
}

// StillAbout returns an error if a.Release is outdated.
func (a Action) StillAbout(in strategies.Input) error {
	if now := about(in, a.Verb); a.Release != now {
		return fmt.Errorf("the page shows release %q, but the current release is %q; reload the page", a.Release, now)
	}
	return nil
}

func about(in strategies.Input, verb rollout.Verb) rollout.Hash {
	switch coming := strategies.Coming(in); {
	case verb == rollout.Retry && in.Head.Render != nil:
		r, _ := strategies.Retryable(in)
		return cmp.Or(r.Hash, in.Head.Render.Release())
	case in.State.Stable != nil && (verb == rollout.Restart || verb == rollout.Abort && isWatched(in)):
		return in.State.Stable.Hash
	case verb == rollout.Promote && waitsForEntry(in):
		return in.Entry.Release
	case verb != Undo && coming != nil:
		return coming.Hash
	case in.State.Release != nil:
		return in.State.Release.Hash
	}
	return ""
}

// Possible returns the actions that the app's state allows. Each action has no Reason, and Through is "" or "entry".
func Possible(in strategies.Input) (out []Action) {
	all := []Action{{Verb: rollout.Promote}, {Verb: rollout.Promote, Full: true},
		{Verb: rollout.Promote, AdoptAnyway: true}, {Verb: rollout.Hold}, {Verb: rollout.Hold, Off: true},
		{Verb: rollout.Retry}, {Verb: rollout.Restart}, {Verb: Undo}, {Verb: rollout.Abort}}
	if in.Entry != nil {
		all = slices.Insert(all, 0, Action{Verb: rollout.Promote, Through: rollout.ThroughEntry})
	}
	for _, a := range all {
		a.Release = about(in, a.Verb)
		_, err := decide(in, a)
		if a.Verb == Undo && in.State.Stable != nil || err == nil {
			out = append(out, a)
		}
	}
	return out
}

// MergeCommand merges a proposal's branch (%s). The merge commit records who promoted.
const MergeCommand = "git fetch && git merge --no-ff origin/%s && git push"

// UnknownStepError is returned if Action.Through names no step.
type UnknownStepError struct {
	Through string
	Steps   []string // names and numbers
}

func (e *UnknownStepError) Error() string {
	return fmt.Sprintf("--through %q is not a step; the steps are: %s", e.Through, strings.Join(e.Steps, ", "))
}

type decision struct {
	promotion *rollout.Promotion // nil removes the file
	subject   string
	then      string
}

// Decide returns the Change for any action except Undo, or why the app's state forbids the action.
func (t Target) Decide(in strategies.Input, a Action) (Change, error) {
	d, err := decide(in, a)
	if err != nil {
		return Change{}, err
	}
	if p := d.promotion; p != nil && p.Decision != rollout.Promote && p.Decision != rollout.Restart && p.At == "" &&
		in.State.Spent != "" {
		p.At = rollout.Second(in.Now).Format(time.RFC3339) // so that the file differs from a spent file
	}
	about := in.State
	if r := strategies.Coming(in); r != nil {
		about.Release = r
	}
	if r := about.Release; r != nil && d.promotion != nil && d.promotion.Release != r.Hash {
		about.Release = nil
	}
	o := t.promotion(in.App.Name, d.promotion, about, in.Now)
	o.App, o.Subject, o.Effect = in.App.Name, d.subject, d.then
	o.Message = fmt.Sprintf("%s in %s\n%s", d.subject, t.Cluster, o.Message)
	return o, nil
}

func decide(in strategies.Input, a Action) (decision, error) {
	switch {
	case a.Verb == rollout.Promote && a.AdoptAnyway:
		return adoptAnyway(in, a.Full)
	case a.Verb == rollout.Promote && a.Through == rollout.ThroughEntry && in.Entry != nil:
		return promoteEntry(in)
	case a.Verb == rollout.Promote && (a.Full || a.Through == rollout.Full):
		return promoteFully(in)
	case a.Verb == rollout.Promote && a.Through != "":
		return promoteThrough(in, a.Through)
	case a.Verb == rollout.Promote:
		return promoteGate(in)
	case a.Verb == rollout.Hold && a.Off:
		return endHold(in)
	case a.Verb == rollout.Hold:
		return hold(in, a.Reason)
	case a.Verb == rollout.Abort:
		return abort(in, a.Reason)
	case a.Verb == rollout.Retry:
		return retry(in)
	case a.Verb == rollout.Restart:
		return restart(in)
	}
	return decision{}, fmt.Errorf("there is no verb %q", a.Verb)
}

// promoteFully opens all gates. If adoption or a rename holds the app, Git's version replaces the running version.
func promoteFully(in strategies.Input) (decision, error) {
	d := decision{subject: "Promote " + in.App.Name + " fully"}
	h, coming := in.State.Held, strategies.Coming(in)
	replaces := h != nil && in.Head.Render != nil &&
		(h.Reason == rollout.HeldAdoption || h.Reason == rollout.HeldRenamed && in.State.Release == nil)
	switch {
	case replaces:
		d.then = "the version in Git replaces the running version immediately; "
	case strategies.CanOvertake(in):
		d.then = "the version in Git replaces all pods without steps, whether the rollback ends or not; "
	case coming != nil:
		in.State.Release = coming
		d.promotion = strategies.KeyThrough(in.State, nil, in.Now)
		d.then = in.App.Name + " takes all steps as soon as the release may begin; "
	default:
		if _, err := inFlight(in); err != nil {
			return d, err
		}
		d.promotion = strategies.KeyThrough(in.State, nil, in.Now)
		d.then = in.App.Name + " takes all steps, and waits only for ready pods" + skips(in, d.promotion)
	}
	if d.promotion == nil {
		d.promotion = &rollout.Promotion{Release: in.Head.Render.Release(), Through: rollout.Full, Decision: rollout.Promote}
	}
	d.then += watchHint(in.App.Name)
	return d, nil
}

// adoptAnyway takes over another controller's objects. If "full" is true, Git's version also replaces the running
// version.
func adoptAnyway(in strategies.Input, full bool) (decision, error) {
	if h := in.State.Held; h == nil || h.Reason != rollout.HeldForeign || in.Head.Render == nil {
		return decision{}, errors.New("it is not held for objects that another controller owns")
	}
	p := &rollout.Promotion{
		Release: in.Head.Render.Release(), Decision: rollout.Promote, Through: "adoption", AdoptAnyway: true,
	}
	if full {
		p.Through = rollout.Full
	}
	return decision{promotion: p, subject: "Adopt " + in.App.Name + " anyway",
		then: "gitrollout takes over the app's objects from the other controller; " + watchHint(in.App.Name)}, nil
}

// promoteGate opens the shut gates. If none is shut, it ends the current step's wait.
func promoteGate(in strategies.Input) (decision, error) {
	if _, err := inFlight(in); err != nil {
		return decision{}, err
	}
	switch h, key, early := in.State.Held, strategies.Key(in), strategies.Early(in); {
	case h.Is(rollout.HeldRolloutRemoved):
		return decision{}, fmt.Errorf("it is held: %s: gitrollout promote %s --full", h.Message, in.App.Name)
	case h != nil:
		return decision{}, fmt.Errorf("it is held, and a promotion does not end the hold: %s", h.Message)
	case key != nil:
		return promoted(in, key), nil
	case strategies.IsOpen(in):
		return promoted(in, in.Promotion), nil
	case early != nil:
		return promoted(in, early), nil
	default:
		return decision{}, notAtGate(in)
	}
}

func promoted(in strategies.Input, p *rollout.Promotion) decision {
	name, past := in.App.Name, upTo(p)
	return decision{
		promotion: p, subject: "Promote " + name + " " + past,
		then: fmt.Sprintf("%s continues %s as soon as pods serve%s%s", name, past, skips(in, p), watchHint(name)),
	}
}

func upTo(p *rollout.Promotion) string {
	counted := func(through string) string {
		if n, err := strconv.Atoi(through); err == nil && p.APIVersion == rollout.AlphaVersion { // counts from 0
			return strconv.Itoa(n + 1)
		}
		return through
	}
	switch {
	case p.Workloads != nil:
		var all []string
		for w, step := range p.Workloads {
			all = append(all, fmt.Sprintf("step %s of %s", counted(step), w))
		}
		slices.Sort(all)
		return "past " + strings.Join(all, " and ")
	case p.Through == rollout.Full:
		return "fully"
	}
	return "past step " + counted(p.Through)
}

func skips(in strategies.Input, p *rollout.Promotion) string {
	all := strategies.Skipped(in, p)
	if len(all) == 0 {
		return "; "
	}
	return ", and skips " + strings.Join(all, ", ") + "; "
}

func notAtGate(in strategies.Input) error {
	if in.Promotion.Says(rollout.Hold, in.State.Release.Hash) {
		return fmt.Errorf("it does not wait for a promotion, because it is on hold; to end the hold: "+
			"gitrollout hold %s --off", in.App.Name)
	}
	text := "it does not wait for a promotion"
	for _, e := range strategies.Explain(in) {
		if e.Step < len(e.Steps) {
			text += fmt.Sprintf(" but is at step %d/%d (%s)", e.Step+1, len(e.Steps), e.Steps[e.Step].Text)
			break
		}
	}
	return fmt.Errorf("%s; to open gates ahead of time: --through STEP or --full", text)
}

func promoteThrough(in strategies.Input, through string) (decision, error) {
	if _, err := inFlight(in); err != nil {
		return decision{}, err
	}
	unknown := &UnknownStepError{Through: through}
	behind, to := 0, map[rollout.Workload]int{}
	for _, e := range strategies.Explain(in) {
		if _, moves := in.State.ProgressOf(e.Workload); !moves {
			continue
		}
		for i, s := range e.Steps {
			number := strconv.Itoa(i + 1)
			switch {
			case through != s.Name && through != number:
			case i < e.Step:
				behind = i + 1
			default:
				to[e.Workload] = i + 1
			}
			if len(unknown.Steps) <= i {
				unknown.Steps = append(unknown.Steps, number)
			}
			unknown.Steps[i] = cmp.Or(s.Name, unknown.Steps[i])
		}
	}
	switch {
	case len(to) > 0:
		return promoted(in, strategies.KeyThrough(in.State, to, in.Now)), nil
	case behind > 0:
		return decision{}, fmt.Errorf("it is past step %d already", behind)
	default:
		return decision{}, unknown
	}
}

func hold(in strategies.Input, reason string) (d decision, err error) {
	release, stays := strategies.Coming(in), "does not begin the release"
	if release == nil {
		if release, err = inFlight(in); err != nil {
			return d, err
		}
		stays = "stays where it is"
	}
	return decision{
		promotion: &rollout.Promotion{Release: release.Hash, Decision: rollout.Hold, Reason: reason, Since: release.Since},
		subject:   fmt.Sprintf("Hold release %s of %s", release.Hash, in.App.Name),
		then:      fmt.Sprintf("%s %s; to go on: gitrollout hold %s --off", in.App.Name, stays, in.App.Name),
	}, nil
}

func endHold(in strategies.Input) (decision, error) {
	if in.Promotion == nil || in.Promotion.Decision != rollout.Hold {
		return decision{}, errors.New("there is no hold to end")
	}
	return decision{
		subject: "End the hold of " + in.App.Name,
		then:    in.App.Name + " goes on at the next pass; " + watchHint(in.App.Name),
	}, nil
}

func abort(in strategies.Input, reason string) (d decision, err error) {
	release, then := strategies.Coming(in), ""
	if isWatched(in) {
		release, then = in.State.Stable, "the watch ends and the version stays; to go back: gitrollout undo "+in.App.Name
	} else if release != nil {
		then = in.App.Name + " rejects the release at the next pass, before the release begins; a running Job is not stopped"
	} else {
		if release, err = inFlight(in); err != nil {
			return d, err
		}
		then = fmt.Sprintf("%s goes back to %s at the next pass", in.App.Name, in.State.Stable.Hash)
	}
	return decision{
		promotion: &rollout.Promotion{Release: release.Hash, Decision: rollout.Abort, Reason: reason, Since: release.Since},
		subject:   fmt.Sprintf("Abort release %s of %s", release.Hash, in.App.Name),
		then:      then + "; " + watchHint(in.App.Name),
	}, nil
}

func retry(in strategies.Input) (decision, error) {
	if in.Head.Render == nil {
		return decision{}, fmt.Errorf("the version in Git cannot be read: %w", in.Head.Err)
	}
	hash := about(in, rollout.Retry)
	rejection, retryable := strategies.Retryable(in)
	rejected := rejection.Hash != ""
	again := "starts again at its first step (it was rejected: " + rejection.Reason + ")"
	switch failed := strategies.FailedHook(in); {
	case failed != "":
		again = "runs hook " + failed + " again"
	case rejected && !retryable:
		return decision{}, fmt.Errorf("%s was rejected and cannot be retried, because its Rollout document was removed; "+
			"restore the document first", rejection.Hash)
	case !rejected && in.State.Release != nil:
		return decision{}, fmt.Errorf("release %s is in flight and was not rejected", in.State.Release.Hash)
	case !rejected:
		return decision{}, errors.New("nothing to try again: the version in Git was not rejected")
	}
	// The file has the time, so that a second retry's file differs.
	p := &rollout.Promotion{Release: hash, Decision: rollout.Retry, At: rollout.Second(in.Now).Format(time.RFC3339)}
	if was := in.Promotion; was != nil && was.Release == hash && was.Commit != "" && !was.Barred {
		p.Through, p.Commit = was.Through, was.Commit // the file is also the approval for its stage
	}
	return decision{promotion: p, subject: fmt.Sprintf("Retry release %s of %s", hash, in.App.Name),
		then: in.App.Name + " " + again + "; " + watchHint(in.App.Name)}, nil
}

func inFlight(in strategies.Input) (*rollout.Release, error) {
	s, coming := in.State, strategies.Coming(in)
	switch {
	case waitsForEntry(in):
		return nil, fmt.Errorf("it waits for %s; to let it take the change now: gitrollout promote %s --through %s",
			in.Entry.Waits, in.App.Name, rollout.ThroughEntry)
	case coming != nil:
		return nil, fmt.Errorf("release %s has not begun: %s; to let it skip all gates when it begins: gitrollout "+
			"promote %s --full; to reject it: gitrollout abort %s", coming.Hash, s.Held.Message, in.App.Name, in.App.Name)
	case s.Phase == rollout.Aborting:
		return nil, fmt.Errorf("release %s is already rolling back to %s", s.Release.Hash, s.Stable.Hash)
	case s.Phase == rollout.Degraded:
		text := fmt.Sprintf("no release is in flight: the last one was rejected and %s serves", s.Stable.Hash)
		if _, is := strategies.Retryable(in); is {
			text += "; to try it again: gitrollout retry " + in.App.Name
		}
		return nil, errors.New(text)
	case s.Release == nil && s.Stable != nil:
		return nil, fmt.Errorf("no release is in flight: the app is %s at %s; to go back nevertheless: gitrollout undo %s",
			s.Phase, s.Stable.Hash, in.App.Name)
	case s.Release == nil && s.Phase == "":
		return nil, errors.New("there is no record of the app yet; is gitrollout run running?")
	case s.Release == nil:
		return nil, fmt.Errorf("no release is in flight: it is %s", s.Phase)
	case s.Stable == nil:
		return nil, errors.New("its first deployment is in flight; it has no steps, and there is no version to go back to; " +
			"push a version that works")
	}
	return s.Release, nil
}
