package simulate

import (
	"context"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/rollout"
)

// broken makes the render, the observation or the apply of one app panic.
type broken struct {
	reconciler.Renderer
	*View
	app string
	in  string // where to panic: render, observe or apply; "" for no panic
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

// TestPanicIsOneAppsTrouble checks that a panic in the render, the observation or the apply of an app holds only this app. The log has the
// panic once, and the other app's release continues. After the repair, the first app's release also continues.
func TestPanicIsOneAppsTrouble(t *testing.T) {
	for _, in := range []string{"render", "observe", "apply"} {
		t.Run(in, func(t *testing.T) {
			p := newStory(t, twoApps("v1"))
			bad := &broken{app: "shop", Renderer: p.parts.Options.Renderer}
			p.parts.Wrap = func(process *Process, o *reconciler.Options) {
				bad.View = process.View
				o.Renderer, o.Observer, o.Applier = bad, bad, bad
			}
			p.start()
			p.settle()
			bad.in = in
			p.files("v2 of both", twoApps("v2"))
			p.checkPhase("till", rollout.Paused)
			got := p.state("shop")
			if got.Held == nil || !strings.Contains(got.Held.Message, "panicked") || got.Release != nil && in != "apply" {
				t.Errorf("it is %s, held %+v, release %+v", got.Phase, got.Held, got.Release)
			}
			if n := strings.Count(p.log.String(), "msg=panic"); n != 1 {
				t.Errorf("%d stacks in the log", n)
			}
			before := p.git.Head(stateBranch)
			p.settle()
			if now := p.git.Head(stateBranch); now != before {
				t.Errorf("the same panic is recorded again: %s", p.git.Subject(now))
			}
			bad.in = ""
			p.files("v3 of both", twoApps("v3"))
			p.tick(5)
			if got := p.state("shop"); got.Phase != rollout.Paused || got.Held != nil {
				t.Errorf("mended, it is %s, held %+v; errors %q", got.Phase, got.Held, p.event.Errors)
			}
		})
	}
}
