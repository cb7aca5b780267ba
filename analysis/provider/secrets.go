package provider

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// minSecret is the shortest text that is taken for a secret: the letter a would
// blacken every message.
const minSecret = 4

// hide keeps texts out of errors and messages, also as they are written in
// URLs, in JSON and as the credentials of basic authentication.
func (s *session) hide(texts ...string) {
	for _, text := range texts {
		if len(text) < minSecret || slices.Contains(s.secrets, text) {
			continue
		}
		quoted := strings.Trim(fmt.Sprintf("%q", text), `"`)
		s.secrets = append(s.secrets, text, quoted, url.QueryEscape(text), url.PathEscape(text), base64.StdEncoding.EncodeToString([]byte(text)))
		if _, token, ok := strings.Cut(text, " "); ok { // Bearer abc
			s.hide(token)
		}
	}
}

// plainHeaders tell nothing that is worth hiding.
var plainHeaders = []string{"accept", "content-type", "user-agent"}

func (s *session) hideHeaders(headers []header) {
	for _, h := range headers {
		if !slices.Contains(plainHeaders, strings.ToLower(h.Key)) {
			s.hide(h.Value)
		}
	}
}

// hideURL hides a URL's userinfo, the values of its query, and its last
// elements if they are long: what some webhooks have for a password.
func (s *session) hideURL(u *url.URL) {
	if u.User != nil {
		password, _ := u.User.Password()
		s.hide(u.User.Username(), password, u.User.String())
		s.hide(u.User.Username() + ":" + password)
	}
	for _, values := range u.Query() {
		s.hide(values...)
	}
	for _, element := range strings.Split(u.Path, "/") {
		if len(element) >= 16 {
			s.hide(element)
		}
	}
}

// scrub blackens what is hidden, the longest first: one may be part of another.
func (s *session) scrub(text string) string {
	all := slices.Clone(s.secrets)
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	for _, secret := range all {
		text = strings.ReplaceAll(text, secret, "***")
	}
	return text
}

// scrubValue blackens the texts of a result.
func (s *session) scrubValue(v any) any {
	switch v := v.(type) {
	case string:
		return s.scrub(v)
	case []any:
		for i := range v {
			v[i] = s.scrubValue(v[i])
		}
	case map[string]any:
		for key := range v {
			v[key] = s.scrubValue(v[key])
		}
	}
	return v
}

// clean returns an error that holds nothing hidden and is not too long: the same
// one if it is like that already.
func (s *session) clean(err error) error {
	text := err.Error()
	if scrubbed := cut(s.scrub(text), 2*maxMessage); scrubbed != text {
		return errors.New(scrubbed)
	}
	return err
}

// secret looks a Secret up, and hides all that is in it but for what it tells
// about addresses. All keys have to be there, and not empty.
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
		out[key] = strings.TrimSpace(value) // editors leave a line break at the end
		if u, err := url.Parse(out[key]); err != nil || u.Host == "" {
			s.hide(out[key])
		} else {
			s.hideURL(u)
		}
	}
	for _, key := range keys {
		if out[key] == "" {
			return nil, fmt.Errorf("the Secret %s has no %s", name, key)
		}
	}
	return out, nil
}

func (s *session) getenv(name string) string {
	if s.deps.Getenv == nil {
		return ""
	}
	return s.deps.Getenv(name)
}
