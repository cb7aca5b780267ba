package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/publish/forge"
	"gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// GitFix returns the fix for an error of Git, or "".
func GitFix(err error) string {
	switch {
	case errors.Is(err, git.ErrAuth):
		return "give credentials that may read the repository: gitrollout help environment"
	case errors.Is(err, git.ErrNotFound):
		return "check --repo and --branch; some servers report this for repositories that the credentials may not read"
	case errors.Is(err, git.ErrUnreachable):
		return "check the address, the network, and the proxy (HTTPS_PROXY, NO_PROXY, --git-proxy)"
	}
	return ""
}

// Git holds the inputs for the checks of the repository and the forge.
type Git struct {
	Repo    *git.Repo
	Heads   rollout.Heads
	Branch  *source.Branch
	Cluster string
	Own     string // no app may have objects in this namespace
	Head    func(app rollout.App) strategies.Head
	Build   *render.Renderer
	NoPush  bool          // skip the test push
	Forge   forge.Options // used if a forge is configured
}

// Examine adds findings about repository and forge to e.
func (g Git) Examine(ctx context.Context, e *Examination, now func() time.Time) {
	repo, config := g.Repo, g.Branch.Config
	e.Add("git.read", Healthy, "", "%s can be read, %s is at %s", repo.Remote(), repo.Branch(),
		rollout.ShortID(g.Heads.Main))
	switch apps := len(g.Branch.Apps); {
	case g.Branch.Behind != nil:
		e.Add("git.config", Problem, "correct the configuration, and run gitrollout validate", "%v", g.Branch.Behind)
	case apps == 0:
		e.Add("git.config", Problem,
			"write paths that match a folder with a kustomization; gitrollout init finds them", "%s names no app",
			config.File)
	default:
		e.Add("git.config", Healthy, "", "%s names %s", config.File, rollout.Count(apps, "app"))
	}
	g.examineApps(e)
	if g.NoPush {
		e.Add("git.push", Unknown, "", "was not tried out, because of --no-push")
	} else {
		g.examinePush(ctx, e, "git.push", repo, now())
		if at, err := git.At(repo, config.StateRepo); err == nil && at != repo { // an error is a problem of git.config
			g.examinePush(ctx, e, "git.state.push", at, now())
		}
	}
	state := "is at " + rollout.ShortID(g.Heads.State)
	if g.Heads.State == "" {
		state = "does not exist yet: the first pass creates it"
	}
	e.Add("git.state", Healthy, "", "%s %s", config.StateBranch, state)
	g.examineForge(ctx, e)
	remote := repo.Remote().String()
	if !strings.HasPrefix(remote, "http") {
		e.Add("clock.git", Unknown, "", "%s is not accessed over HTTP, so the server's clock cannot be checked", remote)
		return
	}
	// The request has no credentials, because only the Date header is read.
	const asked = "/info/refs?service=git-upload-pack"
	Clock(ctx, e, "clock.git", "the Git server", http.DefaultClient, remote+asked, now)
}

func (g Git) examineApps(e *Examination) {
	broken, forbidden := len(g.Branch.InvalidNames), 0
	var first error
	if broken > 0 {
		first = g.Branch.InvalidNames[0].Err
	}
	for _, app := range g.Branch.Apps {
		head := g.Head(app)
		if head.Render != nil && len(head.Render.Warnings) > 0 {
			e.Add("git.warnings", Warning, "", "%s: %s", app.Name, strings.Join(head.Render.Warnings, "; "))
		}
		switch err := head.Err; {
		case err == nil:
		case rollout.ReasonOf(err) == rollout.HeldForbidden:
			forbidden++
		default:
			broken++
			first = cmp.Or(first, err)
		}
	}
	if forbidden > 0 {
		checked, _ := Check(g.Branch.Tree, g.Cluster, g.Own, nil, g.Build, nil)
		lines := strings.ReplaceAll(strings.Join(checked.Allow, "\n"), "\n  ", ", ")
		e.Add("git.forbidden", Problem, "to allow the objects, write in "+g.Branch.Config.File+": "+rollout.OneLine(lines),
			"the configuration does not let %s write all of their objects", rollout.Count(forbidden, "app"))
	}
	if broken > 0 {
		e.Add("git.apps", Problem, "run gitrollout validate to list all of these apps",
			"%s cannot be rendered and would be held: %v", rollout.Count(broken, "app"), first)
	}
}

// examinePush pushes and deletes a test branch, because no other check shows that pushes are accepted.
func (g Git) examinePush(ctx context.Context, e *Examination, check string, repo *git.Repo, at time.Time) {
	branch := rollout.ProposalBranch(rollout.ProposePromotion, g.Cluster, fmt.Sprintf("doctor-%d", at.UnixNano()))
	text := "gitrollout doctor pushed this branch to test its own rights. The branch can be removed.\n"
	heads, err := repo.Push(ctx, []rollout.Update{{
		Branch: branch, Edits: map[string][]byte{"README": []byte(text)}, Message: "doctor: may this be pushed?\n", When: at,
	}})
	switch {
	case errors.Is(err, git.ErrRejected):
		e.Add(check, Problem,
			"let gitrollout's user push, force-push and remove branches below gitrollout/; check the server's protected branches, rulesets and hooks",
			"the server refuses branches below gitrollout/: %v", err)
		return
	case errors.Is(err, git.ErrAuth):
		e.Add(check, Problem,
			"give the credentials the right to write contents (GitHub: Contents, read and write; GitLab: Developer and write_repository; Gitea: write on the repository)",
			"the credentials allow reading, but not pushing: %v", err)
		return
	case err != nil:
		e.Add(check, Problem, GitFix(err), "%v", err)
		return
	}
	if _, err := repo.Push(ctx, []rollout.Update{{Branch: branch, Old: heads[branch], Delete: true}}); err != nil {
		e.Add(check, Problem,
			"allow gitrollout's user to remove branches below gitrollout/, and remove "+branch+" by hand",
			"branches below gitrollout/ can be pushed, but not removed, so that old proposals remain: %v",
			err)
		return
	}
	e.Add(check, Healthy, "", "branches below gitrollout/ can be pushed and removed (tried out with %s)", branch)
}

func (g Git) examineForge(ctx context.Context, e *Examination) {
	if g.Branch.Config.Forge == nil {
		e.Add("forge", Unknown, "", "%s names no forge, so branch protection cannot be seen", g.Branch.Config.File)
		return
	}
	for _, b := range []struct{ name, what, fix string }{
		{g.Repo.Branch(), "users with push rights can release without a review",
			"protect %s: require reviews, and forbid direct pushes"},
		{g.Branch.Config.StateBranch, "users with push rights can change the records of gitrollout",
			"protect %s so that only gitrollout's user may push to it, and forbid force pushes"},
	} {
		protected, err := forge.IsProtected(ctx, g.Forge, *g.Branch.Config.Forge, b.name)
		switch {
		case g.Branch.Config.StateRepo != "" && b.name == g.Branch.Config.StateBranch:
			e.Add("forge.protection", Unknown, fmt.Sprintf(b.fix, b.name), "%s is in another repository", b.name)
		case g.Heads.State == "" && b.name == g.Branch.Config.StateBranch:
			e.Add("forge.protection", Unknown, fmt.Sprintf(b.fix, b.name), "%s does not exist yet", b.name)
		case err != nil:
			e.Add("forge.protection", Unknown, "", "%s: %v", b.name, err)
		case protected:
			e.Add("forge.protection", Healthy, "", "%s is protected", b.name)
		default:
			e.Add("forge.protection", Warning, fmt.Sprintf(b.fix, b.name), "%s is not protected: %s", b.name, b.what)
		}
	}
	g.examineOwners(ctx, e)
}

func (g Git) examineOwners(ctx context.Context, e *Examination) {
	const check = "forge.owners"
	var file string
	for _, name := range forge.CodeOwners() {
		if _, found, err := g.Branch.Tree.Lookup(name); found && err == nil {
			file = name
		}
	}
	branch := g.Repo.Branch()
	asks, err := forge.AsksOwners(ctx, g.Forge, *g.Branch.Config.Forge, branch)
	switch {
	case file == "":
		e.Add(check, Unknown, "name the owners of .gitrollout/, and require their reviews: "+
			"otherwise only --promoters and --verify-commits of gitrollout run restrict promotions, and doctor cannot check these flags",
			"%s has no CODEOWNERS: the forge lets all users with merge rights promote, and change the rights of apps", branch)
	case err != nil:
		e.Add(check, Unknown, "", "whether changes of %s need reviews by the owners in %s was not checked: %v",
			branch, file, err)
	case asks:
		e.Add(check, Healthy, "", "changes of %s need reviews by the owners in %s", branch, file)
	default:
		e.Add(check, Warning, "protect "+branch+": require review from code owners "+
			"(GitLab: code owner approval; Gitea: block merge on official review requests)",
			"%s can be changed without a review by the owners in %s", branch, file)
	}
}
