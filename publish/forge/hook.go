package forge

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/call"
)

// Hook serves a forge's webhooks. Responses:
//
//	200  ignored: the push is to another branch, or to a tag
//	202  accepted; Pushed is called only for a push to Branch
//	401  the secret is wrong or missing, or the body cannot be read
//	403  the event is about another repository
//	404  the path is not /webhook
//	405  the method is not POST
//	413  the body is larger than 8 MiB
//	503  the Hook is already reading eight bodies
type Hook struct {
	Secret string // must not be empty
	Remote string // without credentials
	Branch string // users' branch
	Pushed func() // must not block
	Now    func() time.Time

	forges  table
	reading chan struct{}
}

// HookPath is a Hook's URL path.
const HookPath = "/webhook"

// A signature covers the whole body, so Hook must keep whole bodies in memory.
const (
	maxHook    = 8 << 20
	maxReading = 8
	bodyTime   = 5 * time.Second
)

// NewHook refuses an empty secret, because otherwise any client could cause fetches.
func NewHook(h Hook) (*Hook, error) {
	if h.Secret == "" {
		return nil, errors.New("there is no secret")
	}
	if h.forges == nil {
		h.forges = forges
	}
	h.reading = make(chan struct{}, maxReading)
	return &h, nil
}

// Ask tells another process's Hook about a push to Branch. url includes HookPath. Any status except 202 is an error.
func (h Hook) Ask(ctx context.Context, url string) error {
	var push event
	push.Ref, push.Repository.FullName = "refs/heads/"+h.Branch, h.path()
	body, err := call.Encode(push)
	if err != nil {
		return err
	}
	caller := call.Caller{Client: call.Clients(), Secrets: &call.Secrets{}}
	_, err = caller.Do(ctx, call.Request{Method: http.MethodPost, Base: url, Body: body, Type: "application/json",
		Accept: func(status int) bool { return status == http.StatusAccepted },
		Header: http.Header{"X-GitHub-Event": {"push"},
			"X-Hub-Signature-256": {"sha256=" + hex.EncodeToString(mac([]byte(h.Secret), body))}}})
	failed := new(call.Error)
	if errors.As(err, &failed) && failed.Status == http.StatusUnauthorized {
		return fmt.Errorf("%w; use the secret of the reconciler", err)
	}
	return err
}

func (h *Hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status, text := h.answer(w, r)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

func (h *Hook) answer(w http.ResponseWriter, r *http.Request) (status int, text string) {
	isSigned, _ := h.signature(hookRequest{header: r.Header})
	switch {
	case r.URL.Path != HookPath:
		return http.StatusNotFound, ""
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		return http.StatusMethodNotAllowed, ""
	case !isSigned:
		return http.StatusUnauthorized, ""
	}
	select {
	case h.reading <- struct{}{}:
		defer func() { <-h.reading }()
	default:
		return http.StatusServiceUnavailable, ""
	}
	// The error is ignored, because a ResponseRecorder in tests has no deadlines.
	_ = http.NewResponseController(w).SetReadDeadline(h.Now().Add(bodyTime))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxHook))
	if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
		return http.StatusRequestEntityTooLarge, ""
	}
	if _, right := h.signature(hookRequest{r.Header, body, h.Secret, h.Now()}); err != nil || !right {
		return http.StatusUnauthorized, ""
	}
	switch event, ok := parseEvent(r.Header.Get("Content-Type"), body); {
	case !ok: // a ping, or another event that names no repository
	case !h.isOurs(event):
		return http.StatusForbidden, ""
	case !h.isPush(r.Header):
	case event.Ref == "refs/heads/"+h.Branch:
		h.Pushed()
	default: // forges show codes other than 2xx as failures
		return http.StatusOK, fmt.Sprintf("ignored: push to %s, this reconciler follows %s",
			strings.Replace(event.Ref, "refs/heads/", "branch ", 1), h.Branch)
	}
	return http.StatusAccepted, ""
}

type hookRequest struct {
	header http.Header
	body   []byte
	secret string
	now    time.Time
}

func (r hookRequest) hub(name, prefix string) (given, right bool) {
	text := r.header.Get(name)
	if text == "" {
		return false, false
	}
	digits, ok := strings.CutPrefix(text, prefix)
	sum, err := hex.DecodeString(digits)
	return true, ok && err == nil && hmac.Equal(sum, mac([]byte(r.secret), r.body))
}

func (h *Hook) signature(r hookRequest) (given, right bool) {
	for _, k := range h.forges {
		if given, right = k.signature(r); given {
			break
		}
	}
	return given, given && right
}

func (h *Hook) isPush(header http.Header) bool {
	return slices.ContainsFunc(h.forges, func(k kind) bool { return k.isPush(header) })
}

func mac(key, message []byte) []byte {
	m := hmac.New(sha256.New, key)
	m.Write(message)
	return m.Sum(nil)
}

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
	if strings.HasPrefix(contentType, "application/x-www-form-urlencoded") { // an option of GitHub's webhooks
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

func (h Hook) path() string {
	_, _, path := remoteOf(h.Remote)
	return cmp.Or(path, strings.TrimSuffix(strings.Trim(h.Remote, "/"), ".git"))
}

// isOurs ignores the host, because a forge may have several host names.
func (h *Hook) isOurs(e event) bool {
	path := h.path()
	return slices.ContainsFunc([]string{e.Repository.FullName, e.Project.Path}, func(name string) bool {
		return name != "" &&
			(strings.EqualFold(path, name) || strings.HasSuffix(strings.ToLower(path), "/"+strings.ToLower(name)))
	})
}
