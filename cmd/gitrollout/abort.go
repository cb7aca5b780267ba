package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

func newAbort(s streams) *cobra.Command {
	c := &pushCommand{streams: s}
	var reason string
	cmd := &cobra.Command{
		Use:   "abort APP",
		Short: "Take a release back to stable and reject it",
		Long: `Take a release back to stable at once, and do not try it again.

It pushes the app's promotion file to your branch. Git still asks for the
release afterwards, so the app is Degraded until you revert the commit (there
will be a branch gitrollout/revert/<cluster>/<app> to merge), push another
version, or say retry. Where you can, revert the commit instead: that does both.`,
		Example:           `  gitrollout abort shop --reason "checkout is slow"`,
		Args:              exactlyOne("app"),
		ValidArgsFunction: completeApps(),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.carryOut(cmd.Context(), args[0], func(in strategies.Input) (order, error) {
				return abort(in, reason)
			})
		},
	}
	c.register(cmd)
	cmd.Flags().StringVar(&reason, "reason", "", "why; it is shown wherever the rejected release is")
	return cmd
}

// abort takes the release in flight back.
func abort(in strategies.Input, reason string) (order, error) {
	release, err := inFlight(in)
	if err != nil {
		return order{}, err
	}
	return order{
		promotion: &rollout.Promotion{Release: release.Hash, Decision: rollout.Abort, Reason: clean(reason)},
		subject:   fmt.Sprintf("Abort release %s of %s", release.Hash, in.App.Name),
		then:      fmt.Sprintf("%s goes back to %s at the next pass; %s", in.App.Name, in.State.Stable.Hash, watchHint(in.App.Name)),
	}, nil
}
