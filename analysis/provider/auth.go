package provider

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/call"
)

// authentication holds credentials for a server. Argo Rollouts defines oauth2 and sigv4; basicAuth is an alias of
// basic. The bearer token is sent in an Authorization header.
type authentication struct {
	OAuth2    *oauth2Config `json:"oauth2,omitempty"`
	Sigv4     *sigv4Config  `json:"sigv4,omitempty"`
	Basic     *basicConfig  `json:"basic,omitempty"`
	BasicAuth *basicConfig  `json:"basicAuth,omitempty"`
	Bearer    *struct {
		Token string `json:"token" check:"secret"`
	} `json:"bearer,omitempty"`
}

type basicConfig struct {
	Username string `json:"username" required:"give the user's name"`
	Password string `json:"password" check:"secret"`
}

type sender struct {
	Insecure       bool           `json:"insecure,omitempty"`
	Headers        []header       `json:"headers,omitempty"` // such as X-Scope-OrgID, or Authorization: ApiKey …
	Authentication authentication `json:"authentication,omitempty"`
}

// check validates the settings. service is the AWS service for sigv4, or "" if the provider does not support sigv4.
func (c sender) check(service, address string) error {
	err := cmp.Or(checkHeaders(c.Headers), c.Authentication.check(service, c.Headers))
	if err == nil && c.Authentication.Sigv4 != nil && address != "" && !hasArgument(address) {
		err = checkAWS(address)
	}
	return err
}

func (c sender) send(ctx context.Context, s *session, ask call.Request, service string) (call.Answer, error) {
	ask.Insecure, ask.Header = c.Insecure, headerOf(c.Headers)
	if err := c.Authentication.apply(ctx, s, &ask, service); err != nil {
		return call.Answer{}, err
	}
	return s.do(ctx, ask)
}

// oauth2Config configures client credentials (RFC 6749, section 4.4).
type oauth2Config struct {
	TokenURL     string   `json:"tokenUrl" required:"give the URL that issues tokens" check:"url"`
	ClientID     string   `json:"clientId" required:"give the client's name"`
	ClientSecret string   `json:"clientSecret" check:"secret"`
	Scopes       []string `json:"scopes,omitempty"`
}

// check refuses settings that exclude each other. With sigv4, it also refuses a Host header, because the signature
// covers the address's host.
func (a authentication) check(service string, headers []header) error {
	ways := []bool{a.OAuth2 != nil, a.Sigv4 != nil, a.Basic != nil, a.BasicAuth != nil, a.Bearer != nil}
	if ways = slices.DeleteFunc(ways, func(given bool) bool { return !given }); len(ways) > 1 {
		return wrong("authentication", "keep one: oauth2, sigv4, basic or bearer", "has %d methods", len(ways))
	}
	switch {
	case a.Sigv4 != nil && service == "":
		return wrong("authentication.sigv4", "use it only with prometheus and opensearch at AWS",
			"does not work with this provider")
	case a.Sigv4 != nil && headerOf(headers).Get("Host") != "":
		return wrong("headers", "leave Host out", "have a Host, but sigv4 signs for the host of the address")
	case a.Sigv4 != nil && a.Sigv4.RoleARN != "" && !hasArgument(a.Sigv4.RoleARN) &&
		!strings.HasPrefix(a.Sigv4.RoleARN, "arn:") && !strings.HasPrefix(a.Sigv4.RoleARN, "$"):
		return wrong("authentication.sigv4.roleArn", "write it as in arn:aws:iam::123456789012:role/metrics",
			"%q is not the ARN of a role", a.Sigv4.RoleARN)
	}
	return nil
}

// apply adds credentials to a request. It stores no OAuth2 token: each measurement gets a new token.
func (a authentication) apply(ctx context.Context, s *session, c *call.Request, service string) error {
	switch basic := cmp.Or(a.Basic, a.BasicAuth); {
	case basic != nil:
		c.Header.Set("Authorization", basicOf(basic.Username, basic.Password))
		s.Hide(basic.Password, basic.Username+":"+basic.Password)
	case a.Bearer != nil:
		c.Header.Set("Authorization", "Bearer "+a.Bearer.Token)
	case a.OAuth2 != nil:
		token, err := a.OAuth2.token(ctx, s, c.Insecure)
		if err != nil {
			return err
		}
		c.Header.Set("Authorization", "Bearer "+token)
	case a.Sigv4 != nil:
		if err := checkAWS(c.Base); err != nil {
			return err
		}
		signer, err := a.Sigv4.signer(ctx, s, service)
		if err != nil {
			return err
		}
		body := c.Body
		c.Sign = func(r *http.Request) { signer.sign(r, body) }
	}
	return nil
}

func basicOf(user, password string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

// token requests a token with the client's secret in a header.
func (o *oauth2Config) token(ctx context.Context, s *session, insecure bool) (string, error) {
	s.Hide(o.ClientSecret)
	form := url.Values{"grant_type": {"client_credentials"}}
	if len(o.Scopes) > 0 {
		form.Set("scope", strings.Join(o.Scopes, " "))
	}
	id, secret := url.QueryEscape(o.ClientID), url.QueryEscape(o.ClientSecret)
	s.Hide(id + ":" + secret)
	ask := call.Request{
		Method: http.MethodPost, Base: o.TokenURL, Type: "application/x-www-form-urlencoded", Body: []byte(form.Encode()),
		Insecure: insecure, Header: http.Header{"Authorization": {basicOf(id, secret)}},
	}
	got, err := s.do(ctx, ask)
	if refused := new(call.Error); errors.As(err, &refused) &&
		(refused.Status == http.StatusBadRequest || refused.Status == http.StatusUnauthorized) {
		form.Set("client_id", o.ClientID)
		form.Set("client_secret", o.ClientSecret)
		ask.Header, ask.Body = nil, []byte(form.Encode())
		got, err = s.do(ctx, ask)
	}
	if err != nil {
		return "", fmt.Errorf("access token: %w", err)
	}
	var answered struct {
		AccessToken string `json:"access_token"`
		TokenType   string `json:"token_type"`
	}
	if err := call.Decode("the token's URL", got.Body, &answered); err != nil {
		return "", err
	}
	if answered.AccessToken == "" {
		return "", errors.New("access token: the answer has none")
	}
	s.Hide(answered.AccessToken)
	return answered.AccessToken, nil
}
