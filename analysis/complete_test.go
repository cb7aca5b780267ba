package analysis

import (
	"errors"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
)

// TestComplete checks how arguments get their values from pods, experiments and Secrets when a metric is measured.
func TestComplete(t *testing.T) {
	known := Known{
		Latest: "new", Stable: "old",
		Texts: map[string]string{"templates.a.podTemplateHash": "7c9f", "experiment.availableAt": "2026-11-20T12:00:00Z"},
	}
	secret := func(ref SecretRef) (string, error) {
		if ref.Name == "gone" {
			return "", errors.New("no such Secret")
		}
		return "token of " + ref.Name, nil
	}
	for name, tc := range map[string]struct {
		pods    map[string]string
		secrets map[string]SecretRef
		want    string // a value or, after "error: ", a substring of the error
	}{
		"versions": {map[string]string{"x": "Latest", "y": "Stable"}, nil, "new/old"},
		"an experiment": {map[string]string{"x": "{{templates.a.podTemplateHash}}",
			"y": "since {{ experiment.availableAt }}, {{templates.a.podTemplateHash}}"}, nil, "7c9f/since 2026-11-20T12:00:00Z, 7c9f"},
		"a Secret":       {map[string]string{"x": "Latest"}, map[string]SecretRef{"y": {Name: "api"}}, "new/token of api"},
		"no such Secret": {map[string]string{"x": "Latest"}, map[string]SecretRef{"y": {Name: "gone"}}, "error: no such Secret"},
		"unknown": {map[string]string{"x": "{{templates.b.podTemplateHash}}", "y": "Stable"}, nil,
			"error: argument x: {{templates.b.podTemplateHash}} is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			m := Metric{Provider: "web", Config: map[string]any{"url": "{{args.x}}/{{args.y}}"}, Pods: tc.pods, Secrets: tc.secrets}
			config, err := Complete(m, known, secret)
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

func TestVariables(t *testing.T) {
	got := Variables("a {{templates.a.podTemplateHash}} b {{ experiment.availableAt }} {c} {{args.d e}}")
	compare.Check(t, []string{"templates.a.podTemplateHash", "experiment.availableAt"}, got)
	if got := Variables("plain"); got != nil {
		t.Error(got)
	}
}
