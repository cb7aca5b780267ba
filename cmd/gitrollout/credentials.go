package main

import (
	"cmp"
	"errors"
	"net/url"
	"os"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/git/wire"
)

func (o *sourceOptions) options() (git.Options, error) {
	auth, err := o.auth()
	if err != nil {
		return git.Options{}, &failure{code: exitUsage, err: err}
	}
	opts := git.Options{URL: o.repo, Branch: o.branch, Cluster: o.cluster, Auth: auth, Keys: o.keys,
		Identity: o.who, Refs: o.refs}
	if file := o.signing(); file != "" {
		s := signer(file)
		if _, err := s.Read(); err != nil {
			return git.Options{}, &failure{code: exitUsage, err: err}
		}
		opts.Sign = s.Sign
	}
	return opts, nil
}

// signing returns the signing key's file, or "".
func (o *sourceOptions) signing() string {
	return cmp.Or(o.signingKey, os.Getenv("GITROLLOUT_SIGNING_KEY"))
}

// auth returns credentials of flags and environment, not of the repository's URL.
func (o *sourceOptions) auth() (wire.Auth, error) {
	a := o.access
	if u, err := url.Parse(a.Proxy); err == nil && u.User != nil {
		return a, errors.New("--git-proxy contains credentials, which all users of this machine could read: " +
			"put the URL into HTTPS_PROXY")
	}
	err := a.Complete(os.Getenv, time.Now)
	return a, err
}

// checkArgument refuses a password in --repo: all users can read command lines.
func checkArgument(repo string) error {
	if u, err := url.Parse(repo); err == nil && u.User != nil && strings.HasPrefix(strings.ToLower(u.Scheme), "http") {
		if _, has := u.User.Password(); has {
			return usagef("--repo has a password in it, which all users of this machine could read: " +
				"put that URL into GITROLLOUT_REPO, or the password into GITROLLOUT_GIT_TOKEN_FILE; see: gitrollout help environment")
		}
	}
	return nil
}

func signer(file string) *git.Signer {
	return &git.Signer{File: file, Passphrase: os.Getenv("GITROLLOUT_SIGNING_PASSPHRASE")}
}
