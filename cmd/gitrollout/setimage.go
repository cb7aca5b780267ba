package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/author/images"
	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/console"
)

func newSetImage(s streams) *cobra.Command {
	c, branch := &pushCommand{streams: s}, ""
	cmd := &cobra.Command{
		Use:   "image APP NAME=TAG...",
		Short: "Push a commit that sets an image of an app",
		Long: `Push the commit that you would make to release an image. It changes the line with the
tag, the digest or the repository in a kustomization, in a chart's values or in a
manifest. All other text stays.

NAME is the repository of an image, or a container. All images of the repository change.

The app is rendered before and after the change. If anything but these images differs,
nothing is pushed, and the error names each line to change by hand, such as an anchor
or a vendored file. If a base or a value file changes other apps as well, in any
cluster, the error names them, and --propose lists them in the proposal.`,
		Example: `  gitrollout set image shop web=v2
  gitrollout set image shop web=ghcr.io/acme/web:v2 migrate=v2 --dry-run
  gitrollout set image shop web=@sha256:<64 digits> --propose shop-v2`,
		ValidArgsFunction: s.completeImages,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usagef("%s takes an app and NAME=TAG; see: %s --help", cmd.CommandPath(), cmd.CommandPath())
			}
			if strings.HasPrefix(branch, rollout.OwnBranches) || branch == c.source.branch {
				return usagef("--propose %s is in use; name a new branch", branch)
			}
			var orders []images.Order
			for _, arg := range args[1:] {
				order, err := images.Parse(arg)
				if err != nil {
					return usagef("%w", err)
				}
				orders = append(orders, order)
			}
			set := func(w *console.Session, app string) (propose.Change, error) {
				return console.SetImages(w, app, orders, branch)
			}
			return c.run(cmd.Context(), args[:1], propose.Action{}, set)
		},
	}
	c.registerPush(cmd)
	cmd.Flags().StringVar(&branch, "propose", "", "push to this new `branch`, for a pull request")
	return cmd
}

func (s streams) completeImages(cmd *cobra.Command, args []string, last string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return s.completeApps()(cmd, args, last)
	}
	names, directive := s.completion(func(w *console.Session, args []string) (names []string) {
		if head := w.Head(w.Apps[args[0]]); head.Render != nil {
			names = slices.Sorted(maps.Keys(images.Names(head.Render)))
		}
		return rollout.Mapped(names, func(name string) string { return name + "=" })
	})(cmd, args, last)
	return names, directive | cobra.ShellCompDirectiveNoSpace
}
