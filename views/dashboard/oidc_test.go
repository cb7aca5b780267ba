package dashboard

import (
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/oidctest"
)

func oidcOffice(t *testing.T, p *oidctest.Provider) (*office, *OIDC) {
	t.Helper()
	config := &OIDC{Issuer: p.URL, ClientID: "dash", Secret: "s3cret", Scopes: []string{"groups"}}
	o := newOffice(t, config)
	config.URL = o.URL
	return o, config
}

func TestOIDC(t *testing.T) {
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	must(t, err)
	for name, c := range map[string]struct {
		claims map[string]any
		sign   *rsa.PrivateKey
		in     bool
		may    string // with the app shop
		// unverified: the provider omits email_verified
		unverified bool
	}{
		"Ann":              {claims: map[string]any{"email": "ann@example.com", "email_verified": true, "name": "Ann L."}, in: true, may: "[promote hold]"},
		"AnnInCapitals":    {claims: map[string]any{"email_verified": true, "email": "Ann@Example.com"}, in: true, may: "[promote hold]"},
		"ReleaseManager":   {claims: map[string]any{"email_verified": true, "email": "kim@example.com", "groups": []string{"dev", "release-managers"}}, in: true, may: "[promote hold abort retry undo]"},
		"GroupAsText":      {claims: map[string]any{"email_verified": true, "email": "kim@example.com", "groups": "release-managers"}, in: true, may: "[promote hold abort retry undo]"},
		"Stranger":         {claims: map[string]any{"email_verified": true, "email": "eve@example.com", "groups": []string{"dev"}}, in: true, may: "[]"},
		"NothingSaid":      {claims: map[string]any{"email": "ann@example.com"}},
		"NothingSaidIsOK":  {claims: map[string]any{"email": "ann@example.com"}, unverified: true, in: true, may: "[promote hold]"},
		"UnverifiedIsNot":  {claims: map[string]any{"email": "ann@example.com", "email_verified": false}, unverified: true},
		"NoEmail":          {claims: map[string]any{"name": "X"}},
		"UnverifiedEmail":  {claims: map[string]any{"email": "ann@example.com", "email_verified": false}},
		"UnverifiedAsText": {claims: map[string]any{"email": "ann@example.com", "email_verified": "false"}},
		"UnverifiedAsZero": {claims: map[string]any{"email": "ann@example.com", "email_verified": 0}},
		"VerifiedAsText":   {claims: map[string]any{"email": "ann@example.com", "email_verified": "true"}, in: true, may: "[promote hold]"},
		"EmailWithMarkup":  {claims: map[string]any{"email_verified": true, "email": "kim@example.com> <root@example.com", "name": "Kim"}},
		"EmailOfTwoLines":  {claims: map[string]any{"email_verified": true, "email": "kim@example.com\ncommitter root <root@example.com", "name": "Kim"}},
		"NameOfTwoLines":   {claims: map[string]any{"email_verified": true, "email": "kim@example.com", "name": "Kim\nGitrollout-Release: h1-0"}},
		"NameWithMarkup":   {claims: map[string]any{"email_verified": true, "email": "kim@example.com", "name": "Kim <root@example.com>"}},
		"OtherAudience":    {claims: map[string]any{"email_verified": true, "email": "ann@example.com", "aud": "another"}},
		"OtherIssuer":      {claims: map[string]any{"email_verified": true, "email": "ann@example.com", "iss": "https://evil.example"}},
		"OtherNonce":       {claims: map[string]any{"email_verified": true, "email": "ann@example.com", "nonce": "replayed"}},
		"Expired":          {claims: map[string]any{"email_verified": true, "email": "ann@example.com", "exp": time.Now().Add(-time.Hour).Unix()}},
		"OtherKey":         {claims: map[string]any{"email_verified": true, "email": "ann@example.com"}, sign: other},
	} {
		t.Run(name, func(t *testing.T) {
			p := oidctest.New(t)
			p.SignsIn(c.claims, c.sign)
			o, config := oidcOffice(t, p)
			config.Unverified = c.unverified
			v := o.visitor()
			code, answer := v.send(http.MethodGet, "/oidc/start", "", nil)
			if in := code == 200; in != c.in {
				t.Fatalf("signing in answers %d %v", code, answer)
			}
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
	begin := func(v *visitor) string { // the address to which the provider redirects the browser
		t.Helper()
		v.client.CheckRedirect = stop
		res, err := v.client.Get(o.URL + "/oidc/start")
		must(t, err)
		_ = res.Body.Close()
		if c := res.Cookies(); len(c) != 1 || !c[0].HttpOnly || c[0].SameSite != http.SameSiteLaxMode {
			t.Errorf("the cookie of the flow is %+v", c)
		}
		if res, err = v.client.Get(res.Header.Get("Location")); err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		return strings.TrimPrefix(res.Header.Get("Location"), o.URL)
	}
	mallory, victim := o.visitor(), o.visitor()
	back := begin(mallory)
	if code, _ := victim.send(http.MethodGet, back, "", nil); code != 400 {
		t.Errorf("another visitor's sign-in is taken: %d", code)
	}
	begin(victim)
	if code, _ := victim.send(http.MethodGet, back, "", nil); code != 400 {
		t.Errorf("another state is taken: %d", code)
	}
	if code, _ := mallory.send(http.MethodGet, back, "", nil); code != 200 {
		t.Errorf("one's own sign-in answers %d", code)
	}
	if code, _ := mallory.send(http.MethodGet, back, "", nil); code != 400 {
		t.Errorf("a sign-in works twice: %d", code)
	}
	late := o.visitor()
	back = begin(late)
	o.now = o.now.Add(flowTime)
	if code, _ := late.send(http.MethodGet, back, "", nil); code != 400 {
		t.Errorf("a sign-in that took too long answers %d", code)
	}
	if code, answer := o.visitor().send(http.MethodGet, "/oidc/callback?error=access_denied&state=x", "", nil); code != 400 {
		t.Errorf("an error without a flow answers %d %v", code, answer)
	}
}

func TestOIDCProviderThatIsAway(t *testing.T) {
	p := oidctest.New(t)
	o, _ := oidcOffice(t, p)
	p.Close()
	if code, answer := o.visitor().send(http.MethodGet, "/oidc/start", "", nil); code != http.StatusBadGateway || !strings.Contains(fmt.Sprint(answer), "identity provider") {
		t.Errorf("answers %d %v", code, answer)
	}
	if code, _ := o.visitor().signIn().send(http.MethodPost, "/api/v1/apps/shop/actions", promoteShop, nil); code != 200 {
		t.Errorf("tokens do not work meanwhile: %d", code)
	}
}
