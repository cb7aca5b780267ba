package simulate

import (
	"context"
	"errors"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/memgit"
)

// picky is a Git server that refuses commits with a given word in the message. While away is set, the server is unreachable.
type picky struct {
	*memgit.Clone
	refuses string
	away    bool
	single  int // number of pushes with only one app's record while away was set
}

func (p *picky) Push(ctx context.Context, updates []rollout.Update) (map[string]string, error) {
	if p.away {
		if m := updates[len(updates)-1].Message; !strings.Contains(m, "shop") || !strings.Contains(m, "till") {
			p.single++
		}
		return nil, rollout.ErrUnreachable
	}
	for _, u := range updates {
		if p.refuses != "" && strings.Contains(u.Message, p.refuses) {
			return nil, errors.New("pre-receive hook declined")
		}
	}
	return p.Clone.Push(ctx, updates)
}

// TestOneTransitionKeepsNoOtherFromGit makes the server refuse the record of one app. The other apps' records must still be pushed. While
// the server is unreachable, the process must not push each app separately.
func TestOneTransitionKeepsNoOtherFromGit(t *testing.T) {
	p, server := newStory(t, twoApps("v1")), &picky{}
	p.parts.Wrap = func(process *Process, o *reconciler.Options) {
		server.Clone = process.Clone
		o.Repository = server
	}
	p.start()
	p.settle()
	server.refuses = "shop"
	p.files("v2 of both", twoApps("v2"))
	p.checkPhase("till", rollout.Paused)
	p.checkPhase("shop", rollout.Healthy) // the server refuses the record of shop's release
	server.refuses = ""
	p.tick(5)
	p.checkPhase("shop", rollout.Paused)
	server.away = true
	p.files("v3 of both", twoApps("v3"))
	if server.single > 0 {
		t.Errorf("a server that is away is asked for each app, %d times", server.single)
	}
}

// TestAppThatComesBackRunsItsHook removes a preview app, which has a hook, and adds it again. The old Job has
// the name of the new Job, but must not block the second deployment.
func TestAppThatComesBackRunsItsHook(t *testing.T) {
	const job = "\n---\napiVersion: batch/v1\nkind: Job\nmetadata:\n  name: migrate\n  annotations: {gitrollout.dev/hook: before}\n" +
		"spec:\n  template:\n    spec: {restartPolicy: Never, containers: [{name: m, image: \"m:1\"}]}\n"
	preview := edits(map[string]string{
		"apps/pr-1/kustomization.yaml": "resources: [app.yaml]\n", "apps/pr-1/app.yaml": appFile("pr-1", "v1") + job,
	})
	files := twoApps("v1")
	files[rollout.ConfigPath("sim")] = "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps:\n- {path: apps/*, prune: true}\n"
	p := newStory(t, files)
	p.start()
	p.forMinutes("a preview", preview)
	if got := p.state("pr-1"); got.Phase != rollout.Healthy {
		t.Fatalf("the preview is %s, held %+v", got.Phase, got.Held)
	}
	p.forMinutes("closed", map[string][]byte{"apps/pr-1/kustomization.yaml": nil, "apps/pr-1/app.yaml": nil})
	if got := p.state("pr-1"); got.Phase != "" {
		t.Fatalf("it is still on record: %s", got.Phase)
	}
	p.forMinutes("opened again", preview)
	p.checkPhase("pr-1", rollout.Healthy)
}
