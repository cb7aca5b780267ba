package main

import (
	"context"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/views/console"
)

func completeApps() cobra.CompletionFunc {
	return completeNames((*console.Session).Names)
}

// completeSeveral completes the names of apps that are not on the command line yet.
func completeSeveral() cobra.CompletionFunc {
	return completing(func(w *console.Session, args []string) []string {
		return slices.DeleteFunc(w.Names(), func(name string) bool { return slices.Contains(args, name) })
	})
}

// completeNames completes a command's first argument.
func completeNames(names func(*console.Session) []string) cobra.CompletionFunc {
	return completing(func(w *console.Session, args []string) []string {
		if len(args) > 0 {
			return nil
		}
		return names(w)
	})
}

func complete(cmd *cobra.Command, flag string, values func(w *console.Session, args []string) []string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, completing(values)) // fails only for an unknown flag
}

// completing returns a function that completes with values from the repository, or with nothing if Git is unreadable.
func completing(values func(w *console.Session, args []string) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) (all []string, _ cobra.ShellCompDirective) {
		if w := quietWorld(cmd); w != nil {
			all = values(w, args)
		}
		return all, cobra.ShellCompDirectiveNoFileComp
	}
}

// quietWorld opens a session with a command's flags, without output. It returns nil on an error.
func quietWorld(cmd *cobra.Command) *console.Session {
	text := func(name string) string {
		if f := cmd.Flags().Lookup(name); f != nil {
			return f.Value.String()
		}
		return ""
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), 5*time.Second)
	defer cancel()
	w, err := openWorld(ctx, &sourceOptions{
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

func knownHashes(w *console.Session, args []string) []string {
	if len(args) == 0 {
		return nil
	}
	return w.Hashes(args[0])
}

func stepNames(w *console.Session, args []string) []string {
	if len(args) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return w.StepNames(ctx, args[0])
}
