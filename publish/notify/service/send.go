package service

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/call"
	"gitrollout.dev/gitrollout/publish/notify"
	"gitrollout.dev/gitrollout/rollout"
)

// Deps are Send's dependencies.
type Deps struct {
	Client   func(insecure bool) *http.Client // for example call.Clients()
	Secret   func(ctx context.Context, namespace, name string) (map[string]string, error)
	Getenv   func(string) string
	ReadFile func(string) ([]byte, error)
	TLS      *tls.Config // for email; nil means the system's certificates
}

// Timeout limits an attempt.
const Timeout = 10 * time.Second

// Failure is Send's error.
type Failure struct {
	Final bool          // a retry cannot succeed
	After time.Duration // the pause that the service requests, or 0
	msg   string
}

// Error returns the service's message, without credentials.
func (f *Failure) Error() string { return f.msg }

// Send makes one attempt to send a message. Its error is a *Failure.
func Send(ctx context.Context, deps Deps, r rollout.Receiver, m notify.Message) error {
	return table.send(ctx, deps, r, m)
}

func (t rows) send(ctx context.Context, deps Deps, r rollout.Receiver, m notify.Message) error {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	s := &session{Deps: deps, receiver: r, values: map[string]string{}}
	err := s.open(ctx)
	if err == nil {
		err = t[r.Service].send(ctx, s, m)
	}
	if err == nil {
		return nil
	}
	var failed *Failure
	if !errors.As(err, &failed) {
		failed = &Failure{msg: err.Error()}
	}
	return &Failure{Final: failed.Final, After: failed.After, msg: rollout.Cut(s.Scrub(failed.msg), 500)}
}

type session struct {
	Deps
	receiver rollout.Receiver
	values   map[string]string
	headers  http.Header
	call.Secrets
}

// open reads the credentials for each message, because they may change.
func (s *session) open(ctx context.Context) (err error) {
	for name, c := range s.receiver.Credentials {
		if s.values[name], err = s.credential(ctx, c); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	s.headers = http.Header{}
	for name, c := range s.receiver.Headers {
		value, err := s.credential(ctx, c)
		if err != nil {
			return fmt.Errorf("headers.%s: %w", name, err)
		}
		s.headers.Set(name, value)
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
			return "", fmt.Errorf("the file %s: set %sDIR to the folder of the file", c.File, rollout.EnvPrefix)
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
	value = strings.TrimSpace(value) // editors add a newline at the end of a file
	if value == "" {
		return "", fmt.Errorf("%s is empty or not there", where)
	}
	s.Hide(value)
	return value, nil
}

func (s *session) base(usual string) string {
	return strings.TrimRight(cmp.Or(s.receiver.Settings["address"], usual), "/")
}

type object = map[string]any

func (s *session) post(ctx context.Context, address string, header http.Header, body any) ([]byte, error) {
	data, err := call.Encode(body)
	if err != nil {
		return nil, &Failure{Final: true, msg: err.Error()}
	}
	return s.postBytes(ctx, address, header, data, "application/json")
}

// passes lists the HTTP statuses below 500 after which a retry may succeed.
var passes = []int{http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests}

// postBytes sends JSON with a media type. A 2xx response with an incomplete body is a success, because a retry would
// send the message again.
func (s *session) postBytes(
	ctx context.Context, address string, header http.Header, body []byte, media string,
) ([]byte, error) {
	caller := call.Caller{Client: s.Client, Secrets: &s.Secrets}
	a, err := caller.Do(ctx, call.Request{
		Method: http.MethodPost, Base: address, Header: header, Body: body, Type: media + "; charset=utf-8", StatusOnly: true,
	})
	if err == nil {
		return a.Body, nil
	}
	failed := &Failure{msg: err.Error()}
	if refused := new(call.Error); errors.As(err, &refused) && refused.Status != 0 {
		failed.Final, failed.After = refused.Status < 500 && !slices.Contains(passes, refused.Status), refused.After
	}
	return nil, failed
}
