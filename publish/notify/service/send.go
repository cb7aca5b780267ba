package service

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/publish/notify"
	"gitrollout.dev/gitrollout/rollout"
)

// Deps is what sending needs of its surroundings.
type Deps struct {
	Client   *http.Client // NewClient's
	Secret   func(ctx context.Context, namespace, name string) (map[string]string, error)
	Getenv   func(string) string
	ReadFile func(string) ([]byte, error)
	TLS      *tls.Config // of email; nil: the system's authorities
	Now      func() time.Time
}

// NewClient is an HTTP client that follows no redirect: it would take
// credentials to another place than the configuration says.
func NewClient() *http.Client {
	return &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// Timeout bounds one attempt.
const Timeout = 10 * time.Second

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 64 << 10

// Failure is a message that did not get through.
type Failure struct {
	Final bool          // the service will not have it, however often it is sent
	After time.Duration // it asks for so long a break; 0 if it does not
	msg   string
}

// Error tells what the service says, without credentials.
func (f *Failure) Error() string { return f.msg }

// Send makes one attempt. The error is a *Failure.
func Send(ctx context.Context, deps Deps, r rollout.Receiver, m notify.Message) error {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	s := &session{Deps: deps, receiver: r, values: map[string]string{}}
	err := s.open(ctx)
	if err == nil {
		err = table[r.Service].send(ctx, s, m)
	}
	if err == nil {
		return nil
	}
	var failed *Failure
	if !errors.As(err, &failed) {
		failed = &Failure{msg: err.Error()}
	}
	return &Failure{Final: failed.Final, After: failed.After, msg: cut(s.scrub(failed.msg), 500)}
}

// session is one attempt, with its credentials.
type session struct {
	Deps
	receiver rollout.Receiver
	values   map[string]string
	headers  map[string]string
	secrets  []string
}

// open looks the credentials up. They are read for each message, because they
// are renewed.
func (s *session) open(ctx context.Context) error {
	for name, c := range s.receiver.Credentials {
		value, err := s.credential(ctx, c)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		s.values[name] = value
	}
	s.headers = map[string]string{}
	for name, c := range s.receiver.Headers {
		value, err := s.credential(ctx, c)
		if err != nil {
			return fmt.Errorf("headers.%s: %w", name, err)
		}
		s.headers[name] = value
	}
	return nil
}

func (s *session) credential(ctx context.Context, c rollout.Credential) (string, error) {
	var value, where string
	switch {
	case c.Env != "":
		value, where = s.Getenv(c.Env), "the environment variable "+c.Env
	case c.File != "":
		dir := s.Getenv(rollout.EnvPrefix + "DIR")
		if dir == "" {
			return "", fmt.Errorf("the file %s: set %sDIR to the folder that it is in", c.File, rollout.EnvPrefix)
		}
		data, err := s.ReadFile(filepath.Join(dir, c.File))
		if err != nil {
			return "", err
		}
		value, where = string(data), "the file "+c.File
	default:
		data, err := s.Secret(ctx, c.Namespace, c.Secret.Name)
		if err != nil {
			return "", fmt.Errorf("read the Secret %s: %w", c.Secret.Name, err)
		}
		value, where = data[c.Secret.Key], fmt.Sprintf("the key %s of the Secret %s", c.Secret.Key, c.Secret.Name)
	}
	value = strings.TrimSpace(value) // editors leave a line break at the end
	if value == "" {
		return "", fmt.Errorf("%s is empty or not there", where)
	}
	s.hide(value)
	return value, nil
}

// hide keeps a credential out of errors, also as it is in URLs and in headers.
func (s *session) hide(value string) {
	s.secrets = append(s.secrets, value, url.QueryEscape(value), url.PathEscape(value), base64.StdEncoding.EncodeToString([]byte(value)))
	quoted, _ := json.Marshal(value)
	s.secrets = append(s.secrets, strings.Trim(string(quoted), `"`))
	if u, err := url.Parse(value); err == nil && u.Host != "" { // a webhook's address: its path is its password
		s.secrets = append(s.secrets, u.RequestURI(), u.Path)
		for _, part := range append(strings.Split(u.Path, "/"), strings.FieldsFunc(u.RawQuery, func(r rune) bool { return r == '&' || r == '=' })...) {
			if len(part) >= 8 {
				s.secrets = append(s.secrets, part)
			}
		}
	}
}

// scrub blackens what is hidden, the longest first: one may be part of another.
func (s *session) scrub(text string) string {
	all := slices.Clone(s.secrets)
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	for _, secret := range all {
		if len(secret) >= 4 { // the letter a would blacken every message
			text = strings.ReplaceAll(text, secret, "***")
		}
	}
	return text
}

// base is the address of a service's API, without a slash at the end.
func (s *session) base(usual string) string {
	if address := s.receiver.Settings["address"]; address != "" {
		return strings.TrimRight(address, "/")
	}
	return usual
}

// post sends a value as JSON and returns the answer, which is a 2xx.
func (s *session) post(ctx context.Context, address string, headers map[string]string, body any) ([]byte, error) {
	data, err := encode(body)
	if err != nil {
		return nil, &Failure{Final: true, msg: err.Error()}
	}
	return s.postBytes(ctx, address, headers, data)
}

// encode writes JSON without the escapes that are for HTML: a person may read it.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode the message: %w", err)
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

func (s *session) postBytes(ctx context.Context, address string, headers map[string]string, body []byte) ([]byte, error) {
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" {
		return nil, &Failure{msg: "the url is not an address that begins with https://"}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return nil, &Failure{msg: "the url is not an address"}
	}
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	req.Header.Set("User-Agent", "gitrollout")
	for name, value := range headers {
		req.Header.Set(name, value)
	}
	res, err := s.Client.Do(req)
	if err != nil {
		var inner *url.Error
		if errors.As(err, &inner) { // it would say the whole address
			err = inner.Err
		}
		return nil, &Failure{msg: u.Host + ": " + err.Error()}
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil && res.StatusCode/100 != 2 {
		return nil, &Failure{msg: u.Host + ": " + err.Error()}
	}
	if res.StatusCode/100 == 2 {
		return answer, nil
	}
	text := fmt.Sprintf("%s: %s", u.Host, res.Status)
	if said := strings.Join(strings.Fields(string(answer)), " "); said != "" && !strings.HasPrefix(said, "<") {
		text += ": " + cut(said, 200)
	}
	return nil, &Failure{Final: isFinal(res.StatusCode), After: s.retryAfter(res.Header), msg: text}
}

// isFinal tells the answers that another attempt would not change from those that
// it may. A redirect is not followed, so it is one of the former.
func isFinal(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return status < 500
}

// maxBreak bounds the break that a service may ask for, because clocks are wrong.
const maxBreak = time.Hour

func (s *session) retryAfter(h http.Header) time.Duration {
	text := h.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(text, 64); err == nil && seconds > 0 {
		return min(time.Duration(min(seconds, maxBreak.Seconds())*float64(time.Second)), maxBreak)
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(at.Sub(s.Now()), 0), maxBreak)
	}
	return 0
}

// cut shortens a text to a number of characters.
func cut(text string, most int) string {
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most-1]) + "…"
}
