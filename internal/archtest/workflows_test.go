package archtest

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	usesLine   = regexp.MustCompile(`(?m)^\s*(?:- )?uses: *(.*)$`)
	pinned     = regexp.MustCompile(`^([^@\s]+)@([0-9a-f]{40}) # (v[0-9]+\.[0-9]+\.[0-9]+)$`)
	runLine    = regexp.MustCompile(`(?m)^\s*(?:- )?run: *(.*)$`)
	makes      = regexp.MustCompile(`\bmake ([a-z0-9-]+|\$\{\{ matrix\.target \}\})`)
	matrix     = regexp.MustCompile(`(?m)^\s*target: \[(.*)\]$`)
	makeTarget = regexp.MustCompile(`(?m)^([a-z0-9-]+):`)
	topRights  = regexp.MustCompile(`(?m)^permissions:\n((?:  .*\n)+)`)
)

// TestWorkflows checks each workflow. Actions are pinned by commit, with the version as a comment. Steps call only existing make targets.
// The top-level permissions do not include write.
func TestWorkflows(t *testing.T) {
	targets := map[string]bool{}
	for _, m := range makeTarget.FindAllStringSubmatch(read(t, "Makefile"), -1) {
		targets[m[1]] = true
	}
	files, err := filepath.Glob(filepath.Join(root, ".github/workflows/*"))
	must(t, err)
	pins, called := map[string]string{}, map[string]bool{}
	for _, file := range files {
		name := strings.TrimPrefix(file, root+"/")
		text := read(t, name)
		rights := topRights.FindStringSubmatch(text)
		if rights == nil || strings.Contains(rights[1], "write") {
			t.Errorf("%s: the permissions at the top are missing or include write", name)
		}
		for _, m := range usesLine.FindAllStringSubmatch(text, -1) {
			pin := pinned.FindStringSubmatch(m[1])
			if pin == nil {
				t.Errorf("%s: uses: %s: want OWNER/ACTION@COMMIT # vX.Y.Z", name, m[1])
				continue
			}
			action := strings.Join(strings.SplitN(pin[1], "/", 3)[:2], "/")
			if other, known := pins[action]; known && other != pin[2]+pin[3] {
				t.Errorf("%s: %s has another version than in another step", name, action)
			}
			pins[action] = pin[2] + pin[3]
		}
		for _, target := range calledTargets(text) {
			called[target] = true
			if !targets[target] {
				t.Errorf("%s: make %s: the Makefile has no such target", name, target)
			}
		}
	}
	for _, target := range []string{"test", "test-all", "bench", "lint", "vulncheck", "build", "release"} {
		if !called[target] {
			t.Errorf("no workflow calls make %s", target)
		}
	}
}

// calledTargets returns the make targets that a workflow's steps call. If a step uses a matrix, all targets of the matrix are called.
func calledTargets(workflow string) (targets []string) {
	for _, run := range runLine.FindAllStringSubmatch(workflow, -1) {
		for _, m := range makes.FindAllStringSubmatch(run[1], -1) {
			if !strings.HasPrefix(m[1], "$") {
				targets = append(targets, m[1])
				continue
			}
			if list := matrix.FindStringSubmatch(workflow); list != nil {
				targets = append(targets, strings.Split(list[1], ", ")...)
			}
		}
	}
	return targets
}
