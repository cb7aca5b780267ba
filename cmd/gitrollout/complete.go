package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
	"gitrollout.dev/gitrollout/views/terminal"
)

// completeApps completes the names of apps.
func completeApps() cobra.CompletionFunc {
	return completeNames((*world).names)
}

// completeNames completes the only argument. It says nothing if Git cannot be read without asking.
func completeNames(names func(*world) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		w := quietWorld(cmd)
		if len(args) > 0 || w == nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names(w), cobra.ShellCompDirectiveNoFileComp
	}
}

// complete completes the values of a flag from what Git says.
func complete(cmd *cobra.Command, flag string, values func(w *world, args []string) []string) {
	// The error would be that there is no such flag, which the help's test finds.
	_ = cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, args []string, _ string) (
		[]string, cobra.ShellCompDirective,
	) {
		w := quietWorld(cmd)
		if w == nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return values(w, args), cobra.ShellCompDirectiveNoFileComp
	})
}

// quietWorld reads Git with a command's flags and says nothing; nil if it cannot.
func quietWorld(cmd *cobra.Command) *world {
	text := func(name string) string {
		if f := cmd.Flags().Lookup(name); f != nil {
			return f.Value.String()
		}
		return ""
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), 5*time.Second)
	defer cancel()
	w, err := openWorld(ctx, sourceOptions{
		repo: text("repo"), branch: text("branch"), cluster: text("cluster"), credentialOptions: credentialOptions{
			sshKey: text("ssh-key"), knownHosts: text("known-hosts"), ca: text("git-ca"), cert: text("git-cert"),
			key: text("git-key"), proxy: text("git-proxy"),
		},
	}, streams{out: io.Discard, err: io.Discard})
	if err != nil {
		return nil
	}
	return w
}

// knownHashes are the releases of an app, each with what it is: in flight,
// stable, rejected or verified before.
func knownHashes(w *world, args []string) []string {
	if len(args) == 0 {
		return nil
	}
	s, err := w.states.Of(args[0])
	if err != nil {
		return nil
	}
	var hashes []string
	add := func(h rollout.Hash, what string) {
		if h != "" && !slices.ContainsFunc(hashes, func(known string) bool { return strings.HasPrefix(known, string(h)) }) {
			hashes = append(hashes, fmt.Sprintf("%s\t%s", h, what))
		}
	}
	if s.Release != nil {
		add(s.Release.Hash, "in flight: "+terminal.Clean(s.Release.Subject))
	}
	if s.Stable != nil {
		add(s.Stable.Hash, "stable: "+terminal.Clean(s.Stable.Subject))
	}
	for _, r := range s.Rejected {
		add(r.Hash, "rejected: "+terminal.Clean(r.Reason))
	}
	for _, h := range s.Verified {
		add(h, "served before")
	}
	return hashes
}

// stepNames are the steps of an app's release as --through takes them.
func stepNames(w *world, args []string) []string {
	if len(args) == 0 {
		return nil
	}
	app, err := w.app(args[0])
	if err != nil {
		return nil
	}
	w.detail = true
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	in, err := w.input(ctx, app, time.Now())
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range strategies.Explain(in) {
		for i, step := range e.Steps {
			name := fmt.Sprintf("%s\t%s", cmp.Or(step.Name, fmt.Sprint(i+1)), step.Text)
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}
