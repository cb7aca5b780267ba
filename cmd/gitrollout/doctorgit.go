package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/publish/forge"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/doctor"
	"gitrollout.dev/gitrollout/views/status"
)

// gitFix is what to do about an error of Git.
func gitFix(err error) string {
	switch {
	case errors.Is(err, git.ErrAuth):
		return "give credentials that may read the repository: gitrollout help environment"
	case errors.Is(err, git.ErrNotFound):
		return "check --repo and --branch; some servers say this of repositories that the credentials may not see"
	case errors.Is(err, git.ErrUnreachable):
		return "check the address, the network, and the proxy (HTTPS_PROXY, NO_PROXY, --git-proxy)"
	default:
		return ""
	}
}

func (c *doctorCommand) examineGit(ctx context.Context, e *doctor.Examination, w *world, now func() time.Time) {
	repo := w.repo
	e.Add("git.read", doctor.Healthy, "", "%s can be read, %s is at %s", repo.Remote(), repo.Branch(),
		rollout.ShortID(w.heads.Main))
	switch apps := len(w.branch.Apps); {
	case w.branch.Behind != nil:
		e.Add("git.config", doctor.Problem, "mend it, and ask gitrollout validate", "%v", w.branch.Behind)
	case apps == 0:
		e.Add("git.config", doctor.Problem,
			"write paths that match a folder with a kustomization; gitrollout init finds them", "%s names no app",
			w.config().File)
	default:
		e.Add("git.config", doctor.Healthy, "", "%s names %s", w.config().File, status.Count(apps, "app"))
	}
	c.examineApps(e, w)
	if c.noPush {
		e.Add("git.push", doctor.Unknown, "", "was not tried out, because of --no-push")
	} else {
		c.examinePush(ctx, e, w, now())
	}
	switch {
	case w.state == nil:
		e.Add("git.state", doctor.Healthy, "", "%s does not exist yet: the first pass makes it", w.config().StateBranch)
	default:
		e.Add("git.state", doctor.Healthy, "", "%s is at %s", w.config().StateBranch, rollout.ShortID(w.heads.State))
	}
	c.examineForge(ctx, e, w)
	remote := repo.Remote().String()
	if !strings.HasPrefix(remote, "http") {
		e.Add("clock.git", doctor.Unknown, "", "%s is not spoken to by HTTP, so its clock cannot be seen", remote)
		return
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, remote+"/info/refs?service=git-upload-pack", nil)
	if err != nil {
		e.Add("clock.git", doctor.Unknown, "", "%v", err)
		return
	}
	// What the answer is does not matter, and no credential is sent for it.
	doctor.Clock(e, "clock.git", "the Git server", http.DefaultClient, request, now)
}

// examineApps counts what cannot be rendered.
func (c *doctorCommand) examineApps(e *doctor.Examination, w *world) {
	broken, forbidden := len(w.branch.Unnamed), 0
	var first error
	if broken > 0 {
		first = w.branch.Unnamed[0].Err
	}
	for _, app := range w.branch.Apps {
		if err := w.head(app).Err; err != nil {
			if rollout.ReasonOf(err) == rollout.HeldForbidden {
				forbidden++
				continue
			}
			broken++
			if first == nil {
				first = err
			}
		}
	}
	if forbidden > 0 {
		checked, _ := doctor.Check(w.branch.Tree, w.source.cluster, protected(), nil, w.build)
		lines := strings.ReplaceAll(strings.Join(checked.Allow, "\n"), "\n  ", ", ")
		e.Add("git.forbidden", doctor.Problem, "to let them, write in "+w.config().File+": "+rollout.OneLine(lines),
			"the configuration does not let %s touch what is in Git", status.Count(forbidden, "app"))
	}
	if broken > 0 {
		e.Add("git.apps", doctor.Problem, "gitrollout validate names all of them",
			"%s cannot be rendered and would be held: %v", status.Count(broken, "app"), first)
	}
}

// examinePush makes a branch and removes it again. That is the only way to know:
// hooks, protected branches and read-only credentials say no when something is
// pushed, and not before.
func (c *doctorCommand) examinePush(ctx context.Context, e *doctor.Examination, w *world, at time.Time) {
	branch := rollout.ProposalBranch(rollout.ProposePromotion, w.source.cluster, fmt.Sprintf("doctor-%d", at.UnixNano()))
	repo := w.repo
	text := "gitrollout doctor tried out whether it may push. This branch can be removed.\n"
	heads, err := repo.Push(ctx, []rollout.Update{{
		Branch: branch, Edits: map[string][]byte{"README": []byte(text)}, Message: "doctor: may this be pushed?\n", When: at,
	}})
	switch {
	case errors.Is(err, git.ErrRejected):
		e.Add("git.push", doctor.Problem,
			"let gitrollout's user push, force and remove branches below gitrollout/: look at protected branches, rulesets and hooks of the server",
			"the server refuses branches below gitrollout/: %v", err)
		return
	case errors.Is(err, git.ErrAuth):
		e.Add("git.push", doctor.Problem,
			"give the credentials the right to write contents (GitHub: Contents, read and write; GitLab: Developer and write_repository; Gitea: write on the repository)",
			"the credentials may read, and not push: %v", err)
		return
	case err != nil:
		e.Add("git.push", doctor.Problem, gitFix(err), "%v", err)
		return
	}
	if _, err := repo.Push(ctx, []rollout.Update{{Branch: branch, Old: heads[branch], Delete: true}}); err != nil {
		e.Add("git.push", doctor.Problem,
			"allow gitrollout's user to remove branches below gitrollout/, and remove "+branch+" by hand",
			"branches below gitrollout/ can be pushed, and not removed, so that proposals stay for ever: %v",
			err)
		return
	}
	e.Add("git.push", doctor.Healthy, "", "branches below gitrollout/ can be pushed and removed (tried out with %s)",
		branch)
}

// examineForge looks at branch protection, as far as the forge shows it to
// somebody who is no administrator.
func (c *doctorCommand) examineForge(ctx context.Context, e *doctor.Examination, w *world) {
	if w.config().Forge == nil {
		e.Add("forge", doctor.Unknown, "", "%s names no forge, so branch protection cannot be seen", w.config().File)
		return
	}
	options, err := w.source.options()
	if err != nil {
		e.Add("forge", doctor.Unknown, "", "%v", err)
		return
	}
	o := newForge(w.source, options.Auth, w.repo.Remote().String(), nil).Options
	for _, b := range []struct{ name, what, fix string }{
		{w.repo.Branch(), "whoever may push can release without a review",
			"protect %s: require reviews, and let people merge only"},
		{w.config().StateBranch, "whoever may push can change what gitrollout has recorded",
			"protect %s so that only gitrollout's user may push to it, and let nobody force"},
	} {
		protected, err := forge.IsProtected(ctx, o, *w.config().Forge, b.name)
		switch {
		case w.state == nil && b.name == w.config().StateBranch:
			e.Add("forge.protection", doctor.Unknown, fmt.Sprintf(b.fix, b.name), "%s does not exist yet", b.name)
		case err != nil:
			e.Add("forge.protection", doctor.Unknown, "", "%s: %v", b.name, err)
		case protected:
			e.Add("forge.protection", doctor.Healthy, "", "%s is protected", b.name)
		default:
			e.Add("forge.protection", doctor.Warning, fmt.Sprintf(b.fix, b.name), "%s is not protected: %s", b.name, b.what)
		}
	}
	examineOwners(ctx, e, w, o)
}

// examineOwners looks whether those whom the repository names have to agree to what is released and promoted.
func examineOwners(ctx context.Context, e *doctor.Examination, w *world, o forge.Options) {
	const check = "forge.owners"
	var file string
	for _, name := range forge.CodeOwners() {
		if _, found, err := w.branch.Tree.Lookup(name); found && err == nil {
			file = name
		}
	}
	branch := w.repo.Branch()
	asks, err := forge.AsksOwners(ctx, o, *w.config().Forge, branch)
	switch {
	case file == "":
		e.Add(check, doctor.Unknown, "name the owners of .gitrollout/, and require their reviews: "+
			"else who may promote is up to --promoters and --verify-commits of gitrollout run, which cannot be seen from here",
			"%s has no CODEOWNERS: the forge lets whoever may merge promote, and say what apps may", branch)
	case err != nil:
		e.Add(check, doctor.Unknown, "", "whether %s waits for the owners in %s was not checked: %v", branch, file, err)
	case asks:
		e.Add(check, doctor.Healthy, "", "%s waits for reviews of the owners in %s", branch, file)
	default:
		e.Add(check, doctor.Warning, "protect "+branch+": require review from code owners "+
			"(GitLab: code owner approval; Gitea: block merge on official review requests)",
			"%s does not wait for the owners in %s: they decide nothing", branch, file)
	}
}
