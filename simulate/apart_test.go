package simulate

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

// picky is a Git server that refuses commits containing a word, and is down at times.
type picky struct {
	*Clone
	refuses string
	away    bool
	single  int // pushes of a single app while it was down
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

// TestOneTransitionKeepsNoOtherFromGit checks that transitions of other apps are recorded when the server refuses one
// app's. A server that is down is not asked once per app.
func TestOneTransitionKeepsNoOtherFromGit(t *testing.T) {
	s, err := NewStory(StoryOptions{Cluster: "sim", Files: twoApps("v1"),
		Options: reconciler.Options{Renderer: render.New(render.InProcess{}), Log: slog.New(slog.DiscardHandler)}})
	if err != nil {
		t.Fatal(err)
	}
	server := &picky{}
	s.parts.Wrap = func(p *Process, o *reconciler.Options) {
		server.Clone = p.Clone
		o.Repository = server
	}
	rest := func() {
		t.Helper()
		s.event = &Event{}
		if err := s.rest(); err != nil {
			t.Fatal(err)
		}
	}
	push := func(version string) {
		edits := map[string][]byte{}
		for name, content := range twoApps(version) {
			edits[name] = []byte(content)
		}
		s.commit(version+" of both", edits)
		rest()
	}
	s.start()
	rest()
	server.refuses = "shop"
	push("v2")
	if got := s.state("till"); got.Phase != rollout.Paused {
		t.Errorf("the other app is %s", got.Phase)
	}
	if got := s.state("shop"); got.Phase != rollout.Healthy {
		t.Errorf("the refused transition is recorded: %s", got.Phase)
	}
	server.refuses = ""
	for range 5 {
		s.cluster.Kube.Now = s.cluster.Kube.Now.Add(time.Minute)
		s.touch()
		rest()
	}
	if got := s.state("shop"); got.Phase != rollout.Paused {
		t.Errorf("when it is taken, it is %s", got.Phase)
	}
	server.away = true
	push("v3")
	if server.single > 0 {
		t.Errorf("a server that is away is asked for each app, %d times", server.single)
	}
}

// TestAppThatComesBackRunsItsHook removes a preview with a hook from Git and restores it. The old Job has the name of
// the new one, and must not block the deployment.
func TestAppThatComesBackRunsItsHook(t *testing.T) {
	const job = "\n---\napiVersion: batch/v1\nkind: Job\nmetadata:\n  name: migrate\n  annotations: {gitrollout.dev/hook: before}\n" +
		"spec:\n  template:\n    spec: {restartPolicy: Never, containers: [{name: m, image: \"m:1\"}]}\n"
	files := twoApps("v1")
	preview := map[string][]byte{
		"apps/pr-1/kustomization.yaml": []byte("resources: [app.yaml]\n"),
		"apps/pr-1/app.yaml":           []byte(strings.ReplaceAll(string(files["apps/shop/app.yaml"]), "shop", "pr-1") + job),
	}
	files[".gitrollout/sim/config.yaml"] = "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps:\n- {path: apps/*, prune: true}\n"
	s, err := NewStory(StoryOptions{Cluster: "sim", Files: files, Options: reconciler.Options{Renderer: render.New(render.InProcess{}), Log: slog.New(slog.DiscardHandler)}})
	if err != nil {
		t.Fatal(err)
	}
	rest := func(message string, edits map[string][]byte) rollout.State {
		t.Helper()
		s.settle(t, message, edits)
		return s.state("pr-1")
	}
	s.start()
	if got := rest("a preview", preview); got.Phase != rollout.Healthy {
		t.Fatalf("the preview is %s, held %+v", got.Phase, got.Held)
	}
	if got := rest("closed", map[string][]byte{"apps/pr-1/kustomization.yaml": nil, "apps/pr-1/app.yaml": nil}); got.Phase != "" {
		t.Fatalf("it is still on record: %s", got.Phase)
	}
	if got := rest("opened again", preview); got.Phase != rollout.Healthy {
		t.Errorf("it is %s, held %+v, hooks %+v", got.Phase, got.Held, got.Hooks)
	}
}
