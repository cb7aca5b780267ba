package forge

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// gitHub is GitHub's REST API 2022-11-28, for github.com, hosted tenants (ghe.com) and Enterprise Server.
var gitHub = kind{
	name: rollout.GitHub,
	isAt: func(host string) bool { return host == "github.com" || strings.HasSuffix(host, ".ghe.com") },
	api: func(address string) string {
		u, err := url.Parse(address)
		if err == nil && (u.Host == "github.com" || strings.HasSuffix(u.Host, ".ghe.com")) {
			return "https://api." + u.Host
		}
		return address + "/api/v3"
	},
	spacing: time.Second, // as GitHub recommends
	header: func(token string) http.Header {
		return http.Header{
			"Authorization": {"Bearer " + token}, "Accept": {"application/vnd.github+json"},
			"X-Github-Api-Version": {"2022-11-28"},
		}
	},
	client: func(a *api, path, base string) host {
		owner, _, _ := strings.Cut(path, "/")
		return &gitHubRepository{repository{a, "/repos/" + path, base, "per_page"}, owner}
	},
	comments:   issueComments,
	commitPage: below("/commit/"),
	branchPage: below("/tree/"),
	pullPage:   func(_, branch string) string { return "/pulls?q=" + url.QueryEscape("is:open head:"+branch) },
	signature:  func(r hookRequest) (given, right bool) { return r.hub("X-Hub-Signature-256", "sha256=") },
	isPush:     func(h http.Header) bool { return h.Get("X-GitHub-Event") == "push" },
}

type gitHubRepository struct {
	repository
	owner string
}

// find implements pullAPI. The newest pull request comes first, so one request for each state suffices.
func (g *gitHubRepository) find(ctx context.Context, branch string) (pull, bool, error) {
	for _, state := range []string{"open", "closed"} {
		query := url.Values{
			"head": {g.owner + ":" + branch}, "state": {state}, "sort": {"created"}, "direction": {"desc"}, "per_page": {"1"},
		}
		var pulls []repositoryPull
		if err := g.call(ctx, http.MethodGet, g.path+"/pulls?"+query.Encode(), nil, &pulls); err != nil {
			return pull{}, false, err
		}
		if len(pulls) > 0 {
			return pulls[0].pull(branch), true, nil
		}
	}
	return pull{}, false, nil
}

func (g *gitHubRepository) open(ctx context.Context) ([]pull, error) {
	pulls, err := pages[repositoryPull](ctx, g.api, g.path+"/pulls", "state=open")
	pulls = slices.DeleteFunc(pulls, func(p repositoryPull) bool { // a deleted fork has no repository
		return p.Head.Repo == nil || p.Base.Repo == nil || *p.Head.Repo != *p.Base.Repo
	})
	return rollout.Mapped(pulls, func(p repositoryPull) pull { return p.pull(p.Head.Ref) }), err
}

// label implements announcer. GitHub creates missing labels.
func (g *gitHubRepository) label(ctx context.Context, p pull, labels []string) error {
	return g.call(ctx, http.MethodPost, fmt.Sprintf("%s/issues/%d/labels", g.path, p.number),
		map[string]any{"labels": labels}, nil)
}
