package forge

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
)

const hookSecret = "a secret that only the forge knows"

func push(ref, repository string) string {
	return fmt.Sprintf(`{"ref":%q,"repository":{"full_name":%q}}`, ref, repository)
}

func signed(secret, body string) string { return hex.EncodeToString(mac([]byte(secret), []byte(body))) }

// TestHook checks, for each kind of request, the status code and whether Pushed is called.
func TestHook(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	body, aside := push("refs/heads/main", "acme/deploy"), push("refs/heads/x", "acme/deploy")
	state, tag := push("refs/heads/gitrollout/state/prod", "acme/deploy"), push("refs/tags/main", "acme/deploy")
	ignored := map[string]string{
		"another branch":   "ignored: push to branch x, this reconciler follows main",
		"the state branch": "ignored: push to branch gitrollout/state/prod, this reconciler follows main",
		"a tag":            "ignored: push to refs/tags/main, this reconciler follows main",
	}
	mallory, mine := push("refs/heads/main", "mallory/deploy"), push("refs/heads/main", "me/deploy")
	gitLab := `{"ref":"refs/heads/main","project":{"path_with_namespace":"acme/deploy"},"repository":{"name":"deploy"}}`
	form := "payload=" + url.QueryEscape(body)
	standard := func(secret string, key []byte, at time.Time) map[string]string {
		stamp := fmt.Sprint(at.Unix())
		return map[string]string{"X-Gitlab-Event": "Push Hook", "Webhook-Id": "id1", "Webhook-Timestamp": stamp,
			"Webhook-Signature": "v1,AAAA v1," + base64.StdEncoding.EncodeToString(mac(key, []byte("id1."+stamp+"."+gitLab)))}
	}
	gitHub := func(signature, event string) map[string]string {
		return map[string]string{"X-Hub-Signature-256": "sha256=" + signature, "X-GitHub-Event": event}
	}
	gitea := func(signature, event string) map[string]string {
		return map[string]string{"X-Gitea-Signature": signature, "X-Gitea-Event": event}
	}
	for name, tt := range map[string]struct {
		method, path, body string
		header             map[string]string
		status             int
		pushed             bool
	}{
		"GitHub": {"POST", "/webhook", body, gitHub(signed(hookSecret, body), "push"), 202, true},
		"GitHub as a form": {"POST", "/webhook", form,
			with(gitHub(signed(hookSecret, form), "push"), "Content-Type", "application/x-www-form-urlencoded"), 202, true},
		"Gitea": {"POST", "/webhook", body, gitea(signed(hookSecret, body), "push"), 202, true},
		"Forgejo": {"POST", "/webhook", body,
			map[string]string{"X-Forgejo-Signature": signed(hookSecret, body), "X-Forgejo-Event": "push"}, 202, true},
		"GitLab's token": {"POST", "/webhook", gitLab,
			map[string]string{"X-Gitlab-Token": hookSecret, "X-Gitlab-Event": "Push Hook"}, 202, true},
		"GitLab's signature":      {"POST", "/webhook", gitLab, standard(hookSecret, []byte(hookSecret), now), 202, true},
		"GitLab's, old":           {"POST", "/webhook", gitLab, standard(hookSecret, []byte(hookSecret), now.Add(-6*time.Minute)), 401, false},
		"GitLab's, of the future": {"POST", "/webhook", gitLab, standard(hookSecret, []byte(hookSecret), now.Add(6*time.Minute)), 401, false},
		"GitLab's, wrong":         {"POST", "/webhook", gitLab, standard(hookSecret, []byte("other"), now), 401, false},

		"another branch":     {"POST", "/webhook", aside, gitea(signed(hookSecret, aside), "push"), 200, false},
		"the state branch":   {"POST", "/webhook", state, gitea(signed(hookSecret, state), "push"), 200, false},
		"a tag":              {"POST", "/webhook", tag, gitea(signed(hookSecret, tag), "push"), 200, false},
		"another event":      {"POST", "/webhook", body, gitea(signed(hookSecret, body), "issues"), 202, false},
		"a ping":             {"POST", "/webhook", `{"zen":"x"}`, gitHub(signed(hookSecret, `{"zen":"x"}`), "ping"), 202, false},
		"another repository": {"POST", "/webhook", mallory, gitea(signed(hookSecret, mallory), "push"), 403, false},
		"part of a name":     {"POST", "/webhook", mine, gitea(signed(hookSecret, mine), "push"), 403, false},
		"no signature":       {"POST", "/webhook", body, map[string]string{"X-Gitea-Event": "push"}, 401, false},
		"a wrong signature":  {"POST", "/webhook", body, gitea(signed("other", body), "push"), 401, false},
		"an empty secret's":  {"POST", "/webhook", body, gitea(signed("", body), "push"), 401, false},
		"no digits":          {"POST", "/webhook", body, gitea("zz", "push"), 401, false},
		"sha1": {"POST", "/webhook", body,
			map[string]string{"X-Hub-Signature-256": "sha1=" + signed(hookSecret, body)}, 401, false},
		"another body": {"POST", "/webhook", body + " ", gitea(signed(hookSecret, body), "push"), 401, false},
		"a bad one and a good": {"POST", "/webhook", body,
			with(gitea(signed(hookSecret, body), "push"), "X-Hub-Signature-256", "sha256=00"), 401, false},
		"a wrong token": {"POST", "/webhook", gitLab,
			map[string]string{"X-Gitlab-Token": hookSecret + "x", "X-Gitlab-Event": "Push Hook"}, 401, false},
		"GET":          {"GET", "/webhook", "", nil, 405, false},
		"another path": {"POST", "/", body, gitea(signed(hookSecret, body), "push"), 404, false},
		"too large":    {"POST", "/webhook", strings.Repeat("x", maxHook+1), gitea("00", "push"), 413, false},
	} {
		t.Run(name, func(t *testing.T) {
			pushed := false
			h, err := NewHook(Hook{Secret: hookSecret, Remote: "https://git.example.com/acme/deploy.git", Branch: "main",
				Pushed: func() { pushed = true }, Now: func() time.Time { return now }})
			must(t, err)
			r := httptest.NewRequest(tt.method, tt.path, strings.NewReader(tt.body))
			r.Header.Set("Content-Type", "application/json")
			for k, v := range tt.header {
				r.Header.Set(k, v)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			compare.CheckNamed(t, "status, and pushed", []any{tt.status, tt.pushed}, []any{w.Code, pushed})
			compare.CheckNamed(t, "body", ignored[name], w.Body.String())
		})
	}
}

func with(header map[string]string, key, value string) map[string]string {
	header[key] = value
	return header
}

func TestHookSecret(t *testing.T) {
	_, err := NewHook(Hook{})
	compare.CheckNamed(t, "a hook without a secret is refused", true, err != nil)
	key := []byte("0123456789abcdef")
	compare.CheckNamed(t, "a whsec_ secret, which is base64 of its key,", key, signingKey("whsec_"+base64.StdEncoding.EncodeToString(key)))
}

// TestAsk checks whether a Hook accepts the webhook that Ask sends, and whether it then calls Pushed.
func TestAsk(t *testing.T) {
	ours := Hook{Secret: hookSecret, Remote: "https://git.example/acme/deploy.git", Branch: "main", Now: time.Now}
	for name, c := range map[string]struct {
		asks   Hook
		err    string // "" for none
		pushed int
	}{
		"the same":    {ours, "", 1},
		"another URL": {Hook{hookSecret, "git@ssh.git.example:acme/deploy", "main", nil, time.Now, nil, nil}, "", 1},
		"another branch": {Hook{hookSecret, ours.Remote, "next", nil, time.Now, nil, nil},
			"200 OK: ignored: push to branch next, this reconciler follows main", 0},
		"another repository": {Hook{hookSecret, "https://git.example/acme/shop.git", "main", nil, time.Now, nil, nil}, "403 Forbidden", 0},
		"another secret": {Hook{"guess", ours.Remote, "main", nil, time.Now, nil, nil},
			"401 Unauthorized: (no reason given); use the secret of the reconciler", 0},
	} {
		t.Run(name, func(t *testing.T) {
			pushed := 0
			hook := ours
			hook.Pushed = func() { pushed++ }
			h, err := NewHook(hook)
			must(t, err)
			server := httptest.NewServer(h)
			defer server.Close()
			err = c.asks.Ask(t.Context(), server.URL+HookPath)
			if compare.Contains(t, fmt.Sprint(err), c.err); (err == nil) != (c.err == "") {
				t.Error(err)
			}
			compare.CheckNamed(t, "pushes", c.pushed, pushed)
		})
	}
	compare.Contains(t, fmt.Sprint(ours.Ask(t.Context(), "127.0.0.1:9292")), "not a URL that begins with https://")
}

// TestHookReadsFew checks that a Hook refuses a request while it reads maxReading other requests' bodies.
func TestHookReadsFew(t *testing.T) {
	h, err := NewHook(Hook{Secret: hookSecret, Now: time.Now})
	must(t, err)
	for range maxReading {
		h.reading <- struct{}{}
	}
	r := httptest.NewRequest(http.MethodPost, "/webhook", strings.NewReader("{}"))
	r.Header.Set("X-Gitea-Signature", "00")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	compare.CheckNamed(t, "status", http.StatusServiceUnavailable, w.Code)
}

// TestHookWaitsForNoBody checks that a request ends if its body does not arrive in time. In the test, the deadline has
// passed before the body begins.
func TestHookWaitsForNoBody(t *testing.T) {
	h, err := NewHook(Hook{
		Secret: hookSecret, Remote: "https://git.example/acme/deploy.git", Branch: "main", Pushed: func() {},
		Now: func() time.Time { return time.Now().Add(-bodyTime) },
	})
	must(t, err)
	server := httptest.NewServer(h)
	defer server.Close()
	body, trickle := io.Pipe()
	defer trickle.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+HookPath, body)
	must(t, err)
	r.Header.Set("X-Hub-Signature-256", "sha256=00")
	res, err := http.DefaultClient.Do(r)
	must(t, err)
	defer res.Body.Close()
	compare.CheckNamed(t, "status, and bodies that are read", [2]int{http.StatusUnauthorized, 0}, [2]int{res.StatusCode, len(h.reading)})
}

// FuzzHook sends requests that are signed with another secret, and then the same bodies with a right signature. Requests with the other
// secret must never call Pushed. Requests with a right signature call Pushed only for a push to the users' branch.
func FuzzHook(f *testing.F) {
	names := []string{
		"X-Hub-Signature-256", "X-Gitea-Signature", "X-Forgejo-Signature", "X-Gitlab-Token", "Webhook-Signature",
	}
	body := push("refs/heads/main", "acme/deploy")
	for i := range names {
		f.Add(i, "sha256="+signed("guess", body), fmt.Sprint(time.Now().Unix()), "application/json", []byte(body))
		f.Add(i, "v1,AAAA", "", "application/x-www-form-urlencoded", []byte("payload="+url.QueryEscape(body)))
	}
	f.Add(0, "", "x", "", []byte(`{"ref":null,"repository":[]}`))
	f.Add(2, signed("", body), "9223372036854775807", "application/x-www-form-urlencoded;", []byte("payload=%zz"))
	f.Fuzz(func(t *testing.T, which int, signature, stamp, kind string, body []byte) {
		pushed := 0
		h, err := NewHook(Hook{
			Secret: hookSecret, Remote: "https://git.example/acme/deploy.git", Branch: "main", Now: time.Now,
			Pushed: func() { pushed++ },
		})
		must(t, err)
		send := func(name, signature string) int {
			r := httptest.NewRequest(http.MethodPost, HookPath, bytes.NewReader(body))
			for header, value := range map[string]string{
				name: signature, "Content-Type": kind, "Webhook-Timestamp": stamp, "Webhook-Id": "id1",
				"X-GitHub-Event": "push", "X-Gitea-Event": "push", "X-Gitlab-Event": "Push Hook",
			} {
				r.Header[http.CanonicalHeaderKey(header)] = []string{value}
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w.Code
		}
		name := names[uint(which)%uint(len(names))]
		if signature == hookSecret || strings.Contains(signature, signed(hookSecret, string(body))) {
			return // the fuzzed signature contains the secret or the right HMAC, so it may be valid
		}
		if code := send(name, signature); code != http.StatusUnauthorized || pushed > 0 {
			t.Fatalf("%s %q of a stranger is answered %d, and %d pushes", name, signature, code, pushed)
		}
		send("X-Hub-Signature-256", "sha256="+signed(hookSecret, string(body)))
		text, err := url.QueryUnescape(string(body))
		if err != nil {
			text = string(body)
		}
		// JSON strings may have escaped characters, so this check needs a body without backslashes.
		plain := !strings.Contains(text, `\`)
		if pushed > 0 && plain && (!strings.Contains(text, "refs/heads/main") || !strings.Contains(strings.ToLower(text), "deploy")) {
			t.Errorf("it is fetched for %q", body)
		}
	})
}
