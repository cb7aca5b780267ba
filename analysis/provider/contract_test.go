package provider_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/analysis/provider"
	"gitrollout.dev/gitrollout/call"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// contract is a test case of a provider that uses HTTP. Its server follows the provider's public documentation, not gitrollout's requests,
// and refuses everything undocumented.
type contract struct {
	kind   string
	name   string // distinguishes contracts of the same kind
	doc    string // the URL of the API's documentation
	config string // YAML, with ADDRESS for the server's URL and HOST for the URL without its scheme
	// secrets are gitrollout's Secrets, and env is gitrollout's environment. ADDRESS means the server's URL in both.
	secrets map[string]map[string]string
	env     map[string]string
	serve   server
	answers []canned
	// If anyText is set, a response that is not JSON is a value. If anyStatus is set, status 500 is a verdict.
	anyText, anyStatus bool
	compare            *analysis.Compare // set if the metric compares both versions
	content            string            // the content type of the responses; "" is JSON
}

// server answers a request as documented, with f.reply as the query's result. It returns false if the request has wrong credentials.
type server func(f *fake, w http.ResponseWriter, r *http.Request, body string) bool

// documented returns a server of one route. If a request has the credentials, check compares the request with the documentation.
func documented(route string, allowed func(*http.Request) bool, check func(f *fake, r *http.Request, body string)) server {
	return func(f *fake, w http.ResponseWriter, r *http.Request, body string) bool {
		if !allowed(r) {
			return false
		}
		f.want(r, route)
		check(f, r, body)
		f.send(w)
		return true
	}
}

func hasHeader(name, value string) func(*http.Request) bool {
	return func(r *http.Request) bool { return r.Header.Get(name) == value }
}

func isReader(r *http.Request) bool {
	user, password, _ := r.BasicAuth()
	return user == "reader" && password == token
}

// canned is a response of a provider with the expected result.
type canned struct {
	name, reply string
	want        any            // Result.Value
	phase       analysis.Phase // Result.Phase
	err         string         // a substring of the error, "" without an error
}

// token is the secret part of the credentials in each contract: a password, an API key or a token.
const token = "s3cr3t/with+odd=chars"

// asReader is the server's URL with the user name and password that isReader allows.
const asReader = "http://reader:s3cr3t%2Fwith+odd=chars@HOST"

func contracts() []contract {
	return []contract{
		prometheusContract, prometheusRangeContract, webContract, webPostContract, datadogV1Contract, datadogV2Contract, newRelicContract,
		wavefrontContract, kayentaContract, cloudWatchContract, graphiteContract, influxContract, skywalkingContract, lokiContract,
		elasticsearchContract, opensearchContract, webhookContract, histogramContract, datadogPairContract, cloudWatchPairContract,
		prometheusPairContract, lokiPairContract,
	}
}

func TestEveryKindHasAContract(t *testing.T) {
	seen := []string{"job"} // judges_test.go tests Jobs, which need no server
	for _, c := range contracts() {
		seen = append(seen, c.kind)
		if c.doc == "" {
			t.Errorf("the contract of %s does not say where its API is documented", c.kind)
		}
	}
	for _, kind := range provider.Kinds() {
		if !slices.Contains(seen, kind) {
			t.Errorf("%s has no contract", kind)
		}
	}
}

// fake is the server of a provider.
type fake struct {
	t     *testing.T
	c     contract
	mu    sync.Mutex
	reply string
	mode  string // how the server fails, "" if it does not
	left  int    // how many requests the server still refuses with 429
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
	// A hostile server may send the credentials back in its response.
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

func (f *fake) send(w http.ResponseWriter) {
	w.Header().Set("Content-Type", cmp.Or(f.c.content, "application/json"))
	_, _ = io.WriteString(w, f.reply)
}

// want fails the test if a request's method and path differ from the documentation.
func (f *fake) want(r *http.Request, route string) {
	f.t.Helper()
	f.wantEqual("the request", r.Method+" "+r.URL.EscapedPath(), route)
}

// wantEqual fails the test if a value of the request differs from the expected value.
func (f *fake) wantEqual(what string, got, want any) {
	f.t.Helper()
	compare.CheckNamed(f.t, what+" differs", want, got)
}

func (f *fake) object(body string) (got map[string]any) {
	f.t.Helper()
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		f.t.Errorf("the body is not JSON: %v", err)
	}
	return got
}

func (f *fake) form(body string) url.Values {
	f.t.Helper()
	form, err := url.ParseQuery(body)
	if err != nil {
		f.t.Errorf("the body is no form: %v", err)
	}
	return form
}

var testNow = time.Date(2026, 1, 31, 12, 0, 30, 0, time.UTC)

// bench runs a contract with its server.
type bench struct {
	*fake
	address string
	deps    provider.Deps
	request provider.Request
}

// newBench starts the server of a contract. The server replies with the contract's first answer.
func newBench(t *testing.T, c contract) *bench {
	f := &fake{t: t, c: c, reply: c.answers[0].reply}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	client := func(bool) *http.Client { return server.Client() }
	b := &bench{fake: f, address: server.URL,
		deps: provider.Deps{Client: client, Agent: client, ReadFile: os.ReadFile, Now: func() time.Time { return testNow },
			Backoff: time.Millisecond},
		request: provider.Request{Kind: c.kind, Namespace: "shop", ID: "run-1/errors/3", Workload: rollout.Workload{Name: "checkout"},
			Hash:    "v1:abc",
			Started: testNow.Add(-time.Hour), Interval: 5 * time.Minute, Compare: c.compare},
	}
	b.configure(server.URL)
	return b
}

// configure puts the server's address into the configuration, the Secrets and the environment.
func (b *bench) configure(address string) {
	b.t.Helper()
	fill := strings.NewReplacer("ADDRESS", address, "HOST", strings.TrimPrefix(address, "http://")).Replace
	b.request.Config = fromYAML(b.t, fill(b.c.config))
	b.deps.Getenv = func(name string) string { return fill(b.c.env[name]) }
	b.deps.Secret = func(_ context.Context, namespace, name string) (map[string]string, error) {
		data, ok := b.c.secrets[strings.TrimPrefix(namespace+"/"+name, "/")]
		if !ok {
			return nil, errors.New("not found")
		}
		filled := map[string]string{}
		for key, value := range data {
			filled[key] = fill(value)
		}
		return filled, nil
	}
}

// measure repeats a request while the result is Running, up to five times.
func (b *bench) measure(ctx context.Context) (provider.Result, error) {
	r := b.request
	for range 5 {
		result, err := provider.Measure(ctx, b.deps, r)
		if err != nil || result.Phase != analysis.Running {
			return result, err
		}
		r.Metadata = result.Metadata
	}
	return provider.Result{}, errors.New("it runs for ever")
}

// wantValue fails the test unless the measurement has the value. It returns the result.
func (b *bench) wantValue(want any) provider.Result {
	b.t.Helper()
	got, err := b.measure(b.t.Context())
	if err != nil {
		b.t.Errorf("got the error %q", err)
	}
	compare.CheckNamed(b.t, "value", want, got.Value)
	checkQuiet(b.t, err, got)
	return got
}

// wantError fails the test unless the measurement fails with the text in its error. It returns the error's text.
func (b *bench) wantError(part string) string {
	b.t.Helper()
	got, err := b.measure(b.t.Context())
	checkQuiet(b.t, err, got)
	text := fmt.Sprint(err)
	if err == nil || !strings.Contains(text, part) {
		b.t.Errorf("got %v and the error %q, want one with %q", got, text, part)
	}
	return text
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
				if a.err != "" {
					b.wantError(a.err)
				} else if got := b.wantValue(a.want); got.Phase != a.phase {
					t.Errorf("phase is %q, want %q", got.Phase, a.phase)
				}
			})
		}
	})
}

// checkQuiet fails the test if an error or a result contains a credential.
func checkQuiet(t *testing.T, err error, got provider.Result) {
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
	for mode, want := range map[string]string{
		"denied":    "401 Unauthorized",
		"500":       "500 Internal Server Error",
		"tells":     "500 Internal Server Error",
		"large":     "larger than 1 MiB",
		"malformed": "differs from its documentation",
		"html":      "differs from its documentation",
		"cut":       "the connection was closed before the answer ended",
	} {
		t.Run(mode, func(t *testing.T) {
			forEach(t, func(t *testing.T, c contract, b *bench) {
				b.mode = mode
				isText := mode == "malformed" || mode == "html"
				if c.anyText && isText || c.anyStatus && mode != "large" && mode != "cut" {
					got, err := b.measure(t.Context())
					checkQuiet(t, err, got)
					must(t, err)
					return
				}
				b.wantError(want)
			})
		})
	}
}

func TestTriesAgain(t *testing.T) {
	forEach(t, func(_ *testing.T, c contract, b *bench) {
		b.mode, b.left = "429", 2
		b.wantValue(c.answers[0].want)
	})
}

// TestGivesUp checks that a server that always fails gets at most maxTries requests.
func TestGivesUp(t *testing.T) {
	forEach(t, func(t *testing.T, c contract, b *bench) {
		b.mode = "500"
		_, err := b.measure(t.Context())
		if (err == nil) != c.anyStatus {
			t.Fatalf("got the error %v", err)
		}
		want := int64(4)
		if c.anyStatus {
			want = 1 // the provider does not repeat the request, which may have had an effect
		}
		if b.asked.Load() != want {
			t.Errorf("it was asked %d times, want %d", b.asked.Load(), want)
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
	forEach(t, func(_ *testing.T, _ contract, b *bench) {
		b.configure("http://127.0.0.1:1") // nothing listens on port 1; another process may reuse a closed server's port
		b.wantError("dial: connect: connection refused")
	})
}

// TestRedirects checks redirects to another host. No provider may send a credential to that host, and a provider with credentials must not
// follow a redirect.
func TestRedirects(t *testing.T) {
	forEach(t, func(t *testing.T, _ contract, b *bench) {
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
		if text := b.wantError("redirects to another host"); strings.Contains(text, `"`) {
			t.Errorf("%q has the URL in it", text)
		}
		if b.asked.Load() > 2 { // a provider may request a token in two ways
			t.Errorf("it was asked %d times", b.asked.Load())
		}
		if len(seen) > 0 {
			t.Errorf("the other host was told %q", seen)
		}
	})
}

// TestSecretsThatCannotBeRead checks that a missing or incomplete Secret causes an error with the Secret's name, and no request.
func TestSecretsThatCannotBeRead(t *testing.T) {
	type reader = func(context.Context, string, string) (map[string]string, error)
	answering := func(data map[string]string, err error) reader {
		return func(context.Context, string, string) (map[string]string, error) { return data, err }
	}
	forEach(t, func(t *testing.T, c contract, b *bench) {
		for name := range c.secrets {
			name = "the Secret " + name[strings.LastIndex(name, "/")+1:]
			for want, secret := range map[string]reader{
				"read " + name + ": not there": answering(nil, errors.New("not there")),
				name + " has no ":              answering(map[string]string{"x": "y"}, nil),
				name + " cannot be read":       nil,
			} {
				b.deps.Secret = secret
				b.wantError(want)
				if b.asked.Load() != 0 {
					t.Errorf("%s: after %d requests", want, b.asked.Load())
				}
			}
		}
	})
}
