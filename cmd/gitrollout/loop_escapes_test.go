package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode"

	"gitrollout.dev/gitrollout/rollout"
)

// TestOthersDoNotControlTheTerminal puts control sequences for a terminal's title and screen into texts of other users: commit subjects,
// app files and the reasons of commands. No command may print a control character.
func TestOthersDoNotControlTheTerminal(t *testing.T) {
	const owned = "\x1b]0;owned\a\x1b[2J"
	w, p := newHealthyWorld(t, version("v1", halfThenGate))
	first := w.repo.Head()
	files := version("v2", halfThenGate)
	title := `{name: app, env: [{name: TITLE, value: "\e]0;owned\a\e[2J"}],`
	files["app.yaml"] = strings.Replace(files["app.yaml"], "{name: app,", title, 1)
	p.awaitPaused(w.push("v2 "+owned, files))
	// Add the folders of two apps that cannot be rendered.
	w.repo.Write(map[string]string{
		"apps/broken/kustomization.yaml": `resources: ["no\e]0;owned\a\e[2J.yaml"]` + "\n",
		"apps/fields/kustomization.yaml": `"wrong\e]0;owned\a\e[2J": 1` + "\n",
	})
	w.repo.Commit("more " + owned)
	p.await("it is seen", func(rollout.State) bool {
		return w.stateOf("broken").Held != nil && w.stateOf("fields").Held != nil
	})
	p.end()

	by := "--author=" + ann
	for _, args := range [][]string{
		{"get"}, {"get", w.app, "-o", "wide"}, {"get", "broken"}, {"get", "fields"}, {"list"}, {"history", w.app},
		{"history", w.app, "-o", "wide"}, {"status", w.app}, {"status", "broken"}, {"render", "broken"}, {"render", "fields"},
		{"render", w.app}, {"diff"}, {"diff", w.app}, {"validate"}, {"plan", "--base", first},
		{"plan", "--base", first, "-o", "markdown"}, {"doctor"}, {"undo", w.app, "--dry-run", "--reason", owned, by},
		{"undo", w.app, "--reason", owned, by}, {"state", "repair", w.app, "--dry-run", by}, {"hold", w.app, "--reason", owned, by},
		{"get", w.app}, {"get", owned}, {"render", owned}, {owned}, {"get", "--repo", owned},
		{"abort", w.app, "--reason", owned, by}, {"promote", "broken", by},
	} {
		var out, errs bytes.Buffer
		args = append(args, "--repo", w.server.URL, "--cluster", "test")
		if slices.Contains([]string{"get", "list", "diff", "doctor", "plan", "state"}, args[0]) {
			args = append(args, "--kubeconfig", w.api.kubeconfig)
		}
		code := run(w.Context(), args, strings.NewReader(""), &out, &errs)
		text := out.String() + errs.String()
		if i := strings.IndexFunc(text, func(r rune) bool { return unicode.IsControl(r) && r != '\n' }); i >= 0 {
			t.Errorf("gitrollout %q (exit code %d) prints a control character: %q", args, code, text[max(0, i-100):min(len(text), i+50)])
		}
		if code == int(exitUsage) && !strings.Contains(strings.Join(args, " "), owned) {
			t.Errorf("gitrollout %q: %s", args, text)
		}
	}
}
