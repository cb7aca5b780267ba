package simulate

import (
	"testing"

	"gitrollout.dev/gitrollout/rollout"
)

// TestStableThatLeftTheBranch replaces the history by one without the stable commit and with a third version, and
// restarts the process. The process accepts only commits of the users' branch, so the rollback to stable waits. No
// pod moves meanwhile, and a full promotion ends the wait.
func TestStableThatLeftTheBranch(t *testing.T) {
	p := atGates(t)
	p.rewritten(map[string]string{shopFile: appFile("shop", "v3")})
	pods := p.pods()
	p.start()
	p.tick(5)
	if s, now := p.state("shop"), p.pods(); s.Phase != rollout.Aborting || now != pods {
		t.Fatalf("it is %s, pods were %s and are %s", s.Phase, pods, now)
	}
	must(t, p.decide(rollout.Promote, []string{"shop", rollout.Full}))
	p.tick(1)
	p.checkPhase("shop", rollout.Healthy)
	p.checkServes("shop", "shop:v3")
}
