package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/views/status"
)

func newPromote(s streams) *cobra.Command {
	c := &pushCommand{streams: s}
	var full bool
	var through string
	cmd := &cobra.Command{
		Use:   "promote APP",
		Short: "Let a release pass the step that it waits at",
		Long: `Let a release pass the step that it waits at.

It pushes the app's promotion file to your branch, which is what merging the
proposal gitrollout/promote/<cluster>/<app> does too. The file names the release
by its hash: it approves this release and no other.

--through takes a step's name or its number as "gitrollout get" shows it; the
release then passes every gate up to and including that step. --full opens all
gates and skips the weights that are left.`,
		Example: `  gitrollout promote shop
  gitrollout promote shop --through 6
  gitrollout promote shop --full`,
		Args:              exactlyOne("app"),
		ValidArgsFunction: completeApps(),
		RunE: func(cmd *cobra.Command, args []string) error {
			if full && through != "" {
				return usagef("--full and --through exclude each other")
			}
			return c.carryOut(cmd.Context(), args[0], func(in strategies.Input) (order, error) {
				switch {
				case full:
					return promoteFully(in)
				case through != "":
					return promoteThrough(in, through)
				default:
					return promoteGate(in)
				}
			})
		},
	}
	c.register(cmd)
	cmd.Flags().BoolVar(&full, "full", false, "open all gates and skip the remaining weights")
	cmd.Flags().StringVar(&through, "through", "", "open all gates up to this `step`: its name, or its number as get shows it")
	complete(cmd, "through", stepNames)
	return cmd
}

// promoteFully opens everything; it is also the way to replace a Deployment
// that runs something which Git does not know.
func promoteFully(in strategies.Input) (order, error) {
	o := order{
		subject: "Promote " + in.App.Name + " fully",
		then:    in.App.Name + " skips the steps that are left; " + watchHint(in.App.Name),
	}
	if h := in.State.Held; h != nil && h.Reason == "Adoption" && in.Head.Render != nil {
		o.promotion = &rollout.Promotion{Release: in.Head.Render.Release(), Through: rollout.Full, Decision: rollout.Promote}
		o.then = "what runs is replaced at once by what Git says; " + watchHint(in.App.Name)
		return o, nil
	}
	release, err := inFlight(in)
	if err != nil {
		return order{}, err
	}
	o.promotion = &rollout.Promotion{Release: release.Hash, Through: rollout.Full, Decision: rollout.Promote}
	return o, nil
}

// promoteGate opens the gate that is shut, or ends the timed pause that runs.
func promoteGate(in strategies.Input) (order, error) {
	release, err := inFlight(in)
	if err != nil {
		return order{}, err
	}
	if h := in.State.Held; h != nil {
		return order{}, fmt.Errorf("it is held, and a promotion does not change that: %s", h.Message)
	}
	step, shut := strategies.Gate(in)
	if at, open := opened(in, release); !shut && open {
		o := throughStep(in, release, at)
		o.promotion = in.Promotion // pushing it again changes nothing
		return o, nil
	}
	if !shut {
		if step, shut = status.TimedPause(in); !shut {
			return order{}, notAtGate(in)
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
		return fmt.Errorf("it does not wait for a promotion, it is on hold; to end that: gitrollout hold %s --off", in.App.Name)
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
func promoteThrough(in strategies.Input, through string) (order, error) {
	release, err := inFlight(in)
	if err != nil {
		return order{}, err
	}
	if through == rollout.Full {
		return promoteFully(in)
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
	return order{}, usagef("--through %q is not a step; they are: %s", through, strings.Join(known, ", "))
}

// throughStep writes a step's index, which counts from 0, as the proposals do.
func throughStep(in strategies.Input, release *rollout.Release, step int) order {
	name := in.App.Name
	return order{
		promotion: &rollout.Promotion{Release: release.Hash, Through: strconv.Itoa(step), Decision: rollout.Promote},
		subject:   fmt.Sprintf("Promote %s past step %d", name, step+1),
		then:      fmt.Sprintf("%s goes on past step %d at the next pass; %s", name, step+1, watchHint(name)),
	}
}
