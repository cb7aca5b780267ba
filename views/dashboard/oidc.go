package dashboard

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

// OIDC signs users in by the authorization code flow with PKCE.
type OIDC struct {
	Issuer   string
	ClientID string
	Secret   string   // "" for a public client
	URL      string   // the dashboard's, in browsers
	Scopes   []string // besides openid, profile and email
	// Unverified accepts an email without email_verified. This is unsafe if users can choose their email.
	Unverified bool

	mu       sync.Mutex
	provider *oidc.Provider
}

type flow struct {
	State, Nonce, Verifier string
	Expires                time.Time
}

const (
	flowCookie = "gitrollout_signin"
	flowTime   = 10 * time.Minute
	oidcWait   = 20 * time.Second // for a handler's requests
)

// setup reads the provider's metadata at the first sign-in, so the dashboard starts without the provider.
func (o *OIDC) setup(ctx context.Context) (*oauth2.Config, *oidc.Provider, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.provider == nil {
		// The provider later fetches keys with this context, so the request's end must not cancel it.
		p, err := oidc.NewProvider(context.WithoutCancel(ctx), o.Issuer)
		if err != nil {
			return nil, nil, fmt.Errorf("the identity provider: %w", err)
		}
		o.provider = p
	}
	return &oauth2.Config{
		ClientID: o.ClientID, ClientSecret: o.Secret, Endpoint: o.provider.Endpoint(),
		RedirectURL: strings.TrimRight(o.URL, "/") + "/oidc/callback",
		Scopes:      append([]string{oidc.ScopeOpenID, "profile", "email"}, o.Scopes...),
	}, o.provider, nil
}

func (s *Server) oidcStart(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), oidcWait)
	defer cancel()
	config, _, err := s.OIDC.setup(ctx)
	if err != nil {
		sendRead(w, nil, err)
		return
	}
	f := flow{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier(), Expires: s.Now().Add(flowTime)}
	sealed, err := s.sessions.seal("flow", f)
	if err != nil {
		fail(w, http.StatusInternalServerError, err.Error())
		return
	}
	// Browsers send no Strict cookie after the provider's redirect, so this cookie is Lax.
	http.SetCookie(w, s.sessions.cookie(flowCookie, sealed, flowTime, http.SameSiteLaxMode))
	http.Redirect(w, r, config.AuthCodeURL(f.State, oidc.Nonce(f.Nonce), oauth2.S256ChallengeOption(f.Verifier)),
		http.StatusFound)
}

func (s *Server) oidcCallback(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), oidcWait)
	defer cancel()
	var f flow
	cookie, err := r.Cookie(flowCookie)
	if err == nil {
		err = s.sessions.open("flow", cookie.Value, &f)
	}
	http.SetCookie(w, s.sessions.cookie(flowCookie, "", -time.Second, http.SameSiteLaxMode))
	switch {
	case err != nil || !s.Now().Before(f.Expires) || !same(f.State, r.FormValue("state")):
		fail(w, http.StatusBadRequest, "this sign-in was not begun here, or took too long; begin again at the dashboard")
		return
	case r.FormValue("error") != "":
		fail(w, http.StatusForbidden,
			"the identity provider says: "+clip(r.FormValue("error")+" "+r.FormValue("error_description"), maxText))
		return
	}
	p, err := s.OIDC.person(ctx, s, f, r.FormValue("code"))
	if err == nil {
		_, err = s.sessions.begin(w, p)
	}
	if err != nil {
		fail(w, http.StatusForbidden, err.Error())
		return
	}
	// Browsers send no Strict cookie after a redirect, so this page opens the dashboard.
	s.render(w, "signedin.html", view{Cluster: s.Board.Cluster})
}

func (o *OIDC) person(ctx context.Context, s *Server, f flow, code string) (Person, error) {
	config, provider, err := o.setup(ctx)
	if err != nil {
		return Person{}, err
	}
	token, err := config.Exchange(ctx, code, oauth2.VerifierOption(f.Verifier))
	if err != nil {
		return Person{}, fmt.Errorf("the identity provider does not accept the code: %w", err)
	}
	raw, _ := token.Extra("id_token").(string)
	id, err := provider.Verifier(&oidc.Config{ClientID: o.ClientID, Now: s.Now}).Verify(ctx, raw)
	if err != nil {
		return Person{}, fmt.Errorf("the identity provider's ID token is invalid: %w", err)
	}
	if !same(id.Nonce, f.Nonce) {
		return Person{}, errors.New("the identity provider's answer belongs to another sign-in")
	}
	claims := map[string]any{}
	if err := id.Claims(&claims); err != nil {
		return Person{}, fmt.Errorf("the claims: %w", err)
	}
	email, _ := claims["email"].(string)
	switch verified, said := claims["email_verified"]; {
	case email == "":
		return Person{}, errors.New("the identity provider names no email address, and commits need one")
	case said && fmt.Sprint(verified) != "true": // some providers send a string
		return Person{}, errors.New("the identity provider says that the email address is not verified")
	case !said && !o.Unverified:
		return Person{}, errors.New("the identity provider does not say that the email address is verified; " +
			"if users cannot choose their own address, set --dashboard-oidc-email-unverified")
	}
	name, _ := claims["name"].(string)
	if name = cmp.Or(name, email); !isAuthor(name, email) {
		return Person{}, fmt.Errorf("%q <%q> cannot be a commit's author", name, email)
	}
	rules, err := s.Access.read()
	if err != nil {
		return Person{}, err
	}
	return Person{Name: name, Email: email, Claims: rules.known(claims)}, nil
}
