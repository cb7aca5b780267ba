package console

import (
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/dashboard"
)

func TestDiffMasksSecrets(t *testing.T) {
	secret := func(field, value string) rollout.Object {
		return rollout.Object{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "keys"},
			field: map[string]any{"password": value, "same": "as before"}}
	}
	from := &rollout.Render{Commit: rollout.Commit{ID: "1"}, Objects: []rollout.Object{secret("stringData", "hunter2")}}
	to := &rollout.Render{Commit: rollout.Commit{ID: "2"}, Objects: []rollout.Object{secret("data", "aHVudGVyMw==")}}
	d, err := diffOf(from, to)
	must(t, err)
	gone, err := diffOf(from, &rollout.Render{})
	must(t, err)
	if len(d.Objects) != 1 || len(gone.Objects) != 1 || gone.Objects[0].Verb != "removed" {
		t.Fatalf("%+v, %+v", d.Objects, gone.Objects)
	}
	compare.Contains(t, d.Objects[0].Text, "+  password: '*** (after)'")
	for _, secret := range []string{"unter", "aHVu", "as before"} {
		if strings.Contains(d.Objects[0].Text, secret) || strings.Contains(gone.Objects[0].Text, "hunter2") {
			t.Errorf("%+v, %+v", d.Objects, gone.Objects)
		}
	}
}

// TestDiffOfARejectedRelease checks that the diff compares the stable commit with the rejected release's commit, even
// if the newest commit concerns another app.
func TestDiffOfARejectedRelease(t *testing.T) {
	const app = `apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  selector: {matchLabels: {app: shop}}
  template: {metadata: {labels: {app: shop}}, spec: {containers: [{name: app, image: "shop:VERSION"}]}}
---
apiVersion: gitrollout.dev/v1alpha1
kind: Rollout
metadata: {name: shop}
spec: {workloadRef: {apiVersion: apps/v1, kind: Deployment, name: shop}, strategy: {canary: {steps: [{setWeight: 50}]}}}
`
	repo := gittest.New(t)
	v1 := repo.CommitFiles("v1", map[string]string{rollout.ConfigPath("prod"): config,
		"apps/shop/kustomization.yaml": "resources: [app.yaml]\n", "apps/shop/app.yaml": strings.Replace(app, "VERSION", "v1", 1)})
	bad := repo.CommitFiles("v2", map[string]string{"apps/shop/app.yaml": strings.Replace(app, "VERSION", "v2", 1)})
	tip := repo.CommitFiles("hold another app", map[string]string{rollout.PromotionPath("prod", "other"): "decision: hold\n"})
	state := rollout.State{App: "shop", Path: "apps/shop", Phase: rollout.Pending}
	w := worldOf(t, repo, state)
	state.Phase, state.Stable = rollout.Degraded, &rollout.Release{Hash: "h1-1", Commit: v1}
	state.Rejected = []rollout.Rejection{{Hash: inputOf(t, w, "shop").Head.Render.Release(), Commit: bad, Reason: "it was slow"}}
	record(t, repo, state, "state")
	records := &Records{Options: w.Options}
	d, err := records.Diff(t.Context(), "shop")
	if err != nil || d.From != v1 || d.To != bad || len(d.Objects) != 1 || !strings.Contains(d.Objects[0].Text, "shop:v2") {
		t.Errorf("from %s to %s: %+v, %v; want %s to %s (%s is of another app)", d.From, d.To, d.Objects, err, v1, bad, tip)
	}
}

// TestObjects checks the objects on a page: they have gitrollout's label, and no values of Secrets. If the cluster is unreachable during a
// release, the page's note says so, but the session has no note.
func TestObjects(t *testing.T) {
	repo := gittest.New(t)
	v1 := repo.CommitFiles("v1", map[string]string{rollout.ConfigPath("prod"): config, "apps/shop/secret.yaml": "apiVersion: v1\n" +
		"kind: Secret\nmetadata: {name: keys}\nstringData: {password: hunter2}\n", "apps/shop/config.yaml": configMap,
		"apps/shop/kustomization.yaml": "resources: [config.yaml, secret.yaml]\n"})
	state := rollout.State{App: "shop", Path: "apps/shop", Phase: rollout.Pending}
	w := worldOf(t, repo, state)
	w.Options.Now = time.Now
	records := &Records{Options: w.Options}
	shown := func(note string, objects int) string {
		t.Helper()
		d, err := records.Objects(t.Context(), "shop")
		must(t, err)
		compare.CheckNamed(t, "note, and objects", []any{note, objects}, []any{d.Note, len(d.Objects)})
		all := ""
		for _, o := range d.Objects {
			all += o.Name + "\n" + o.Text
		}
		return all
	}
	shown("shop has no recorded state, so none of its objects should be in the cluster yet", 0)
	state.Phase, state.Source = rollout.Healthy, v1
	record(t, repo, state, "state")
	all := shown("", 2)
	compare.Contains(t, all, "/keys\napiVersion: v1\ndata:\n  password: '***'\n", "gitrollout.dev/app: shop", "kind: ConfigMap")
	if strings.Contains(all, "unter2") || strings.Contains(all, "aHVu") {
		t.Errorf("the value of a Secret is shown:\n%s", all)
	}
	state.Release = &rollout.Release{Hash: "h1-1", Commit: v1}
	record(t, repo, state, "state")
	records.Watch(nil, nil, "the cluster is unreachable")
	shown("shop has a release in flight; without the cluster's pod counts, only the start of the release is shown; the cluster is "+
		"unreachable", 2)
	compare.CheckNamed(t, "the session's note", "", records.Note())
	_, err := records.Objects(t.Context(), "shpo")
	compare.CheckError(t, "an unknown app", err, "did you mean shop")
}

// beforeBuild calls a function before each build of an app.
type beforeBuild struct {
	render.Builder
	do func()
}

func (b beforeBuild) Build(tree rollout.Tree, app rollout.App) (*rollout.Render, render.Looked, error) {
	b.do()
	return b.Builder.Build(tree, app)
}

// TestRendersHoldNoLock checks that a page's requests do not wait for the renders of other requests.
func TestRendersHoldNoLock(t *testing.T) {
	repo := gittest.New(t)
	v1 := repo.CommitFiles("v1", map[string]string{rollout.ConfigPath("prod"): config, "apps/shop/config.yaml": configMap,
		"apps/shop/kustomization.yaml": "resources: [config.yaml]\n"})
	v2 := repo.CommitFiles("v2", map[string]string{"apps/shop/config.yaml": configMap + "data: {a: b}\n"})
	w := worldOf(t, repo, rollout.State{App: "shop", Path: "apps/shop", Phase: rollout.Progressing, Source: v1,
		Stable: &rollout.Release{Hash: "h1-1", Commit: v1}, Release: &rollout.Release{Hash: "h1-2", Commit: v2}})
	for name, ask := range map[string]func(*Records) (dashboard.Diff, error){
		"objects": func(r *Records) (dashboard.Diff, error) { return r.Objects(t.Context(), "shop") },
		"changes": func(r *Records) (dashboard.Diff, error) { return r.Diff(t.Context(), "shop") },
	} {
		records, builds, free := &Records{Options: w.Options}, 0, 0
		records.Now = time.Now
		records.Renderer = render.New(beforeBuild{render.InProcess{}, func() {
			if builds++; records.IsFree() {
				free++
			}
		}})
		d, err := ask(records)
		must(t, err)
		compare.CheckNamed(t, name+", and builds without the lock", []any{1, true, builds}, []any{len(d.Objects), builds > 0, free})
	}
}

// TestRecordsOfASession checks that Records with a Session read the session's commits, even if newer commits exist.
func TestRecordsOfASession(t *testing.T) {
	repo := gittest.New(t)
	commit := repo.CommitFiles("app", map[string]string{rollout.ConfigPath("prod"): config, "apps/shop/kustomization.yaml": "resources: []\n"})
	state := rollout.State{App: "shop", Path: "apps/shop", Serial: 1, Phase: rollout.Healthy, Source: commit,
		Stable: &rollout.Release{Hash: "h1-1", Commit: commit, Author: "Ann <ann@example.com>"}}
	w := worldOf(t, repo, state)
	inputOf(t, w, "shop")
	state.Serial, state.Stable = 2, &rollout.Release{Hash: "h1-2", Commit: commit, Author: "Ann <ann@example.com>"}
	record(t, repo, state, "state")
	for _, r := range []*Records{{Options: w.Options, Session: w}, {Options: w.Options}} {
		h, err := r.History(t.Context(), "shop")
		must(t, err)
		newest := rollout.Hash("h1-1")
		if r.Session == nil {
			newest = "h1-2"
		}
		compare.Check(t, newest, h.Releases[0].Hash)
	}
}
