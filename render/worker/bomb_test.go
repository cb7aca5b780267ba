package worker_test

import (
	"maps"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/attacks"
	"gitrollout.dev/gitrollout/render/worker"
	"gitrollout.dev/gitrollout/rollout"
)

// TestBombs builds apps that try to use all memory or time. Each app must be refused with a reason, or be rendered. The
// parent process's memory must not grow by more than 128 MiB, and the next app must build.
func TestBombs(t *testing.T) {
	// a large Stall, because parallel tests slow the machine down
	p := worker.NewPool(worker.Options{Command: serve, Most: 1, Idle: time.Hour, Stall: 100})
	t.Cleanup(p.Close)
	builds(t, p)
	var before, after runtime.MemStats
	bombs := attacks.Bombs()
	for _, name := range slices.Sorted(maps.Keys(bombs)) {
		b, limit := bombs[name], 5*time.Minute // long, so that a busy machine does not stop a bomb before its limit
		if b.Want == attacks.OutOfBounds {
			limit = 2 * time.Second
			if testing.Short() && !slices.Contains([]string{"a template that goes on for 8 hours", "a large file in 60 overlays"}, name) {
				continue // with -short, two bombs suffice: one for memory and one for time
			}
		}
		t.Run(name, func(t *testing.T) {
			tree := files(b.Tree())
			runtime.ReadMemStats(&before)
			app := rollout.App{Name: "bomb", Path: "app", Namespace: "shop", Limits: rollout.Limits{Memory: 256 << 20, RenderTime: limit},
				Variables: rollout.NewVariables(map[string]string{"x": strings.Repeat("x", 20)}, nil)}
			_, _, err := p.Build(tree, app)
			for try := 1; try < 10 && err != nil && !rollout.IsInvalid(err); try++ { // on a busy machine, another try may succeed
				_, _, err = p.Build(tree, app)
			}
			runtime.ReadMemStats(&after)
			switch {
			case b.Want == "" && err != nil:
				t.Errorf("error %v, want none", err)
			case b.Want != "" && !rollout.IsInvalid(err):
				t.Errorf("error %v, want it held: %s", err, b.Want)
			case b.Want != "" && !regexp.MustCompile(b.Want).MatchString(err.Error()):
				t.Errorf("held: %v, want %s", err, b.Want)
			}
			if err != nil {
				t.Logf("%.200s", err)
			}
			// Sys never shrinks, so it shows the peak. The parent needs memory only for the bomb's files.
			if grown := int64(after.Sys-before.Sys) >> 20; grown > 128 {
				t.Errorf("the asking process has grown by %d MiB", grown)
			}
			builds(t, p)
		})
	}
}
