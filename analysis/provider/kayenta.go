package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/call"
)

// kayentaConfig asks Spinnaker's Kayenta to compare two versions
// (https://github.com/spinnaker/kayenta/blob/master/docs/canary-config.md and its Swagger page). The first request
// starts a comparison and stores the comparison's ID in Metadata. Later requests read the score.
type kayentaConfig struct {
	Address                  string            `json:"address" required:"give Kayenta's URL" check:"url"`
	Application              string            `json:"application" required:"name the application"`
	CanaryConfigName         string            `json:"canaryConfigName" required:"name the canary configuration"`
	MetricsAccountName       string            `json:"metricsAccountName,omitempty"`
	ConfigurationAccountName string            `json:"configurationAccountName,omitempty"`
	StorageAccountName       string            `json:"storageAccountName,omitempty"`
	Threshold                *kayentaThreshold `json:"threshold,omitempty"`
	Thresholds               *kayentaThreshold `json:"thresholds,omitempty"` // as in Argo Rollouts' docs
	Scopes                   []kayentaScope    `json:"scopes"`
	Lookback                 bool              `json:"lookback,omitempty"` // compare from the run's start
}

type kayentaThreshold struct {
	Pass     int64 `json:"pass"`
	Marginal int64 `json:"marginal"`
}

type kayentaScope struct {
	Name       string             `json:"name" required:"use a scope name of Kayenta's canary configuration"`
	Control    kayentaScopeDetail `json:"controlScope"`
	Experiment kayentaScopeDetail `json:"experimentScope"`
}

type kayentaScopeDetail struct {
	Scope  string `json:"scope" required:"say which metrics are the version's"`
	Region string `json:"region,omitempty"`
	Step   int64  `json:"step"` // seconds
	Start  string `json:"start,omitempty"`
	End    string `json:"end,omitempty"`
}

const kayentaExecution = "canaryExecutionId"

func (c *kayentaConfig) threshold() *kayentaThreshold {
	return cmp.Or(c.Threshold, c.Thresholds)
}

func (c *kayentaConfig) check() error {
	t := c.threshold()
	switch {
	case c.Threshold != nil && c.Thresholds != nil:
		return wrong("thresholds", "keep threshold", "conflict with threshold")
	case t == nil:
		return required("threshold", "", "give pass and marginal, scores of 0 to 100")
	case t.Pass < 0 || t.Pass > 100 || t.Marginal < 0 || t.Marginal > t.Pass:
		return wrong("threshold", "give scores of 0 to 100, with marginal at most pass",
			"has pass %d and marginal %d", t.Pass, t.Marginal)
	case len(c.Scopes) == 0:
		return required("scopes", "", "name the scopes to compare")
	}
	for i, scope := range c.Scopes {
		if err := scope.check(fmt.Sprintf("scopes[%d]", i)); err != nil {
			return err
		}
	}
	return nil
}

func (sc kayentaScope) check(at string) error {
	switch {
	case sc.Control.Step < 1 || sc.Experiment.Step < 1:
		return wrong(at+".controlScope.step", "give both in seconds, such as 60",
			"is %d, and experimentScope.step is %d", sc.Control.Step, sc.Experiment.Step)
	case (sc.Control.Start == "") != (sc.Experiment.Start == ""):
		return wrong(at+".controlScope.start", "give both scopes a start, or neither", "is in only one scope")
	case (sc.Control.End == "") != (sc.Experiment.End == ""):
		return wrong(at+".controlScope.end", "give both scopes an end, or neither", "is in only one scope")
	}
	return nil
}

func (c *kayentaConfig) timeout() time.Duration { return 15 * time.Second }

func (c *kayentaConfig) measure(ctx context.Context, s *session) (Result, error) {
	if id := s.request.Metadata[kayentaExecution]; id != "" {
		return c.score(ctx, s, id)
	}
	config, err := c.configID(ctx, s)
	if err != nil {
		return Result{}, err
	}
	var begun struct {
		ID string `json:"canaryExecutionId"`
	}
	ask := call.Request{Method: http.MethodPost, Base: c.Address, Path: "/canary/" + url.PathEscape(config), Once: true,
		Query: url.Values{
			"application": {c.Application}, "metricsAccountName": {c.MetricsAccountName},
			"configurationAccountName": {c.ConfigurationAccountName}, "storageAccountName": {c.StorageAccountName}}}
	if err := s.json(ctx, "Kayenta", ask, c.comparison(s), &begun); err != nil {
		return Result{}, err
	}
	if begun.ID == "" {
		return Result{}, errors.New("the answer of Kayenta has no canaryExecutionId")
	}
	return Result{Phase: analysis.Running, Message: "Kayenta compares",
		Metadata: map[string]string{kayentaExecution: begun.ID}}, nil
}

func (c *kayentaConfig) configID(ctx context.Context, s *session) (string, error) {
	var configs []struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	}
	ask := call.Request{Method: http.MethodGet, Base: c.Address, Path: "/canaryConfig", Query: url.Values{
		"application":              {c.Application},
		"configurationAccountName": {cmp.Or(c.ConfigurationAccountName, c.StorageAccountName)}}}
	if err := s.json(ctx, "Kayenta", ask, nil, &configs); err != nil {
		return "", err
	}
	for _, known := range configs {
		if known.Name == c.CanaryConfigName && known.ID != "" {
			return known.ID, nil
		}
	}
	return "", fmt.Errorf("Kayenta has no canary configuration %q for application %s", c.CanaryConfigName, c.Application)
}

func (c *kayentaConfig) comparison(s *session) any {
	now := s.deps.Now().UTC()
	from := now.Add(-s.request.Interval)
	if c.Lookback && !s.request.Started.IsZero() {
		from = s.request.Started.UTC()
	}
	detail := func(d kayentaScopeDetail) map[string]any {
		return map[string]any{
			"scope": d.Scope, "location": d.Region, "step": d.Step,
			"start": cmp.Or(d.Start, from.Format(time.RFC3339)), "end": cmp.Or(d.End, now.Format(time.RFC3339))}
	}
	scopes := map[string]any{}
	for _, scope := range c.Scopes {
		scopes[scope.Name] = map[string]any{"controlScope": detail(scope.Control),
			"experimentScope": detail(scope.Experiment)}
	}
	return map[string]any{"scopes": scopes, "thresholds": c.threshold()}
}

func (c *kayentaConfig) score(ctx context.Context, s *session, id string) (Result, error) {
	var answered struct {
		Complete *bool  `json:"complete"`
		Status   string `json:"status"`
		Result   struct {
			Judge struct {
				Score struct {
					Score *float64 `json:"score"`
				} `json:"score"`
			} `json:"judgeResult"`
		} `json:"result"`
	}
	ask := call.Request{Method: http.MethodGet, Base: c.Address, Path: "/canary/" + url.PathEscape(id)}
	if err := s.json(ctx, "Kayenta", ask, nil, &answered); err != nil {
		return Result{}, err
	}
	result := Result{Metadata: map[string]string{kayentaExecution: id}}
	score := answered.Result.Judge.Score.Score
	switch {
	case answered.Complete == nil:
		return Result{}, errors.New("the answer of Kayenta does not say whether the comparison is complete")
	case !*answered.Complete:
		result.Phase, result.Message = analysis.Running, "Kayenta compares"
		return result, nil
	case score == nil:
		return Result{}, fmt.Errorf("the comparison has no score; its status at Kayenta is %s",
			cmp.Or(answered.Status, "complete"))
	}
	whole := float64(int(*score))
	result.Value = whole
	t := c.threshold()
	result.Phase = analysis.Failed
	if whole >= float64(t.Pass) {
		result.Phase = analysis.Successful
	} else if whole >= float64(t.Marginal) {
		result.Phase = analysis.Inconclusive
	}
	result.Message = fmt.Sprintf("the score is %d; pass needs %d, marginal %d", int(whole), t.Pass, t.Marginal)
	return result, nil
}
