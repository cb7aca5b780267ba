package strategies_test

import (
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/strategies"
)

// TestTheNewTemplateIsAskedAboutAhead checks that the API server validates a release's new template at the beginning, even if the first
// step applies only the stable template.
func TestTheNewTemplateIsAskedAboutAhead(t *testing.T) {
	for name, first := range map[string]rollout.Step{
		"Weight": {SetWeight: new(20)}, "NoWeight": {SetWeight: new(0)}, "Pause": {Pause: &rollout.Pause{}},
		"Analysis": {Analysis: &rollout.Analysis{}},
	} {
		h := twoVersions(func(s *rollout.Spec) { s.Canary.Steps = []rollout.Step{first} })
		in := inFlight(h, 0, set(h, commitID(0), 10, 10))
		now := mustDesired(in.State, viewOf(in, h))
		ahead, err := strategies.Ahead(h.at(commitID(1)), now)
		if err != nil {
			t.Fatal(err)
		}
		asked := 0
		for _, o := range append(now, ahead...) {
			if o.Ref() == web.Ref() && o.Map("spec", "template")["version"] == "v2" {
				asked++
			}
		}
		compare.CheckNamed(t, name+": questions about the new template", 1, asked)
	}
}
