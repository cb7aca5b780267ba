package vendoring

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// Getter fetches sources over HTTP.
type Getter struct {
	Client *http.Client // default: http.DefaultClient
	// Login returns a host's credentials, or "". The Getter sends these only to the host and its token server.
	Login func(host string) (user, password string)

	Silence time.Duration // maximum time without data; default 1m
}

const (
	maxAnswer = 64 << 20         // bytes; the index of a large chart repository has 30 MiB
	maxTime   = 15 * time.Minute // per response; the largest response needs 70 KiB per second
)

var errSilent = errors.New("the response has stopped: the server, or a proxy in front of it, hangs")

type answer struct {
	status int
	header http.Header
	body   []byte
}

// get sends a GET request. Errors contain only the host and path.
func (g *Getter) get(ctx context.Context, address, authorization, accept string) (answer, error) {
	ctx, end := context.WithTimeout(ctx, maxTime)
	defer end()
	ctx, giveUp := context.WithCancelCause(ctx)
	silence := cmp.Or(g.Silence, time.Minute)
	listening := time.AfterFunc(silence, func() { giveUp(errSilent) })
	defer listening.Stop()
	defer giveUp(nil)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return answer{}, fmt.Errorf("%q is not an address", address)
	}
	if req.URL.Scheme != "https" && !isHere(req.URL.Hostname()) {
		return answer{}, fmt.Errorf("no request is sent to %s: its address does not use https", req.URL.Host)
	}
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	if authorization != "" {
		req.Header.Set("Authorization", authorization) // a redirect to another host drops the header
	}
	client := *cmp.Or(g.Client, http.DefaultClient)
	client.CheckRedirect = func(to *http.Request, via []*http.Request) error {
		switch {
		case len(via) > 10:
			return errors.New("there are too many redirects")
		case to.URL.Scheme != "https" && (to.URL.Scheme != "http" || !isHere(to.URL.Hostname())):
			return fmt.Errorf("it redirects to %s://%s, which gets no request without https", to.URL.Scheme, to.URL.Host)
		}
		return nil
	}
	res, err := client.Do(req)
	var body []byte
	if err == nil {
		defer func() { _ = res.Body.Close() }()
		body, err = io.ReadAll(io.LimitReader(readFunc(func(p []byte) (int, error) {
			listening.Reset(silence)
			return res.Body.Read(p)
		}), maxAnswer+1))
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	if wrapped := new(url.Error); errors.As(err, &wrapped) {
		err = wrapped.Err // wrapped's text may contain secrets
	}
	if err == nil && len(body) > maxAnswer {
		err = fmt.Errorf("is more than %d MiB", maxAnswer>>20)
	}
	if err != nil {
		return answer{}, fmt.Errorf("%s%s: %w", req.URL.Host, req.URL.Path, err)
	}
	return answer{res.StatusCode, res.Header, body}, nil
}

type readFunc func(p []byte) (int, error)

func (f readFunc) Read(p []byte) (int, error) { return f(p) }

func refusal(what string, status int) error {
	if status == http.StatusUnauthorized || status == http.StatusForbidden {
		const fix = "log in with docker login or helm registry login, as a user with read access"
		return fmt.Errorf("%s answers %d: %s", what, status, fix)
	}
	return fmt.Errorf("%s answers %d", what, status)
}

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

// registry requests a path of an OCI registry. If *token is empty and the server requires credentials, the Getter sets
// *token and repeats the request.
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
		err = refusal(host+p, a.status)
	}
	return a, err
}

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
	return "Bearer " + cmp.Or(given.Token, given.Access), nil
}

// Logins returns a function that finds credentials from "docker login" and "helm registry login". The function runs
// configured credential helpers.
func Logins(home string, getenv func(string) string) func(host string) (user, password string) {
	folder := cmp.Or(getenv("DOCKER_CONFIG"), filepath.Join(home, ".docker"))
	known, helpers := map[string]string{}, map[string]string{}
	ofHelm := filepath.Join(home, ".config/helm/registry/config.json")
	for _, file := range []string{ofHelm, filepath.Join(folder, "config.json")} {
		var config struct {
			Auths       map[string]struct{ Auth string }
			CredHelpers map[string]string
			CredsStore  string
		}
		data, err := os.ReadFile(file)
		if err != nil || json.Unmarshal(data, &config) != nil {
			continue
		}
		for host, entry := range config.Auths {
			if pair, err := base64.StdEncoding.DecodeString(entry.Auth); err == nil && len(pair) > 0 {
				known[bare(host)] = string(pair)
			}
		}
		for host, program := range config.CredHelpers {
			helpers[bare(host)] = program
		}
		helpers[""] = cmp.Or(config.CredsStore, helpers[""])
	}
	return func(host string) (user, password string) {
		host = bare(host)
		if program := cmp.Or(helpers[host], helpers[""]); program != "" {
			if user, password = askHelper(program, host); user != "" {
				return user, password
			}
		}
		user, password, _ = strings.Cut(known[host], ":")
		return user, password
	}
}

func bare(name string) string {
	host, _, _ := strings.Cut(strings.TrimPrefix(name, "https://"), "/")
	if host == "registry-1.docker.io" || host == "docker.io" {
		return "index.docker.io"
	}
	return host
}

var helperName = regexp.MustCompile(`^[A-Za-z0-9][\w.-]*$`)

// askHelper runs a credential helper. It ignores identity tokens.
func askHelper(program, host string) (user, password string) {
	if !helperName.MatchString(program) {
		return "", ""
	}
	if host == "index.docker.io" {
		host = "https://index.docker.io/v1/" // docker's name for Docker Hub's credentials
	}
	ctx, end := context.WithTimeout(context.Background(), 30*time.Second)
	defer end()
	cmd := exec.CommandContext(ctx, "docker-credential-"+program, "get")
	cmd.Stdin = strings.NewReader(host + "\n")
	out, err := cmd.Output()
	var said struct{ Username, Secret string }
	if err != nil || json.Unmarshal(out, &said) != nil || said.Username == "<token>" {
		return "", ""
	}
	return said.Username, said.Secret
}
