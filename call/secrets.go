package call

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// minSecret is in bytes. Hiding shorter texts would make messages unreadable.
const minSecret = 4

// Secrets holds texts that no error or message may contain.
type Secrets struct{ texts []string }

// Hide adds texts for Scrub, in plain form and encoded for URLs, JSON, HTML and basic authentication. For "Bearer abc",
// it also adds "abc". For a URL, it adds user, password, path, query, and path elements of at least 8 bytes.
func (s *Secrets) Hide(texts ...string) {
	for _, text := range texts {
		if len(text) < minSecret || slices.Contains(s.texts, text) {
			continue
		}
		for _, form := range forms(text) {
			if len(form) >= minSecret && !slices.Contains(s.texts, form) {
				s.texts = append(s.texts, form)
			}
		}
		if _, token, found := strings.Cut(text, " "); found {
			s.Hide(token)
		}
		if u, err := url.Parse(text); err == nil && u.Host != "" {
			s.hideURL(u, 8)
			s.Hide(u.RequestURI(), u.Path)
		}
	}
}

func forms(text string) []string {
	inJSON, _ := json.Marshal(text)
	data := []byte(text)
	return []string{
		text, strings.Trim(string(inJSON), `"`), strings.Trim(fmt.Sprintf("%q", text), `"`), html.EscapeString(text),
		url.QueryEscape(text), url.PathEscape(text),
		base64.RawStdEncoding.EncodeToString(data), base64.RawURLEncoding.EncodeToString(data),
	}
}

// HideURL hides a URL's user, password, query values, and path elements of at least 16 bytes.
func (s *Secrets) HideURL(u *url.URL) { s.hideURL(u, 16) }

func (s *Secrets) hideURL(u *url.URL, long int) {
	if u.User != nil {
		password, _ := u.User.Password()
		s.Hide(u.User.Username(), password, u.User.String(), u.User.Username()+":"+password)
	}
	for _, values := range u.Query() {
		s.Hide(values...)
	}
	for _, element := range strings.Split(u.Path, "/") {
		if len(element) >= long {
			s.Hide(element)
		}
	}
}

var plainHeaders = []string{"Accept", "Content-Type", "User-Agent", "X-Github-Api-Version", "X-Github-Event"}

// Scrub replaces hidden texts by ***, longest first, because a text may contain another.
func (s *Secrets) Scrub(text string) string {
	all := slices.Clone(s.texts)
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	for _, secret := range all {
		text = strings.ReplaceAll(text, secret, "***")
	}
	return text
}

// ScrubValue is Scrub for a decoded JSON value.
func (s *Secrets) ScrubValue(v any) any {
	switch v := v.(type) {
	case string:
		return s.Scrub(v)
	case []any:
		for i := range v {
			v[i] = s.ScrubValue(v[i])
		}
	case map[string]any:
		scrubbed := make(map[string]any, len(v))
		for key, value := range v {
			scrubbed[s.Scrub(key)] = s.ScrubValue(value)
		}
		return scrubbed
	}
	return v
}

// line calls Scrub again after OneLine, because the removal of invalid bytes may expose a hidden text.
func (s *Secrets) line(text string) string {
	return rollout.Cut(s.Scrub(rollout.OneLine(s.Scrub(text))), MaxMessage)
}
