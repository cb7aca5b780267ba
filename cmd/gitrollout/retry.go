package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

func newRetry(s streams) *cobra.Command {
	c := &pushCommand{streams: s}
	cmd := &cobra.Command{
		Use:   "retry APP",
		Short: "Try a rejected release again, from its first step",
		Long: `Try the release that Git asks for and that was rejected once more, from its
first step.

It pushes the app's promotion file to your branch.`,
		Example:           `  gitrollout retry shop`,
		Args:              exactlyOne("app"),
		ValidArgsFunction: completeApps(),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.carryOut(cmd.Context(), args[0], retry)
		},
	}
	c.register(cmd)
	return cmd
}

func retry(in strategies.Input) (order, error) {
	if in.Head.Render == nil {
		return order{}, fmt.Errorf("what Git asks for cannot be read: %w", in.Head.Err)
	}
	hash := in.Head.Render.Release()
	rejection, rejected := in.State.IsRejected(hash)
	switch {
	case !rejected && in.State.Release != nil:
		return order{}, fmt.Errorf("release %s is in flight and was not rejected", in.State.Release.Hash)
	case !rejected:
		return order{}, errors.New("nothing to try again: what Git asks for was not rejected")
	}
	return order{
		// The time makes a second retry another file than the first one.
		promotion: &rollout.Promotion{Release: hash, Decision: rollout.Retry, At: rollout.Second(in.Now).Format(time.RFC3339)},
		subject:   fmt.Sprintf("Retry release %s of %s", hash, in.App.Name),
		then:      fmt.Sprintf("%s starts again at its first step (it was rejected: %s); %s", in.App.Name, rejection.Reason, watchHint(in.App.Name)),
	}, nil
}
