package render_test

import (
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
)

// TestPodTemplatesOfArgoRollouts checks that a Rollout's pod template may have each form of quantity, and a list named items. Argo Rollouts
// tests the same in TestContainerResourceFormats and TestRolloutPodVolumesItemsSpec.
func TestPodTemplatesOfArgoRollouts(t *testing.T) {
	for name, tt := range map[string]struct{ pod, field, want string }{
		"cpu as a number":      {`{containers: [{name: web, image: "web:1", resources: {requests: {cpu: 0.001}}}]}`, "containers", "0.001"},
		"cpu as a text":        {`{containers: [{name: web, image: "web:1", resources: {requests: {cpu: "0.001"}}}]}`, "containers", "0.001"},
		"cpu in milli":         {`{containers: [{name: web, image: "web:1", resources: {requests: {cpu: 1m}}}]}`, "containers", "1m"},
		"a volume's items":     {`{volumes: [{name: v, configMap: {name: c, items: [{key: a, path: b}]}}], containers: []}`, "volumes", "items"},
		"ephemeral containers": {`{ephemeralContainers: [{name: e, image: "e:1"}], containers: []}`, "ephemeralContainers", "e:1"},
	} {
		t.Run(name, func(t *testing.T) {
			docs := strings.Replace(argoHead, `{containers: [{name: web, image: "web:1"}]}`, tt.pod, 1) + "  strategy: {canary: {}}\n"
			pod := renderDocs(t, docs).Objects[0].Map("spec", "template", "spec")
			compare.Contains(t, compare.Diff(nil, pod[tt.field]), tt.want)
		})
	}
}
