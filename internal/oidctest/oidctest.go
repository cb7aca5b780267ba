// Package oidctest is an OpenID Connect provider for the dashboard's tests. It implements the authorization code flow
// with PKCE, and strictly enforces the specifications' rules for clients.
package oidctest

import (
	"cmp"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	oidc "github.com/coreos/go-oidc/v3/oidc/oidctest"
)

// Provider is an OpenID Connect provider for the authorization code flow.
type Provider struct {
	*httptest.Server
	key *rsa.PrivateKey

	mu     sync.Mutex
	asked  map[string]url.Values // authorization requests by code
	claims map[string]any        // the user's claims
	sign   *rsa.PrivateKey       // if not nil, signs the ID token instead of key
}

// New starts a provider with one client: dash, with secret s3cret.
func New(t testing.TB) *Provider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &Provider{key: key, asked: map[string]url.Values{}}
	issuer := &oidc.Server{PublicKeys: []oidc.PublicKey{{PublicKey: key.Public(), KeyID: keyID, Algorithm: algorithm}}}
	mux := http.NewServeMux()
	mux.Handle("/", issuer) // serves the key, and the discovery document, which names /auth and /token
	mux.HandleFunc("/auth", p.authorize)
	mux.HandleFunc("/token", p.token)
	p.Server = httptest.NewUnstartedServer(mux)
	issuer.SetIssuer("http://" + p.Listener.Addr().String())
	p.Start()
	t.Cleanup(p.Close)
	return p
}

// keyID and algorithm are the ID (kid) of the provider's key, and the algorithm with which the key signs ID tokens.
const keyID, algorithm = "1", "RS256"

func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("response_type") != "code" || q.Get("client_id") != "dash" || q.Get("code_challenge_method") != "S256" || q.Get("state") == "" || q.Get("nonce") == "" || !strings.Contains(q.Get("scope"), "openid") {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	code := rand.Text()
	p.mu.Lock()
	p.asked[code] = q
	p.mu.Unlock()
	http.Redirect(w, r, q.Get("redirect_uri")+"?code="+code+"&state="+url.QueryEscape(q.Get("state")), http.StatusFound)
}

func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = r.FormValue("client_id"), r.FormValue("client_secret")
	}
	asked, ok := p.asked[r.FormValue("code")]
	delete(p.asked, r.FormValue("code"))
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	if !ok || id != "dash" || secret != "s3cret" || asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) ||
		r.FormValue("redirect_uri") != asked.Get("redirect_uri") {
		send(w, 400, map[string]string{"error": "invalid_grant"})
		return
	}
	claims := map[string]any{"iss": p.URL, "aud": "dash", "sub": "1", "nonce": asked.Get("nonce"), "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix()}
	maps.Copy(claims, p.claims)
	body, _ := json.Marshal(claims)
	token := oidc.SignIDToken(cmp.Or(p.sign, p.key), keyID, algorithm, string(body))
	send(w, 200, map[string]any{"access_token": "x", "token_type": "Bearer", "expires_in": 3600, "id_token": token})
}

// SignsIn sets claims of the next user's ID token, in addition to the claims that the flow requires. If key is not nil,
// key signs the token instead of the provider's key.
func (p *Provider) SignsIn(claims map[string]any, key *rsa.PrivateKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.claims, p.sign = claims, key
}

func send(w http.ResponseWriter, code int, data any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(data) // fails only if the client is gone
}
