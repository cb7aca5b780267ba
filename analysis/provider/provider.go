package provider

import (
	"context"
	"errors"
	"net/http"
	"time"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/call"
	"gitrollout.dev/gitrollout/rollout"
)

// Request is one measurement.
type Request struct {
	Kind      string
	Config    map[string]any // with all arguments filled in
	Namespace string         // of the Rollout, its Jobs and its namespaced Secrets
	ID        string         // of the measurement: repeated requests measure once where possible

	Rollout  string            // the release, for webhooks: the Rollout's name …
	Hash     string            // … and its template's hash
	Started  time.Time         // when the run began, for Kayenta's lookback
	Interval time.Duration     // the metric's, for Kayenta
	Metadata map[string]string // of the last Result, if it was Running
	Secrets  []string          // Secret values in Config; no error and no message contains them
}

// Result is the outcome of a measurement.
type Result struct {
	// Value is the conditions' result: a float64, a []any, a text, a mapping … nil or empty is no data. Hidden values
	// are blackened, as servers may echo them and Git keeps results.
	Value    any
	Phase    analysis.Phase    // "": conditions decide. Running: ask again with Metadata
	Message  string            // for users
	Metadata map[string]string // for users, and for the next Request
}

// Deps are measurements' external dependencies.
type Deps struct {
	Client func(insecure bool) *http.Client // insecure: does not verify certificates; see call.ClientsWithin
	Agent  func(insecure bool) *http.Client // for the credentials agent, whose address is in the environment
	// Secret returns a Secret's data, in gitrollout's namespace for "".
	Secret   func(ctx context.Context, namespace, name string) (map[string]string, error)
	Jobs     Jobs
	Getenv   func(string) string
	ReadFile func(string) ([]byte, error) // tokens and profiles for AWS
	Now      func() time.Time
	Backoff  time.Duration // before the first repetition; 0: a quarter of a second
}

// provider describes one kind of provider.
type provider struct {
	kind   string // the key of a metric's provider block
	title  string // for users
	argo   bool   // Argo Rollouts has this provider, with these fields
	result string // the conditions' result, for the docs
	keys   string // the source of its credentials, for the docs
	config func() config
}

// config is one provider's configuration, decoded for each use, without state.
type config interface {
	// check refuses a configuration that cannot be measured, maybe with {{args.x}}. Fields are relative to the kind.
	check() error
	timeout() time.Duration
	measure(context.Context, *session) (Result, error)
}

// Kinds returns all providers' names, in the docs' order.
func Kinds() []string {
	return rollout.Mapped(table, func(p provider) string { return p.kind })
}

// Check parses a provider's configuration strictly, offline. Errors have fields such as provider.prometheus.query.
func Check(kind string, raw map[string]any) error {
	_, err := parse(kind, raw)
	if invalid := new(fieldError); errors.As(err, &invalid) {
		invalid.Below("provider")
	}
	return err
}

// Measure makes one measurement. After an error, the same Request finds any changed external state again.
func Measure(ctx context.Context, deps Deps, r Request) (Result, error) {
	c, err := parse(r.Kind, r.Config)
	if err != nil {
		return Result{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout())
	defer cancel()
	s := &session{deps: deps, request: r}
	s.Hide(r.Secrets...)
	result, err := c.measure(ctx, s)
	if err != nil {
		return Result{}, s.clean(err)
	}
	result.Value = s.ScrubValue(result.Value)
	result.Message = rollout.Cut(s.Scrub(result.Message), call.MaxMessage)
	for key, text := range result.Metadata {
		result.Metadata[key] = rollout.Cut(s.Scrub(text), maxMetadata)
	}
	return result, nil
}

// Timeout returns the time limit of all a measurement's requests.
func Timeout(r Request) time.Duration {
	c, err := parse(r.Kind, r.Config)
	if err != nil {
		return 0
	}
	return c.timeout()
}

// Stop ends a Running measurement and removes a finished one's objects. It may be repeated.
func Stop(ctx context.Context, deps Deps, r Request) error {
	c, err := parse(r.Kind, r.Config)
	if err != nil {
		return err
	}
	if starter, ok := c.(interface {
		stop(context.Context, *session) error
	}); ok {
		return starter.stop(ctx, &session{deps: deps, request: r})
	}
	return nil
}
