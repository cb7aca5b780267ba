package forge

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Hook answers the webhooks of one repository. A push to the users' branch that
// carries the secret calls Pushed, and nothing else does. It answers
//
//	202  accepted, whether or not there is something to do
//	401  the secret is wrong or missing
//	403  it is about another repository
//	404  another path than /webhook
//	405  another method than POST
//	413  the body is larger than 8 MiB
//	503  too many at once
//
// and says no more than that to whoever asks.
type Hook struct {
	Secret string // never empty
	Remote string // the repository's URL, without credentials
	Branch string // the users' branch
	Pushed func() // returns at once
	Now    func() time.Time

	reading chan struct{}
}

// HookPath is where a Hook listens.
const HookPath = "/webhook"

// What a request may be like. Bodies are read whole, because signatures are
// over all of it, so their number is bounded, too.
const (
	maxHook    = 8 << 20
	maxReading = 8
	maxHookAge = 5 * time.Minute // of GitLab's signatures, which have a time
)

// NewHook returns a handler for HookPath. An empty secret is an error: without
// one anybody could make the server fetch.
func NewHook(h Hook) (*Hook, error) {
	if h.Secret == "" {
		return nil, errors.New("there is no secret")
	}
	h.reading = make(chan struct{}, maxReading)
	return &h, nil
}

// ServeHTTP is http.Handler's.
func (h *Hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.WriteHeader(h.answer(w, r))
}

func (h *Hook) answer(w http.ResponseWriter, r *http.Request) int {
	switch {
	case r.URL.Path != HookPath:
		return http.StatusNotFound
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		return http.StatusMethodNotAllowed
	case !hasSignature(r.Header):
		return http.StatusUnauthorized // not worth reading
	}
	select {
	case h.reading <- struct{}{}:
		defer func() { <-h.reading }()
	default:
		return http.StatusServiceUnavailable
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxHook))
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		return http.StatusRequestEntityTooLarge
	}
	if err != nil || !h.authentic(r.Header, body) {
		return http.StatusUnauthorized
	}
	event, ok := parseEvent(r.Header.Get("Content-Type"), body)
	if !ok {
		return http.StatusAccepted // a ping, or an event of another form
	}
	if !h.isOurs(event) {
		return http.StatusForbidden
	}
	if isPush(r.Header) && event.Ref == "refs/heads/"+h.Branch {
		h.Pushed()
	}
	return http.StatusAccepted
}

// hubSignatures are HMACs of the body, keyed with the secret, as hexadecimal
// digits after a prefix.
var hubSignatures = []struct{ header, prefix string }{
	{"X-Hub-Signature-256", "sha256="}, // GitHub; Gitea and Forgejo send it, too
	{"X-Gitea-Signature", ""},
	{"X-Forgejo-Signature", ""},
}

func hasSignature(header http.Header) bool {
	for _, s := range hubSignatures {
		if header.Get(s.header) != "" {
			return true
		}
	}
	return header.Get("Webhook-Signature") != "" || header.Get("X-Gitlab-Token") != ""
}

// authentic reports whether a request is from somebody who knows the secret.
// The first signature that is there counts: a wrong one is not made good by
// another.
func (h *Hook) authentic(header http.Header, body []byte) bool {
	for _, s := range hubSignatures {
		if text := header.Get(s.header); text != "" {
			digits, ok := strings.CutPrefix(text, s.prefix)
			given, err := hex.DecodeString(digits)
			return ok && err == nil && hmac.Equal(given, mac([]byte(h.Secret), body))
		}
	}
	if text := header.Get("Webhook-Signature"); text != "" {
		return h.standard(header, text, body)
	}
	given, want := sha256.Sum256([]byte(header.Get("X-Gitlab-Token"))), sha256.Sum256([]byte(h.Secret))
	return subtle.ConstantTimeCompare(given[:], want[:]) == 1
}

// standard checks the form of standardwebhooks.com, which GitLab's signing
// tokens have: an HMAC of id, time and body, as one of several after "v1,".
func (h *Hook) standard(header http.Header, signatures string, body []byte) bool {
	seconds, err := strconv.ParseInt(header.Get("Webhook-Timestamp"), 10, 64)
	if age := h.Now().Sub(time.Unix(seconds, 0)); err != nil || age > maxHookAge || age < -maxHookAge {
		return false
	}
	signed := header.Get("Webhook-Id") + "." + header.Get("Webhook-Timestamp") + "." + string(body)
	want := mac(signingKey(h.Secret), []byte(signed))
	for _, s := range strings.Fields(signatures) {
		text, ok := strings.CutPrefix(s, "v1,")
		given, err := base64.StdEncoding.DecodeString(text)
		if ok && err == nil && hmac.Equal(given, want) {
			return true
		}
	}
	return false
}

// signingKey is what whsec_… stands for: base64 of the key.
func signingKey(secret string) []byte {
	if text, ok := strings.CutPrefix(secret, "whsec_"); ok {
		if key, err := base64.StdEncoding.DecodeString(text); err == nil {
			return key
		}
	}
	return []byte(secret)
}

func mac(key, message []byte) []byte {
	m := hmac.New(sha256.New, key)
	m.Write(message)
	return m.Sum(nil)
}

// isPush tells pushes from other events, by each forge's header.
func isPush(header http.Header) bool {
	for _, name := range []string{"X-GitHub-Event", "X-Gitea-Event", "X-Forgejo-Event"} {
		if header.Get(name) == "push" {
			return true
		}
	}
	return header.Get("X-Gitlab-Event") == "Push Hook"
}

// event is what all forges' payloads have, of which this is all that counts.
type event struct {
	Ref        string `json:"ref"`
	Repository struct {
		FullName string `json:"full_name"` // GitHub, Gitea
	} `json:"repository"`
	Project struct {
		Path string `json:"path_with_namespace"` // GitLab
	} `json:"project"`
}

func parseEvent(contentType string, body []byte) (e event, ok bool) {
	if strings.HasPrefix(contentType, "application/x-www-form-urlencoded") { // GitHub's other form
		values, err := url.ParseQuery(string(body))
		if err != nil {
			return e, false
		}
		body = []byte(values.Get("payload"))
	}
	if json.Unmarshal(body, &e) != nil {
		return e, false
	}
	return e, e.Repository.FullName != "" || e.Project.Path != ""
}

// isOurs compares paths only: a forge is often reached by another name from
// inside than the one that it calls itself.
func (h *Hook) isOurs(e event) bool {
	_, _, path := remoteOf(h.Remote)
	if path == "" {
		path = strings.TrimSuffix(strings.Trim(h.Remote, "/"), ".git")
	}
	for _, name := range []string{e.Repository.FullName, e.Project.Path} {
		if name != "" && (strings.EqualFold(path, name) || strings.HasSuffix(strings.ToLower(path), "/"+strings.ToLower(name))) {
			return true
		}
	}
	return false
}
