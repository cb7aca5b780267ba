package provider

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// What a request may cost. Metrics are small: an answer of a mebibyte is a query
// that somebody got wrong.
const (
	maxAnswer   = 1 << 20
	maxTries    = 4                // with pauses of 1/4, 1/2 and 1 second
	maxWait     = 10 * time.Second // that a server may ask for; after a longer one the metric's interval decides
	maxMessage  = 300              // characters
	maxMetadata = 2000             // a query can be longer than a message
)

// session is what one measurement knows.
type session struct {
	deps    Deps
	request Request
	secrets []string
}

// call is one request to a provider's API.
type call struct {
	method  string
	base    string     // a URL out of the configuration: it is hidden but for its host
	path    string     // is added to the base, and is shown in errors
	query   url.Values // is added to the base's
	body    []byte
	kind    string // of the body: its Content-Type
	headers []header

	authorize func(*http.Request)       // adds credentials
	sign      func(*http.Request) error // … that depend on the rest; see sigv4.go
	insecure  bool
	once      bool                  // it has effects: repeat it only if it had none for certain
	accept    func(status int) bool // nil: 2xx
}

type answer struct {
	status int
	body   []byte
}

// requestError is a request that was not answered as it should be.
type requestError struct {
	what    string // GET /api/v1/query of http://prometheus:9090
	status  int    // 0 if there was no answer
	message string
	again   bool          // it may pass
	undone  bool          // the server has not acted on it
	after   time.Duration // that the server wants to be left alone
	cause   error
}

func (e *requestError) Error() string {
	text := e.what + ": "
	if e.status != 0 {
		text += fmt.Sprintf("%d %s: ", e.status, http.StatusText(e.status))
	}
	return text + e.message
}

func (e *requestError) Unwrap() error { return e.cause }

// do makes a request, repeats it while that may help, and returns the answer.
func (s *session) do(ctx context.Context, c call) (answer, error) {
	pause := s.deps.Backoff
	if pause == 0 {
		pause = 250 * time.Millisecond
	}
	for try := 1; ; try++ {
		a, failed := s.try(ctx, c)
		if failed == nil {
			return a, nil
		}
		if try == maxTries || !failed.again || c.once && !failed.undone || failed.after > maxWait || ctx.Err() != nil {
			return answer{}, failed
		}
		select {
		case <-ctx.Done():
			return answer{}, failed // says more than that time is up
		case <-time.After(max(pause, failed.after)):
		}
		pause *= 2
	}
}

func (s *session) try(ctx context.Context, c call) (answer, *requestError) {
	req, failed := s.newRequest(ctx, c)
	if failed != nil {
		return answer{}, failed
	}
	failed = &requestError{what: strings.Join(strings.Fields(c.method+" "+c.path+" of "+req.URL.Scheme+"://"+req.URL.Host), " ")}
	if c.path == "" {
		failed.what = c.method + " " + req.URL.Scheme + "://" + req.URL.Host
	}
	res, err := s.clientFor(c, req).Do(req)
	if err != nil {
		return answer{}, s.noAnswer(ctx, failed, err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err != nil {
		return answer{}, s.noAnswer(ctx, failed, err)
	}
	if len(body) > maxAnswer {
		failed.message = "the answer is larger than 1 MiB; ask for less"
		return answer{}, failed
	}
	good := res.StatusCode/100 == 2
	if c.accept != nil {
		good = c.accept(res.StatusCode)
	}
	if good {
		return answer{res.StatusCode, body}, nil
	}
	failed.status, failed.message = res.StatusCode, messageOf(body, s.scrub)
	failed.undone = res.StatusCode == http.StatusTooManyRequests || res.StatusCode == http.StatusServiceUnavailable
	failed.again = failed.undone || res.StatusCode >= 500 && res.StatusCode != http.StatusNotImplemented
	failed.after = s.retryAfter(res.Header.Get("Retry-After"))
	return answer{}, failed
}

func (s *session) newRequest(ctx context.Context, c call) (*http.Request, *requestError) {
	if s.deps.Client == nil {
		return nil, &requestError{what: c.method, message: "there is no HTTP client"}
	}
	u, err := url.Parse(c.base)
	if err != nil || u.Host == "" {
		return nil, &requestError{what: c.method, message: fmt.Sprintf("%q is not a URL", shown(c.base))}
	}
	s.hideURL(u)
	if c.path != "" {
		u = u.JoinPath(c.path)
	}
	if len(c.query) > 0 {
		q := u.Query()
		for key, values := range c.query {
			q[key] = values
		}
		u.RawQuery = q.Encode()
	}
	u.Fragment = ""
	req, err := http.NewRequestWithContext(ctx, c.method, u.String(), bytes.NewReader(c.body))
	if err != nil {
		return nil, &requestError{what: c.method, message: "the request cannot be made"}
	}
	req.Header.Set("User-Agent", "gitrollout")
	if c.kind != "" {
		req.Header.Set("Content-Type", c.kind)
	}
	s.hideHeaders(c.headers)
	for _, h := range c.headers {
		if strings.EqualFold(h.Key, "Host") {
			req.Host = h.Value
		} else {
			req.Header.Set(h.Key, h.Value)
		}
	}
	if c.authorize != nil {
		c.authorize(req)
	}
	if c.sign != nil {
		if err := c.sign(req); err != nil {
			return nil, &requestError{what: c.method, message: err.Error(), cause: err}
		}
	}
	return req, nil
}

// clientFor returns a client that takes no credential elsewhere: it follows
// redirects within the same host. Only a GET that carries nothing but its URL is
// led to another one, and that without saying where it comes from.
func (s *session) clientFor(c call, req *http.Request) *http.Client {
	client := *s.deps.Client(c.insecure)
	bare := c.method == http.MethodGet && c.authorize == nil && c.sign == nil && len(c.headers) == 0 && req.URL.User == nil
	client.CheckRedirect = func(next *http.Request, via []*http.Request) error {
		from := via[len(via)-1].URL
		same := next.URL.Host == from.Host && (next.URL.Scheme == from.Scheme || next.URL.Scheme == "https")
		switch {
		case len(via) > 5:
			return errors.New("it redirects too often")
		case next.Method != c.method:
			return fmt.Errorf("it redirects to %s://%s; write the address that is redirected to", next.URL.Scheme, next.URL.Host)
		case !same && !bare:
			return fmt.Errorf("it redirects to another host, %s://%s; write the address that is redirected to", next.URL.Scheme, next.URL.Host)
		case !same:
			next.Header.Del("Referer")
		}
		return nil
	}
	return &client
}

// noAnswer tells why there is none, without the ports and addresses that differ
// each time.
func (s *session) noAnswer(ctx context.Context, failed *requestError, err error) *requestError {
	if ctx.Err() != nil {
		failed.message, failed.cause = "there was no answer in time", ctx.Err()
		if errors.Is(ctx.Err(), context.Canceled) {
			failed.message = "the measurement was cancelled"
		}
		return failed
	}
	for wrapped := new(url.Error); errors.As(err, &wrapped); {
		err = wrapped.Err // its text has the whole URL
	}
	failed.again = true
	var op *net.OpError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &certificate):
		failed.again = false
		failed.message = "its certificate is not trusted: " + certificate.Err.Error()
	case errors.As(err, &op):
		failed.undone = op.Op == "dial"
		failed.message = op.Op + ": " + op.Err.Error()
	case strings.HasPrefix(err.Error(), "it redirects"):
		failed.again = false
		failed.message = err.Error()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		failed.message = "the connection was closed within the answer"
	default:
		failed.message = err.Error()
	}
	failed.message = s.scrub(failed.message)
	return failed
}

func (s *session) retryAfter(text string) time.Duration {
	if n, err := strconv.Atoi(text); err == nil && n > 0 && n < 1<<30 {
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil && s.deps.Now != nil {
		return at.Sub(s.deps.Now())
	}
	return 0
}

// messageOf finds the words in a refusal. They may be texts, lists or objects.
func messageOf(body []byte, scrub func(string) string) string {
	var parsed any
	text := ""
	if json.Unmarshal(body, &parsed) == nil {
		text = words(parsed)
	} else if trimmed := strings.TrimSpace(string(body)); !strings.HasPrefix(trimmed, "<") {
		text = trimmed // and a page of HTML is left out
	}
	text = strings.Join(strings.Fields(scrub(text)), " ")
	if text == "" {
		return "(no reason given)"
	}
	return cut(text, maxMessage)
}

func words(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case []any:
		var parts []string
		for _, e := range v {
			if text := words(e); text != "" {
				parts = append(parts, text)
			}
		}
		return strings.Join(parts, ", ")
	case map[string]any:
		for _, key := range []string{"error", "errors", "errorMessage", "message", "reason", "detail", "title", "type"} {
			if text := words(v[key]); text != "" {
				return text
			}
		}
	}
	return ""
}

// cut shortens a text to a number of characters.
func cut(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most-1]) + "…"
}

// refusal is the error of a server that answers with one.
func refusal(from, reason string) error {
	return fmt.Errorf("an error of %s: %s", from, orElse(strings.Join(strings.Fields(reason), " "), "it gives no reason"))
}

// decodeAnswer reads a JSON answer.
func decodeAnswer(from string, body []byte, into any) error {
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("the answer of %s is not what its documentation says: %s", from, withoutData(err))
	}
	return nil
}

// withoutData is a decoder's error without what was decoded.
func withoutData(err error) string {
	var wrong *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &wrong):
		return fmt.Sprintf("%s is a %s", orElse(wrong.Field, "it"), valueNames.Replace(strings.Fields(wrong.Value)[0]))
	case errors.As(err, &syntax):
		return "it is no JSON"
	default:
		return err.Error()
	}
}

// Clients returns the function for Deps.Client: one client that verifies
// certificates and one that does not, both with the proxies of the environment.
func Clients() func(insecure bool) *http.Client {
	clients := map[bool]*http.Client{}
	for _, insecure := range []bool{false, true} {
		clients[insecure] = &http.Client{Transport: &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
			TLSHandshakeTimeout:    10 * time.Second,
			IdleConnTimeout:        90 * time.Second,
			MaxIdleConnsPerHost:    4,
			ForceAttemptHTTP2:      true,
			MaxResponseHeaderBytes: 64 << 10,
			TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: insecure}, // users ask for it, by server
		}}
	}
	return func(insecure bool) *http.Client { return clients[insecure] }
}
