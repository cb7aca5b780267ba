package vendoring

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// Getter gets what sources name.
type Getter struct {
	Client *http.Client // default: http.DefaultClient

	// Login returns who somebody is for a host, "" if nobody in particular; default: nobody. Nobody else is told of it:
	// not a server that another one leads to, and no error.
	Login func(host string) (user, password string)
}

const maxAnswer = 64 << 20 // bytes; the index of a large repository of charts has 30 MiB

// answer is what a server sends, with at most maxAnswer bytes.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// get asks with an authorization, "" for none. Errors have the host and the path.
func (g *Getter) get(ctx context.Context, address, authorization, accept string) (answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return answer{}, fmt.Errorf("%q is no address", address)
	}
	if req.URL.Scheme != "https" && !isHere(req.URL.Hostname()) {
		return answer{}, fmt.Errorf("%s is not asked: its address is not one of https", req.URL.Host)
	}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	if authorization != "" {
		req.Header.Set("Authorization", authorization) // net/http takes it to no other host
	}
	client := *http.DefaultClient
	if g.Client != nil {
		client = *g.Client
	}
	client.CheckRedirect = func(to *http.Request, via []*http.Request) error {
		if len(via) > 10 || to.URL.Scheme != "https" && !isHere(to.URL.Hostname()) {
			return fmt.Errorf("it leads to %s, which is not asked", to.URL.Host)
		}
		return nil
	}
	res, err := client.Do(req)
	if err != nil {
		return answer{}, fmt.Errorf("%s%s: %w", req.URL.Host, req.URL.Path, plainly(err))
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err == nil && len(body) > maxAnswer {
		err = fmt.Errorf("is more than %d MiB", maxAnswer>>20)
	}
	if err != nil {
		return answer{}, fmt.Errorf("%s%s: %w", req.URL.Host, req.URL.Path, err)
	}
	return answer{res.StatusCode, res.Header, body}, nil
}

// plainly is the cause of a url.Error, whose text has the address with what may be secret in it.
func plainly(err error) error {
	if u, is := err.(*url.Error); is {
		return u.Err
	}
	return err
}

// isHere reports whether a host is this machine, with which there is no network in between.
func isHere(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (g *Getter) basic(host string) string {
	if g.Login == nil {
		return ""
	}
	user, password := g.Login(host)
	if user == "" && password == "" {
		return ""
	}
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
}

var challenge = regexp.MustCompile(`(\w+)="([^"]*)"`)

// registry asks a registry's API, with a token if it wants one.
func (g *Getter) registry(ctx context.Context, host, p, accept string, token *string) (answer, error) {
	scheme := "https"
	if name, _, err := net.SplitHostPort(host); isHere(host) || err == nil && isHere(name) {
		scheme = "http"
	}
	address := scheme + "://" + host + p
	a, err := g.get(ctx, address, *token, accept)
	if err == nil && a.status == http.StatusUnauthorized && *token == "" {
		if *token, err = g.token(ctx, host, a.header.Get("WWW-Authenticate")); err == nil {
			a, err = g.get(ctx, address, *token, accept)
		}
	}
	if err == nil && a.status != http.StatusOK {
		err = fmt.Errorf("%s%s answers %d", host, p, a.status)
	}
	return a, err
}

// token is the authorization that a registry asks for.
func (g *Getter) token(ctx context.Context, host, wants string) (string, error) {
	kind, rest, _ := strings.Cut(wants, " ")
	if strings.EqualFold(kind, "Basic") {
		return g.basic(host), nil
	}
	asks := map[string]string{}
	for _, m := range challenge.FindAllStringSubmatch(rest, -1) {
		asks[m[1]] = m[2]
	}
	realm, err := url.Parse(asks["realm"])
	if !strings.EqualFold(kind, "Bearer") || err != nil || realm.Host == "" {
		return "", fmt.Errorf("%s asks for credentials of a kind that is not known", host)
	}
	q := realm.Query()
	for _, field := range []string{"service", "scope"} {
		if asks[field] != "" {
			q.Set(field, asks[field])
		}
	}
	realm.RawQuery = q.Encode()
	a, err := g.get(ctx, realm.String(), g.basic(host), "")
	if err != nil {
		return "", err
	}
	var given struct {
		Token  string `json:"token"`
		Access string `json:"access_token"`
	}
	if a.status != http.StatusOK || json.Unmarshal(a.body, &given) != nil || given.Token+given.Access == "" {
		return "", fmt.Errorf("%s gives no token for %s (it answers %d)", realm.Host, host, a.status)
	}
	if given.Token == "" {
		given.Token = given.Access
	}
	return "Bearer " + given.Token, nil
}
