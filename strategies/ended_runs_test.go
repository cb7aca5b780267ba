package strategies_test

import (
	"fmt"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// TestEndedAnalysesAreRecorded checks that the recorded state of a new stable version has the final phase of each of its analyses.
func TestEndedAnalysesAreRecorded(t *testing.T) {
	blueGreen := func(delay int) string {
		return fmt.Sprintf("blueGreen: {activeService: web, previewService: web-preview, autoPromotionEnabled: true, "+
			"scaleDownDelaySeconds: %d}\nprePromotion: {metrics: [smoke], count: 1}\npostPromotion: {metrics: [errors], count: 1}", delay)
	}
	const background = "canary: {background: {metrics: [errors]}, steps: [{setWeight: 50}, {pause: {}}]}"
	const one = "measure web/pre-promotion/smoke Successful\n"
	const both = one + "measure web/post-promotion/errors Successful"
	const passed = "web/pre-promotion Successful, web/post-promotion Successful"
	const stopped = "web/pre-promotion Successful, web/post-promotion Stopped"
	for name, c := range map[string]struct{ spec, timeline, want string }{
		"measured while old pods are kept": {blueGreen(300), both, passed},
		"measured":                         {blueGreen(0), both, passed},
		"promoted fully":                   {blueGreen(0), one + "promote full", stopped},
		"promoted while old pods are kept": {blueGreen(300), one + "promote full", stopped},
		"in the background":                {background, "promote full", "web/background Stopped"},
	} {
		t.Run(name, func(t *testing.T) {
			s := scriptOf(t, "replicas: 3\n"+c.spec)
			s.play(t, "start\npush v2\n"+c.timeline+"\n+1m\ncrash\n")
			got := rollout.Mapped(s.state.Analyses, func(r rollout.AnalysisRun) string { return r.Name + " " + string(r.Phase) })
			compare.Check(t, "Healthy: "+c.want, string(s.state.Phase)+": "+strings.Join(got, ", "))
		})
	}
}
