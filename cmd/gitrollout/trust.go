package main

import (
	"cmp"
	"context"
	"net/netip"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/call"
	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/git/program"
	"gitrollout.dev/gitrollout/git/sign"
	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/reconciler/adapters"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/console"
)

// trustOptions come from flags, because an attacker could change settings in Git.
type trustOptions struct {
	git.KeyFiles
	allowed []string // CIDRs
	account string   // for apps whose entry has no serviceAccount
	own     bool     // write with the user's rights, even if an app has a service account
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
	flags.StringVar(&o.Fleet, "verify-fleet", "", "trust another cluster's record only if its state branch's newest "+
		"commit is signed with that cluster's SSH key in this `file` (format: allowed_signers, with clusters as principals)")
	flags.StringSliceVar(&o.allowed, "analysis-allow-cidr", nil, "let analyses call these address ranges, such as "+
		"127.0.0.0/8, even if this machine, its link or its cloud's metadata service has them (default: none)")
	flags.StringVar(&o.account, "default-service-account", "", "for apps whose entry has no "+
		"serviceAccount, write objects as the service account of this `name` in the app's namespace (default: gitrollout's own)")
	o.policy.register(cmd)
}

// reach returns the additional addresses that analyses may call. It omits invalid ranges, which the method open
// reports.
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

// open checks the address ranges and key files when gitrollout starts. Without a key file, it returns nil.
func (o trustOptions) open() (*git.Keys, error) {
	for _, text := range o.allowed {
		if _, err := netip.ParsePrefix(text); err != nil {
			return nil, usagef("--analysis-allow-cidr %q is not a CIDR range; write 127.0.0.0/8, or ::1/128", text)
		}
	}
	keys, err := git.OpenKeys(o.KeyFiles)
	return keys, withCode(exitUsage, err)
}

// stateCheck returns a function that checks the state branch's signature. Without --verify-state, it is nil.
func stateCheck(keys *git.Keys) func(reconciler.Snapshot) error {
	if keys.Files().State == "" {
		return nil
	}
	return func(tree reconciler.Snapshot) error {
		_, err := tree.(*git.Snapshot).SignedBy(keys.Accepted().State)
		return err
	}
}

func policyFileFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "policy", "",
		"hold the apps that break the policy in this `file`, which lists projects and the rights of their apps")
}

type policyOptions struct {
	file string
	ref  string // BRANCH:PATH
}

func (o *policyOptions) register(cmd *cobra.Command) {
	policyFileFlag(cmd, &o.file)
	cmd.Flags().StringVar(&o.ref, "policy-ref", "",
		"`branch:path` of the policy in the repository; let only the platform team push to that branch")
}

func (o *policyOptions) check(users string) error {
	branch, path, found := strings.Cut(o.ref, ":")
	switch {
	case o.file != "" && o.ref != "":
		return usagef("--policy and --policy-ref exclude each other")
	case o.ref != "" && (!found || branch == "" || path == ""):
		return usagef("--policy-ref %q is not branch:path; write platform:policy/prod.yaml", o.ref)
	case o.ref != "" && branch == users:
		return usagef("--policy-ref names branch %s, the branch of the apps; name a branch of the platform team", branch)
	}
	_, err := readPolicy(o.file)
	return err
}

func readPolicy(file string) (*rollout.Policy, error) {
	if file == "" {
		return nil, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, usagef("--policy: %v", err)
	}
	return rollout.ParsePolicy(file, data)
}

// edges returns the functions that read the policy and approve promotions. Without policy flags, policy is nil. If
// --promoters is also missing, approve is nil.
func (o policyOptions) edges(repo *git.Repo, keys *git.Keys) (
	policy func(rollout.Heads) (*rollout.Policy, error), approve reconciler.Approver,
) {
	if o != (policyOptions{}) {
		policy = (&adapters.Policy{File: o.file, Ref: o.ref, Repo: repo, Keys: keys}).Read
	}
	if policy != nil || keys.Files().Promoters != "" {
		approve = adapters.Approver(repo, keys)
	}
	return policy, approve
}

// vouchOptions check the ancestors of signed commits, because a signature also approves all ancestors.
type vouchOptions struct {
	vouch bool
	keys  trustOptions
}

func (o *vouchOptions) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&o.vouch, "vouch", false, "with --signing-key: sign on top of commits without an allowed signature")
	flags.StringVar(&o.keys.Commits, "verify-commits", "",
		"with --signing-key: the allowed SSH keys, in this `file` "+
			"(default: git's gpg.ssh.allowedSignersFile); the signing key counts as well")
	flags.StringVar(&o.keys.Keyring, "verify-keyring", "",
		"with --signing-key: the allowed OpenPGP keys, in this `file` (armored)")
}

func (o vouchOptions) verifier(ctx context.Context, source sourceOptions) (git.Verifier, error) {
	if source.signing() == "" || o.vouch {
		return nil, nil
	}
	if o.keys.Commits == "" {
		o.keys.Commits, _ = program.Says(ctx, "config", "--type=path", "--get", "gpg.ssh.allowedSignersFile")
	}
	own, err := signer(source.signing()).Read()
	if err != nil {
		return nil, &failure{code: exitUsage, err: err}
	}
	either := anyOf{sign.Policy{SSH: own.Signers("you")}}
	keys, err := o.keys.open()
	if keys != nil {
		either = append(either, keys.Accepted().Commits)
	}
	return either, err
}

func openToSign(ctx context.Context, from *sourceOptions, vouch vouchOptions, s streams) (*console.Session, error) {
	signers, err := vouch.verifier(ctx, *from)
	if err != nil {
		return nil, err
	}
	w, err := openWorld(ctx, from, s)
	if err == nil {
		w.Signers, w.Unsigned = signers, "look at them (git show), then repeat this with --vouch"
	}
	return w, err
}

type anyOf []git.Verifier

func (a anyOf) Verify(commit []byte) (who string, err error) {
	for _, v := range a {
		if who, err = v.Verify(commit); err == nil {
			return who, nil
		}
	}
	return "", err
}
