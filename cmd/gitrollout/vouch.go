package main

import (
	"context"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/git/program"
	"gitrollout.dev/gitrollout/git/sign"
	"gitrollout.dev/gitrollout/views/console"
)

// vouchOptions select the parents of signed commits, because a signed commit approves all ancestors.
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

// verifier returns a signed commit's parent's verifier, or nil.
func (o vouchOptions) verifier(ctx context.Context, source sourceOptions) (git.Verifier, error) {
	if source.signing() == "" || o.vouch {
		return nil, nil
	}
	if o.keys.Commits == "" { // if git has none either, the field stays empty
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

// openToSign opens a session for pushes, with the check for signed commits.
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

// anyOf accepts a commit that any verifier accepts.
type anyOf []git.Verifier

// Verify implements git.Verifier.
func (a anyOf) Verify(commit []byte) (who string, err error) {
	for _, v := range a {
		if who, err = v.Verify(commit); err == nil {
			return who, nil
		}
	}
	return "", err
}
