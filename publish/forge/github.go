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

// gitHub is GitHub's REST API, version 2022-11-28, for github.com, hosted tenants and Enterprise Server.
var gitHub = kind{
	name:    rollout.GitHub,
	isAt:    func(host string) bool { return host == "github.com" || strings.HasSuffix(host, ".ghe.com") },
	api:     gitHubAPI,
	spacing: time.Second, // GitHub's recommendation
	header: func(token string) http.Header {
		return http.Header{
			"Authorization": {"Bearer " + token}, "Accept": {"application/vnd.github+json"},
			"X-Github-Api-Version": {"2022-11-28"},
		}
	},
	client:     newGitHub,
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

func newGitHub(a *api, path, base string) host {
	owner, _, _ := strings.Cut(path, "/")
	g := &gitHubRepository{repository{a, "/repos/" + path, base}, owner}
	return host{g, g, g, g, g}
}

// gitHubAPI returns the address of the API. github.com and hosted tenants have a separate host for the API.
func gitHubAPI(address string) string {
	if u, err := url.Parse(address); err == nil && (u.Host == "github.com" || strings.HasSuffix(u.Host, ".ghe.com")) {
		return "https://api." + u.Host
	}
	return address + "/api/v3"
}

type gitHubPull struct {
	Number   int     `json:"number"`
	Title    string  `json:"title"`
	Body     *string `json:"body"`
	State    string  `json:"state"`
	MergedAt *string `json:"merged_at"`
	Head     struct {
		Ref  string `json:"ref"`
		SHA  string `json:"sha"`
		Repo *struct {
			ID int64 `json:"id"`
		} `json:"repo"`
	} `json:"head"`
	Base struct {
		Repo struct {
			ID int64 `json:"id"`
		} `json:"repo"`
	} `json:"base"`
	Labels []labelled `json:"labels"`
}

// labelled is a pull request's label in the APIs of GitHub and Gitea.
type labelled struct {
	Name string `json:"name"`
}

func (l labelled) name() string { return l.Name }

// foreign reports whether a pull request is from a fork. A deleted fork has no repository.
func (p gitHubPull) foreign() bool { return p.Head.Repo == nil || p.Head.Repo.ID != p.Base.Repo.ID }

func (p gitHubPull) pull() pull {
	q := pull{
		number: p.Number, text: text{title: p.Title}, branch: p.Head.Ref, commit: p.Head.SHA,
		labels: rollout.Mapped(p.Labels, labelled.name), isOpen: p.State == "open", merged: p.MergedAt != nil,
	}
	if p.Body != nil {
		q.body = *p.Body
	}
	return q
}

// find implements finder. GitHub filters by head branch and sorts by age, so find sends one request for each state.
func (g *gitHubRepository) find(ctx context.Context, branch string) (pull, bool, error) {
	for _, state := range []string{"open", "closed"} {
		query := url.Values{
			"head": {g.owner + ":" + branch}, "state": {state}, "sort": {"created"}, "direction": {"desc"}, "per_page": {"1"},
		}
		var pulls []gitHubPull
		if err := g.call(ctx, http.MethodGet, g.path+"/pulls?"+query.Encode(), nil, &pulls); err != nil {
			return pull{}, false, err
		}
		if len(pulls) > 0 {
			return pulls[0].pull(), true, nil
		}
	}
	return pull{}, false, nil
}

func (g *gitHubRepository) open(ctx context.Context) ([]pull, error) {
	pulls, err := pages[gitHubPull](ctx, g.api, g.path+"/pulls", "state=open")
	return rollout.Mapped(slices.DeleteFunc(pulls, gitHubPull.foreign), gitHubPull.pull), err
}

func (g *gitHubRepository) create(ctx context.Context, branch string, t text) (pull, error) {
	var made gitHubPull
	err := g.call(ctx, http.MethodPost, g.path+"/pulls", g.newPull(branch, t), &made)
	return made.pull(), err
}

// label implements announcer. GitHub creates missing labels.
func (g *gitHubRepository) label(ctx context.Context, p pull, labels []string) error {
	return g.call(ctx, http.MethodPost, fmt.Sprintf("%s/issues/%d/labels", g.path, p.number),
		map[string]any{"labels": labels}, nil)
}

// statuses implements marker. GitHub's combined status has the newest status of each context.
func (g *gitHubRepository) statuses(ctx context.Context, commit string) (map[string]status, error) {
	return g.combined(ctx, commit, "per_page")
}
