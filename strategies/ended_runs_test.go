package strategies

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"gitrollout.dev/gitrollout/internal/compare"
)

// TestEndedAnalysesAreRecorded checks that a release records the end of each analysis when it becomes stable.
func TestEndedAnalysesAreRecorded(t *testing.T) {
	blueGreen := "blueGreen: {activeService: web, previewService: web-preview, autoPromotionEnabled: true, " +
		"scaleDownDelaySeconds: DELAY}\nprePromotion: {metrics: [smoke], count: 1}\npostPromotion: {metrics: [errors], count: 1}\n"
	background := "canary: {background: {metrics: [errors]}, steps: [{setWeight: 50}, {pause: {}}]}\n"
	const both = "measure web/pre-promotion/smoke Successful\n"
	for name, c := range map[string]struct{ spec, timeline, want string }{
		"measured while old pods are kept": {strings.Replace(blueGreen, "DELAY", "300", 1), both + "measure web/post-promotion/errors Successful",
			"web/pre-promotion Successful, web/post-promotion Successful"},
		"measured":                         {strings.Replace(blueGreen, "DELAY", "0", 1), both + "measure web/post-promotion/errors Successful", "web/pre-promotion Successful, web/post-promotion Successful"},
		"promoted fully":                   {strings.Replace(blueGreen, "DELAY", "0", 1), both + "promote full", "web/pre-promotion Successful, web/post-promotion Stopped"},
		"promoted while old pods are kept": {strings.Replace(blueGreen, "DELAY", "300", 1), both + "promote full", "web/pre-promotion Successful, web/post-promotion Stopped"},
		"in the background":                {background, "promote full", "web/background Stopped"},
	} {
		t.Run(name, func(t *testing.T) {
			archive := txtar.Parse([]byte("-- web.yaml --\nreplicas: 3\n" + c.spec + "-- timeline --\n"))
			s, _ := readScript(t, archive)
			s.play(t, "start\npush v2\n"+c.timeline+"\n+1m\ncrash\n")
			var got []string
			for _, r := range s.state.Analyses {
				got = append(got, fmt.Sprintf("%s %s", r.Name, r.Phase))
			}
			compare.Check(t, "Healthy: "+c.want, string(s.state.Phase)+": "+strings.Join(got, ", "))
		})
	}
}
