package simulate

import (
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/rollout"
)

// TestUnreadableManifestHolds checks that an object that no API server can read holds its app and is recorded, from
// the first deployment on.
func TestUnreadableManifestHolds(t *testing.T) {
	good := appFile("shop", "v1")
	bad := strings.Replace(good, "name: app,", `name: app, resources: {limits: {memory: 12x}},`, 1)
	files := twoApps("v1")
	files[shopFile] = bad
	p := newStory(t, files)
	p.start()
	p.settle()
	for _, push := range []string{"", good, bad} {
		if push != "" {
			p.files("another one", map[string]string{shopFile: push})
		}
		held := p.state("shop").Held
		is := held != nil && held.Reason == rollout.HeldInvalidInput && strings.Contains(held.Message, "resources.limits.memory")
		if is != (push != good) {
			t.Errorf("after %q it is held %+v", push, held)
		}
		p.checkPhase("till", rollout.Healthy)
	}
}
