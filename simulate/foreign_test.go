package simulate

import (
	"testing"

	"gitrollout.dev/gitrollout/rollout"
)

// TestStableThatLeftTheBranch replaces the history by one without the stable commit and with a third version, and
// restarts the process. The process accepts only commits of the users' branch, so the rollback to stable waits. No
// pod moves meanwhile, and a full promotion ends the wait.
func TestStableThatLeftTheBranch(t *testing.T) {
	p := newProposing(t)
	files := map[string][]byte{}
	for path, content := range p.git.Files(p.head()) {
		files[path] = []byte(content)
	}
	files["apps/shop/app.yaml"] = []byte(twoApps("v3")["apps/shop/app.yaml"])
	root := p.git.make("", files, "Ann", "all of it", p.cluster.Kube.Now)
	p.git.add(root)
	p.git.Set("Ann", testBranch, root.ID)
	pods := p.pods()
	p.start()
	for range 5 {
		p.tick()
	}
	if s, now := p.state("shop"), p.pods(); s.Phase != rollout.Aborting || now != pods {
		t.Fatalf("it is %s, pods were %s and are %s", s.Phase, pods, now)
	}
	if err := p.decide(rollout.Promote, []string{"shop", rollout.Full}); err != nil {
		t.Fatal(err)
	}
	p.tick()
	if s := p.state("shop"); s.Phase != rollout.Healthy || p.serving("shop") != "shop:v3" {
		t.Errorf("it is %s, and serves %s", s.Phase, p.serving("shop"))
	}
}
