package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/console"
	"gitrollout.dev/gitrollout/views/doctor"
	"gitrollout.dev/gitrollout/views/terminal"

	"k8s.io/client-go/rest"
)

type doctorCommand struct {
	streams
	output outputOption
	color  colorOption
	as     string
	noPush bool
	rbac   bool
}

func newDoctor(s streams) *cobra.Command {
	c := &doctorCommand{streams: s}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the access to Git and to the cluster, and print a fix for each problem",
		Long: `Check everything that "gitrollout run" needs, with the rights of this command, and
print a fix for each problem:

  git      the branch can be read; branches below gitrollout/ can be pushed; the
           configuration can be read; whose state the state branch has
  forge    branch protection and code owners, where the configuration names a forge
  cluster  it answers; its version; the rights, kind by kind and namespace by
           namespace; that it knows all kinds; Secrets that analyses name; that keys
           open the encrypted files
  clock    this machine's, the API server's and the Git server's

To test its push rights, it pushes one commit to a new branch,
gitrollout/promote/<cluster>/doctor-<time>, and removes the branch. With --no-push it
writes nothing at all. It asks the API server for the rights on the cluster
(SelfSubjectAccessReview), with --as for the rights of another account.

With --rbac it checks nothing. It prints roles and bindings with the least rights for
the apps in Git and on record: for the account of --as (default:
system:serviceaccount:gitrollout:gitrollout), and for the apps' service accounts.

The exit code is 1 if there is a problem; warnings do not count.`,
		Example: `  gitrollout doctor
  gitrollout doctor --as system:serviceaccount:gitrollout:gitrollout
  gitrollout doctor --no-push -o json
  gitrollout doctor --rbac | kubectl apply -f -`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.rbac {
				return c.printRBAC(cmd.Context())
			}
			return c.run(cmd.Context(), time.Now)
		},
	}
	c.output.register(cmd, "json", "yaml")
	c.color.register(cmd)
	cmd.Flags().StringVar(&c.as, "as", "",
		"check the rights of this `user` in the cluster, such as the reconciler's service account")
	cmd.Flags().BoolVar(&c.rbac, "rbac", false, "print the least rights that are needed, as YAML")
	cmd.Flags().BoolVar(&c.noPush, "no-push", false, "skip the push test, which creates and deletes a branch gitrollout/…")
	return cmd
}

func (c *doctorCommand) run(ctx context.Context, now func() time.Time) error {
	e := &doctor.Examination{Findings: []doctor.Finding{}}
	w, err := openWorld(ctx, &c.source, c.streams)
	if err != nil {
		e.Cluster = c.source.cluster
		e.Add("git.read", doctor.Problem, doctor.GitFix(err), "%s", strings.ReplaceAll(err.Error(), "\n", "; "))
	} else {
		e.Cluster = w.Cluster
		c.git(w).Examine(ctx, e, now)
	}
	config, err := c.target.config()
	if err != nil {
		const fix = "name a kubeconfig with --kubeconfig or KUBECONFIG"
		e.Add("cluster", doctor.Problem, fix, "%s", strings.TrimSuffix(rollout.OneLine(err.Error()), ": "+fix))
	} else {
		c.cluster(w, config).Examine(ctx, e, now)
	}
	draw := func() string { return terminal.Examination(*e, c.color.lookOf(c.out)) }
	return cmp.Or(c.output.show(c.streams, e, draw), silentIf(e.Problems > 0, exitFailed))
}

func (c *doctorCommand) printRBAC(ctx context.Context) error {
	const prefix = "system:serviceaccount:"
	account, is := strings.CutPrefix(cmp.Or(c.as, prefix+rollout.OwnNamespace+":gitrollout"), prefix)
	namespace, name, found := strings.Cut(account, ":")
	if !is || !found {
		return usagef("--as %q is not a service account; write %sNAMESPACE:NAME", c.as, prefix)
	}
	w, err := openWorld(ctx, &c.source, c.streams)
	if err != nil {
		return err
	}
	config, err := c.target.config()
	if err != nil {
		return err
	}
	text, err := c.cluster(w, config).RBAC(namespace + "/" + name)
	if err != nil {
		return &failure{code: exitCluster, err: err}
	}
	_, err = fmt.Fprint(c.out, text)
	return err
}

func (c *doctorCommand) git(w *console.Session) doctor.Git {
	g := doctor.Git{Repo: w.Repo, Heads: w.Heads, Branch: w.Tip, Cluster: w.Cluster, Own: protected(),
		Head: w.Head, Build: w.Renderer, NoPush: c.noPush}
	if options, err := c.source.options(); err == nil {
		g.Forge = newForge(c.source, options.Auth, w.Repo.Remote().String(), nil).Options
	}
	return g
}

func (c *doctorCommand) cluster(w *console.Session, config *rest.Config) doctor.Cluster {
	look := doctor.Cluster{Config: config, As: c.as, Wait: connectTimeout, Namespaces: c.target.namespaces}
	if server, err := cluster.NewDryRunner(config); err == nil {
		look.OtherOwners = server.OtherOwners
	}
	if w != nil {
		look.Name, look.UID, look.Apps = w.Cluster, w.UID, []doctor.App{}
		for _, name := range w.Names() {
			s, _ := w.States.Of(name)
			look.Apps = append(look.Apps, doctor.AppOf(w.Tip, w.Apps[name], s, w.Head(w.Apps[name]).Render))
		}
	}
	look.IdentifiedBy = cluster.Options{Namespaces: look.Namespaces, UID: look.UID}.IdentifiedBy()
	return look
}
