package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/views/status"
	"gitrollout.dev/gitrollout/views/terminal"
)

// serverView shows what a reconciler shows on its own page: as Git and the
// cluster say, and with what was measured since the last record.
type serverView struct {
	base   *url.URL
	client *http.Client
	args   []string // the one app that is looked at; all without
	seen   status.Listing
}

const (
	serverTimeout = 15 * time.Second
	maxAnswer     = 256 << 20 // bytes
)

func openServerView(ctx context.Context, address string, args []string) (*serverView, error) {
	base, err := url.Parse(address)
	if err != nil || (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" {
		return nil, usagef("--server %q is not an address; write http://127.0.0.1:3100 or the like", address)
	}
	v := &serverView{base: base, client: &http.Client{Timeout: serverTimeout}, args: args}
	_, err = v.refresh(ctx)
	return v, err
}

// refresh is viewer's.
func (v *serverView) refresh(ctx context.Context) (bool, error) {
	var l status.Listing
	if len(v.args) == 0 {
		if err := v.get(ctx, &l, "api", "v1", "apps"); err != nil {
			return false, err
		}
		v.seen = l
		return true, nil
	}
	l.Apps = make([]status.App, 1)
	err := v.get(ctx, &l.Apps[0], "api", "v1", "apps", v.args[0])
	if errors.Is(err, errNoSuchApp) {
		return false, v.noSuchApp(ctx)
	}
	if err != nil {
		return false, err
	}
	l.Cluster = l.Apps[0].Cluster
	v.seen = l
	return true, nil
}

// noSuchApp says so, with the names that may have been meant.
func (v *serverView) noSuchApp(ctx context.Context) error {
	text := fmt.Sprintf("the reconciler at %s has no app %q", v.base.Redacted(), v.args[0])
	var l status.Listing
	if err := v.get(ctx, &l, "api", "v1", "apps"); err == nil {
		names := make([]string, 0, len(l.Apps))
		for _, a := range l.Apps {
			names = append(names, a.App)
		}
		if near := terminal.Closest(v.args[0], names); len(near) > 0 {
			text += "; did you mean " + strings.Join(near, " or ") + "?"
		}
	}
	return &failure{code: exitFailed, err: errors.New(text)}
}

// listing is viewer's.
func (v *serverView) listing(context.Context, []string, time.Time) (status.Listing, error) {
	return v.seen, nil
}

var errNoSuchApp = errors.New("there is no such app")

// get asks for one thing. Fields that are not known here are of a newer server.
func (v *serverView) get(ctx context.Context, into any, path ...string) error {
	address := v.base.JoinPath(path...)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	answer, err := v.client.Do(req)
	if err != nil {
		var failed *url.Error
		if errors.As(err, &failed) {
			err = failed.Err
		}
		return fmt.Errorf("the reconciler's page at %s: %w; without --server and GITROLLOUT_SERVER, Git is read instead", v.base.Redacted(), err)
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusNotFound && len(path) > 3 {
		return errNoSuchApp
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", answer.Status, terminal.Truncate(terminal.Clean(string(body)), 200))
	}
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", address.Redacted(), err)
	}
	return nil
}
