package analysis_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/internal/compare"
)

// TestComplete checks how arguments get their values from pods, experiments and Secrets when a metric is measured.
func TestComplete(t *testing.T) {
	known := analysis.Known{
		Latest: "new", Stable: "old",
		Texts: map[string]string{"templates.a.podTemplateHash": "7c9f", "experiment.availableAt": "2026-11-20T12:00:00Z"},
	}
	secret := func(ref analysis.SecretRef) (string, error) {
		if ref.Name == "gone" {
			return "", errors.New("no such Secret")
		}
		return "token of " + ref.Name, nil
	}
	for name, tc := range map[string]struct {
		pods    map[string]string
		secrets map[string]analysis.SecretRef
		want    string // a value or, after "error: ", a substring of the error
	}{
		"versions": {map[string]string{"x": "Latest", "y": "Stable"}, nil, "new/old"},
		"an experiment": {map[string]string{"x": "{{templates.a.podTemplateHash}}",
			"y": "since {{ experiment.availableAt }}, {{templates.a.podTemplateHash}}"}, nil, "7c9f/since 2026-11-20T12:00:00Z, 7c9f"},
		"a Secret":       {map[string]string{"x": "Latest"}, map[string]analysis.SecretRef{"y": {Name: "api"}}, "new/token of api"},
		"no such Secret": {map[string]string{"x": "Latest"}, map[string]analysis.SecretRef{"y": {Name: "gone"}}, "error: no such Secret"},
		"unknown": {map[string]string{"x": "{{templates.b.podTemplateHash}}", "y": "Stable"}, nil,
			"error: argument x: {{templates.b.podTemplateHash}} is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			m := analysis.Metric{Provider: "web", Config: map[string]any{"url": "{{args.x}}/{{args.y}}"}, Pods: tc.pods, Secrets: tc.secrets}
			config, err := analysis.Complete(m, known, secret)
			if want, bad := strings.CutPrefix(tc.want, "error: "); bad {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want %q", err, want)
				}
				return
			}
			if diff := compare.Diff(map[string]any{"url": tc.want}, config); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// TestElapsed checks the seconds that replace {{elapsed}} and {{release.elapsed}}. No window begins before the release. Unknown
// placeholders stay.
func TestElapsed(t *testing.T) {
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		since, release time.Duration // before the measurement
		text, want     string
		window         analysis.Window
	}{
		"weight":             {90 * time.Second, time.Hour, "x[{{elapsed}}s]", "x[90s]", analysis.WindowWeight},
		"release":            {90 * time.Second, time.Hour, "x[{{ release.elapsed }}s]", "x[3600s]", analysis.WindowRelease},
		"both":               {90 * time.Second, time.Hour, "{{ elapsed}} of {{release.elapsed}}", "90 of 3600", analysis.WindowWeight},
		"rounded down":       {90*time.Second + 999*time.Millisecond, time.Hour, "{{elapsed}}", "90", analysis.WindowWeight},
		"at least one":       {0, 0, "{{elapsed}} {{release.elapsed}}", "1 1", analysis.WindowWeight},
		"a clock set back":   {-time.Hour, -time.Hour, "{{elapsed}} {{release.elapsed}}", "1 1", analysis.WindowWeight},
		"before the release": {time.Hour, time.Minute, "{{elapsed}}", "60", analysis.WindowWeight},
		"unknown":            {time.Minute, time.Minute, "{{elapse}} {{.elapsed}} {{x}}", "{{elapse}} {{.elapsed}} {{x}}", analysis.WindowOther},
		"an argument":        {time.Minute, time.Minute, "{{args.x}}", "new", analysis.WindowOther},
	} {
		t.Run(name, func(t *testing.T) {
			m := analysis.Metric{Provider: "web", Pods: map[string]string{"x": "Latest"},
				Config: map[string]any{"n": 1, "url": []any{"a", map[string]any{"b": tc.text}}}}
			known := analysis.Known{Latest: "new", At: noon, Since: noon.Add(-tc.since), ReleaseSince: noon.Add(-tc.release)}
			config, err := analysis.Complete(m, known, nil)
			want := map[string]any{"n": 1, "url": []any{"a", map[string]any{"b": tc.want}}}
			if diff := compare.Diff(want, config); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
			compare.CheckNamed(t, "the window", tc.window, analysis.WindowOf(m))
			compare.CheckNamed(t, "the metric's own text", tc.text, m.Config["url"].([]any)[1].(map[string]any)["b"].(string))
		})
	}
}

func TestVariables(t *testing.T) {
	got := analysis.Variables("a {{templates.a.podTemplateHash}} b {{ experiment.availableAt }} {c} {{args.d e}}")
	compare.Check(t, []string{"templates.a.podTemplateHash", "experiment.availableAt"}, got)
	if got := analysis.Variables("plain"); got != nil {
		t.Error(got)
	}
}
