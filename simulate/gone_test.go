package simulate

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// TestGoneAppsAreForgotten checks that names of removed apps remain neither in the process nor on the state branch.
// It removes many preview apps during the pause of a release, or after the abort of a release.
func TestGoneAppsAreForgotten(t *testing.T) {
	many := 100
	if testing.Short() {
		many = 20
	}
	preview := func(i int) string { return fmt.Sprintf("preview-%04d", i) }
	files := func(version string) map[string][]byte {
		all := map[string]string{}
		for i := range many {
			all["apps/"+preview(i)+"/kustomization.yaml"] = "resources: [app.yaml]\n"
			all["apps/"+preview(i)+"/app.yaml"] = appFile(preview(i), version)
		}
		return edits(all)
	}
	first := twoApps("v1")
	first[rollout.ConfigPath("sim")] = "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\n" +
		"apps:\n- {path: apps/*, prune: true}\nautoRevert: push\n"
	p := newStory(t, first)
	p.parts.Options.Approve = func(context.Context, string, string, string) (string, error) { return "Ann", nil }
	p.start()
	p.forMinutes("previews", files("v1"))
	p.forMinutes("v2 of all", files("v2"))
	aborts := map[string]string{}
	for i := 0; i < many; i += 10 {
		state := p.state(preview(i))
		if state.Phase != rollout.Paused {
			t.Fatalf("%s is %s, held %+v", preview(i), state.Phase, state.Held)
		}
		aborts[rollout.PromotionPath("sim", preview(i))] = promotionOf(state.Release.Hash, "decision: abort\n")[shopPromotion]
	}
	p.forMinutes("abort some", edits(aborts))
	if kept := keysOf(p.process.Reconciler, "preview-"); len(kept) < 5 {
		t.Errorf("apps are known by name in %v alone: the test looks in the wrong place", kept)
	}
	gone := map[string][]byte{}
	for name := range p.git.Files(p.head()) {
		if strings.Contains(name, "preview-") {
			gone[name] = nil
		}
	}
	p.forMinutes("they are not needed any more", gone)
	p.forMinutes("something else", map[string][]byte{"README": []byte("1")})
	if kept := keysOf(p.process.Reconciler, "preview-"); len(kept) > 0 {
		t.Errorf("names of apps that are gone are kept: %v", kept)
	}
	p.checkPhase(preview(0), "") // no record remains
	p.checkPhase(preview(1), "")
	for _, branch := range p.git.Branches(rollout.OwnBranches) {
		if strings.Contains(branch, "preview-") {
			t.Errorf("the branch %s is still there", branch)
		}
	}
}

// keysOf counts the map keys that contain a text, in all maps reachable from root. It returns the counts by the path of the map.
func keysOf(root any, text string) map[string]int {
	found, seen := map[string]int{}, map[any]bool{}
	var walk func(path string, v reflect.Value, depth int)
	walk = func(path string, v reflect.Value, depth int) {
		if depth > 12 {
			return
		}
		switch v.Kind() {
		case reflect.Pointer:
			if v.IsNil() || seen[[2]any{v.Pointer(), v.Type()}] {
				return
			}
			seen[[2]any{v.Pointer(), v.Type()}] = true
			if p := v.Type().Elem().PkgPath(); strings.HasSuffix(p, "gitrollout/reconciler") || p == "" {
				walk(path, v.Elem(), depth+1)
			}
		case reflect.Struct:
			for i := range v.NumField() {
				walk(path+"."+v.Type().Field(i).Name, v.Field(i), depth+1)
			}
		case reflect.Map:
			for _, key := range v.MapKeys() {
				if key.Kind() == reflect.String && strings.Contains(key.String(), text) {
					found[path]++
				}
				walk(path+"[]", v.MapIndex(key), depth+1)
			}
		}
	}
	walk("", reflect.ValueOf(root), 0)
	return found
}

// forMinutes commits edits and advances the clock by four minutes. Before each minute, it runs passes until nothing changes.
func (p *story) forMinutes(message string, edits map[string][]byte) {
	p.t.Helper()
	p.event = &Event{}
	p.commit(message, edits)
	for range 4 {
		must(p.t, p.rest())
		p.cluster.Kube.Now = p.cluster.Kube.Now.Add(time.Minute)
		p.touch()
	}
}
