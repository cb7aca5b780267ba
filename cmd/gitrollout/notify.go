package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/publish/notify"
	"gitrollout.dev/gitrollout/publish/notify/service"
	"gitrollout.dev/gitrollout/rollout"
)

type notifyTest struct {
	streams
	to    string
	event string
}

func newNotifyTest(s streams) *cobra.Command {
	c := &notifyTest{streams: s}
	cmd := &cobra.Command{
		Use:   "test --to NAME",
		Short: "Send a sample to a receiver",
		Long: `Send a sample to a receiver that the configuration in Git names.

It says that it is a sample. Credentials in Secrets are read from the cluster
with your own rights; those in the environment from this shell's.`,
		Example: `  gitrollout notify test --to team-slack
  gitrollout notify test --to on-call --event aborted
  gitrollout notify test --to on-call --event recovered`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd.Context()) },
	}
	cmd.Flags().StringVar(&c.to, "to", "", "`name` of the receiver")
	cmd.Flags().StringVar(&c.event, "event", "", "`kind` of the event (default: the first kind that the receiver gets)")
	return cmd
}

func (c *notifyTest) run(ctx context.Context) (err error) {
	if c.source, err = c.source.resolve(ctx, c.streams); err != nil {
		return err
	}
	repo, err := c.source.open(ctx, "", "")
	if err != nil {
		return err
	}
	_, tree, err := newest(ctx, repo, c.streams)
	if err != nil {
		return err
	}
	config, err := readConfig(tree, c.source.cluster)
	if err != nil {
		return err
	}
	r, err := c.receiver(config)
	if err != nil {
		return err
	}
	m, err := c.message(r)
	if err != nil {
		return err
	}
	var client *cluster.Client
	all := slices.AppendSeq(slices.Collect(maps.Values(r.Credentials)), maps.Values(r.Headers))
	if slices.ContainsFunc(all, func(c rollout.Credential) bool { return c.Secret.Name != "" }) {
		kube, err := c.target.config()
		if err != nil {
			return err
		}
		if client, err = cluster.New(kube, cluster.Options{Cluster: c.source.cluster}); err != nil {
			return &failure{code: exitCluster, err: err}
		}
	}
	if err := service.Send(ctx, serviceDeps(client), r, m); err != nil {
		return fmt.Errorf("%s (%s): %w", r.Name, r.Service, err)
	}
	return c.say(fmt.Sprintf("%s (%s) has taken the message: %s", r.Name, r.Service, m.Title))
}

func (c *notifyTest) receiver(config *rollout.Config) (rollout.Receiver, error) {
	r, found := rollout.Find(config.Receivers, func(r rollout.Receiver) bool { return r.Name == c.to })
	names := rollout.Mapped(config.Receivers, func(r rollout.Receiver) string { return r.Name })
	switch {
	case found:
		return r, nil
	case len(names) == 0:
		return rollout.Receiver{}, &rollout.InvalidError{File: config.File, Field: "notifications",
			Msg: "names no receiver", Fix: "see docs/notifications.md"}
	case c.to == "":
		return rollout.Receiver{}, usagef("name a receiver with --to: %s", strings.Join(names, ", "))
	default:
		return rollout.Receiver{}, usagef("--to %s: %s has no receiver of that name, only %s", c.to, config.File,
			strings.Join(names, ", "))
	}
}

func (c *notifyTest) message(r rollout.Receiver) (notify.Message, error) {
	profile := service.ProfileOf(r.Service)
	kind := rollout.EventKind(c.event)
	if c.event == "" {
		kind = append(slices.Clone(r.On), profile.Defaults...)[0]
	}
	if !slices.Contains(rollout.EventKinds(), kind) {
		return notify.Message{}, usagef("--event %q is not an event; see docs/notifications.md", c.event)
	}
	r.Apps = nil
	m, ok, err := notify.MessageFor(r, profile, notify.Sample(c.source.cluster, kind, time.Now()))
	if err == nil && !ok {
		err = usagef("--event %s: %s does not get this event", c.event, r.Name)
	}
	return m, err
}
