package vendoring

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// Bench starts a server at 127.0.0.1. It returns the server's host, and a Getter with Ann's credentials for the server.
func Bench(t *testing.T, serve http.HandlerFunc) (*Getter, string) {
	t.Helper()
	server := httptest.NewServer(serve)
	t.Cleanup(server.Close)
	host := strings.TrimPrefix(server.URL, "http://")
	return &Getter{Login: func(of string) (string, string) {
		if of == host {
			return "ann", "secret"
		}
		return "", ""
	}}, host
}

// Transport is an http.RoundTripper whose responses are empty.
type Transport func(*http.Request)

func (f Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	f(req)
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: req}, nil
}

// TestCredentialsOfRegistries checks that the client sends a password or a token, as the registry requires. If the
// token server returns no token, the client returns an error and sends no further requests.
func TestCredentialsOfRegistries(t *testing.T) {
	basic := "Basic " + Encoded("ann:secret")
	for name, c := range map[string]struct {
		challenge, given, accepts, want string
		asked                           int
	}{
		"a password":             {`Basic realm="x"`, "", basic, "", 3},
		"a token":                {`Bearer realm="http://HOST/token",service="s",scope="a b"`, `{"token": "t"}`, "Bearer t", "", 4},
		"a token of two names":   {`Bearer realm="http://HOST/token"`, `{"access_token": "a"}`, "Bearer a", "", 4},
		"the first of two":       {`bearer realm="http://HOST/token"`, `{"token": "t", "access_token": "a"}`, "Bearer t", "", 4},
		"one that does not help": {`Bearer realm="http://HOST/token"`, `{"token": "t"}`, "Bearer other", "answers 401", 3},
		"none":                   {`Bearer realm="http://HOST/token"`, `{}`, "", "gives no token for HOST (it answers 200)", 2},
		"no JSON":                {`Bearer realm="http://HOST/token"`, `<html>`, "", "gives no token", 2},
		"one that is refused":    {`Bearer realm="http://HOST/refused"`, ``, "", "gives no token for HOST (it answers 403)", 2},
		"another network":        {`Bearer realm="http://auth.example.com/token"`, ``, "", "its address does not use https", 1},
		"an unknown kind":        {`Negotiate realm="http://HOST/token"`, `{"token": "t"}`, "", "of a kind that is not known", 1},
		"no realm":               {`Bearer service="s"`, ``, "", "of a kind that is not known", 1},
		"nothing is wanted":      {``, ``, "", "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			var query url.Values
			g, host := Bench(t, func(to http.ResponseWriter, req *http.Request) {
				asked++
				switch who := req.Header.Get("Authorization"); {
				case req.URL.Path == "/refused":
					to.WriteHeader(http.StatusForbidden)
				case req.URL.Path == "/token":
					query = req.URL.Query()
					if who == basic {
						_, _ = to.Write([]byte(c.given))
					}
				case c.challenge != "" && (who == "" || who != c.accepts):
					to.Header().Set("WWW-Authenticate", strings.ReplaceAll(c.challenge, "HOST", req.Host))
					to.WriteHeader(http.StatusUnauthorized)
				}
			})
			token := ""
			_, err := g.registry(t.Context(), host, "/v2/a", "", &token)
			if err == nil {
				_, err = g.registry(t.Context(), host, "/v2/b", "", &token)
			}
			want := strings.ReplaceAll(c.want, "HOST", host)
			if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) || asked != c.asked {
				t.Errorf("asked %d times, error %v, want %d and %s", asked, err, c.asked, want)
			}
			if err == nil && token != c.accepts {
				t.Errorf("the token is %q", token)
			}
			if name == "a token" && (query.Get("service") != "s" || query.Get("scope") != "a b") || name == "none" && len(query) > 0 {
				t.Errorf("asked for %v", query)
			}
		})
	}
	compare.CheckNamed(t, "no credentials", "", (&Getter{}).basic("x"))
	for who, told := range map[[2]string]bool{{"", ""}: false, {"", "token"}: true, {"ann", ""}: true, {"ann", "x"}: true} {
		g := &Getter{Login: func(string) (string, string) { return who[0], who[1] }}
		if got := g.basic("x"); (got != "") != told {
			t.Errorf("%q is told as %q", who, got)
		}
	}
}

// TestManyTags checks that the client reads all pages of a registry's tag list, but follows no link to another repository.
func TestManyTags(t *testing.T) {
	for name, c := range map[string]struct{ link, want string }{
		"a further page":       {`</v2/a/b/tags/list?n=1000&last=1.0.0>; rel="next"`, "1.2.0+b"},
		"one by a whole URL":   {`<http://HOST/v2/a/b/tags/list?n=1000&last=1.0.0>; rel="next"`, "1.2.0+b"},
		"no further page":      {``, "1.0.0"},
		"another repository's": {`</v2/a/c/tags/list?last=1.0.0>; rel="next"`, "1.0.0"},
		"half of a link":       {`</v2/a/b/tags/list?last=1.0.0`, "1.0.0"},
	} {
		g, host := Bench(t, func(to http.ResponseWriter, req *http.Request) {
			if req.URL.Query().Get("last") != "" {
				_, _ = to.Write([]byte(`{"tags": ["1.2.0_b"]}`))
				return
			}
			if req.URL.Query().Get("n") != "1000" {
				t.Errorf("%s: asked for %s", name, req.URL)
			}
			to.Header().Set("Link", strings.ReplaceAll(c.link, "HOST", req.Host))
			_, _ = to.Write([]byte(`{"tags": ["1.0.0"]}`))
		})
		token := ""
		if got, err := g.tagged(t.Context(), host, "/v2/a/b", "^1", nil, &token); err != nil || got != c.want {
			t.Errorf("%s: %q, error %v, want %q", name, got, err, c.want)
		}
	}
	pages := 0
	g, host := Bench(t, func(to http.ResponseWriter, _ *http.Request) {
		pages++
		to.Header().Set("Link", `</v2/a/b/tags/list?n=1000&last=1.0.0>; rel="next"`)
		_, _ = to.Write([]byte(`{"tags": ["1.0.0"]}`))
	})
	token := ""
	if got, err := g.tagged(t.Context(), host, "/v2/a/b", "^1", nil, &token); err != nil || got != "1.0.0" || pages != 50 {
		t.Errorf("a registry without an end: %q after %d pages, error %v", got, pages, err)
	}
}

// TestAddresses checks that an invalid address of a repository or registry is refused without a request.
func TestAddresses(t *testing.T) {
	g := &Getter{Client: &http.Client{Transport: Transport(func(req *http.Request) { t.Errorf("asked for %s", req.URL) })}}
	for _, repo := range []string{"charts", "::", "http:///charts", ""} {
		_, _, err := g.chart(t.Context(), rollout.VendorChart{Repo: repo, Name: "redis", Version: "1.0.0"}, nil, nil)
		if err == nil || !strings.Contains(err.Error(), "the repository is not a URL") {
			t.Errorf("%q: error %v", repo, err)
		}
	}
	for _, address := range []string{"https://example.com/a", "oci:///a", "oci://example.com", "oci://example.com/", "::"} {
		if _, _, err := g.artifact(t.Context(), address, "v1", true, nil, nil); err == nil ||
			!strings.Contains(err.Error(), "not of the form oci://host/path") {
			t.Errorf("%q: error %v", address, err)
		}
	}
}

// Encoded returns a text as base64.
func Encoded(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
