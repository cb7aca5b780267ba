package forge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/call"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

func (r *rig) fake() *fake { return r.bench.(*fake) }

func (r *rig) complaints() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.problems, "\n")
}

// TestRateLimits checks that no request is sent during a pause that the forge requires, for each documented form of rate limit.
func TestRateLimits(t *testing.T) {
	for name, tt := range map[string]struct {
		newBench maker
		header   map[string]string
		code     int
		body     string
	}{
		"GitHub, primary": {newGitHubBench, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "soon"}, 403,
			`{"message":"API rate limit exceeded"}`},
		"GitHub, secondary": {newGitHubBench, map[string]string{"Retry-After": "1"}, 403,
			`{"message":"You have exceeded a secondary rate limit"}`},
		"GitLab": {newGitLabBench, map[string]string{"Retry-After": "1", "RateLimit-Remaining": "0", "RateLimit-Reset": "soon"},
			429, "Retry later\n"},
		"GitLab, without time": {newGitLabBench, map[string]string{"RateLimit-Remaining": "0", "RateLimit-Reset": "soon"}, 429, ""},
		"the last one allowed": {newGitHubBench, map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "soon"}, 200, `[]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, tt.newBench)
			f := r.fake()
			for k, v := range tt.header {
				if v == "soon" {
					tt.header[k] = soon(2 * time.Second)
				}
			}
			f.refuseWith(1, tt.header, tt.code, tt.body)
			began := time.Now()
			all := r.show(paused(r.push("release", "the release"), 1, promotes(r.push(promoteBranch, "first"))))
			compare.CheckNamed(t, "pull requests, and statuses", [2]int{1, 1}, [2]int{len(all), len(f.marks(sha("the release")))})
			if took := time.Since(began); took < 500*time.Millisecond {
				t.Errorf("it took %s", took)
			}
			if f.requests > 12 {
				t.Errorf("%d requests", f.requests)
			}
			compare.CheckNamed(t, "complaints about a rate limit", "", r.complaints())
		})
	}
}

// TestBreakOf checks the length of the pause after a response. It does not wait for the end of the pause.
func TestBreakOf(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, tt := range map[string]struct {
		code    int
		header  map[string]string
		message string
		want    time.Duration
	}{
		"seconds": {429, map[string]string{"Retry-After": "7"}, "", 7 * time.Second},
		"a date": {503, map[string]string{"Retry-After": now.Add(9 * time.Second).Format(http.TimeFormat),
			"Date": now.Format(http.TimeFormat)}, "", 9 * time.Second},
		"a wrong clock": {429, map[string]string{"Retry-After": "99999999"}, "", time.Hour},
		"no header":     {429, nil, "", time.Minute},
		"secondary":     {403, nil, "You have exceeded a secondary rate limit", time.Minute},
		"no right":      {403, nil, "Resource not accessible by integration", 0},
		"reset": {403, map[string]string{"X-RateLimit-Remaining": "0",
			"X-RateLimit-Reset": fmt.Sprint(now.Add(11 * time.Second).Unix())}, "", 11 * time.Second},
		"a wrong request":  {422, map[string]string{"Retry-After": "7"}, "", 0},
		"the server fails": {500, nil, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			header := http.Header{}
			for k, v := range tt.header {
				header.Set(k, v)
			}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				maps.Copy(w.Header(), header)
				w.WriteHeader(tt.code)
				_, _ = io.WriteString(w, tt.message)
			}))
			defer server.Close()
			a := newAPI(server.URL, func() time.Time { return now })
			var failed *call.Error
			if err := a.call(t.Context(), http.MethodGet, "/x", nil, nil); !errors.As(err, &failed) || failed.After != tt.want {
				t.Errorf("%v after %s, want %s", err, failed.After, tt.want)
			}
			// During the pause, no request is sent.
			err := a.call(t.Context(), http.MethodGet, "/x", nil, nil)
			compare.CheckNamed(t, err.Error(), tt.want > 0, strings.Contains(err.Error(), "rate limit is used up"))
		})
	}
}

// TestDown checks that orders are carried out when a forge no longer fails, or when it has granted access.
func TestDown(t *testing.T) {
	for name, tt := range map[string]struct {
		code int
		want string
	}{
		"fails":     {500, "500 Internal Server Error"},
		"no right":  {403, "403 Forbidden: no right"},
		"not there": {404, "404 Not Found"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, newGitHubBench)
			r.fake().refuseWith(2, nil, tt.code, `{"message":"no right"}`)
			all := r.show(paused(r.push("release", "the release"), 1, promotes(r.push(promoteBranch, "first"))))
			r.wantStates(all, "open")
			if text := r.complaints(); !strings.Contains(text, tt.want) || strings.Count(text, "/pulls: ") > 1 {
				t.Errorf("it should be told once: %s", text)
			}
		})
	}
}

// TestOneOrderBlocksNoOther checks that the worker carries out all other orders while one order always fails.
func TestOneOrderBlocksNoOther(t *testing.T) {
	r := newRig(t, newGitHubBench)
	broken := sha("broken")
	r.fake().refuse = func(w http.ResponseWriter, q *http.Request) bool {
		if strings.Contains(q.URL.Path, broken) {
			w.WriteHeader(http.StatusBadGateway)
			return true
		}
		return false
	}
	first, second := paused(broken, 1), paused(r.push("release", "the release"), 1, promotes(r.push(promoteBranch, "first")))
	first.After.App = "broken"
	r.worker.Show(r.config, []rollout.ForgeUpdate{first, second})
	for deadline := time.Now().Add(5 * time.Minute); len(r.list()) == 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("no pull request is open; problems: %s", r.complaints())
		}
	}
}

// TestWrongToken checks that a wrong token is reported, and that the report does not contain the token. Neither Show nor Flush may hang.
func TestWrongToken(t *testing.T) {
	r := newRig(t, newGitHubBench)
	r.options.Token = tokenOf("a-wrong-token")
	r.restart()
	transition := paused(sha("release"), 1, promotes(r.push(promoteBranch, "first")))
	r.fake().mu.Lock() // the forge answers no request while Show runs
	r.worker.Show(r.config, []rollout.ForgeUpdate{transition})
	r.fake().mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	if r.worker.Flush(ctx); ctx.Err() != nil {
		t.Error("Flush waits for a request that cannot be made now")
	}
	if text := r.complaints(); !strings.Contains(text, "401 Unauthorized: Bad credentials") || strings.Contains(text, "wrong-token") {
		t.Errorf("problems %s", text)
	}
}

func TestNoToken(t *testing.T) {
	r := newRig(t, newGitLabBench)
	r.options.Token = tokenOf("")
	r.restart()
	r.worker.Show(r.config, []rollout.ForgeUpdate{paused(sha("release"), 1, promotes(r.push(promoteBranch, "first")))})
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	r.worker.Flush(ctx)
	compare.CheckNamed(t, "requests, and problems", []any{0, errNoToken.Error()}, []any{r.fake().requests, r.complaints()})
}

// TestUnusable checks that orders are dropped while the configuration is invalid, and carried out after Resume with a valid configuration.
func TestUnusable(t *testing.T) {
	r := newRig(t, newGitHubBench)
	release := paused(r.push("release", "the release"), 1, promotes(r.push(promoteBranch, "first")))
	wrong := r.config
	wrong.URL = "https://evil.example"
	r.worker.Show(wrong, []rollout.ForgeUpdate{release})
	r.settle()
	if text := r.complaints(); strings.Count(text, "GITROLLOUT_FORGE_URL") != 1 || r.fake().requests != 0 {
		t.Errorf("%d requests, problems %q", r.fake().requests, text)
	}
	r.wantStates(r.resume([]string{promoteBranch}, release), "open")
}

// TestPages checks that the worker finds pull requests and statuses on later pages, and ignores pull requests from forks.
func TestPages(t *testing.T) {
	for name, newBench := range map[string]maker{"GitHub": newGitHubBench, "GitLab": newGitLabBench} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, newBench)
			f := r.fake()
			f.add(fakePull{branch: "gitrollout/promote/prod/gone", title: "left over"})
			f.add(fakePull{branch: promoteBranch, title: "a fork's", fork: true})
			for i := range 120 {
				f.add(fakePull{branch: fmt.Sprint("feature-", i), title: "x"})
			}
			for i := range 60 {
				f.statuses[sha("release")] = append(f.statuses[sha("release")], fakeStatus{fmt.Sprint("ci/", i), "success", ""})
			}
			transition := paused(r.push("release", "release"), 1, promotes(r.push(promoteBranch, "first")))
			m, _ := statusOf(transition.After)
			state := string(m.state)
			if name == "GitLab" {
				state = gitLabStates[m.state]
			}
			f.statuses[sha("release")] = append([]fakeStatus{{"gitrollout/prod/shop", state, m.description}}, f.statuses[sha("release")]...)
			all := r.resume([]string{promoteBranch}, transition)
			compare.CheckNamed(t, "pull requests, and the last one's branch", []any{123, promoteBranch}, []any{len(all), all[len(all)-1].branch})
			compare.CheckNamed(t, "states, and title", [3]string{"closed", "open", "a fork's"}, [3]string{all[0].state, all[1].state, all[1].title})
			compare.CheckNamed(t, "statuses", 61, len(f.statuses[sha("release")]))
		})
	}
}

// TestBounded checks that the worker drops orders beyond maxJobs, and reports the drop once.
func TestBounded(t *testing.T) {
	var problems []error
	w := NewWorker(Options{Now: time.Now, Log: func(err error, _ string) { problems = append(problems, err) }})
	for i := range maxJobs + 100 {
		w.Show(rollout.Forge{}, []rollout.ForgeUpdate{paused(sha(fmt.Sprint(i)), 1)})
		w.Show(rollout.Forge{}, []rollout.ForgeUpdate{paused(fmt.Sprintf("%040d", i), 1)})
	}
	compare.CheckNamed(t, "orders, in line, and problems", [3]int{maxJobs, maxJobs, 1}, [3]int{len(w.jobs), len(w.order), len(problems)})
}

// TestTokenStaysHome checks that the client follows no redirect to another host, which would get the token.
func TestTokenStaysHome(t *testing.T) {
	asked := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer other.Close()
	home := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer home.Close()
	err := newAPI(home.URL, time.Now).call(context.Background(), http.MethodGet, "/x", nil, nil)
	if err == nil || asked || strings.Contains(err.Error(), "t0ken") || !strings.Contains(err.Error(), "redirects to another host") {
		t.Errorf("asked %t, error %v", asked, err)
	}
	var failed *call.Error
	if !errors.As(err, &failed) {
		t.Errorf("it is a %T", err)
	}
}

// TestTokenIsNotTold checks that no error contains the token, even if the forge's response contains it.
func TestTokenIsNotTold(t *testing.T) {
	for _, known := range forges {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = fmt.Fprintf(w, `{"message": "t0ken is wrong; you sent %s"}`, strings.ReplaceAll(fmt.Sprint(r.Header), `"`, ""))
		}))
		a := newAPI(server.URL, time.Now)
		a.header = known.header
		err := a.call(context.Background(), http.MethodGet, "/x", nil, nil)
		if err == nil || strings.Contains(err.Error(), "t0ken") || !strings.Contains(err.Error(), "is wrong; you sent") {
			t.Errorf("%s: error %v", known.name, err)
		}
		server.Close()
	}
}

func newAPI(base string, now func() time.Time) *api {
	token := tokenOf("t0ken")
	return &api{client: call.Clients(), base: base, token: token, header: gitLab.header, now: now}
}

// TestForgeClosesTheSuccessor checks a forge that handles a branch's removal late. When the branch exists again, the forge closes the
// branch's new pull request, and the worker must open another one.
func TestForgeClosesTheSuccessor(t *testing.T) {
	r := newRig(t, newGitHubBench)
	f := r.fake()
	release := r.push("release", "the release")
	r.show(paused(release, 1, promotes(r.push(promoteBranch, "first"))))
	r.show(paused(release, 1, promotes("")))
	r.worker.Show(r.config, []rollout.ForgeUpdate{paused(release, 2, promotes(r.push(promoteBranch, "second")))})
	isOpen := func() int {
		for _, p := range r.list() {
			if p.state == "open" {
				return p.number
			}
		}
		return 0
	}
	for deadline := time.Now().Add(5 * time.Minute); isOpen() == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the second one is not opened: %v", r.list())
		}
	}
	second, commit := isOpen(), r.worker.newest[promoteBranch]
	f.close(second)
	r.settle()
	third := isOpen()
	if third <= second {
		t.Errorf("it stays closed: %v", r.list())
	}
	r.worker.mu.Lock()
	r.worker.removed[promoteBranch] = r.worker.removed[promoteBranch].Add(-4 * r.worker.Settle) // the next closing counts as a user's
	r.worker.mu.Unlock()
	f.close(third)
	r.show(paused(release, 2, promotes(commit)))
	if open := isOpen(); open != 0 {
		t.Errorf("a user closed it, and %d is open: %v", open, r.list())
	}
}
