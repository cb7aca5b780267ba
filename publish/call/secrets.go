package call

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// minSecret is the shortest text that is hidden. Shorter ones, such as one letter, would blacken every message.
const minSecret = 4

// Secrets are texts that no error and no message may have. The zero value hides nothing.
type Secrets struct{ texts []string }

// Hide adds texts, in all the forms that a server may repeat them in: as they are, and as they are written in URLs,
// JSON, HTML and basic authentication. Of Bearer abc, abc is hidden, too; of a URL, which for many services is a
// password, its path, its query and their longer parts.
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

// forms are the ways to write a text, itself among them.
func forms(text string) []string {
	inJSON, _ := json.Marshal(text) // a text always is JSON
	data := []byte(text)
	return []string{
		text, strings.Trim(string(inJSON), `"`), strings.Trim(fmt.Sprintf("%q", text), `"`), html.EscapeString(text),
		url.QueryEscape(text), url.PathEscape(text),
		base64.RawStdEncoding.EncodeToString(data), base64.RawURLEncoding.EncodeToString(data),
	}
}

// HideURL hides what is secret in an address that itself is none: userinfo, the
// query's values, and elements of the path that are long enough for a password.
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

// plainHeaders tell nothing that is worth hiding.
var plainHeaders = []string{"Accept", "Content-Type", "User-Agent", "X-Github-Api-Version"}

func (s *Secrets) hideHeader(header http.Header) {
	for key, values := range header {
		if !slices.Contains(plainHeaders, key) {
			s.Hide(values...)
		}
	}
}

// Scrub blackens what is hidden, the longest first: one may be part of another.
func (s *Secrets) Scrub(text string) string {
	all := slices.Clone(s.texts)
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	for _, secret := range all {
		text = strings.ReplaceAll(text, secret, "***")
	}
	return text
}

// ScrubValue blackens the texts of a decoded JSON value.
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

// line is a text without what is hidden, in one line of at most MaxMessage
// characters. What had a byte in its middle that is no character is one again without it.
func (s *Secrets) line(text string) string {
	return rollout.Cut(s.Scrub(rollout.OneLine(s.Scrub(text))), MaxMessage)
}
