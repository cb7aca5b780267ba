package main

import (
	"cmp"
	"context"
	"net/netip"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/call"
	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/rollout"
)

// trustOptions are flags, because an attacker might change settings in Git.
type trustOptions struct {
	git.KeyFiles
	allowed []string // CIDRs
	account string   // of apps whose entry has no serviceAccount
	own     bool     // write with the user's rights, whatever service account an app has
	policy  policyOptions
}

func (o *trustOptions) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.Commits, "verify-commits", "",
		"follow the branch only to commits signed with an SSH key in this `file` (format: allowed_signers)")
	flags.StringVar(&o.Keyring, "verify-keyring", "",
		"follow the branch only to commits signed with an OpenPGP key in this `file` (armored); "+
			"with --verify-commits, either signature is enough")
	flags.StringVar(&o.Promoters, "promoters", "", "obey only promotion files committed or merged with an SSH signature "+
		"by a key in this `file` (format: allowed_signers)")
	flags.StringVar(&o.State, "verify-state", "", "take the record only from a state branch whose newest commit is "+
		"signed with an SSH key in this `file` (format: allowed_signers); needs --signing-key")
	flags.StringVar(&o.Fleet, "verify-fleet", "", "count only records of other clusters whose state branch's newest "+
		"commit is signed with the cluster's SSH key in this `file` (format: allowed_signers, with clusters as principals)")
	flags.StringSliceVar(&o.allowed, "analysis-allow-cidr", nil, "let analyses call these addresses, even addresses "+
		"of this machine, its link or its cloud's metadata service, such as 127.0.0.0/8 (default: none)")
	flags.StringVar(&o.account, "default-service-account", "", "for apps whose entry has no "+
		"serviceAccount, write objects as the service account of this `name` in the app's namespace (default: gitrollout's own)")
	o.policy.register(cmd)
}

// reach returns additional addresses for analyses. open reports invalid ranges.
func (o trustOptions) reach() (r call.Reach) {
	for _, text := range o.allowed {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			r.Own = append(r.Own, prefix)
		}
	}
	return r
}

func (o trustOptions) as(ctx context.Context, app rollout.App) context.Context {
	if o.own {
		return ctx
	}
	if app.ServiceAccount == "" {
		app.Namespace = cmp.Or(app.Namespace, "default")
		app = app.As(o.account)
	}
	return cluster.As(ctx, app.ServiceAccount)
}

// open reads the key files at the start, to find errors early. Without them, it returns nil.
func (o trustOptions) open() (*git.Keys, error) {
	for _, text := range o.allowed {
		if _, err := netip.ParsePrefix(text); err != nil {
			return nil, usagef("--analysis-allow-cidr %q is not a CIDR range; write 127.0.0.0/8, or ::1/128", text)
		}
	}
	keys, err := git.OpenKeys(o.KeyFiles)
	return keys, withCode(exitUsage, err)
}

// stateCheck returns the state branch's check, or nil without --verify-state.
func stateCheck(keys *git.Keys) func(reconciler.Snapshot) error {
	if keys.Files().State == "" {
		return nil
	}
	return func(tree reconciler.Snapshot) error {
		_, err := tree.(*git.Snapshot).SignedBy(keys.Accepted().State)
		return err
	}
}
