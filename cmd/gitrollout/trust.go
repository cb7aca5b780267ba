package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/git/sign"
	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/rollout"
)

// trustOptions say whose signatures count. They are flags and not part of the
// configuration in Git, where whoever is to be kept out could change them.
type trustOptions struct {
	commits   string
	keyring   string
	promoters string
	state     string
}

func (o *trustOptions) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&o.commits, "verify-commits", "", "follow the branch only to commits signed with an SSH key in this `file` (format: allowed_signers)")
	flags.StringVar(&o.keyring, "verify-keyring", "", "follow the branch only to commits signed with an OpenPGP key in this `file` (armored); with --verify-commits: or")
	flags.StringVar(&o.promoters, "promoters", "", "obey only promotion files committed or merged with an SSH signature by a key in this `file` (format: allowed_signers)")
	flags.StringVar(&o.state, "verify-state", "", "take the record only from a state branch whose newest commit is signed with an SSH key in this `file` (format: allowed_signers); needs --signing-key")
}

// open reads the files once, so that a mistake in them is found at the start;
// nil if there are none.
func (o trustOptions) open() (*trust, error) {
	if o == (trustOptions{}) {
		return nil, nil
	}
	t := &trust{options: o}
	if err := t.read(); err != nil {
		return nil, &failure{code: exitUsage, err: err}
	}
	return t, nil
}

// trust judges the commits of the users' branch. Its files are read again at
// each poll, since that is how keys come and go.
type trust struct {
	options trustOptions

	mu        sync.Mutex
	files     [4][]byte // as read last
	reads     int       // how often they were others than before
	commits   sign.Policy
	promoters sign.Policy
	state     sign.Policy

	judged  string // the head, and the files, that were judged last
	refused *reconciler.Refusal
	trusted string // the last head that was to be followed; "" if there was none yet
	base    string // what is read while the head is refused
}

// read reads the files, and parses them if they changed.
func (t *trust) read() error {
	var files [4][]byte
	for i, f := range []struct{ flag, name string }{
		{"--verify-commits", t.options.commits}, {"--verify-keyring", t.options.keyring}, {"--promoters", t.options.promoters},
		{"--verify-state", t.options.state},
	} {
		if f.name == "" {
			continue
		}
		data, err := os.ReadFile(f.name)
		if err != nil {
			return fmt.Errorf("%s: %w", f.flag, err)
		}
		files[i] = data
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reads > 0 && slices.EqualFunc(files[:], t.files[:], bytes.Equal) {
		return nil
	}
	var commits, promoters, state sign.Policy
	var err error
	if t.options.commits != "" {
		commits.SSH, err = sign.ParseSigners("the file of --verify-commits", files[0])
	}
	if err == nil && t.options.keyring != "" {
		commits.OpenPGP, err = sign.ParseKeyring("the file of --verify-keyring", files[1])
	}
	if err == nil && t.options.promoters != "" {
		promoters.SSH, err = sign.ParseSigners("the file of --promoters", files[2])
	}
	if err == nil && t.options.state != "" {
		state.SSH, err = sign.ParseSigners("the file of --verify-state", files[3])
	}
	if err != nil {
		return err
	}
	t.files, t.commits, t.promoters, t.state = files, commits, promoters, state
	t.reads++
	return nil
}

// version changes with the files.
func (t *trust) version() string {
	if t == nil {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return fmt.Sprint(t.reads)
}

// follow tells which commit is to be read when the branch is at head, and why
// that is not head itself if it is not. That is the last head that was to be
// followed. After a restart nobody remembers it: then it is the nearest signed
// commit, and only the configuration is to be taken from there.
func (t *trust) follow(ctx context.Context, repo *git.Repo, head string) (main string, refused *reconciler.Refusal, err error) {
	if t == nil {
		return head, nil, nil
	}
	if err := t.read(); err != nil {
		return "", nil, err
	}
	if t.options.commits == "" && t.options.keyring == "" {
		return head, nil, nil
	}
	if judged := head + " " + t.version(); judged != t.judged {
		if err := t.judge(ctx, repo, head); err != nil {
			return "", nil, err
		}
		t.judged = judged
	}
	if t.refused == nil {
		return head, nil, nil
	}
	return t.base, t.refused, nil
}

func (t *trust) judge(ctx context.Context, repo *git.Repo, head string) error {
	tree, err := repo.Snapshot(ctx, head)
	if err != nil {
		return err
	}
	_, reason := tree.SignedBy(t.commits)
	if reason == nil {
		t.trusted, t.refused = head, nil
		return nil
	}
	// The commit is named by whoever tells the reason.
	if cause := errors.Unwrap(reason); cause != nil {
		reason = cause
	}
	if t.base = t.trusted; t.base == "" {
		if t.base, err = repo.LastSigned(ctx, head, t.commits); err != nil {
			return fmt.Errorf("commit %s is not followed: %w; and what was followed before is unknown: %w", rollout.ShortID(head), reason, err)
		}
	}
	t.refused = &reconciler.Refusal{Commit: head, Reason: reason.Error(), Blind: t.trusted == ""}
	return nil
}

// approver asks Git who signed a promotion file; nil if every one counts.
func (r *repository) approver() reconciler.Approver {
	if r.trust == nil || r.trust.options.promoters == "" {
		return nil
	}
	return func(ctx context.Context, commit, path string) (string, error) {
		r.trust.mu.Lock()
		policy := r.trust.promoters
		r.trust.mu.Unlock()
		who, err := r.mirror().Introducer(ctx, commit, path, policy)
		if errors.Is(err, git.ErrUnapproved) {
			return "", &rollout.InvalidError{
				File: path, Msg: "does not count: " + err.Error(),
				Fix: "have somebody who may promote commit it, or merge it, with a signature: git commit -S, git merge -S --no-ff",
			}
		}
		return who, err
	}
}

// stateCheck tells whether a commit of the state branch is to be believed; nil if
// every one is.
func (r *repository) stateCheck() func(reconciler.Snapshot) error {
	if r.trust == nil || r.trust.options.state == "" {
		return nil
	}
	return func(tree reconciler.Snapshot) error {
		r.trust.mu.Lock()
		policy := r.trust.state
		r.trust.mu.Unlock()
		_, err := tree.(snapshot).SignedBy(policy)
		if cause := errors.Unwrap(err); cause != nil {
			err = cause // the commit is named by whoever tells it
		}
		return err
	}
}
