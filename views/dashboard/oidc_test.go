package dashboard_test

import (
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/oidctest"
	"gitrollout.dev/gitrollout/views/dashboard"
)

func oidcOffice(t *testing.T, p *oidctest.Provider) (*office, *dashboard.OIDC) {
	t.Helper()
	config := &dashboard.OIDC{Issuer: p.URL, ClientID: "dash", Secret: "s3cret", Scopes: []string{"groups"}}
	o := newOffice(t, config)
	config.URL = o.URL
	return o, config
}

func TestOIDC(t *testing.T) {
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	verified := func(email string, more ...any) map[string]any { // the last arguments are further claims: name and value in turn
		claims := map[string]any{"email": email, "email_verified": true}
		for i := 0; i < len(more); i += 2 {
			claims[more[i].(string)] = more[i+1]
		}
		return claims
	}
	const promotes, everything = "[promote hold]", "[promote hold abort retry undo]"
	for name, c := range map[string]struct {
		claims map[string]any
		sign   *rsa.PrivateKey
		in     bool
		may    string // the user's verbs for the app shop
		// unverified is OIDC.Unverified: an email without the claim email_verified is accepted
		unverified bool
	}{
		"Ann":              {claims: verified("ann@example.com", "name", "Ann L."), in: true, may: promotes},
		"AnnInCapitals":    {claims: verified("Ann@Example.com"), in: true, may: promotes},
		"ReleaseManager":   {claims: verified("kim@example.com", "groups", []string{"dev", "release-managers"}), in: true, may: everything},
		"GroupAsText":      {claims: verified("kim@example.com", "groups", "release-managers"), in: true, may: everything},
		"Stranger":         {claims: verified("eve@example.com", "groups", []string{"dev"}), in: true, may: "[]"},
		"NothingSaid":      {claims: map[string]any{"email": "ann@example.com"}},
		"NothingSaidIsOK":  {claims: map[string]any{"email": "ann@example.com"}, unverified: true, in: true, may: promotes},
		"UnverifiedIsNot":  {claims: verified("ann@example.com", "email_verified", false), unverified: true},
		"NoEmail":          {claims: map[string]any{"name": "X"}},
		"UnverifiedEmail":  {claims: verified("ann@example.com", "email_verified", false)},
		"UnverifiedAsText": {claims: verified("ann@example.com", "email_verified", "false")},
		"UnverifiedAsZero": {claims: verified("ann@example.com", "email_verified", 0)},
		"VerifiedAsText":   {claims: verified("ann@example.com", "email_verified", "true"), in: true, may: promotes},
		"EmailWithMarkup":  {claims: verified("kim@example.com> <root@example.com", "name", "Kim")},
		"EmailOfTwoLines":  {claims: verified("kim@example.com\ncommitter root <root@example.com", "name", "Kim")},
		"NameOfTwoLines":   {claims: verified("kim@example.com", "name", "Kim\nGitrollout-Release: h1-0")},
		"NameWithMarkup":   {claims: verified("kim@example.com", "name", "Kim <root@example.com>")},
		"OtherAudience":    {claims: verified("ann@example.com", "aud", "another")},
		"OtherIssuer":      {claims: verified("ann@example.com", "iss", "https://evil.example")},
		"OtherNonce":       {claims: verified("ann@example.com", "nonce", "replayed")},
		"Expired":          {claims: verified("ann@example.com", "exp", time.Now().Add(-time.Hour).Unix())},
		"OtherKey":         {claims: verified("ann@example.com"), sign: other},
	} {
		t.Run(name, func(t *testing.T) {
			p := oidctest.New(t)
			p.SignsIn(c.claims, c.sign)
			o, config := oidcOffice(t, p)
			config.Unverified = c.unverified
			v := o.visitor()
			code, answer := v.send(http.MethodGet, "/oidc/start", "", nil)
			compare.CheckNamed(t, fmt.Sprintf("signed in by %d %v", code, answer), c.in, code == 200)
			_, me := v.send(http.MethodGet, "/api/v1/me?app=shop", "", nil)
			if (me["name"] != nil) != c.in || c.in && fmt.Sprint(me["may"]) != c.may {
				t.Errorf("me is %v, want to be able to %s", me, c.may)
			}
		})
	}
}

func TestOIDCFlowIsBound(t *testing.T) {
	p := oidctest.New(t)
	p.SignsIn(map[string]any{"email_verified": true, "email": "ann@example.com"}, nil)
	o, _ := oidcOffice(t, p)
	stop := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	begin := func(v *visitor) string { // starts a sign-in, and returns the path to which the provider redirects the browser
		t.Helper()
		v.client.CheckRedirect = stop
		res, err := v.client.Get(o.URL + "/oidc/start")
		must(t, err)
		_ = res.Body.Close()
		if c := res.Cookies(); len(c) != 1 || !c[0].HttpOnly || c[0].SameSite != http.SameSiteLaxMode {
			t.Errorf("the cookie of the flow is %+v", c)
		}
		res, err = v.client.Get(res.Header.Get("Location"))
		must(t, err)
		_ = res.Body.Close()
		return strings.TrimPrefix(res.Header.Get("Location"), o.URL)
	}
	mallory, victim := o.visitor(), o.visitor()
	back := begin(mallory)
	victim.wants(400, "another visitor's sign-in", http.MethodGet, back, "")
	begin(victim)
	victim.wants(400, "another state", http.MethodGet, back, "")
	mallory.wants(200, "one's own sign-in", http.MethodGet, back, "")
	mallory.wants(400, "a second sign-in", http.MethodGet, back, "")
	late := o.visitor()
	back = begin(late)
	o.now = o.now.Add(10 * time.Minute)
	late.wants(400, "a sign-in that took too long", http.MethodGet, back, "")
	o.visitor().wants(400, "an error without a flow", http.MethodGet, "/oidc/callback?error=access_denied&state=x", "")
}

func TestOIDCProviderThatIsAway(t *testing.T) {
	p := oidctest.New(t)
	o, _ := oidcOffice(t, p)
	p.Close()
	code, answer := o.visitor().send(http.MethodGet, "/oidc/start", "", nil)
	if code != http.StatusBadGateway || !strings.Contains(fmt.Sprint(answer), "identity provider") {
		t.Errorf("answers %d %v", code, answer)
	}
	o.visitor().signIn().promotes(200, "with a token meanwhile")
}

func TestCookiesOfASecureDashboard(t *testing.T) {
	p := oidctest.New(t)
	token, digest := dashboard.NewToken()
	file := filepath.Join(t.TempDir(), "access.yaml")
	must(t, os.WriteFile(file, []byte(rulesWith(digest)), 0o600))
	server, _ := serve(t, dashboard.Options{Access: &dashboard.Access{File: file}, Actor: &fakeActor{}, Secure: true,
		OIDC: &dashboard.OIDC{Issuer: p.URL, ClientID: "dash", URL: "https://rollouts.example.com"}})
	jar, _ := cookiejar.New(nil)
	client := &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	ask := func(method, path, body string) {
		t.Helper()
		req, _ := http.NewRequest(method, server.URL+path, strings.NewReader(body))
		req.Header.Set("Content-Type", "application/json")
		res, err := client.Do(req)
		must(t, err)
		_ = res.Body.Close()
		if len(res.Cookies()) == 0 {
			t.Fatalf("%s %s sets no cookie: %s", method, path, res.Status)
		}
		for _, c := range res.Cookies() {
			compare.CheckNamed(t, path+": the cookie "+c.Name+" is secure, and for HTTP only", [2]bool{true, true}, [2]bool{c.Secure, c.HttpOnly})
		}
	}
	ask(http.MethodPost, "/api/v1/session", `{"token": "`+token+`"}`)
	ask(http.MethodGet, "/oidc/start", "")
	ask(http.MethodGet, "/oidc/callback?state=x", "")
}
