package forge

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// fakeComments serves a pull request's comments, oldest first, as the forges' documentation says. The first comment cannot be changed,
// because another account wrote it.
type fakeComments struct {
	list, one *regexp.Regexp // URL paths
	edit      string
	bodies    []string
}

func (c *fakeComments) serve(f *fake) func(w http.ResponseWriter, r *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		path := r.URL.EscapedPath()
		switch one := c.one.FindStringSubmatch(path); {
		case r.Method == http.MethodGet && c.list.MatchString(path):
			from, to := f.query(r, 30)
			all := []map[string]any{}
			for i, body := range c.bodies {
				all = append(all, map[string]any{"id": i + 100, "body": body})
			}
			f.answer(w, http.StatusOK, page(all, from, to))
		case r.Method == http.MethodPost && c.list.MatchString(path):
			c.bodies = append(c.bodies, f.decode(r, "body")["body"].(string))
			f.answer(w, http.StatusCreated, map[string]any{"id": len(c.bodies) + 99})
		case r.Method == c.edit && one != nil:
			id, _ := strconv.Atoi(one[1])
			if id == 100 {
				f.answer(w, http.StatusForbidden, map[string]any{"message": "Forbidden"})
				return true
			}
			c.bodies[id-100] = f.decode(r, "body")["body"].(string)
			f.answer(w, http.StatusOK, map[string]any{"id": id})
		default:
			return false
		}
		return true
	}
}

const mark = "<!-- gitrollout plan -->"

// TestComment checks that ten runs of a job leave only one comment, and that another account's comment stays unchanged.
func TestComment(t *testing.T) {
	stranger := mark + "\nlooks good"
	for name, tt := range map[string]struct {
		forge rollout.ForgeType
		path  string
		fakeComments
	}{
		"GitHub": {rollout.GitHub, "/acme/deploy.git", fakeComments{
			list: regexp.MustCompile(`^/api/v3/repos/acme/deploy/issues/7/comments$`),
			one:  regexp.MustCompile(`^/api/v3/repos/acme/deploy/issues/comments/(\d+)$`), edit: http.MethodPatch}},
		"GitLab": {rollout.GitLab, "/acme/team/deploy.git", fakeComments{
			list: regexp.MustCompile(`^/api/v4/projects/acme%2Fteam%2Fdeploy/merge_requests/7/notes$`),
			one:  regexp.MustCompile(`^/api/v4/projects/acme%2Fteam%2Fdeploy/merge_requests/7/notes/(\d+)$`), edit: http.MethodPut}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake(t, (*fake).undocumented)
			c := tt.fakeComments
			c.bodies = []string{stranger, "hello"}
			f.refuse = c.serve(f)
			o := f.options(tt.path)
			// The clock advances by a minute with each request, so no request waits for the forge's minimum interval.
			o.Now = func() time.Time { return time.Now().Add(time.Duration(f.requests) * time.Minute) }
			for i := range 10 {
				must(t, Comment(t.Context(), o, rollout.Forge{Type: tt.forge}, 7, mark, fmt.Sprint(mark, "\nrun ", i)))
			}
			compare.CheckNamed(t, "comments", []string{stranger, "hello", mark + "\nrun 9"}, c.bodies)
		})
	}
}

// TestCommentOnGitea checks that ten runs of a job leave only one comment on a real Gitea server.
func TestCommentOnGitea(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a server; without -short it is run")
	}
	b, o, config := newGiteaMaker(t)(t)
	g := b.(*giteaBench)
	g.push("change", "a change")
	number := g.propose("change", "a change")
	o.Now = time.Now
	for i := range 10 {
		must(t, Comment(context.Background(), o, config, number, mark, fmt.Sprint(mark, "\nrun ", i)))
	}
	var all []comment
	g.server.Must(g.owner, http.MethodGet, fmt.Sprintf("/repos/%s/issues/%d/comments", g.repo, number), nil, &all)
	if text, _ := json.Marshal(all); len(all) != 1 || all[0].Body != mark+"\nrun 9" {
		t.Errorf("the comments are %s", text)
	}
}
