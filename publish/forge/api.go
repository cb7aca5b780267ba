package forge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/call"
)

var errNoToken = errors.New("there is no token for the forge's API: set GITROLLOUT_FORGE_TOKEN, " +
	"or GITROLLOUT_GIT_TOKEN if Git uses the same token")

type api struct {
	client  func(insecure bool) *http.Client
	base    string // without a final slash
	token   func(context.Context) (string, error)
	header  func(token string) http.Header
	now     func() time.Time
	until   time.Time     // end of the pause, or zero
	spacing time.Duration // minimum time between two requests that change data
	wrote   time.Time
}

// call sends `in` as a JSON body, and decodes the response into `out`. Either may be nil. If the forge requires a
// pause, the error is a *call.Error with After set.
func (a *api) call(ctx context.Context, method, path string, in, out any) error {
	path, query, _ := strings.Cut(path, "?")
	if wait := a.until.Sub(a.now()); wait > 0 {
		return &call.Error{What: method + " " + path, Message: "the forge's rate limit is used up", After: wait}
	}
	token, err := a.token(ctx)
	if err != nil {
		return fmt.Errorf("token for the forge: %w", err)
	}
	if token == "" {
		return errNoToken
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if method != http.MethodGet {
		if wait := a.spacing - a.now().Sub(a.wrote); wait > 0 {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(wait):
			}
		}
		a.wrote = a.now()
	}
	caller := call.Caller{Client: a.client, Secrets: &call.Secrets{}, Most: 8 << 20}
	r := call.Request{Method: method, Base: a.base, Path: path, Query: values, Header: a.header(token)}
	answer, err := caller.JSON(ctx, r, in, out)
	a.heed(answer.Header)
	if failed := new(call.Error); errors.As(err, &failed) {
		a.heed(failed.Header)
		if failed.After = a.breakFor(failed); failed.After > 0 {
			a.until = a.now().Add(failed.After)
		}
	}
	return err
}

func pages[T any](ctx context.Context, a *api, path, query string) (all []T, err error) {
	for page := 1; page <= maxPages; page++ {
		var some []T
		numbered := fmt.Sprintf("%s?%s&per_page=%d&page=%d", path, query, perPage, page)
		if err := a.call(ctx, http.MethodGet, numbered, nil, &some); err != nil {
			return nil, err
		}
		if all = append(all, some...); len(some) < perPage {
			break
		}
	}
	return all, nil
}

// heed starts a pause if the rate limit allows no more requests. The header "…Reset" is the pause's end in Unix time.
func (a *api) heed(header http.Header) {
	for _, prefix := range []string{"X-Ratelimit-", "Ratelimit-"} {
		if header.Get(prefix+"Remaining") != "0" {
			continue
		}
		if at, err := strconv.ParseInt(header.Get(prefix+"Reset"), 10, 64); err == nil {
			// Forges require pauses of at most an hour. A wrong clock must not cause a longer pause.
			a.until = a.now().Add(min(time.Unix(at, 0).Sub(a.now()), time.Hour))
		}
	}
}

// breakFor returns the pause that a refusal requires, or 0 if the rate limit is not the reason.
func (a *api) breakFor(failed *call.Error) time.Duration {
	tooMany := failed.Status == http.StatusTooManyRequests
	switch {
	case !tooMany && failed.Status != http.StatusForbidden && failed.Status != http.StatusServiceUnavailable:
		return 0
	case failed.After > 0:
		return failed.After
	case a.until.After(a.now()):
		return a.until.Sub(a.now())
	case tooMany || strings.Contains(strings.ToLower(failed.Message), "rate limit"):
		return time.Minute // GitHub recommends this if no header has a time
	}
	return 0
}
