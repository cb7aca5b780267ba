package simulate

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

// broken makes the program panic for one app, at a given place.
type broken struct {
	reconciler.Renderer
	*View
	app string
	in  string // render, observe or apply; "" for none
}

func (b *broken) fail(app, in string) {
	if app == b.app && in == b.in {
		panic("index out of range [3] with length 3")
	}
}

func (b *broken) Render(tree rollout.Tree, app rollout.App, commit rollout.Commit) (*rollout.Render, error) {
	b.fail(app.Name, "render")
	return b.Renderer.Render(tree, app, commit)
}

func (b *broken) Observe(app string, workloads []rollout.Workload, routes []rollout.Ref) rollout.Observed {
	b.fail(app, "observe")
	return b.View.Observe(app, workloads, routes)
}

func (b *broken) Apply(ctx context.Context, app string, objects []rollout.Object) error {
	b.fail(app, "apply")
	return b.View.Apply(ctx, app, objects)
}

// twoApps returns two apps with a Deployment and a gate each.
func twoApps(version string) map[string]string {
	files := map[string]string{
		".gitrollout/sim/config.yaml": "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps:\n- path: apps/*\n",
	}
	for _, app := range []string{"shop", "till"} {
		files["apps/"+app+"/kustomization.yaml"] = "resources: [app.yaml]\n"
		files["apps/"+app+"/app.yaml"] = strings.NewReplacer("APP", app, "VERSION", version).Replace(`apiVersion: apps/v1
kind: Deployment
metadata: {name: APP}
spec:
  replicas: 2
  selector: {matchLabels: {app: APP}}
  template:
    metadata: {labels: {app: APP}}
    spec: {containers: [{name: app, image: "APP:VERSION"}]}
---
apiVersion: gitrollout.dev/v1alpha1
kind: Rollout
metadata: {name: APP}
spec:
  workloadRef: {apiVersion: apps/v1, kind: Deployment, name: APP}
  strategy: {canary: {steps: [{setWeight: 50}, {pause: {}}]}}
`)
	}
	return files
}

// TestPanicIsOneAppsTrouble panics in the render, the decision and the apply of one app. The app is held with a
// reason, the log has the stack once, and the other app is released. The app continues after the repair.
func TestPanicIsOneAppsTrouble(t *testing.T) {
	for _, in := range []string{"render", "observe", "apply"} {
		t.Run(in, func(t *testing.T) {
			var log bytes.Buffer
			bad := &broken{app: "shop"}
			s, err := NewStory(StoryOptions{
				Cluster: "sim", Files: twoApps("v1"),
				Options: reconciler.Options{Renderer: render.New(render.InProcess{}), Log: slog.New(slog.NewTextHandler(&log, nil))},
			})
			if err != nil {
				t.Fatal(err)
			}
			bad.Renderer = s.parts.Options.Renderer
			s.parts.Wrap = func(p *Process, o *reconciler.Options) {
				bad.View = p.View
				o.Renderer, o.Observer, o.Applier = bad, bad, bad
			}
			rest := func() {
				t.Helper()
				s.event = &Event{}
				if err := s.rest(); err != nil {
					t.Fatal(err)
				}
			}
			s.start()
			rest()
			bad.in = in
			edits := map[string][]byte{}
			for name, content := range twoApps("v2") {
				edits[name] = []byte(content)
			}
			s.commit("v2 of both", edits)
			rest()
			s.touch()
			rest()
			if got := s.state("till"); got.Phase != rollout.Paused {
				t.Errorf("the other app is %s %+v", got.Phase, got.Held)
			}
			got := s.state("shop")
			if got.Held == nil || !strings.Contains(got.Held.Message, "panicked") || got.Release != nil && in != "apply" {
				t.Errorf("it is %s, held %+v, release %+v", got.Phase, got.Held, got.Release)
			}
			if n := strings.Count(log.String(), "msg=panic"); n != 1 {
				t.Errorf("%d stacks in the log", n)
			}
			commits := fmt.Sprint(s.event.Commits)
			s.touch()
			rest()
			if len(s.event.Commits) > 0 {
				t.Errorf("the same panic is recorded again: %v after %s", s.event.Commits, commits)
			}
			bad.in = ""
			edits = map[string][]byte{}
			for name, content := range twoApps("v3") {
				edits[name] = []byte(content)
			}
			s.commit("v3 of both", edits)
			rest()
			for range 5 {
				s.cluster.Kube.Now = s.cluster.Kube.Now.Add(time.Minute)
				s.touch()
				rest()
			}
			if got := s.state("shop"); got.Phase != rollout.Paused || got.Held != nil {
				t.Errorf("mended, it is %s, held %+v; errors %q", got.Phase, got.Held, slices.Compact(s.event.Errors))
			}
		})
	}
}
