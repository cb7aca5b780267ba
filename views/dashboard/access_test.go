package dashboard_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/dashboard"
	"gitrollout.dev/gitrollout/views/status"
)

// office is a dashboard with a file of rights. Ann may promote and hold apps named shop*, and release managers may do everything.
type office struct {
	*httptest.Server
	t     *testing.T
	file  string
	token string
	actor *fakeActor
	now   time.Time
}

func rulesWith(digest string) string {
	return `apiVersion: gitrollout.dev/v1alpha1
kind: DashboardAccess
people:
- name: Ann Lee
  email: ann@example.com
  token: ` + digest + `
  apps: ["shop*"]
  verbs: [promote, hold]
groups:
- claim: groups
  value: release-managers
  apps: ["*"]
  verbs: [promote, hold, abort, retry, undo]
`
}

func newOffice(t *testing.T, oidc *dashboard.OIDC) *office {
	t.Helper()
	token, digest := dashboard.NewToken()
	o := &office{t: t, file: filepath.Join(t.TempDir(), "access.yaml"), token: token, actor: &fakeActor{}, now: time.Now()}
	o.write(rulesWith(digest))
	server, board := serve(t, dashboard.Options{Access: &dashboard.Access{File: o.file}, Actor: o.actor, OIDC: oidc,
		Now: func() time.Time { return o.now }})
	show(t, board, []status.App{withPod(appOf("shop", rollout.Paused, 25)), withPod(appOf("pay", rollout.Paused, 25))})
	o.Server = server
	return o
}

func (o *office) write(rules string) {
	o.t.Helper()
	must(o.t, os.WriteFile(o.file, []byte(rules), 0o600))
}

// visitor sends requests to an office, and keeps cookies as a browser does.
type visitor struct {
	o      *office
	client *http.Client
	csrf   string
}

func (o *office) visitor() *visitor {
	jar, err := cookiejar.New(nil)
	must(o.t, err)
	return &visitor{o: o, client: &http.Client{Jar: jar}}
}

func (v *visitor) send(method, path, body string, headers map[string]string) (code int, answer map[string]any) {
	v.o.t.Helper()
	req, err := http.NewRequest(method, v.o.URL+path, strings.NewReader(body))
	must(v.o.t, err)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if v.csrf != "" {
		req.Header.Set("X-CSRF-Token", v.csrf)
	}
	for name, value := range headers {
		if req.Header.Set(name, value); value == "" {
			req.Header.Del(name)
		}
	}
	res, err := v.client.Do(req)
	must(v.o.t, err)
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	must(v.o.t, err)
	_ = json.Unmarshal(data, &answer)
	return res.StatusCode, answer
}

// wants sends a request, and fails the test unless the response has the given status code.
func (v *visitor) wants(code int, what, method, path, body string) {
	v.o.t.Helper()
	if got, answer := v.send(method, path, body, nil); got != code {
		v.o.t.Errorf("%s is answered %d %v, want %d", what, got, answer, code)
	}
}

// promotes requests a promotion of the app shop, and fails the test unless the response has the given status code.
func (v *visitor) promotes(code int, what string) {
	v.o.t.Helper()
	v.wants(code, "a promotion, "+what+",", http.MethodPost, "/api/v1/apps/shop/actions", promoteShop)
}

func (v *visitor) signIn() *visitor {
	v.o.t.Helper()
	code, answer := v.send(http.MethodPost, "/api/v1/session", `{"token": "`+v.o.token+`"}`, nil)
	if code != http.StatusOK {
		v.o.t.Fatalf("sign in: %d %v", code, answer)
	}
	v.csrf, _ = answer["csrf"].(string)
	return v
}

// TestSignOutEndsTheSession checks that a copy of the session's cookie is refused after the user has signed out. The
// user's other sessions must remain valid.
func TestSignOutEndsTheSession(t *testing.T) {
	o := newOffice(t, nil)
	v, other := o.visitor().signIn(), o.visitor().signIn()
	address, err := url.Parse(o.URL)
	must(t, err)
	kept := v.client.Jar.Cookies(address)
	v.wants(http.StatusOK, "a sign-out", http.MethodDelete, "/api/v1/session", "")
	v.client.Jar.SetCookies(address, kept)
	v.promotes(http.StatusUnauthorized, "after signing out")
	_, me := v.send(http.MethodGet, "/api/v1/me", "", nil)
	compare.CheckNamed(t, "after signing out, the cookie belongs to", nil, me["name"])
	_, me = other.send(http.MethodGet, "/api/v1/me", "", nil)
	compare.CheckNamed(t, "another session goes on", true, me["name"] != nil)
}

const promoteShop = `{"verb": "promote", "release": "h1-2222222222"}`

func TestActionsAreGuarded(t *testing.T) {
	for name, c := range map[string]struct {
		app, body string
		headers   map[string]string
		anonymous bool
		code      int
	}{
		"AsThePageDoes":     {body: promoteShop, headers: map[string]string{"Sec-Fetch-Site": "same-origin"}, code: 200},
		"NotSignedIn":       {body: promoteShop, anonymous: true, code: 401},
		"WithoutCSRF":       {body: promoteShop, headers: map[string]string{"X-CSRF-Token": ""}, code: 403},
		"WrongCSRF":         {body: promoteShop, headers: map[string]string{"X-CSRF-Token": "guess"}, code: 403},
		"FromAnotherSite":   {body: promoteShop, headers: map[string]string{"Sec-Fetch-Site": "cross-site"}, code: 403},
		"FromASisterSite":   {body: promoteShop, headers: map[string]string{"Sec-Fetch-Site": "same-site"}, code: 403},
		"FromAnotherOrigin": {body: promoteShop, headers: map[string]string{"Origin": "https://evil.example"}, code: 403},
		"AsAForm":           {body: promoteShop, headers: map[string]string{"Content-Type": "text/plain"}, code: 415},
		"NotHerApp":         {app: "pay", body: promoteShop, code: 403},
		"NotHerVerb":        {body: `{"verb": "abort"}`, code: 403},
		"NoVerb":            {body: `{"verb": "explode"}`, code: 400},
		"UnknownField":      {body: `{"verb": "promote", "as": "root"}`, code: 400},
		"NoJSON":            {body: `{`, code: 400},
		"TooLong":           {body: `{"verb": "hold", "reason": "` + strings.Repeat("x", 16<<10) + `"}`, code: 400},
		"NoSuchApp":         {app: "shopping", body: promoteShop, code: 404},
		"BearerToken":       {body: promoteShop, anonymous: true, headers: map[string]string{"Authorization": "Bearer TOKEN"}, code: 200},
		"WrongBearer":       {body: promoteShop, anonymous: true, headers: map[string]string{"Authorization": "Bearer gitrollout_x"}, code: 401},
		"NoBearer":          {body: promoteShop, anonymous: true, headers: map[string]string{"Authorization": "Bearer "}, code: 401},
		"ForgedCookie": {body: promoteShop, anonymous: true, code: 401,
			headers: map[string]string{"Cookie": "gitrollout_session" + "=eyJuYW1lIjoiQW5uIn0.AAAA"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t, nil)
			v := o.visitor()
			if !c.anonymous {
				v.signIn()
			}
			if strings.HasSuffix(c.headers["Authorization"], "TOKEN") {
				c.headers["Authorization"] = "Bearer " + o.token
			}
			if c.app == "" {
				c.app = "shop"
			}
			code, answer := v.send(http.MethodPost, "/api/v1/apps/"+c.app+"/actions", c.body, c.headers)
			compare.CheckNamed(t, fmt.Sprint("the code of ", answer), c.code, code)
			did := strings.Join(o.actor.did, "")
			compare.CheckNamed(t, "done", map[bool]string{true: "Ann Lee <ann@example.com> promote shop h1-2222222222"}[c.code == 200], did)
		})
	}
}

// withPod gives an app a pod and two metrics.
func withPod(a status.App) status.App {
	a.Metrics = []status.Metric{{Metric: "errors", Query: "rate(errors[1m])", Limits: "failureLimit: 2"},
		{Metric: "errors", Query: "rate(all[1m])", Limits: "failureLimit: 2"}}
	a.Workloads[0].Revisions = []status.Revision{{Role: "canary", Pods: []status.Pod{{Name: a.App + "-0", UID: "uid-0"}}}}
	return a
}

// TestDataForPeople checks that only users with a right to an app get the events and logs of its pods, its manifests, and the queries of
// its metrics.
func TestDataForPeople(t *testing.T) {
	o := newOffice(t, nil)
	ann, anonymous := o.visitor().signIn(), o.visitor()
	for name, c := range map[string]struct {
		who  *visitor
		path string
		code int
		want string
	}{
		"signed in":                 {ann, "shop/pods/shop/shop-0", 200, "map[notes:[of shop/shop-0 uid-0]]"},
		"not signed in":             {anonymous, "shop/pods/shop/shop-0", 401, "only for signed-in people: sign in first"},
		"without a right":           {ann, "pay/pods/pay/pay-0", 403, "ann@example.com has no right to pay; or run: gitrollout events pay"},
		"another app's pod":         {ann, "shop/pods/pay/pay-0", 404, "app shop has no pod pay-0 any more"},
		"the name elsewhere":        {ann, "shop/pods/kube-system/shop-0", 404, "has no pod shop-0"},
		"an unknown app":            {ann, "shopp/pods/shop/shop-0", 404, "cluster prod has no app shopp"},
		"a pod of a longer path":    {ann, "shop/pods/shop/shop-0/log", 404, ""},
		"no pod, but not signed in": {anonymous, "shop/pods/shop/none", 401, "sign in first"},
		"objects":                   {ann, "shop/objects", 200, "Secret keys"},
		"objects, not signed in":    {anonymous, "shop/objects", 401, "objects are only for signed-in people: sign in first"},
		"objects, without a right":  {ann, "pay/objects", 403, "no right to pay; or run: gitrollout render pay --with-state"},
		"changes":                   {ann, "shop/diff", 200, "Deployment shop"},
		"changes, not signed in":    {anonymous, "shop/diff", 401, "changes are only for signed-in people: sign in first"},
		"changes, without a right":  {ann, "pay/diff", 403, "has no right to pay; or run: gitrollout plan --base STABLE --head RELEASE"},
	} {
		code, answer := c.who.send(http.MethodGet, "/api/v1/apps/"+c.path, "", nil)
		compare.CheckNamed(t, name, c.code, code)
		compare.Contains(t, fmt.Sprint(answer), c.want)
	}
	bearer := map[string]string{"Authorization": "Bearer " + o.token}
	for name, c := range map[string]struct {
		headers map[string]string
		path    string
		want    bool
	}{
		"its user":        {bearer, "/api/v1/apps/shop", true},
		"not signed in":   {nil, "/api/v1/apps/shop", false},
		"without a right": {bearer, "/api/v1/apps/pay", false},
		"all apps":        {bearer, "/api/v1/apps", false},
	} {
		code, answer := anonymous.send(http.MethodGet, c.path, "", c.headers)
		text := fmt.Sprint(answer)
		compare.CheckNamed(t, name+": status, has limits, and has a query", []any{200, true, c.want},
			[]any{code, strings.Contains(text, "failureLimit: 2"), strings.Contains(text, "rate(errors")})
	}
	server := o.Config.Handler.(*dashboard.Server)
	for name, header := range map[string]string{"its user": "Bearer " + o.token, "not signed in": ""} {
		r := httptest.NewRequest(http.MethodGet, "/api/v1/events?app=shop", nil)
		r.Header.Set("Authorization", header)
		query := server.NextData(r, "shop").(dashboard.Detail).Metrics[0].Query
		compare.CheckNamed(t, name+": the stream has a query", header != "", query != "")
	}
	shop, _, _ := server.Board.App("shop")
	compare.CheckNamed(t, "the query on the board", true, shop.Metrics[0].Query != "")

	_, another := dashboard.NewToken()
	o.write(rulesWith(another))
	ann.wants(http.StatusForbidden, "a pod for a token that was changed", http.MethodGet, "/api/v1/apps/shop/pods/shop/shop-0", "")
	o.write("{")
	ann.wants(http.StatusInternalServerError, "a broken file of rights", http.MethodGet, "/api/v1/apps/shop/objects", "")

	url, _ := boardOf(t, withPod(appOf("shop", rollout.Paused, 25)))
	res, body := get(t, url+"/api/v1/apps/shop/pods/shop/shop-0")
	compare.CheckNamed(t, "without sign-in", http.StatusForbidden, res.StatusCode)
	compare.Contains(t, body, "this page has no sign-in; or run: gitrollout events shop, or: gitrollout logs shop")
}

func TestSessions(t *testing.T) {
	o := newOffice(t, nil)
	o.visitor().wants(403, "a wrong token", http.MethodPost, "/api/v1/session", `{"token": "wrong"}`)
	o.visitor().wants(403, "no token", http.MethodPost, "/api/v1/session", `{"token": ""}`)
	req, _ := http.NewRequest(http.MethodPost, o.URL+"/api/v1/session", strings.NewReader(`{"token": "`+o.token+`"}`))
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	must(t, err)
	_ = res.Body.Close()
	if c := res.Cookies(); len(c) != 1 || !c[0].HttpOnly || c[0].SameSite != http.SameSiteStrictMode || c[0].Secure ||
		strings.Contains(c[0].Value, o.token) {
		t.Errorf("the cookie is %+v", c)
	}

	v := o.visitor().signIn()
	_, me := v.send(http.MethodGet, "/api/v1/me?app=shop", "", nil)
	compare.CheckNamed(t, "name, and verbs", []any{"Ann Lee", 2}, []any{me["name"], len(me["may"].([]any))})
	_, me = v.send(http.MethodGet, "/api/v1/me?app=pay", "", nil)
	compare.CheckNamed(t, "verbs", 0, len(me["may"].([]any)))
	v.promotes(200, "signed in")
	_, another := dashboard.NewToken()
	rules, _ := os.ReadFile(o.file)
	o.write(rulesWith(another))
	v.promotes(403, "with a token that was changed")
	o.write(string(rules))
	o.now = o.now.Add(8 * time.Hour)
	v.promotes(401, "after the end of the session")
	o.now = o.now.Add(-8 * time.Hour)
	v.send(http.MethodDelete, "/api/v1/session", "{}", nil)
	v.promotes(401, "signed out")
	o.actor.err = errors.New("no")
	o.visitor().signIn().promotes(409, "which is refused")
}

func TestReadOnlyUnlessAskedFor(t *testing.T) {
	server, board := serve(t, dashboard.Options{})
	show(t, board, []status.App{appOf("shop", rollout.Paused, 25)})
	for _, path := range []string{"/api/v1/apps/shop/actions", "/api/v1/session"} {
		res, err := http.Post(server.URL+path, "application/json", strings.NewReader(promoteShop))
		must(t, err)
		_ = res.Body.Close()
		if res.StatusCode != http.StatusNotFound && res.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s answers %d", path, res.StatusCode)
		}
	}
	_, body := get(t, server.URL+"/api/v1/me")
	compare.Contains(t, body, `"actions":false`)
}

func TestAccessFile(t *testing.T) {
	_, digest := dashboard.NewToken()
	good := rulesWith(digest)
	for name, c := range map[string]struct{ old, new, want string }{
		"Good":        {"", "", ""},
		"UnknownKey":  {"kind: DashboardAccess", "kind: DashboardAccess\nsurprise: 1", "surprise"},
		"OtherKind":   {"kind: DashboardAccess", "kind: Rollout", "kind"},
		"NoKind":      {"kind: DashboardAccess\n", "", "kind"},
		"Markup":      {"email: ann@example.com", `email: "ann@example.com> <root@example.com"`, "people[0]"},
		"Version":     {"gitrollout.dev/v1alpha1", "gitrollout.dev/v9", "v9"},
		"NoEmail":     {"email: ann@example.com", "email: \"\"", "people[0]"},
		"Newline":     {"name: Ann Lee", `name: "Ann\nLee"`, "people[0]"},
		"PlainToken":  {digest, "secret", "people[0].token"},
		"ShortDigest": {digest, digest[:20], "people[0].token"},
		"BadGlob":     {`["shop*"]`, `["[shop"]`, "people[0].apps[0]"},
		"BadVerb":     {"[promote, hold]", "[promote, explode]", "people[0].verbs[1]"},
		"NoClaim":     {"claim: groups", "claim: \"\"", "groups[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			a := &dashboard.Access{File: filepath.Join(t.TempDir(), "a.yaml")}
			must(t, os.WriteFile(a.File, []byte(strings.Replace(good, c.old, c.new, 1)), 0o600))
			err := a.Check()
			compare.CheckNamed(t, "accepted", c.want == "", err == nil)
			compare.Contains(t, fmt.Sprint(err), c.want)
			compare.CheckNamed(t, "the error shows a possible token", false, strings.Contains(fmt.Sprint(err), "secret"))
		})
	}
	compare.CheckNamed(t, "a missing file is an error", true, (&dashboard.Access{File: filepath.Join(t.TempDir(), "none")}).Check() != nil)
}
