package call_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/call"
	"gitrollout.dev/gitrollout/internal/compare"
)

// secret contains characters that URL, JSON and HTML encoding change.
const secret = `s3cr3t/with+odd="chars"&<more>`

// written returns a text in the encodings in which servers may repeat it. The keys name the encodings.
func written(text string) map[string]string {
	quoted, _ := json.Marshal(text)
	return map[string]string{
		"as it is":          text,
		"in JSON":           strings.Trim(string(quoted), `"`),
		"in quotes":         strings.Trim(fmt.Sprintf("%q", text), `"`),
		"in HTML":           html.EscapeString(text),
		"in a query":        url.QueryEscape(text),
		"in a path":         url.PathEscape(text),
		"in base64":         base64.StdEncoding.EncodeToString([]byte(text)),
		"in base64 of URLs": base64.URLEncoding.EncodeToString([]byte(text)),
	}
}

// TestScrubsEveryForm checks that no error contains a secret. Each part of a request has the secret in turn. The server's response repeats
// the secret in each encoding.
func TestScrubsEveryForm(t *testing.T) {
	places := map[string]func(r *call.Request){
		"header": func(r *call.Request) { r.Header = http.Header{"X-Key": {secret}} },
		"bearer": func(r *call.Request) { r.Header = http.Header{"Authorization": {"Bearer " + secret}} },
		"sign":   func(r *call.Request) { r.Sign = func(req *http.Request) { req.Header.Set("X-Token", secret) } },
		"query":  func(r *call.Request) { r.Base += "?token=" + url.QueryEscape(secret) },
		"path":   func(r *call.Request) { r.Base += "/" + url.PathEscape(strings.ReplaceAll(secret, "/", "")) },
		"userinfo": func(r *call.Request) {
			r.Base = strings.Replace(r.Base, "://", "://"+url.UserPassword("me", secret).String()+"@", 1)
		},
	}
	for place, put := range places {
		told := secret
		if place == "path" { // the server cannot tell an escaped slash from a plain slash
			told = strings.ReplaceAll(secret, "/", "")
		}
		for form, text := range written(told) {
			t.Run(place+" "+form, func(t *testing.T) {
				address := serve(t, func(w http.ResponseWriter, _ *http.Request) {
					w.WriteHeader(http.StatusForbidden)
					_, _ = io.WriteString(w, "I do not know "+text+", sorry")
				})
				r := call.Request{Method: http.MethodGet, Base: address}
				put(&r)
				_, err := newCaller().Do(t.Context(), r)
				if err == nil || !strings.Contains(err.Error(), "I do not know ***") || strings.Contains(err.Error(), text) {
					t.Errorf("got %v", err)
				}
			})
		}
	}
}

func TestHide(t *testing.T) {
	for name, c := range map[string]struct{ hide, text, want string }{
		"short ones stay":   {"a", "a banana", "a banana"},
		"empty":             {"", "x", "x"},
		"the longest first": {"abcd", "abcd", "***"},
		"token of a header": {"Bearer abcdefgh", "the token abcdefgh is wrong", "the token *** is wrong"},
		"webhook's address": {"https://hooks.example/services/T0000000/s3cr3tpart?key=value123",
			"POST /services/T0000000/s3cr3tpart?key=value123", "POST ***"},
		"part of an address":   {"https://hooks.example/services/T0000000/s3cr3tpart", "no hook s3cr3tpart of T0000000", "no hook *** of ***"},
		"query of an address":  {"https://hooks.example/x?key=value123", "no key value123", "no key ***"},
		"its password":         {"https://me:passw0rd@hooks.example/", "no passw0rd", "no ***"},
		"basic authentication": {"me:passw0rd", "Basic " + base64.StdEncoding.EncodeToString([]byte("me:passw0rd")), "Basic ***="},
	} {
		t.Run(name, func(t *testing.T) {
			var s call.Secrets
			s.Hide(c.hide)
			s.Hide(c.hide) // hiding a text twice has no effect
			compare.Check(t, c.want, s.Scrub(c.text))
		})
	}
	var s call.Secrets
	s.Hide("abcd", "abcdefgh")
	compare.CheckNamed(t, "one is part of the other", "*** ***", s.Scrub("abcdefgh abcd"))
	s = call.Secrets{}
	s.Hide("abcdefgh")
	compare.CheckNamed(t, "bytes that are no characters", "no ***, ***", s.Line("no abcd\xffefgh,\nab\x00cdefgh"))
}

// TestHideURL checks that only the secret parts of a URL are hidden.
func TestHideURL(t *testing.T) {
	u, err := url.Parse("https://me:passw0rd@metrics.example/select/0/prometheus/0123456789abcdef0123?token=value123")
	if err != nil {
		t.Fatal(err)
	}
	var s call.Secrets
	s.HideURL(u)
	got := s.Scrub("metrics.example select prometheus 0123456789abcdef0123 passw0rd value123")
	compare.Check(t, "metrics.example select prometheus *** *** ***", got)
}

func TestScrubValue(t *testing.T) {
	var s call.Secrets
	s.Hide("s3cr3t")
	got := s.ScrubValue(map[string]any{"you said": []any{"Bearer s3cr3t", 1.5, nil, map[string]any{"s3cr3t": true}}})
	want := map[string]any{"you said": []any{"Bearer ***", 1.5, nil, map[string]any{"***": true}}}
	compare.Check(t, want, got)
}

// TestRedirects checks that a request with a credential is not redirected to another host, and that the other host gets no request at all.
// It also checks redirects that are followed.
func TestRedirects(t *testing.T) {
	bearer := http.Header{"Authorization": {"Bearer " + secret}}
	get, post := call.Request{Method: http.MethodGet}, call.Request{Method: http.MethodPost, Body: []byte(secret)}
	const elsewhere = "it redirects to another host"
	for name, c := range map[string]struct {
		r      call.Request
		status int
		to     string // default: another host
		says   string // "" if the redirect is followed
	}{
		"a bare GET":          {r: get, status: 302},
		"a bare GET in a URL": {r: call.Request{Method: http.MethodGet, Query: url.Values{"key": {secret}}}, status: 307},
		"with a header": {r: call.Request{Method: http.MethodGet, Header: bearer}, status: 302,
			says: "302 Found: " + elsewhere + ", http://"},
		"signed":                    {r: call.Request{Method: http.MethodGet, Sign: func(*http.Request) {}}, status: 307, says: elsewhere},
		"with a password":           {r: call.Request{Method: http.MethodGet, Base: "userinfo"}, status: 307, says: elsewhere},
		"a POST":                    {r: post, status: 307, says: "307 Temporary Redirect: " + elsewhere},
		"a POST that becomes a GET": {r: post, status: 303, says: elsewhere},
		"the same host":             {r: call.Request{Method: http.MethodPost, Header: bearer}, status: 308, to: "/there"},
		"the same host, a GET instead": {r: call.Request{Method: http.MethodPost, Header: bearer}, status: 302, to: "/there",
			says: "it redirects to http://"},
		"in a circle": {r: get, status: 302, to: "/again", says: "it redirects too often"},
	} {
		t.Run(name, func(t *testing.T) {
			var stolen []string
			other := serve(t, func(_ http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				stolen = append(stolen, fmt.Sprint(r.URL, r.Header, string(body)))
			})
			var arrived bool
			home := serve(t, func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == "/there":
					arrived = r.Header.Get("Authorization") == "Bearer "+secret
				case c.to != "":
					http.Redirect(w, r, c.to, c.status)
				default:
					http.Redirect(w, r, other+"/thief", c.status)
				}
			})
			if c.r.Base == "userinfo" {
				home = strings.Replace(home, "://", "://me:s3cr3t@", 1)
			}
			c.r.Base = home + "/here"
			_, err := newCaller().Do(t.Context(), c.r)
			if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
			if err == nil && c.to == "/there" && !arrived {
				t.Error("it did not arrive with its credential")
			}
			if c.says != "" && len(stolen) > 0 {
				t.Errorf("the other host was told %q", stolen)
			}
			for _, text := range append(stolen, fmt.Sprint(err)) {
				if strings.Contains(text, "s3cr3t") || strings.Contains(text, "Referer") || strings.Contains(text, "/thief") && err != nil {
					t.Errorf("%q tells too much", text)
				}
			}
		})
	}
}

// transport is an http.RoundTripper that responds without a network.
type transport func(*http.Request) *http.Response

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

// TestNoRedirectOutOfTLS checks that a redirect from HTTPS to HTTP on the same host is refused, so that no secret is sent unencrypted.
func TestNoRedirectOutOfTLS(t *testing.T) {
	for name, c := range map[string]struct {
		from, to string
		follows  bool
	}{
		"still HTTPS":   {"https://forge.example", "https://forge.example/there", true},
		"from now on":   {"http://forge.example", "https://forge.example/there", true},
		"never was":     {"http://forge.example", "http://forge.example/there", true},
		"no more HTTPS": {"https://forge.example", "http://forge.example/there", false},
		"another port":  {"https://forge.example", "https://forge.example:8443/there", false},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			caller := newCaller()
			caller.Client = func(bool) *http.Client {
				return &http.Client{Transport: transport(func(r *http.Request) *http.Response {
					asked = append(asked, r.URL.String())
					res := &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: r}
					if r.URL.Path == "/here" {
						res.StatusCode = http.StatusTemporaryRedirect
						res.Header.Set("Location", c.to)
					}
					return res
				})}
			}
			_, err := caller.Do(t.Context(), call.Request{
				Method: http.MethodGet, Base: c.from + "/here", Header: http.Header{"Authorization": {"Bearer " + secret}},
			})
			if (err == nil) != c.follows || (len(asked) == 2) != c.follows {
				t.Errorf("asked %v, %v", asked, err)
			}
		})
	}
}

// TestUntrusted checks that a request to a server with an untrusted certificate fails, unless Insecure is set.
func TestUntrusted(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }))
	defer server.Close()
	server.Config.ErrorLog = nil
	r := call.Request{Method: http.MethodGet, Base: server.URL}
	_, err := newCaller().Do(t.Context(), r)
	if failed, is := errors.AsType[*call.Error](err); !is || failed.Passes ||
		!strings.Contains(err.Error(), "its certificate is not trusted") {
		t.Errorf("got %v", err)
	}
	r.Insecure = true
	if a, err := newCaller().Do(t.Context(), r); err != nil || string(a.Body) != "hello" {
		t.Errorf("got %s and %v", a.Body, err)
	}
}

// TestClients checks that the function from Clients always returns the same two clients: one verifies certificates, and one does not.
func TestClients(t *testing.T) {
	clients := call.Clients()
	if again := clients(true); again != clients(true) || again == clients(false) {
		t.Error("a client is made for each request")
	}
	for _, insecure := range []bool{true, false} {
		transport, ok := clients(insecure).Transport.(*http.Transport)
		if !ok || transport.TLSClientConfig.InsecureSkipVerify != insecure {
			t.Errorf("insecure %v is not as it should be", insecure)
		}
	}
}

// FuzzNothingHiddenIsTold checks that Scrub removes a hidden text whatever text surrounds it, and that messages have at most MaxMessage
// characters.
func FuzzNothingHiddenIsTold(f *testing.F) {
	f.Add("abcdefgh", "x", "y")
	f.Add(secret, `{"error":"`, `"}`)
	f.Add("Bearer abcdef", "<", "\x00")
	f.Add("https://h/abcdefghi?x=y", "[", "]")
	f.Fuzz(func(t *testing.T, hidden, before, after string) {
		if len(strings.TrimSpace(hidden)) < 4 || strings.Contains("(no reason given)***…", hidden) {
			t.Skip()
		}
		var s call.Secrets
		s.Hide(hidden)
		got := s.Scrub(before + hidden + after)
		isShown := func(part string) bool { return strings.Contains(part, hidden) }
		if slices.ContainsFunc(strings.Split(got, "***"), isShown) && !strings.Contains(hidden, "*") {
			t.Errorf("%q tells %q", got, hidden)
		}
		for _, text := range []string{s.Reason([]byte(before + hidden + after)), call.Words(before)} {
			if len([]rune(text)) > call.MaxMessage && text != before {
				t.Errorf("%d characters", len([]rune(text)))
			}
		}
	})
}

// TestCallerIsForManyRequests checks that a Caller hides the secrets of earlier requests, because a later response may repeat them.
func TestCallerIsForManyRequests(t *testing.T) {
	address := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Key") == "" {
			http.Error(w, "your last key was "+secret, http.StatusBadRequest)
		}
	})
	c, r := newCaller(), call.Request{Method: http.MethodGet, Base: address, Header: http.Header{"X-Key": {secret}}}
	if _, err := c.Do(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	r.Header = nil
	_, err := c.Do(t.Context(), r)
	if err == nil || !strings.HasSuffix(err.Error(), "your last key was ***") {
		t.Errorf("got %v", err)
	}
}
