package simulate

import (
	"context"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
)

// TestGoneAppsAreForgotten creates a hundred previews that wait at a gate or are aborted there, and removes them.
// Neither the process nor the state branch keeps anything under their names.
func TestGoneAppsAreForgotten(t *testing.T) {
	many := 100
	if testing.Short() {
		many = 20
	}
	const config = ".gitrollout/sim/config.yaml"
	files := func(version string) map[string][]byte {
		edits := map[string][]byte{}
		shop := twoApps(version)["apps/shop/app.yaml"]
		for i := range many {
			name := fmt.Sprintf("preview-%04d", i)
			edits["apps/"+name+"/kustomization.yaml"] = []byte("resources: [app.yaml]\n")
			edits["apps/"+name+"/app.yaml"] = []byte(strings.ReplaceAll(shop, "shop", name))
		}
		return edits
	}
	first := twoApps("v1")
	first[config] = "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps:\n- {path: apps/*, prune: true}\nautoRevert: push\n"
	s, err := NewStory(StoryOptions{Cluster: "sim", Files: first, Options: reconciler.Options{
		Renderer: render.New(render.InProcess{}), Log: slog.New(slog.DiscardHandler),
		Approve: func(ctx context.Context, commit, path, promoters string) (string, error) { return "Ann", nil },
	}})
	if err != nil {
		t.Fatal(err)
	}
	s.start()
	s.settle(t, "previews", files("v1"))
	s.settle(t, "v2 of all", files("v2"))
	aborts := map[string][]byte{}
	for i := 0; i < many; i += 10 {
		name := fmt.Sprintf("preview-%04d", i)
		state := s.state(name)
		if state.Phase != rollout.Paused {
			t.Fatalf("%s is %s, held %+v", name, state.Phase, state.Held)
		}
		aborts[rollout.PromotionPath("sim", name)] = []byte("apiVersion: gitrollout.dev/v1alpha1\nkind: Promotion\nrelease: " +
			string(state.Release.Hash) + "\ndecision: abort\n")
	}
	s.settle(t, "abort some", aborts)
	if kept := keysOf(s.process.Reconciler, "preview-"); len(kept) < 5 {
		t.Errorf("apps are known by name in %v alone: the test looks in the wrong place", kept)
	}
	gone := map[string][]byte{}
	for name := range s.git.Files(s.head()) {
		if strings.Contains(name, "preview-") {
			gone[name] = nil
		}
	}
	s.settle(t, "they are not needed any more", gone)
	s.settle(t, "something else", map[string][]byte{"README": []byte("1")})
	if kept := keysOf(s.process.Reconciler, "preview-"); len(kept) > 0 {
		t.Errorf("names of apps that are gone are kept: %v", kept)
	}
	for _, name := range []string{"preview-0000", "preview-0001"} {
		if state := s.state(name); state.Phase != "" {
			t.Errorf("%s is still on record: %s", name, state.Phase)
		}
	}
	for _, branch := range s.git.Branches(rollout.OwnBranches) {
		if strings.Contains(branch, "preview-") {
			t.Errorf("the branch %s is still there", branch)
		}
	}
}

// keysOf counts map keys that contain a text, by the path of the map.
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

// settle commits edits and runs four minutes, with the loop at rest after each.
func (s *Story) settle(t *testing.T, message string, edits map[string][]byte) {
	t.Helper()
	s.event = &Event{}
	s.commit(message, edits)
	for range 4 {
		if err := s.rest(); err != nil {
			t.Fatal(err)
		}
		s.cluster.Kube.Now = s.cluster.Kube.Now.Add(time.Minute)
		s.touch()
	}
}
