package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

// Client reads apps from a reconciler's dashboard, which has measurements that Git lacks.
type Client struct {
	base   *url.URL
	client *http.Client
	args   []string // one app, or none for all
	seen   status.Listing
}

const (
	serverTimeout = 15 * time.Second
	maxAnswer     = 256 << 20 // bytes
)

// ErrNoSuchApp is Refresh's error for an unknown app.
var ErrNoSuchApp = errors.New("there is no such app")

// NewClient returns a Client for the app in args. Call Refresh before Listing.
func NewClient(address string, args []string) (*Client, error) {
	base, err := url.Parse(address)
	if err != nil || (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" {
		return nil, fmt.Errorf("%q is not an address; write http://127.0.0.1:3100 or the like", address)
	}
	return &Client{base: base, client: &http.Client{Timeout: serverTimeout}, args: args}, nil
}

// Refresh reads data for Listing.
func (v *Client) Refresh(ctx context.Context) (isRead bool, err error) {
	var l status.Listing
	if len(v.args) == 0 {
		err = v.get(ctx, &l, "api", "v1", "apps")
	} else {
		l.Apps = make([]status.App, 1)
		if err = v.get(ctx, &l.Apps[0], "api", "v1", "apps", v.args[0]); errors.Is(err, ErrNoSuchApp) {
			err = fmt.Errorf("the reconciler at %s has no app %q: %w", v.base.Redacted(), v.args[0], err)
		}
		l.Cluster = l.Apps[0].Cluster
	}
	if err == nil {
		v.seen = l
	}
	return err == nil, err
}

// Names returns all apps' names.
func (v *Client) Names(ctx context.Context) ([]string, error) {
	var l status.Listing
	err := v.get(ctx, &l, "api", "v1", "apps")
	return rollout.Mapped(l.Apps, func(a status.App) string { return a.App }), err
}

// Listing returns the data of the last Refresh.
func (v *Client) Listing() status.Listing { return v.seen }

// get ignores unknown fields, because a newer server may send some.
func (v *Client) get(ctx context.Context, into any, path ...string) error {
	address := v.base.JoinPath(path...)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	answer, err := v.client.Do(req)
	if err != nil {
		if failed := new(url.Error); errors.As(err, &failed) {
			err = failed.Err
		}
		return fmt.Errorf("the reconciler's page at %s: %w; to read Git instead, omit --server and GITROLLOUT_SERVER",
			v.base.Redacted(), err)
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusNotFound && len(path) > 3 {
		return ErrNoSuchApp
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.200q", answer.Status, body)
	}
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", address.Redacted(), err)
	}
	return nil
}
