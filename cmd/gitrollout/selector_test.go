package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/git"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/rollout"
)

// TestSeveralChanges checks which apps one action changes if the action is refused or unnecessary for some of the apps.
func TestSeveralChanges(t *testing.T) {
	edits := map[string][]byte{"file": nil}
	failures := map[string]error{"gone": git.ErrUnreachable, "denied": git.ErrAuth, "stopped": context.Canceled, "lost": git.ErrNotFound,
		"invalid": &rollout.InvalidError{File: "a.yaml", Msg: "is empty"}}
	change := func(app string) (propose.Change, error) {
		switch {
		case strings.HasPrefix(app, "calm"):
			return propose.Change{}, fmt.Errorf("%s: no release is in flight", app)
		case app == "done":
			return propose.Change{App: app, Effect: "nothing to undo"}, nil
		case failures[app] != nil:
			return propose.Change{}, fmt.Errorf("%s: %w", app, failures[app])
		}
		return propose.Change{App: app, Edits: edits}, nil
	}
	for name, c := range map[string]struct {
		selector, names string
		unknown         error
		want            string // the changed apps, the notes and the error
	}{
		"All":           {"", "cart shop", nil, "cart shop"},
		"OneRefuses":    {"", "calm", nil, " error: calm: no release is in flight"},
		"NamedRefuses":  {"", "calm shop", nil, " error: nothing was pushed, because of 1 app: calm: no release is in flight"},
		"NamedDone":     {"", "done shop", nil, "shop note: nothing to undo"},
		"OneDone":       {"", "done", nil, " note: nothing to undo"},
		"SelectedSkips": {"l", "calm done shop", nil, "shop note: skipped calm: no release is in flight note: skipped done: nothing to undo"},
		"SelectedNone": {"l", "calm done", nil, ` error: nothing to do for the apps that match --selector "l": ` +
			"calm: no release is in flight done: nothing to undo"},
		"Unreachable": {"l", "gone shop", nil, " error: gone: unreachable"},
		"Denied":      {"l", "shop denied", nil, " error: denied: " + git.ErrAuth.Error()},
		"Interrupted": {"l", "shop stopped", nil, " error: stopped: context canceled"},
		"Lost":        {"l", "lost shop", nil, "shop note: skipped lost: " + git.ErrNotFound.Error()},
		"Invalid":     {"l", "invalid shop", nil, "shop note: skipped invalid: a.yaml: is empty"},
		"Unknown":     {"l", "shop", errors.New("pay: its labels are unknown"), "shop note: skipped pay: its labels are unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			var refused []error
			if c.unknown != nil {
				refused = append(refused, c.unknown)
			}
			o := appOptions{selector: c.selector}
			all, notes, err := o.changes(strings.Fields(c.names), refused, change)
			var apps []string
			for _, c := range all {
				apps = append(apps, c.App)
			}
			got := strings.Join(apps, " ")
			for _, note := range notes {
				got += " note: " + note
			}
			if err != nil {
				got += " error: " + strings.ReplaceAll(err.Error(), "\n", " ")
			}
			compare.Check(t, c.want, got)
		})
	}
}
