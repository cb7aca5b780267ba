package main

import (
	"cmp"
	"context"
	"net/netip"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/publish/call"
	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/rollout"
)

// trustOptions say whose signatures count, and what those may ask who write analyses. They are flags and not
// part of the configuration in Git, where whoever is to be kept out could change them.
type trustOptions struct {
	commits   string
	keyring   string
	promoters string
	state     string
	allowed   []string // CIDRs
	account   string   // as which apps are written whose entries name none
	policy    policyOptions
}

func (o *trustOptions) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.commits, "verify-commits", "",
		"follow the branch only to commits signed with an SSH key in this `file` (format: allowed_signers)")
	flags.StringVar(&o.keyring, "verify-keyring", "",
		"follow the branch only to commits signed with an OpenPGP key in this `file` (armored); "+
			"with --verify-commits: or")
	flags.StringVar(&o.promoters, "promoters", "", "obey only promotion files committed or merged with an SSH signature "+
		"by a key in this `file` (format: allowed_signers)")
	flags.StringVar(&o.state, "verify-state", "", "take the record only from a state branch whose newest commit is "+
		"signed with an SSH key in this `file` (format: allowed_signers); needs --signing-key")
	flags.StringSliceVar(&o.allowed, "analysis-allow-cidr", nil, "let analyses ask these addresses although they are of "+
		"this machine, its link or its cloud's metadata: 127.0.0.0/8 (default: none of them)")
	flags.StringVar(&o.account, "default-service-account", "", "write the objects of an app whose entry has no "+
		"serviceAccount as the service account of this `name` in the app's namespace (default: gitrollout's own)")
	o.policy.register(cmd)
}

// reach is what analyses may ask. open has refused what is no range.
func (o trustOptions) reach() (r call.Reach) {
	for _, text := range o.allowed {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			r.Own = append(r.Own, prefix)
		}
	}
	return r
}

// as is the context of what is done in the cluster for an app: its own service account's, or the default one's.
func (o trustOptions) as(ctx context.Context, app rollout.App) context.Context {
	if app.ServiceAccount == "" {
		app.Namespace = cmp.Or(app.Namespace, "default")
		app = app.As(o.account)
	}
	return cluster.As(ctx, app.ServiceAccount)
}

// open reads the files once, so that a mistake in them is found at the start; nil if there are none.
func (o trustOptions) open() (*git.Keys, error) {
	for _, text := range o.allowed {
		if _, err := netip.ParsePrefix(text); err != nil {
			return nil, usagef("--analysis-allow-cidr %q is no range of addresses; write 127.0.0.0/8, or ::1/128", text)
		}
	}
	keys, err := git.OpenKeys(git.KeyFiles{Commits: o.commits, Keyring: o.keyring, Promoters: o.promoters, State: o.state})
	if err != nil {
		return nil, &failure{code: exitUsage, err: err}
	}
	return keys, nil
}

// stateCheck tells whether a commit of the state branch is to be believed; nil if every one is.
func stateCheck(keys *git.Keys) func(reconciler.Snapshot) error {
	if keys.Files().State == "" {
		return nil
	}
	return func(tree reconciler.Snapshot) error {
		_, err := tree.(*git.Snapshot).SignedBy(keys.State())
		return err
	}
}
