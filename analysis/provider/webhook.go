package provider

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/call"
)

// webhookConfig calls a Flagger webhook, such as a gate or load test (https://docs.flagger.app/usage/webhooks). It
// posts name, namespace, phase, checksum and metadata. The HTTP status is the verdict. Argo Rollouts lacks this
// provider.
type webhookConfig struct {
	URL      string            `json:"url" required:"give the URL that is posted to" check:"url"`
	Type     string            `json:"type,omitempty"`                     // default rollout
	Timeout  string            `json:"timeout,omitempty" check:"duration"` // default 10s
	Retries  int64             `json:"retries,omitempty"`                  // repeated requests after refusals; default 0
	Metadata map[string]string `json:"metadata,omitempty"`                 // the payload's metadata
	Insecure bool              `json:"insecure,omitempty"`                 // Flagger's disableTLS
	Headers  []header          `json:"headers,omitempty"`
	Phase    string            `json:"phase,omitempty"` // the payload's phase; default Progressing
}

// webhookTypes has each type's phases after status 2xx (accepted) and other statuses (refused). A refusing gate keeps
// the measurement running, because the gate may open later.
var webhookTypes = map[string]struct{ accepted, refused analysis.Phase }{
	"rollout":                  {analysis.Successful, analysis.Failed},
	"pre-rollout":              {analysis.Successful, analysis.Failed},
	"post-rollout":             {analysis.Successful, analysis.Failed},
	"confirm-rollout":          {analysis.Successful, analysis.Running},
	"confirm-traffic-increase": {analysis.Successful, analysis.Running},
	"confirm-promotion":        {analysis.Successful, analysis.Running},
	"rollback":                 {analysis.Failed, analysis.Successful}, // 2xx requests a rollback
}

var webhookPhases = []string{
	"Initializing", "Initialized", "Waiting", "Progressing", "WaitingPromotion", "Promoting", "Finalising", "Succeeded",
	"Failed", "Terminating", "Terminated"}

func (c *webhookConfig) check() error {
	err := cmp.Or(
		oneOf("type", c.Type, slices.Sorted(maps.Keys(webhookTypes))...),
		oneOf("phase", c.Phase, webhookPhases...),
		checkHeaders(c.Headers))
	if err == nil && (c.Retries < 0 || c.Retries > 10) {
		return wrong("retries", "give 0 to 10", "is %d", c.Retries)
	}
	return err
}

func (c *webhookConfig) timeout() time.Duration {
	return duration(c.Timeout, 10*time.Second) * time.Duration(c.Retries+1)
}

func (c *webhookConfig) measure(ctx context.Context, s *session) (Result, error) {
	meaning, ok := webhookTypes[cmp.Or(c.Type, "rollout")]
	if !ok {
		return Result{}, fmt.Errorf("webhook.type %q is unknown", c.Type)
	}
	metadata := map[string]string{}
	maps.Copy(metadata, c.Metadata)
	body, _ := json.Marshal(map[string]any{
		"name": s.request.Workload.Name, "namespace": s.request.Namespace, "phase": cmp.Or(c.Phase, "Progressing"),
		"checksum": s.request.Hash, "metadata": metadata})
	ask := call.Request{
		Method: http.MethodPost, Base: c.URL, Header: headerOf(c.Headers), Insecure: c.Insecure, Type: "application/json",
		Body: body, Once: true, Accept: webhookVerdict}
	a, err := s.do(ctx, ask)
	for try := c.Retries; err == nil && a.Status/100 != 2 && try > 0; try-- {
		a, err = s.do(ctx, ask)
	}
	switch {
	case err != nil:
		return Result{}, err
	case a.Status/100 == 2:
		return Result{Value: float64(a.Status), Phase: meaning.accepted}, nil
	}
	return Result{Value: float64(a.Status), Phase: meaning.refused,
		Message: fmt.Sprintf("the webhook answers %d: %s", a.Status, s.Reason(a.Body))}, nil
}

// webhookVerdict reports whether a status is the webhook's verdict, and not a redirect or a proxy's error.
func webhookVerdict(status int) bool {
	return status/100 != 3 && !slices.Contains([]int{http.StatusTooManyRequests, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout}, status)
}
