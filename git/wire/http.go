package wire

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"gitrollout.dev/gitrollout/call"
	"gitrollout.dev/gitrollout/rollout"
)

// httpLink implements smart HTTP. It stores greetings (info/refs), so that a lookup in version 2 needs one request, not
// two.
type httpLink struct {
	remote  Remote
	auth    Auth
	clients *Clients
	stats   *counters
	limit   int64

	mu      sync.Mutex
	greeted map[string]greeting // by service, such as git-upload-pack
}

type greeting struct {
	*advertisement
	base string
}

func newHTTPLink(remote Remote, auth Auth, stats *counters, limit int64) (*httpLink, error) {
	if remote.scheme == "http" && auth.HTTP() && !remote.loopback() {
		return nil, fmt.Errorf("refusing to send credentials over plain http to %s: use https", remote)
	}
	clients, err := NewClients(auth.TLS)
	if err != nil {
		return nil, err
	}
	return &httpLink{
		remote: remote, auth: auth, stats: stats, limit: limit, clients: clients, greeted: map[string]greeting{},
	}, nil
}

// checkRedirect follows only redirects of GET requests, as git does, and never from https to http. It sends credentials
// to no other origin. net/http would also send them to subdomains.
func checkRedirect(req *http.Request, via []*http.Request) error {
	from := via[len(via)-1].URL
	switch {
	case req.Method != http.MethodGet || via[0].Method != http.MethodGet:
		return http.ErrUseLastResponse
	case from.Scheme == "https" && req.URL.Scheme != "https":
		return errors.New("refusing a redirect from https to plain http")
	case len(via) >= 5:
		return errors.New("more than 5 redirects")
	case !sameOrigin(via[0].URL, req.URL):
		req.Header.Del("Authorization")
	}
	return nil
}

func sameOrigin(a, b *url.URL) bool { return a.Scheme == b.Scheme && a.Host == b.Host }

func (l *httpLink) open(ctx context.Context, service string) (*Session, error) {
	l.mu.Lock()
	greet, known := l.greeted[service]
	l.mu.Unlock()
	if !known {
		var err error
		if greet, err = l.greet(ctx, service); err != nil {
			return nil, err
		}
		// Before version 2, the greeting lists the refs, so each fetch needs a new greeting. A push can reuse a
		// greeting, because the server compares the old ids.
		if greet.V2 || service == receivePack {
			kept := *greet.advertisement
			kept.Refs = nil
			l.mu.Lock()
			l.greeted[service] = greeting{&kept, greet.base}
			l.mu.Unlock()
		}
	}
	return &Session{
		advertisement: greet.advertisement,
		exchange: func(ctx context.Context, request []byte) (io.ReadCloser, error) {
			return l.post(ctx, greet.base, service, request)
		},
		Close: func() {},
		Stale: func() { l.forget(service) },
	}, nil
}

func (l *httpLink) forget(service string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.greeted, service)
}

func (l *httpLink) greet(ctx context.Context, service string) (greeting, error) {
	const suffix = "/info/refs"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.remote.String()+suffix+"?service="+service, nil)
	if err != nil {
		return greeting{}, err
	}
	req.Header.Set("Accept", "*/*")
	body, final, err := l.do(req, "application/x-"+service+"-advertisement")
	if err != nil {
		return greeting{}, err
	}
	defer body.Close()
	greet, err := readAdvertisement(newPktReader(body))
	if err != nil {
		return greeting{}, err
	}
	if !strings.HasSuffix(final.Path, suffix) {
		return greeting{}, fmt.Errorf("redirected to %s, which is not a Git repository", final.Redacted())
	}
	final.RawQuery, final.User = "", nil
	return greeting{greet, strings.TrimSuffix(final.String(), suffix)}, nil
}

func (l *httpLink) post(ctx context.Context, base, service string, request []byte) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/"+service, bytes.NewReader(request))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-"+service+"-request")
	req.Header.Set("Accept", "application/x-"+service+"-result")
	if service == uploadPack {
		// With this header, net/http repeats the request after a lost connection. A nil header is not sent.
		req.Header["X-Idempotency-Key"] = nil
	}
	l.stats.sent.Add(int64(len(request)))
	body, _, err := l.do(req, "application/x-"+service+"-result")
	return body, err
}

func (l *httpLink) do(req *http.Request, contentType string) (io.ReadCloser, *url.URL, error) {
	req.Header.Set("User-Agent", userAgent)
	if req.URL.Query().Get("service") == uploadPack || strings.HasSuffix(req.URL.Path, "/"+uploadPack) {
		req.Header.Set("Git-Protocol", "version=2")
	}
	secrets, err := l.authorize(req)
	if err != nil {
		return nil, nil, err
	}
	client, err := l.clients.Client()
	if err != nil {
		return nil, nil, err
	}
	l.stats.requests.Add(1)
	res, err := client.Do(req)
	if err != nil {
		return nil, nil, err
	}
	body := &countedReader{Reader: res.Body, Closer: drained{res.Body}, total: &l.stats.received, left: l.limit}
	if res.StatusCode == http.StatusOK && res.Header.Get("Content-Type") == contentType {
		return body, res.Request.URL, nil
	}
	defer body.Close()
	if l.auth.Refused != nil && res.StatusCode == http.StatusUnauthorized {
		l.auth.Refused()
	}
	return nil, nil, rollout.NewRetryError(l.statusError(res, body, secrets), call.Pause(res.Header))
}

// drained reads up to 4 KiB before Close, so that the connection can be reused.
type drained struct{ io.ReadCloser }

func (d drained) Close() error {
	_, _ = io.CopyN(io.Discard, d.ReadCloser, 4<<10)
	return d.ReadCloser.Close()
}

// authorize adds credentials. It hides credentials in messages, because some servers send credentials back.
func (l *httpLink) authorize(req *http.Request) (secrets call.Secrets, err error) {
	if !sameOrigin(req.URL, &url.URL{Scheme: l.remote.scheme, Host: l.remote.host}) {
		return secrets, nil // after a redirect
	}
	user, password := l.auth.Username, l.auth.Password
	if l.auth.Refresh != nil {
		if user, password, err = l.auth.Refresh(req.Context()); err != nil {
			if IsKnown(err) {
				return secrets, fmt.Errorf("credentials: %w", err)
			}
			return secrets, fmt.Errorf("%w: credentials: %w", ErrAuth, err)
		}
	}
	if user != "" || password != "" {
		req.SetBasicAuth(user, password)
	}
	// Without a password, the user name may be a token.
	secrets.Hide(cmp.Or(password, user), req.Header.Get("Authorization"))
	return secrets, nil
}

func (l *httpLink) statusError(res *http.Response, body io.Reader, secrets call.Secrets) error {
	text := res.Status
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/plain") {
		start, _ := io.ReadAll(io.LimitReader(body, 1<<10))
		if line := oneLine(secrets.Scrub(string(start))); line != "" {
			text += ": " + line
		}
	}
	switch code := res.StatusCode; {
	case code == http.StatusUnauthorized && !l.auth.HTTP():
		return fmt.Errorf("%w: the server asks for credentials (%s)", ErrAuth, text)
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return fmt.Errorf("%w: %s", ErrAuth, text)
	case code == http.StatusNotFound || code == http.StatusGone:
		return fmt.Errorf("%w: %s", ErrNotFound, text)
	case code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || code >= 500:
		return fmt.Errorf("%w: %s", ErrUnreachable, text)
	case code >= 300 && code < 400:
		l.forget(uploadPack)
		l.forget(receivePack)
		return fmt.Errorf("%w: the repository moved (%s); the next request looks up the new address", ErrUnreachable, text)
	case code == http.StatusOK:
		kind := oneLine(res.Header.Get("Content-Type"))
		return fmt.Errorf("%w: the URL is not a Git repository (content type %q)", ErrNotFound, kind)
	}
	return &serverError{text}
}
