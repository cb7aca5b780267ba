package forge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// requestTimeout bounds one request, maxAnswer what is read of its answer.
const (
	requestTimeout = 30 * time.Second
	maxAnswer      = 8 << 20
)

// errNoToken is what a request ends with when there is no credential.
var errNoToken = errors.New("there is no token for the forge's API: set GITROLLOUT_FORGE_TOKEN, or GITROLLOUT_GIT_TOKEN if it is the same one")

// requestError is a request that the forge did not carry out.
type requestError struct {
	method, path string
	status       int       // 0 if there was no answer
	message      string    // the forge's own
	until        time.Time // it asks not to be asked again before; zero if it does not
}

func (e *requestError) Error() string {
	text := e.method + " " + e.path + ": "
	if e.status != 0 {
		text += fmt.Sprintf("%d %s: ", e.status, http.StatusText(e.status))
	}
	return text + e.message
}

// caller makes one forge's requests, and none while the forge asks for a break.
type caller struct {
	client    *http.Client
	base      string // of the API, without a slash at the end
	token     func(context.Context) (string, error)
	authorize func(h http.Header, token string)
	now       func() time.Time
	until     time.Time     // of the break
	spacing   time.Duration // between two requests that change something
	wrote     time.Time
}

// call sends a value as JSON, if it is not nil, and decodes the answer into
// another one, if that is not nil.
func (c *caller) call(ctx context.Context, method, path string, in, out any) error {
	failed := &requestError{method: method, path: strings.SplitN(path, "?", 2)[0]}
	if c.now().Before(c.until) {
		failed.until, failed.message = c.until, "the forge's rate limit is used up"
		return failed
	}
	token, err := c.token(ctx)
	if err != nil {
		return fmt.Errorf("token for the forge: %w", err)
	}
	if token == "" {
		return errNoToken
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	req, err := c.request(ctx, method, path, in, token)
	if err != nil {
		return err
	}
	if err := c.space(ctx, method); err != nil {
		return err
	}
	res, err := c.client.Do(req)
	if err != nil {
		failed.message = scrub(err.Error(), token)
		return failed
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		failed.message = scrub(err.Error(), token)
		return failed
	}
	c.heed(res)
	if res.StatusCode/100 != 2 {
		failed.status, failed.message = res.StatusCode, scrub(messageOf(data), token)
		if failed.until = c.breakOf(res, failed.message); !failed.until.IsZero() {
			c.until = failed.until
		}
		return failed
	}
	if out == nil {
		return nil
	}
	if err := json.Unmarshal(data, out); err != nil {
		failed.message = "the answer is not what its documentation says: " + err.Error()
		return failed
	}
	return nil
}

// space waits until a request that changes something may follow the last one.
func (c *caller) space(ctx context.Context, method string) error {
	if method == http.MethodGet {
		return nil
	}
	if wait := c.spacing - c.now().Sub(c.wrote); wait > 0 {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
	c.wrote = c.now()
	return nil
}

func (c *caller) request(ctx context.Context, method, path string, in any, token string) (*http.Request, error) {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", method, path, err)
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", method, path, err)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "gitrollout")
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	c.authorize(req.Header, token)
	return req, nil
}

// heed begins a break when an answer says that it was the last one allowed.
// GitHub's headers begin with X-, GitLab's do not; both give the time in seconds.
func (c *caller) heed(res *http.Response) {
	for _, prefix := range []string{"X-RateLimit-", "RateLimit-"} {
		if res.Header.Get(prefix+"Remaining") != "0" {
			continue
		}
		if at, err := strconv.ParseInt(res.Header.Get(prefix+"Reset"), 10, 64); err == nil {
			c.until = capped(c.now(), time.Unix(at, 0))
		}
	}
}

// breakOf is until when a refused request must not be repeated, zero if the
// refusal is not about how often it was made.
func (c *caller) breakOf(res *http.Response, message string) time.Time {
	now := c.now()
	limited := res.StatusCode == http.StatusTooManyRequests || res.StatusCode == http.StatusForbidden || res.StatusCode == http.StatusServiceUnavailable
	if !limited {
		return time.Time{}
	}
	if after := res.Header.Get("Retry-After"); after != "" {
		if seconds, err := strconv.Atoi(after); err == nil {
			return capped(now, now.Add(time.Duration(seconds)*time.Second))
		}
		if at, err := http.ParseTime(after); err == nil {
			return capped(now, at)
		}
	}
	if c.until.After(now) {
		return c.until // heed has read it
	}
	if res.StatusCode == http.StatusTooManyRequests || strings.Contains(strings.ToLower(message), "rate limit") {
		return now.Add(time.Minute) // GitHub's advice where no header tells
	}
	return time.Time{}
}

// capped keeps a break within an hour, the longest that the forges have, so
// that a wrong clock does not end all requests.
func capped(now, at time.Time) time.Time {
	if latest := now.Add(time.Hour); at.After(latest) {
		return latest
	}
	return at
}

// messageOf finds the words in a refusal: {"message": …}, {"error": …}, and
// what GitHub adds in errors. They may be texts, lists or objects.
func messageOf(data []byte) string {
	var answer map[string]any
	if json.Unmarshal(data, &answer) != nil {
		return "(no reason given)"
	}
	var parts []string
	for _, key := range []string{"message", "error", "errors"} {
		switch v := answer[key].(type) {
		case nil:
		case string:
			parts = append(parts, v)
		default:
			text, _ := json.Marshal(v)
			parts = append(parts, string(text))
		}
	}
	text := strings.Join(strings.Fields(strings.Join(parts, ": ")), " ")
	if text == "" {
		return "(no reason given)"
	}
	return cut(text, 300)
}

func scrub(text, token string) string { return strings.ReplaceAll(text, token, "***") }

// cut shortens a text to a number of characters.
func cut(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most-1]) + "…"
}

// newClient is an HTTP client that takes a token nowhere else: it follows
// redirects only to the same origin, and net/http only repeats a request with a
// body where the status asks for that.
func newClient() *http.Client {
	return &http.Client{CheckRedirect: func(req *http.Request, via []*http.Request) error {
		first := via[0].URL
		switch {
		case req.URL.Scheme != first.Scheme || req.URL.Host != first.Host:
			return fmt.Errorf("it redirects to another host, %s; set forge.url to where the forge is", req.URL.Host)
		case req.Method != via[0].Method:
			return fmt.Errorf("it redirects to %s; set forge.repository to the repository's new path", req.URL.Path)
		case len(via) > 5:
			return errors.New("it redirects too often")
		}
		return nil
	}}
}
