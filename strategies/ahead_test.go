package strategies

import (
	"testing"

	"gitrollout.dev/gitrollout/rollout"
)

// TestTheNewTemplateIsAskedAboutAhead: a release that has no pod at its first step has
// stable's template in the cluster. What is wrong with the new one is found
// before the rest of its commit is applied, whatever the first step is.
func TestTheNewTemplateIsAskedAboutAhead(t *testing.T) {
	for name, first := range map[string]rollout.Step{
		"Weight": {SetWeight: new(20)}, "NoWeight": {SetWeight: new(0)}, "Pause": {Pause: &rollout.Pause{}},
		"Analysis": {Analysis: &rollout.Analysis{}},
	} {
		t.Run(name, func(t *testing.T) {
			h := oneWeb(func(s *rollout.Spec) { s.Canary.Steps = []rollout.Step{first} })
			h.push(version("v2"))
			in := inFlight(h, 0, set(h, commitID(0), 10, 10))
			now := mustDesired(in.State, viewOf(in, h))
			ahead, err := Ahead(h.at(commitID(1)), now)
			if err != nil {
				t.Fatal(err)
			}
			asked := 0
			for _, o := range append(now, ahead...) {
				if o.Ref() == web.Ref() && o.Map("spec", "template")["version"] == "v2" {
					asked++
				}
			}
			if asked != 1 {
				t.Errorf("the new template is asked about %d times", asked)
			}
		})
	}
}
