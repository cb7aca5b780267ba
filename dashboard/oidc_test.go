package dashboard

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// provider is an OpenID Connect provider as far as the flow needs one. It is
// strict about what the specifications ask of clients.
type provider struct {
	*httptest.Server
	t   *testing.T
	key *rsa.PrivateKey

	mu     sync.Mutex
	asked  map[string]url.Values // code -> the request that it was given for
	claims map[string]any        // of who signs in
	sign   *rsa.PrivateKey       // nil: key
}

func newProvider(t *testing.T) *provider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{t: t, key: key, asked: map[string]url.Values{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		send(w, 200, map[string]any{
			"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"RS256"}, "response_types_supported": []string{"code"}, "subject_types_supported": []string{"public"},
		})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		send(w, 200, map[string]any{"keys": []any{map[string]string{
			"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "1", "n": b64(key.N.Bytes()), "e": b64(big.NewInt(int64(key.E)).Bytes()),
		}}})
	})
	mux.HandleFunc("/authorize", p.authorize)
	mux.HandleFunc("/token", p.token)
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

func b64(data []byte) string { return base64.RawURLEncoding.EncodeToString(data) }

func (p *provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("response_type") != "code" || q.Get("client_id") != "dash" || q.Get("code_challenge_method") != "S256" || q.Get("state") == "" || q.Get("nonce") == "" || !strings.Contains(q.Get("scope"), "openid") {
		http.Error(w, "bad request", 400)
		return
	}
	code := rand.Text()
	p.mu.Lock()
	p.asked[code] = q
	p.mu.Unlock()
	http.Redirect(w, r, q.Get("redirect_uri")+"?code="+code+"&state="+url.QueryEscape(q.Get("state")), http.StatusFound)
}

func (p *provider) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = r.FormValue("client_id"), r.FormValue("client_secret")
	}
	asked, ok := p.asked[r.FormValue("code")]
	delete(p.asked, r.FormValue("code"))
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	if !ok || id != "dash" || secret != "s3cret" || asked.Get("code_challenge") != b64(sum[:]) || r.FormValue("redirect_uri") != asked.Get("redirect_uri") {
		send(w, 400, map[string]string{"error": "invalid_grant"})
		return
	}
	claims := map[string]any{"iss": p.URL, "aud": "dash", "sub": "1", "nonce": asked.Get("nonce"), "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix()}
	for name, value := range p.claims {
		claims[name] = value
	}
	body, _ := json.Marshal(claims)
	signed := b64([]byte(`{"alg":"RS256","kid":"1"}`)) + "." + b64(body)
	digest := sha256.Sum256([]byte(signed))
	key := p.key
	if p.sign != nil {
		key = p.sign
	}
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:])
	if err != nil {
		p.t.Error(err)
	}
	send(w, 200, map[string]any{"access_token": "x", "token_type": "Bearer", "expires_in": 3600, "id_token": signed + "." + b64(signature)})
}

func oidcOffice(t *testing.T, p *provider) (*office, *OIDC) {
	t.Helper()
	config := &OIDC{Issuer: p.URL, ClientID: "dash", Secret: "s3cret", Scopes: []string{"groups"}}
	o := newOffice(t, config)
	config.URL = o.URL
	return o, config
}

func TestOIDC(t *testing.T) {
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		claims map[string]any
		sign   *rsa.PrivateKey
		in     bool
		may    string // with the app shop
	}{
		"Ann":             {claims: map[string]any{"email": "ann@example.com", "email_verified": true, "name": "Ann L."}, in: true, may: "[promote hold]"},
		"AnnInCapitals":   {claims: map[string]any{"email": "Ann@Example.com"}, in: true, may: "[promote hold]"},
		"ReleaseManager":  {claims: map[string]any{"email": "kim@example.com", "groups": []string{"dev", "release-managers"}}, in: true, may: "[promote hold abort retry undo]"},
		"GroupAsText":     {claims: map[string]any{"email": "kim@example.com", "groups": "release-managers"}, in: true, may: "[promote hold abort retry undo]"},
		"Stranger":        {claims: map[string]any{"email": "eve@example.com", "groups": []string{"dev"}}, in: true, may: "[]"},
		"NoEmail":         {claims: map[string]any{"name": "X"}},
		"UnverifiedEmail": {claims: map[string]any{"email": "ann@example.com", "email_verified": false}},
		"NameWithMarkup":  {claims: map[string]any{"email": "kim@example.com", "name": "Kim <root@example.com>"}},
		"OtherAudience":   {claims: map[string]any{"email": "ann@example.com", "aud": "another"}},
		"OtherIssuer":     {claims: map[string]any{"email": "ann@example.com", "iss": "https://evil.example"}},
		"OtherNonce":      {claims: map[string]any{"email": "ann@example.com", "nonce": "replayed"}},
		"Expired":         {claims: map[string]any{"email": "ann@example.com", "exp": time.Now().Add(-time.Hour).Unix()}},
		"OtherKey":        {claims: map[string]any{"email": "ann@example.com"}, sign: other},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t)
			p.claims, p.sign = c.claims, c.sign
			o, _ := oidcOffice(t, p)
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
	p := newProvider(t)
	p.claims = map[string]any{"email": "ann@example.com"}
	o, _ := oidcOffice(t, p)
	stop := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	begin := func(v *visitor) string { // the address that the provider sends the browser back to
		t.Helper()
		v.client.CheckRedirect = stop
		res, err := v.client.Get(o.URL + "/oidc/start")
		if err != nil {
			t.Fatal(err)
		}
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
		t.Errorf("somebody else's sign-in is taken: %d", code)
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
	p := newProvider(t)
	o, _ := oidcOffice(t, p)
	p.Close()
	if code, answer := o.visitor().send(http.MethodGet, "/oidc/start", "", nil); code != http.StatusBadGateway || !strings.Contains(fmt.Sprint(answer), "identity provider") {
		t.Errorf("answers %d %v", code, answer)
	}
	if code, _ := o.visitor().signIn().send(http.MethodPost, "/api/v1/apps/shop/actions", promoteShop, nil); code != 200 {
		t.Errorf("tokens do not work meanwhile: %d", code)
	}
}
