package simulate

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

// TestSuggestedCommandsFit runs random commands, and checks that "gitrollout get" suggests only possible commands.
func TestSuggestedCommandsFit(t *testing.T) {
	lines := []string{
		"push v2", "push v3", "push v4", "revert", "promote shop", "promote shop full", "hold shop", "abort shop", "retry shop", "withdraw shop",
		"kill v1 5", "kill v2 5", "+5s", "+1m", "+11m", "git down", "git up", "api down", "api up", "crash",
	}
	seen := map[string]bool{}
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 0))
		p := newStory(t, twoApps("v1"))
		p.start()
		var played []string
		for range 25 {
			line := lines[random.IntN(len(lines))]
			words := strings.Fields(line)
			p.event = &Event{}
			if p.command(words[0], words[1:]) != nil {
				continue // the command is impossible in this state
			}
			p.touch()
			must(t, p.rest())
			played = append(played, line)
			for _, app := range p.branch().Apps {
				a := status.Of(p.input(app), "sim", nil)
				for _, n := range a.Next {
					seen[n.To] = true
					if !slices.ContainsFunc(a.Actions, func(p propose.Action) bool { return suggests(n.Command, p) }) {
						t.Fatalf("%s: %q does not fit %s %s, held %+v; possible: %+v",
							strings.Join(played, " / "), n.Command, a.App, a.Phase, a.Held, a.Actions)
					}
				}
			}
		}
	}
	t.Log(seen)
}

// suggests reports whether a command line carries out an action.
func suggests(command string, a propose.Action) bool {
	words := strings.Fields(command)
	has := func(flag string) bool { return slices.Contains(words, flag) }
	return strings.HasPrefix(command, fmt.Sprintf("gitrollout %s ", a.Verb)) &&
		a.Full == has("--full") && a.Off == has("--off") && a.AdoptAnyway == has("--adopt-anyway")
}

// TestFixDuringARollbackToABrokenVersion pushes a fix while a rollback waits for stable pods that cannot become ready. The fix also waits,
// because its pods would replace serving pods of the rejected version. "gitrollout get" must name the command that replaces all pods.
func TestFixDuringARollbackToABrokenVersion(t *testing.T) {
	p := newStory(t, twoApps("v1"))
	play := func(script string) status.App {
		t.Helper()
		timeline, err := p.Play(script)
		must(t, err)
		t.Log(timeline)
		return status.Of(p.input(p.branch().Apps[0]), "sim", nil)
	}
	const fix = "gitrollout promote shop --full"
	names := func(a status.App) bool {
		return slices.ContainsFunc(a.Next, func(n status.Next) bool { return n.Command == fix })
	}
	if a := play("start\nnever v1\nkill v1 5\npush v2\n+1m\nabort shop\n+20m"); a.Phase != rollout.Aborting || names(a) {
		t.Fatalf("%s, next %+v", a.Phase, a.Next)
	}
	if a := play("push v3\n+20m"); a.Phase != rollout.Aborting || !names(a) {
		t.Fatalf("%s, next %+v", a.Phase, a.Next)
	}
	if a := play("promote shop full\n+10m"); a.Phase != rollout.Healthy || a.Next != nil {
		t.Errorf("%s: %s, next %+v", a.Phase, a.Reason, a.Next)
	}
}
