package forge

import (
	"context"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// paper is a forge that keeps its pull requests in memory.
type paper struct {
	pulls []pull
	marks map[string]status
}

func (p *paper) kind() kind {
	return kind{
		name:       "paper",
		isAt:       func(host string) bool { return host == "paper.example" },
		api:        func(address string) string { return address + "/api" },
		groups:     true,
		header:     func(token string) http.Header { return http.Header{"X-Paper": {token}} },
		client:     func(*api, string, string) host { return p },
		commitPage: below("/c/"),
		branchPage: below("/b/"),
		pullPage:   func(base, branch string) string { return "/p/" + base + "/" + branch },
		signature:  func(r hookRequest) (given, right bool) { return r.hub("X-Paper-Seal", "seal=") },
		isPush:     func(h http.Header) bool { return h.Get("X-Paper-Event") == "ink" },
	}
}

func (p *paper) find(_ context.Context, branch string) (pull, bool, error) {
	for _, q := range slices.Backward(p.pulls) {
		if q.branch == branch {
			return q, true, nil
		}
	}
	return pull{}, false, nil
}

func (p *paper) open(context.Context) ([]pull, error) {
	return slices.DeleteFunc(slices.Clone(p.pulls), func(q pull) bool { return !q.isOpen }), nil
}

func (p *paper) create(_ context.Context, branch string, t text) (pull, error) {
	p.pulls = append(p.pulls, pull{number: len(p.pulls) + 1, text: t, branch: branch, isOpen: true})
	return p.pulls[len(p.pulls)-1], nil
}

func (p *paper) edit(_ context.Context, q pull, t text, closed bool) error {
	p.pulls[q.number-1].text, p.pulls[q.number-1].isOpen = t, q.isOpen && !closed
	return nil
}

func (p *paper) ask(context.Context, pull, []string) error { return nil }

func (p *paper) label(_ context.Context, q pull, labels []string) error {
	p.pulls[q.number-1].labels = labels
	return nil
}

func (p *paper) statuses(context.Context, string) (map[string]status, error) { return p.marks, nil }

func (p *paper) setStatus(_ context.Context, commit, name string, s status) error {
	p.marks[commit+" "+name] = s
	return nil
}

func (p *paper) isProtected(_ context.Context, branch string) (bool, error) {
	return branch == "main", nil
}

func (p *paper) asksOwners(_ context.Context, branch string) (bool, error) {
	return branch == "main", nil
}

// TestAForgeIsOneLine adds a forge as a row of the table, and checks that all functions work with this forge.
func TestAForgeIsOneLine(t *testing.T) {
	p := &paper{marks: map[string]status{}}
	known := append(slices.Clone(forges), p.kind())
	o := Options{
		Cluster: "prod", Remote: "https://paper.example/acme/team/deploy.git", Branch: "main", Now: time.Now, forges: known,
		Token: tokenOf("t0ken"), Spread: exactly, Log: func(err error, _ string) {
			if err != nil {
				t.Error(err)
			}
		},
	}
	w := NewWorker(o)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { w.Run(ctx); close(ended) }()
	config := rollout.Forge{Labels: []string{"release"}}
	w.Show(config, []rollout.ForgeUpdate{paused(sha("release"), 1, promotes(sha("proposal")))})
	w.Flush(t.Context())
	w.Show(config, []rollout.ForgeUpdate{paused(sha("release"), 1, promotes(""))})
	w.Flush(t.Context())
	cancel()
	<-ended
	if len(p.pulls) != 1 || p.pulls[0].isOpen || p.pulls[0].branch != promoteBranch || !slices.Equal(p.pulls[0].labels, config.Labels) ||
		len(p.marks) != 1 {
		t.Errorf("pull requests %+v, statuses %v", p.pulls, p.marks)
	}

	for branch, want := range map[string]bool{"main": true, "other": false} {
		if got, err := IsProtected(t.Context(), o, config, branch); err != nil || got != want {
			t.Errorf("%s is protected: %t, %v", branch, got, err)
		}
		if got, err := AsksOwners(t.Context(), o, config, branch); err != nil || got != want {
			t.Errorf("%s waits for code owners: %t, %v", branch, got, err)
		}
	}

	pages := known.pages(&config, o.Remote)
	const home = "https://paper.example/acme/team/deploy"
	got := []string{pages.Commit("9f3"), pages.Branch("x/y"), pages.Pull("main", "x")}
	compare.CheckNamed(t, "pages", []string{home + "/c/9f3", home + "/b/x/y", home + "/p/main/x"}, got)
	if _, err := known.resolve(rollout.Forge{}, "https://git.example/a/b", ""); err == nil ||
		!strings.HasSuffix(err.Error(), "write github, gitlab, gitea or paper") {
		t.Errorf("got %v", err)
	}

	for event, want := range map[string]int{"ink": 1, "blot": 0} {
		pushed := 0
		h, err := NewHook(Hook{Secret: hookSecret, Remote: o.Remote, Branch: "main", Pushed: func() { pushed++ }, Now: time.Now, forges: known})
		must(t, err)
		body := push("refs/heads/main", "acme/team/deploy")
		r := httptest.NewRequest(http.MethodPost, HookPath, strings.NewReader(body))
		r.Header.Set("X-Paper-Seal", "seal="+signed(hookSecret, body))
		r.Header.Set("X-Paper-Event", event)
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, r)
		compare.CheckNamed(t, event, [2]int{http.StatusAccepted, want}, [2]int{answer.Code, pushed})
	}
}

// TestConfigurationNamesTheTable checks that the configuration accepts exactly the names of the forges in the table.
func TestConfigurationNamesTheTable(t *testing.T) {
	field, _ := reflect.TypeFor[rollout.Forge]().FieldByName("Type")
	names := rollout.Mapped(forges, func(k kind) string { return string(k.name) })
	compare.CheckNamed(t, "forges", strings.Fields(field.Tag.Get("oneOf")), names)
}
