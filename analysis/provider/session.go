package provider

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strings"

	"gitrollout.dev/gitrollout/call"
	"gitrollout.dev/gitrollout/rollout"
)

const maxTries = 4

type session struct {
	deps    Deps
	request Request
	call.Secrets
}

func (s *session) do(ctx context.Context, r call.Request) (call.Answer, error) {
	return s.caller("").Do(ctx, r)
}

func (s *session) json(ctx context.Context, from string, r call.Request, in, out any) error {
	_, err := s.caller(from).JSON(ctx, r, in, out)
	return err
}

func (s *session) caller(name string) *call.Caller {
	return &call.Caller{
		Client: s.deps.Client, Secrets: &s.Secrets, Tries: maxTries, Backoff: s.deps.Backoff, Name: name}
}

// secret reads a Secret, and hides the Secret's values in messages. In a value that is a URL, it hides only
// credentials.
func (s *session) secret(ctx context.Context, namespace, name string, keys ...string) (map[string]string, error) {
	if s.deps.Secret == nil {
		return nil, fmt.Errorf("the Secret %s cannot be read here", name)
	}
	data, err := s.deps.Secret(ctx, namespace, name)
	if err != nil {
		return nil, fmt.Errorf("read the Secret %s: %w", name, err)
	}
	out := make(map[string]string, len(data))
	for key, value := range data {
		out[key] = strings.TrimSpace(value) // editors append a line break
		if u, err := url.Parse(out[key]); err != nil || u.Host == "" {
			s.Hide(out[key])
		} else {
			s.HideURL(u)
		}
	}
	for _, key := range keys {
		if out[key] == "" {
			return nil, fmt.Errorf("the Secret %s has no %s", name, key)
		}
	}
	return out, nil
}

func unlike(from, what string) error {
	return fmt.Errorf("the answer of %s differs from its documentation: %s", from, what)
}

func refusal(from, reason string) error {
	return fmt.Errorf("an error of %s: %s", from, cmp.Or(rollout.OneLine(reason), "it gives no reason"))
}
