package main

import (
	"context"
	"io"
	"math"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/views/console"
)

func (s streams) completion(values func(w *console.Session, args []string) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) (found []string, _ cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), 5*time.Second)
		defer cancel()
		if w, err := openWorld(ctx, &s.source, streams{out: io.Discard, err: io.Discard}); err == nil {
			found = values(w, args)
		}
		return found, cobra.ShellCompDirectiveNoFileComp
	}
}

func (s streams) completeApps() cobra.CompletionFunc {
	return s.completeNames((*console.Session).Names, 1)
}

func (s streams) completeSeveral() cobra.CompletionFunc {
	return s.completeNames((*console.Session).Names, math.MaxInt)
}

func (s streams) completeNames(names func(*console.Session) []string, most int) cobra.CompletionFunc {
	return s.completion(func(w *console.Session, args []string) []string {
		if len(args) >= most {
			return nil
		}
		return slices.DeleteFunc(names(w), func(name string) bool { return slices.Contains(args, name) })
	})
}

func (s streams) complete(cmd *cobra.Command, flag string, values func(w *console.Session, args []string) []string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, s.completion(values)) // fails only for an unknown flag
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
