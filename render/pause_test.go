package render

import (
	"fmt"
	"testing"

	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

func TestPauseUntil(t *testing.T) {
	for name, tt := range map[string]struct{ group, pause, want string }{
		"a moment":       {ownGroup, `{until: "0 9 * * 1-5", timeZone: Europe/Berlin}`, ""},
		"in UTC":         {ownGroup, `{until: "0 9 * * *"}`, ""},
		"and a duration": {ownGroup, `{until: "0 9 * * *", duration: 5m}`, "pause.until: conflicts with duration or timeout"},
		"and a timeout":  {ownGroup, `{until: "0 9 * * *", timeout: 5m, onTimeout: abort}`, "pause.until: conflicts with duration or timeout"},
		"a zone alone":   {ownGroup, `{timeZone: UTC}`, "pause.timeZone: is given without until"},
		"no schedule":    {ownGroup, `{until: tomorrow}`, `pause.until: "tomorrow" is not a schedule`},
		"no zone":        {ownGroup, `{until: "0 9 * * *", timeZone: Bonn}`, `pause.timeZone: "Bonn" is not a time zone`},
		"a zone inside":  {ownGroup, `{until: "CRON_TZ=UTC 0 9 * * *"}`, "belongs in timeZone"},
		"Argo's":         {argoGroup, `{until: "0 9 * * *"}`, "pause.until: is not a field of Argo Rollouts"},
	} {
		t.Run(name, func(t *testing.T) {
			object := rollout.Object{}
			text := "apiVersion: " + tt.group + "/v1alpha1\nkind: Rollout\nmetadata: {name: web, namespace: a}\nspec:\n" +
				"  workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web}\n  strategy: {canary: {steps: [{pause: " + tt.pause + "}]}}\n"
			must(t, yaml.Unmarshal([]byte(text), &object))
			d, err := newDocument(object)
			if tt.want != "" {
				compare.Contains(t, fmt.Sprint(err), tt.want)
				return
			}
			must(t, err)
			if p := d.spec.Canary.Steps[0].Pause; p.Until == "" || p.Duration != nil {
				t.Errorf("read as %+v", p)
			}
		})
	}
}
