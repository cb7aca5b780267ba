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

// minSecret is the shortest hidden text: hiding one letter would blacken every message.
const minSecret = 4

// Secrets are texts that no error and no message may contain.
type Secrets struct{ texts []string }

// Hide adds texts in all forms that a server may echo: plain, and as in URLs, JSON, HTML and basic authentication, of
// Bearer abc also abc. Of a URL, often a password, it hides path, query and their longer parts.
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

// forms returns a text's encodings, with the plain one.
func forms(text string) []string {
	inJSON, _ := json.Marshal(text) // a text always is JSON
	data := []byte(text)
	return []string{
		text, strings.Trim(string(inJSON), `"`), strings.Trim(fmt.Sprintf("%q", text), `"`), html.EscapeString(text),
		url.QueryEscape(text), url.PathEscape(text),
		base64.RawStdEncoding.EncodeToString(data), base64.RawURLEncoding.EncodeToString(data),
	}
}

// HideURL hides a URL's secrets: userinfo, the query's values, and path elements long enough for a password.
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

// plainHeaders are headers without secrets.
var plainHeaders = []string{"Accept", "Content-Type", "User-Agent", "X-Github-Api-Version"}

func (s *Secrets) hideHeader(header http.Header) {
	for key, values := range header {
		if !slices.Contains(plainHeaders, key) {
			s.Hide(values...)
		}
	}
}

// Scrub blackens hidden texts, the longest first, as one may contain another.
func (s *Secrets) Scrub(text string) string {
	all := slices.Clone(s.texts)
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	for _, secret := range all {
		text = strings.ReplaceAll(text, secret, "***")
	}
	return text
}

// ScrubValue blackens a decoded JSON value's texts.
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

// line returns a text in one line of at most MaxMessage, without hidden texts. It scrubs again after OneLine, which
// can join one split by an invalid byte.
func (s *Secrets) line(text string) string {
	return rollout.Cut(s.Scrub(rollout.OneLine(s.Scrub(text))), MaxMessage)
}
