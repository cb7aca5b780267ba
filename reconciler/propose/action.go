package propose

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// Undo is the verb of a proposal to take a release back in Git. The other verbs are the decisions of a promotion
// file.
const Undo rollout.Verb = "undo"

// Verbs lists what people can ask for.
func Verbs() []rollout.Verb { return append(rollout.Verbs(), Undo) }

// Action is what a person asks for about one app.
type Action struct {
	Verb    rollout.Verb `json:"verb"`              // of Verbs
	Release rollout.Hash `json:"release"`           // what the person sees, for StillAbout
	Reason  string       `json:"reason,omitempty"`  // of hold, abort and undo
	Full    bool         `json:"full,omitempty"`    // of promote: all gates, and the weights that are left
	Through string       `json:"through,omitempty"` // of promote: up to this step, a name or a number from 1
	Off     bool         `json:"off,omitempty"`     // of hold: end it
}

// StillAbout is an error when the action was meant for another release than the one it would be done to.
func (a Action) StillAbout(in strategies.Input) error {
	now := rollout.Hash("")
	switch {
	case a.Verb == rollout.Retry && in.Head.Render != nil:
		now = in.Head.Render.Release()
	case in.State.Release != nil:
		now = in.State.Release.Hash
	}
	if a.Release != now {
		return fmt.Errorf("the page shows release %q and it is now %q; look again", a.Release, now)
	}
	return nil
}

// UnknownStepError is an Action's Through that names no step.
type UnknownStepError struct {
	Through string
	Steps   []string // the names and numbers that there are
}

func (e *UnknownStepError) Error() string {
	return fmt.Sprintf("--through %q is not a step; they are: %s", e.Through, strings.Join(e.Steps, ", "))
}

// decision is a promotion file to write and what it means.
type decision struct {
	promotion *rollout.Promotion // nil removes the file
	subject   string
	then      string
}

// Decide makes the order that carries an action out. It takes all verbs but Undo. An error says why the app is not
// where the action makes sense.
func (t Target) Decide(in strategies.Input, a Action) (Order, error) {
	d, err := decide(in, a)
	if err != nil {
		return Order{}, err
	}
	o, err := t.promotion(in.App.Name, d.promotion, in.State, in.Now)
	if err != nil {
		return Order{}, err
	}
	o.Subject, o.Then = d.subject, d.then
	o.Message = fmt.Sprintf("%s in %s\n%s", d.subject, t.Cluster, o.Message)
	return o, nil
}

func decide(in strategies.Input, a Action) (decision, error) {
	switch {
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
	}
	return decision{}, fmt.Errorf("there is no verb %q", a.Verb)
}

// promoteFully opens everything; it is also the way to replace a Deployment
// that runs something which Git does not know.
func promoteFully(in strategies.Input) (decision, error) {
	d := decision{
		subject: "Promote " + in.App.Name + " fully",
		then:    in.App.Name + " skips the steps that are left; " + watchHint(in.App.Name),
	}
	if h := in.State.Held; h != nil && h.Reason == rollout.HeldAdoption && in.Head.Render != nil {
		d.promotion = &rollout.Promotion{Release: in.Head.Render.Release(), Through: rollout.Full, Decision: rollout.Promote}
		d.then = "what runs is replaced at once by what Git says; " + watchHint(in.App.Name)
		return d, nil
	}
	release, err := inFlight(in)
	if err != nil {
		return d, err
	}
	d.promotion = &rollout.Promotion{Release: release.Hash, Through: rollout.Full, Decision: rollout.Promote}
	return d, nil
}

// promoteGate opens the gate that is shut, or ends the timed pause that runs.
func promoteGate(in strategies.Input) (decision, error) {
	release, err := inFlight(in)
	if err != nil {
		return decision{}, err
	}
	if h := in.State.Held; h != nil {
		return decision{}, fmt.Errorf("it is held, and a promotion does not change that: %s", h.Message)
	}
	step, shut := strategies.Gate(in)
	if at, open := opened(in, release); !shut && open {
		d := throughStep(in, release, at)
		d.promotion = in.Promotion // pushing it again changes nothing
		return d, nil
	}
	if !shut {
		if step, shut = strategies.TimedPause(in); !shut {
			return decision{}, notAtGate(in)
		}
	}
	return throughStep(in, release, step), nil
}

// opened finds the step in progress that the promotion on the branch opens
// already.
func opened(in strategies.Input, release *rollout.Release) (step int, found bool) {
	for _, e := range strategies.Explain(in) {
		names := make([]string, len(e.Steps))
		for i, s := range e.Steps {
			names[i] = s.Name
		}
		if e.Step < len(e.Steps) && in.Promotion.Opens(release.Hash, names, e.Step) {
			step, found = max(step, e.Step), true
		}
	}
	return step, found
}

// notAtGate says what the release does instead of waiting for a promotion.
func notAtGate(in strategies.Input) error {
	if in.Promotion.Says(rollout.Hold, in.State.Release.Hash) {
		return fmt.Errorf("it does not wait for a promotion, it is on hold; to end that: gitrollout hold %s --off",
			in.App.Name)
	}
	text := "it does not wait for a promotion"
	for _, e := range strategies.Explain(in) {
		if e.Step < len(e.Steps) {
			text += fmt.Sprintf(" but is at step %d/%d (%s)", e.Step+1, len(e.Steps), e.Steps[e.Step].Text)
			break
		}
	}
	return fmt.Errorf("%s; to promote ahead of time: --through STEP or --full", text)
}

// promoteThrough opens all gates up to a step that the user names.
func promoteThrough(in strategies.Input, through string) (decision, error) {
	release, err := inFlight(in)
	if err != nil {
		return decision{}, err
	}
	var known []string
	for _, e := range strategies.Explain(in) {
		for i, s := range e.Steps {
			if through == s.Name || through == strconv.Itoa(i+1) {
				return throughStep(in, release, i), nil
			}
			if len(known) <= i {
				known = append(known, strconv.Itoa(i+1))
			}
			if s.Name != "" {
				known[i] = s.Name
			}
		}
	}
	return decision{}, &UnknownStepError{Through: through, Steps: known}
}

// throughStep writes a step's index, which counts from 0, as the proposals do.
func throughStep(in strategies.Input, release *rollout.Release, step int) decision {
	name := in.App.Name
	return decision{
		promotion: &rollout.Promotion{Release: release.Hash, Through: strconv.Itoa(step), Decision: rollout.Promote},
		subject:   fmt.Sprintf("Promote %s past step %d", name, step+1),
		then:      fmt.Sprintf("%s goes on past step %d at the next pass; %s", name, step+1, watchHint(name)),
	}
}

// hold keeps the release in flight where it is.
func hold(in strategies.Input, reason string) (decision, error) {
	release, err := inFlight(in)
	if err != nil {
		return decision{}, err
	}
	return decision{
		promotion: &rollout.Promotion{Release: release.Hash, Decision: rollout.Hold, Reason: reason},
		subject:   fmt.Sprintf("Hold release %s of %s", release.Hash, in.App.Name),
		then:      fmt.Sprintf("%s stays where it is; to go on: gitrollout hold %s --off", in.App.Name, in.App.Name),
	}, nil
}

// endHold removes a promotion file that says hold. Steps that were passed
// before are on record and stay passed.
func endHold(in strategies.Input) (decision, error) {
	if in.Promotion == nil || in.Promotion.Decision != rollout.Hold {
		return decision{}, errors.New("there is no hold to end")
	}
	return decision{
		subject: "End the hold of " + in.App.Name,
		then:    in.App.Name + " goes on at the next pass; " + watchHint(in.App.Name),
	}, nil
}

// abort takes the release in flight back.
func abort(in strategies.Input, reason string) (decision, error) {
	release, err := inFlight(in)
	if err != nil {
		return decision{}, err
	}
	return decision{
		promotion: &rollout.Promotion{Release: release.Hash, Decision: rollout.Abort, Reason: reason},
		subject:   fmt.Sprintf("Abort release %s of %s", release.Hash, in.App.Name),
		then: fmt.Sprintf("%s goes back to %s at the next pass; %s", in.App.Name, in.State.Stable.Hash,
			watchHint(in.App.Name)),
	}, nil
}

func retry(in strategies.Input) (decision, error) {
	if in.Head.Render == nil {
		return decision{}, fmt.Errorf("what Git asks for cannot be read: %w", in.Head.Err)
	}
	hash := in.Head.Render.Release()
	rejection, rejected := in.State.IsRejected(hash)
	switch {
	case !rejected && in.State.Release != nil:
		return decision{}, fmt.Errorf("release %s is in flight and was not rejected", in.State.Release.Hash)
	case !rejected:
		return decision{}, errors.New("nothing to try again: what Git asks for was not rejected")
	}
	return decision{
		// The time makes a second retry another file than the first one.
		promotion: &rollout.Promotion{Release: hash, Decision: rollout.Retry,
			At: rollout.Second(in.Now).Format(time.RFC3339)},
		subject: fmt.Sprintf("Retry release %s of %s", hash, in.App.Name),
		then: fmt.Sprintf("%s starts again at its first step (it was rejected: %s); %s",
			in.App.Name, rejection.Reason, watchHint(in.App.Name)),
	}, nil
}

// inFlight returns the release that a decision can be about.
func inFlight(in strategies.Input) (*rollout.Release, error) {
	s := in.State
	switch {
	case s.Phase == rollout.Aborting:
		return nil, fmt.Errorf("release %s is already on its way back to %s", s.Release.Hash, s.Stable.Hash)
	case s.Phase == rollout.Degraded:
		return nil,
			fmt.Errorf("no release is in flight: the last one was rejected and %s serves; to try it again: gitrollout retry %s",
				s.Stable.Hash, in.App.Name)
	case s.Release == nil && s.Stable != nil:
		return nil, fmt.Errorf("no release is in flight: it is %s at %s", s.Phase, s.Stable.Hash)
	case s.Release == nil && s.Phase == "":
		return nil, errors.New("there is no record of it yet; is gitrollout run at work?")
	case s.Release == nil:
		return nil, fmt.Errorf("no release is in flight: it is %s", s.Phase)
	case s.Stable == nil:
		return nil,
			errors.New("its first deployment is in flight, which has no steps and nothing to go back to; push a version that works")
	}
	return s.Release, nil
}

func watchHint(app string) string { return "watch: gitrollout get " + app + " -w" }
