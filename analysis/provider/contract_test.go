package provider

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/call"
	"gitrollout.dev/gitrollout/internal/compare"
)

// contract is a test case for a provider that speaks HTTP. Its server follows the provider's public documentation, not
// our requests, and refuses everything undocumented.
type contract struct {
	kind   string
	name   string // of a second way to query the same kind
	doc    string // the URL of the API's documentation
	config func(address string) map[string]any
	// secrets are gitrollout's Secrets, env is its environment.
	secrets func(address string) map[string]map[string]string
	env     func(address string) map[string]string
	// serve answers one request as documented, with reply as the query's result. It returns false if the credentials are
	// wrong.
	serve   func(f *fake, w http.ResponseWriter, r *http.Request, body string) bool
	answers []canned
	// anyText: a text that is not JSON is a value. anyStatus: status 500 is a verdict.
	anyText, anyStatus bool
}

// canned is a provider's answer with its expected result.
type canned struct {
	name, reply string
	want        any            // Result.Value
	phase       analysis.Phase //
	err         string         // part of the error, if there is one
}

// token is the credential in every contract's configuration, of whatever type.
const token = "s3cr3t/with+odd=chars"

// userinfo is the token in a URL.
const userinfo = "reader:s3cr3t%2Fwith+odd=chars@"

func contracts() []contract {
	return []contract{
		prometheusContract, prometheusRangeContract, webContract, webPostContract, datadogV1Contract, datadogV2Contract, newRelicContract,
		wavefrontContract, kayentaContract, cloudWatchContract, graphiteContract, influxContract, skywalkingContract, lokiContract,
		elasticsearchContract, opensearchContract, webhookContract,
	}
}

func TestEveryKindHasAContract(t *testing.T) {
	seen := []string{"job"} // job_test.go: it uses the cluster
	for _, c := range contracts() {
		seen = append(seen, c.kind)
		if c.doc == "" {
			t.Errorf("the contract of %s does not say where its API is documented", c.kind)
		}
	}
	for _, kind := range Kinds() {
		if !slices.Contains(seen, kind) {
			t.Errorf("%s has no contract", kind)
		}
	}
}

// fake is a provider's server.
type fake struct {
	t     *testing.T
	c     contract
	mu    sync.Mutex
	reply string
	mode  string // "", or how it fails
	left  int    // number of requests to refuse with 429
	asked atomic.Int64
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		f.t.Errorf("read the request: %v", err)
	}
	f.mu.Lock()
	f.asked.Add(1)
	mode, left := f.mode, f.left
	f.left--
	f.mu.Unlock()
	// The worst a server can do with a credential is to repeat it.
	echo := fmt.Sprintf("refused: %s %v %s", r.URL, r.Header, data)
	switch {
	case mode == "slow":
		<-r.Context().Done()
	case mode == "large":
		_, _ = io.WriteString(w, `{"status":"success","data":"`+strings.Repeat("x", 1<<20)+`"}`)
	case mode == "malformed":
		_, _ = io.WriteString(w, `{"status":"succ`)
	case mode == "cut":
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, `{"status":`)
	case mode == "html":
		_, _ = io.WriteString(w, `<html><body>Please log in</body></html>`)
	case mode == "tells" && !slices.Contains([]string{"/token", "/sts/", "/agent"}, r.URL.Path):
		user, password, _ := r.BasicAuth()
		told := []string{user, password, user + ":" + password}
		for _, values := range r.Header {
			for _, value := range values {
				told = append(told, strings.Fields(value)...)
			}
		}
		http.Error(w, strings.Join(told, " "), http.StatusInternalServerError)
	case mode == "500":
		http.Error(w, echo, http.StatusInternalServerError)
	case mode == "denied":
		http.Error(w, echo, http.StatusUnauthorized)
	case mode == "429" && left > 0:
		w.Header().Set("Retry-After", "0")
		http.Error(w, echo, http.StatusTooManyRequests)
	case strings.HasPrefix(mode, "http"):
		http.Redirect(w, r, mode+r.URL.RequestURI(), http.StatusTemporaryRedirect)
	case !f.c.serve(f, w, r, string(data)):
		http.Error(w, echo, http.StatusUnauthorized)
	}
}

// send writes the case's answer.
func (f *fake) send(w http.ResponseWriter, kind string) {
	w.Header().Set("Content-Type", kind)
	_, _ = io.WriteString(w, f.reply)
}

// want fails the test if a request differs from the documentation.
func (f *fake) want(r *http.Request, method, path string) {
	f.t.Helper()
	if r.Method != method || r.URL.EscapedPath() != path {
		f.t.Errorf("got %s %s, want %s %s", r.Method, r.URL.EscapedPath(), method, path)
	}
}

// wantEqual compares a value of the request with the expected one.
func (f *fake) wantEqual(what string, got, want any) {
	f.t.Helper()
	if diff := compare.Diff(want, got); diff != "" {
		f.t.Errorf("%s differs (-want +got):\n%s", what, diff)
	}
}

var testNow = time.Date(2026, 1, 31, 12, 0, 30, 0, time.UTC)

// bench is a contract with its server.
type bench struct {
	*fake
	address string
	deps    Deps
	request Request
}

func newBench(t *testing.T, c contract) *bench {
	f := &fake{t: t, c: c}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	b := &bench{fake: f, address: server.URL}
	var secrets map[string]map[string]string
	if c.secrets != nil {
		secrets = c.secrets(server.URL)
	}
	env := map[string]string{}
	if c.env != nil {
		env = c.env(server.URL)
	}
	b.deps = Deps{
		Client: func(bool) *http.Client { return server.Client() },
		Agent:  func(bool) *http.Client { return server.Client() },
		Secret: func(_ context.Context, namespace, name string) (map[string]string, error) {
			if data, ok := secrets[strings.TrimPrefix(namespace+"/"+name, "/")]; ok {
				return data, nil
			}
			return nil, errors.New("not found")
		},
		Getenv:   func(name string) string { return env[name] },
		ReadFile: os.ReadFile,
		Now:      func() time.Time { return testNow },
		Backoff:  time.Millisecond,
	}
	b.request = Request{
		Kind: c.kind, Config: c.config(server.URL), Namespace: "shop", ID: "run-1/errors/3",
		Rollout: "checkout", Hash: "v1:abc", Started: testNow.Add(-time.Hour), Interval: 5 * time.Minute,
	}
	return b
}

// measure queries until there is a result, at most five times.
func (b *bench) measure(ctx context.Context) (Result, error) {
	r := b.request
	for range 5 {
		result, err := Measure(ctx, b.deps, r)
		if err != nil || result.Phase != analysis.Running {
			return result, err
		}
		r.Metadata = result.Metadata
	}
	return Result{}, errors.New("it runs for ever")
}

func forEach(t *testing.T, test func(t *testing.T, c contract, b *bench)) {
	for _, c := range contracts() {
		t.Run(strings.TrimSuffix(c.kind+"_"+c.name, "_"), func(t *testing.T) {
			t.Parallel()
			test(t, c, newBench(t, c))
		})
	}
}

func TestValues(t *testing.T) {
	forEach(t, func(t *testing.T, c contract, _ *bench) {
		for _, has := range []string{"one", "empty"} {
			if !slices.ContainsFunc(c.answers, func(a canned) bool { return a.name == has }) {
				t.Errorf("the contract has no answer named %s", has)
			}
		}
		for _, a := range c.answers {
			t.Run(a.name, func(t *testing.T) {
				b := newBench(t, c)
				b.reply = a.reply
				got, err := b.measure(t.Context())
				switch {
				case a.err != "" && err == nil:
					t.Fatalf("got %v, want an error with %q", got, a.err)
				case a.err != "" && !strings.Contains(err.Error(), a.err):
					t.Fatalf("got the error %q, want one with %q", err, a.err)
				case a.err == "" && err != nil:
					t.Fatalf("got the error %q", err)
				}
				compare.CheckNamed(t, "value", a.want, got.Value)
				if got.Phase != a.phase {
					t.Errorf("phase is %q, want %q", got.Phase, a.phase)
				}
				checkQuiet(t, err, got)
			})
		}
	})
}

// checkQuiet fails the test if a credential is shown.
func checkQuiet(t *testing.T, err error, got Result) {
	t.Helper()
	texts := []string{got.Message}
	for _, text := range got.Metadata {
		texts = append(texts, text)
	}
	if err != nil {
		texts = append(texts, err.Error(), fmt.Sprintf("%+v", err))
		for inner := err; inner != nil; inner = errors.Unwrap(inner) {
			texts = append(texts, inner.Error())
		}
	}
	for _, text := range texts {
		for _, secret := range []string{token, "s3cr3t", "czNjcjN0", "with+odd", "with%2Bodd"} {
			if strings.Contains(text, secret) {
				t.Errorf("%q tells %q", text, secret)
			}
		}
		if strings.Contains(text, "\n") {
			t.Errorf("%q has more than one line", text)
		}
		if len(text) > 4*2*call.MaxMessage {
			t.Errorf("a text of %d bytes", len(text))
		}
	}
}

func TestMisbehaviour(t *testing.T) {
	for _, mode := range []struct {
		name, err string
		tries     int // 0: any number
	}{
		{"denied", "401 Unauthorized", 0},
		{"500", "500 Internal Server Error", 0},
		{"tells", "500 Internal Server Error", 0},
		{"large", "larger than 1 MiB", 0},
		{"malformed", "differs from its documentation", 0},
		{"html", "differs from its documentation", 0},
		{"cut", "the connection was closed within the answer", 0},
	} {
		t.Run(mode.name, func(t *testing.T) {
			forEach(t, func(t *testing.T, c contract, b *bench) {
				b.mode, b.reply = mode.name, c.answers[0].reply
				got, err := b.measure(t.Context())
				checkQuiet(t, err, got)
				text := mode.name == "malformed" || mode.name == "html"
				switch {
				case c.anyText && text, c.anyStatus && mode.name != "large" && mode.name != "cut":
					if err != nil {
						t.Errorf("got the error %q", err)
					}
				case err == nil:
					t.Errorf("got %v, want an error", got)
				case !strings.Contains(err.Error(), mode.err):
					t.Errorf("got the error %q, want one with %q", err, mode.err)
				}
			})
		})
	}
}

func TestTriesAgain(t *testing.T) {
	forEach(t, func(t *testing.T, c contract, b *bench) {
		b.mode, b.left, b.reply = "429", 2, c.answers[0].reply
		got, err := b.measure(t.Context())
		if err != nil {
			t.Fatalf("got the error %q", err)
		}
		compare.CheckNamed(t, "value", c.answers[0].want, got.Value)
	})
}

// TestGivesUp queries a server that always fails only a few times.
func TestGivesUp(t *testing.T) {
	forEach(t, func(t *testing.T, c contract, b *bench) {
		b.mode = "500"
		_, err := b.measure(t.Context())
		if (err == nil) != c.anyStatus {
			t.Fatalf("got the error %v", err)
		}
		want := []int{maxTries}
		if c.anyStatus {
			want = []int{1} // it may have acted on the request
		}
		if !slices.Contains(want, int(b.asked.Load())) {
			t.Errorf("it was asked %d times, want %v", b.asked.Load(), want)
		}
	})
}

func TestTime(t *testing.T) {
	forEach(t, func(t *testing.T, _ contract, b *bench) {
		b.mode = "slow"
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		got, err := b.measure(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no answer in time") {
			t.Errorf("got %v and %v, want no answer in time", got, err)
		}
		checkQuiet(t, err, got)
	})
}

func TestNobodyListens(t *testing.T) {
	forEach(t, func(t *testing.T, c contract, b *bench) {
		b2 := newBenchAt(t, c, b, "http://127.0.0.1:1") // the closed server's port may be in use again
		got, err := b2.measure(t.Context())
		if err == nil || !strings.Contains(err.Error(), "dial: connect: connection refused") {
			t.Errorf("got %v and %v, want a refused connection", got, err)
		}
		checkQuiet(t, err, got)
	})
}

// newBenchAt returns a bench whose configuration names another server.
func newBenchAt(t *testing.T, c contract, b *bench, address string) *bench {
	other := newBench(t, contract{kind: c.kind, serve: c.serve, config: func(string) map[string]any { return c.config(address) },
		secrets: func(string) map[string]map[string]string {
			if c.secrets == nil {
				return nil
			}
			return c.secrets(address)
		}, env: func(string) map[string]string {
			if c.env == nil {
				return nil
			}
			return c.env(address)
		}})
	other.reply = b.reply
	return other
}

// TestRedirects redirects every provider to another host, which must not get a credential. A provider that sends
// credentials must not follow at all.
func TestRedirects(t *testing.T) {
	forEach(t, func(t *testing.T, c contract, b *bench) {
		var mu sync.Mutex
		var seen []string
		thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, fmt.Sprint(r.URL, r.Header, string(body)))
		}))
		defer thief.Close()
		b.mode = thief.URL
		got, err := b.measure(t.Context())
		if err == nil || !strings.Contains(err.Error(), "redirects to another host") {
			t.Errorf("got %v and %v, want an error about the redirect", got, err)
		}
		checkQuiet(t, err, got)
		if err != nil && strings.Contains(err.Error(), `"`) {
			t.Errorf("%q has the URL in it", err)
		}
		if b.asked.Load() > 2 { // a token is requested in two ways
			t.Errorf("it was asked %d times", b.asked.Load())
		}
		if len(seen) > 0 {
			t.Errorf("the other host was told %q", seen)
		}
	})
}

// TestSecretsThatCannotBeRead checks that a missing or incomplete Secret is an error that names the Secret, and that no
// request is sent.
func TestSecretsThatCannotBeRead(t *testing.T) {
	forEach(t, func(t *testing.T, c contract, b *bench) {
		if c.secrets == nil {
			return
		}
		for name := range c.secrets("") {
			name = name[strings.LastIndex(name, "/")+1:]
			for want, secret := range map[string]func(context.Context, string, string) (map[string]string, error){
				"read the Secret " + name +
					": not there": func(context.Context, string, string) (map[string]string, error) { return nil, errors.New("not there") },
				"the Secret " + name + " has no ": func(context.Context, string, string) (map[string]string, error) {
					return map[string]string{"x": "y"}, nil
				},
				"the Secret " + name + " cannot be read": nil,
			} {
				b.deps.Secret = secret
				if got, err := b.measure(t.Context()); err == nil || !strings.Contains(err.Error(), want) || b.asked.Load() != 0 {
					t.Errorf("got %v and %v after %d requests, want %q", got, err, b.asked.Load(), want)
				}
			}
		}
	})
}

// TestTimeout checks that an invalid configuration has no timeout and measures nothing.
func TestTimeout(t *testing.T) {
	bad := Request{Kind: "loki", Config: map[string]any{"query": "up"}}
	if got := Timeout(bad); got != 0 {
		t.Errorf("%s", got)
	}
	if got := Timeout(Request{Kind: "prometheus", Config: fromYAML(t, minimal["prometheus"])}); got != 30*time.Second {
		t.Errorf("%s", got)
	}
	if _, err := Measure(t.Context(), Deps{}, bad); err == nil || !strings.Contains(err.Error(), "loki.address: is missing") {
		t.Errorf("it is measured: %v", err)
	}
	if err := Stop(t.Context(), Deps{}, bad); err == nil {
		t.Error("it is stopped")
	}
	if err := Stop(t.Context(), Deps{}, Request{Kind: "prometheus", Config: fromYAML(t, minimal["prometheus"])}); err != nil {
		t.Errorf("there is nothing to stop: %v", err)
	}
}
