package simulate

import (
	"log/slog"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

// TestUnreadableManifestHolds checks that an object that no API server can read holds its app and is recorded, from
// the first deployment on.
func TestUnreadableManifestHolds(t *testing.T) {
	files := twoApps("v1")
	good := files["apps/shop/app.yaml"]
	bad := strings.Replace(good, "name: app,", `name: app, resources: {limits: {memory: 12x}},`, 1)
	files["apps/shop/app.yaml"] = bad
	s, err := NewStory(StoryOptions{
		Cluster: "sim", Files: files, Options: reconciler.Options{Renderer: render.New(render.InProcess{}), Log: slog.New(slog.DiscardHandler)},
	})
	if err != nil {
		t.Fatal(err)
	}
	p := &proposing{Story: s, t: t}
	p.start()
	for _, step := range []struct {
		push string
		held bool
	}{{"", true}, {good, false}, {bad, true}} {
		if step.push != "" {
			p.files("another one", map[string]string{"apps/shop/app.yaml": step.push})
		}
		p.settle()
		held := p.state("shop").Held
		if is := held != nil && held.Reason == rollout.HeldInvalidInput && strings.Contains(held.Message, "resources.limits.memory"); is != step.held {
			t.Errorf("held is %+v, want so: %t", held, step.held)
		}
		if other := p.state("till"); other.Phase != rollout.Healthy {
			t.Errorf("the other app is %s", other.Phase)
		}
	}
}
