package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

func newHold(s streams) *cobra.Command {
	c := &pushCommand{streams: s}
	var reason string
	var off bool
	cmd := &cobra.Command{
		Use:   "hold APP",
		Short: "Keep a release where it is",
		Long: `Keep a release at the step that it has reached, until the hold is taken off,
the release is promoted or aborted, or another version is pushed.

It pushes the app's promotion file to your branch; --off removes the file.`,
		Example: `  gitrollout hold shop --reason "waiting for the database"
  gitrollout hold shop --off`,
		Args:              exactlyOne("app"),
		ValidArgsFunction: completeApps(),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.carryOut(cmd.Context(), args[0], func(in strategies.Input) (order, error) {
				if off {
					return holdOff(in)
				}
				return hold(in, reason)
			})
		},
	}
	c.register(cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "why")
	cmd.Flags().BoolVar(&off, "off", false, "end the hold")
	return cmd
}

// hold keeps the release in flight where it is.
func hold(in strategies.Input, reason string) (order, error) {
	release, err := inFlight(in)
	if err != nil {
		return order{}, err
	}
	return order{
		promotion: &rollout.Promotion{Release: release.Hash, Decision: rollout.Hold, Reason: clean(reason)},
		subject:   fmt.Sprintf("Hold release %s of %s", release.Hash, in.App.Name),
		then:      fmt.Sprintf("%s stays where it is; to go on: gitrollout hold %s --off", in.App.Name, in.App.Name),
	}, nil
}

// holdOff removes a promotion file that says hold. Steps that were passed
// before are on record and stay passed.
func holdOff(in strategies.Input) (order, error) {
	if in.Promotion == nil || in.Promotion.Decision != rollout.Hold {
		return order{}, errors.New("there is no hold to end")
	}
	return order{
		subject: "End the hold of " + in.App.Name,
		then:    in.App.Name + " goes on at the next pass; " + watchHint(in.App.Name),
	}, nil
}
