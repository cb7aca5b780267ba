package provider

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"time"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/call"
	"gitrollout.dev/gitrollout/rollout"
)

// Request holds a measurement's input.
type Request struct {
	Kind      string
	Config    map[string]any // all arguments are filled in
	Namespace string         // namespace of the Rollout, its Jobs and Secrets
	ID        string         // measurement's ID; a Job is created once per ID

	Workload rollout.Workload  // the name is for webhooks; the workload owns Jobs
	Hash     string            // new version's pod-template-hash, for webhooks
	At       time.Time         // time of Prometheus' query; zero: now
	Started  time.Time         // when the run began, for Kayenta's lookback
	Interval time.Duration     // the metric's interval, for Kayenta
	Metadata map[string]string // the last Result's Metadata while Running
	Compare  *analysis.Compare // the comparison, which determines the result's form; or nil
	Secrets  []string          // values of Secrets in Config, which no error or message may contain
}

// Result is the outcome of a measurement.
type Result struct {
	// Value is the input of the conditions or the comparison: a float64, a []any, a text, an analysis.Histogram. A nil
	// or empty Value means no data. Measure masks Secrets' values, because servers may repeat them.
	Value    any
	Phase    analysis.Phase // "" if conditions judge; Running if the Request must be repeated with Metadata
	Message  string
	Metadata map[string]string // for users and for the next Request
}

// Deps holds measurements' external dependencies.
type Deps struct {
	Client func(insecure bool) *http.Client // insecure skips the verification of certificates; see call.ClientsWithin
	Agent  func(insecure bool) *http.Client // for the AWS credentials agent, whose address is in the environment
	// Secret returns a Secret's data; namespace "" is gitrollout's.
	Secret   func(ctx context.Context, namespace, name string) (map[string]string, error)
	Jobs     Jobs
	Getenv   func(string) string
	ReadFile func(string) ([]byte, error) // tokens and profiles for AWS
	Now      func() time.Time
	Backoff  time.Duration // before the first retry; default 250ms
}

type provider struct {
	kind   string // key of a metric's provider block
	config func() config
}

type config interface {
	// check refuses an invalid configuration. Texts may contain "{{args.x}}". Errors name fields without the kind.
	check() error
	timeout() time.Duration
	measure(context.Context, *session) (Result, error)
}

// Kinds returns all providers' names, in the docs' order.
func Kinds() []string {
	return rollout.Mapped(table, func(p provider) string { return p.kind })
}

// Check parses a configuration strictly, without requests. Errors contain the field (provider.web.url).
func Check(kind string, raw map[string]any) error {
	_, err := parse(kind, raw)
	if invalid := new(fieldError); errors.As(err, &invalid) {
		invalid.Below("provider")
	}
	return err
}

// Measure makes one measurement. After an error, a Request may be repeated: the ID prevents a second Job.
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
		if text := rollout.Cut(s.Scrub(err.Error()), 2*call.MaxMessage); text != err.Error() {
			err = errors.New(text)
		}
		return Result{}, err
	}
	result.Value = s.ScrubValue(result.Value)
	result.Message = rollout.Cut(s.Scrub(result.Message), call.MaxMessage)
	for key, text := range result.Metadata {
		result.Metadata[key] = rollout.Cut(s.Scrub(text), 2000) // such as a query
	}
	return result, nil
}

// Timeout returns a measurement's time limit, or 0 for an invalid configuration.
func Timeout(r Request) time.Duration {
	c, err := parse(r.Kind, r.Config)
	if err != nil {
		return 0
	}
	return c.timeout()
}

// Stop deletes a measurement's Job, if any. Stop can be repeated.
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

// Types returns configuration types by kind, for schemas.
func Types() map[string]reflect.Type {
	types := map[string]reflect.Type{}
	for _, p := range table {
		types[p.kind] = reflect.TypeOf(p.config()).Elem()
	}
	return types
}
