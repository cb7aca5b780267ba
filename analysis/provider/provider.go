package provider

import (
	"context"
	"errors"
	"net/http"
	"time"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/publish/call"
	"gitrollout.dev/gitrollout/rollout"
)

// Request is one measurement.
type Request struct {
	Kind      string
	Config    map[string]any // all arguments are filled in
	Namespace string         // of the Rollout: where Jobs run and namespaced Secrets are
	ID        string         // of the measurement: asked twice, it is made once where that can be

	Rollout  string            // the release, for webhooks: the Rollout's name …
	Hash     string            // … and its template's hash
	Started  time.Time         // when the run began, for Kayenta's lookback
	Interval time.Duration     // the metric's, for Kayenta
	Metadata map[string]string // what the last Result had, if that was Running
	Secrets  []string          // values out of Secrets in Config: they are in no error and no message
}

// Result is what a measurement has found.
type Result struct {
	// Value is what conditions see as result: a float64, a []any, a text, a mapping … Nil or empty: there is no data. A
	// server may echo what it was told, and values are written down in Git: what is hidden is blackened.
	Value    any
	Phase    analysis.Phase    // "": conditions decide. Running: ask again with Metadata
	Message  string            // for people
	Metadata map[string]string // for people, and for the next Request
}

// Deps is what measurements need of the world.
type Deps struct {
	Client func(insecure bool) *http.Client // insecure: does not verify certificates; see call.ClientsWithin
	Agent  func(insecure bool) *http.Client // of the machine, whose address is in the environment
	// Secret returns a Secret's data. The namespace is "" for gitrollout's own.
	Secret   func(ctx context.Context, namespace, name string) (map[string]string, error)
	Jobs     Jobs
	Getenv   func(string) string
	ReadFile func(string) ([]byte, error) // tokens and profiles for AWS
	Now      func() time.Time
	Backoff  time.Duration // before the first repetition; 0: a quarter of a second
}

// provider is what is known of one kind of provider.
type provider struct {
	kind   string // the field of a metric's provider
	title  string // for people
	argo   bool   // Argo Rollouts has it, with these fields
	result string // what conditions see as result, for the docs
	keys   string // where its credentials come from, for the docs
	config func() config
}

// config is the configuration of one provider, decoded from JSON. It is made anew for each use and keeps nothing.
type config interface {
	// check refuses what could not be measured. Texts may still have
	// {{args.x}} in them. Fields are named as below the kind.
	check() error
	timeout() time.Duration
	measure(context.Context, *session) (Result, error)
}

// Kinds are the names of all providers, in the order of the docs.
func Kinds() []string {
	return rollout.Mapped(table, func(p provider) string { return p.kind })
}

// Check reads a provider's configuration strictly and asks nobody. An error is
// an InvalidError with a field such as provider.prometheus.query.
func Check(kind string, raw map[string]any) error {
	_, err := parse(kind, raw)
	var invalid *fieldError
	if errors.As(err, &invalid) {
		invalid.Field = "provider." + invalid.Field
	}
	return err
}

// Measure makes one measurement. An error says why it could not be made; the
// world may then have changed as far as the same Request again finds it.
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

// Timeout is how long the requests of a measurement may take together.
func Timeout(r Request) time.Duration {
	c, err := parse(r.Kind, r.Config)
	if err != nil {
		return 0
	}
	return c.timeout()
}

// Stop ends what a measurement that is Running has begun, and removes what one
// that is over has left. It may be repeated.
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

func find(kind string) (provider, bool) {
	return rollout.Find(table, func(p provider) bool { return p.kind == kind })
}
