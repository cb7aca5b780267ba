package simulate

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/rollout"
)

// wordy is an API server that refuses the objects of app "shop" with a different text each time.
type wordy struct {
	*View
	says  string // the format of the text, with a number; "" means that nothing is refused
	asked int
}

func (w *wordy) Check(ctx context.Context, app string, objects []rollout.Object) error {
	if w.says == "" || app != "shop" {
		return w.View.Check(ctx, app, objects)
	}
	w.asked++
	return &rollout.InvalidError{Msg: fmt.Sprintf(w.says, w.asked)}
}

// TestARefusalIsRecordedOnce checks that repeated refusals of an app's objects are recorded only once, until the reason changes.
func TestARefusalIsRecordedOnce(t *testing.T) {
	p, api := newStory(t, twoApps("v1")), &wordy{}
	p.parts.Wrap = func(process *Process, o *reconciler.Options) { api.View, o.Applier = process.View, api }
	p.start()
	p.settle()
	api.says = "the cluster refuses Deployment shop: exceeded quota: used: %d00m"
	p.files("v2 of shop", map[string]string{shopFile: appFile("shop", "v2")})
	held := p.state("shop").Held
	if held == nil || held.Reason != rollout.HeldInvalidInput {
		t.Fatalf("it is held %+v", held)
	}
	before, asked := p.git.Head(stateBranch), api.asked
	p.tick(10)
	if api.asked < asked+5 {
		t.Errorf("the server was asked %d times more", api.asked-asked)
	}
	if now := p.git.Head(stateBranch); now != before {
		t.Errorf("the same refusal is recorded again: %s", p.git.Subject(now))
	}
	api.says = "the cluster refuses Deployment shop: webhook %d says no"
	p.tick(2)
	if now := p.state("shop").Held; now == nil || now.Message == held.Message {
		t.Errorf("another reason is not recorded: %+v", now)
	}
	api.says = ""
	p.tick(3)
	if now := p.state("shop"); now.Held != nil || now.Release == nil {
		t.Errorf("accepted, it is %s, held %+v", now.Phase, now.Held)
	}
}

// TestUnreadableManifestHolds checks that an unreadable object in Git puts the app on hold with a record, even before the first deployment.
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
