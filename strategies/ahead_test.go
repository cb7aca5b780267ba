package strategies

import (
	"testing"

	"gitrollout.dev/gitrollout/rollout"
)

// TestTheNewTemplateIsAskedAboutAhead checks that the new template is validated before the rest of its commit is
// applied. A first step without new pods still applies the stable template.
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
