package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/gittest"
)

// pane is a shell in tmux, which is a real terminal emulator.
type pane struct {
	*testing.T
	socket string
}

// newPane starts tmux with one window of the given size. The test fails if tmux is not installed.
func newPane(t *testing.T, columns, rows int) *pane {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Fatal("tmux is not installed: apt-get install tmux")
	}
	p := &pane{T: t, socket: filepath.Join(t.TempDir(), "tmux")}
	p.tmux("-f", "/dev/null", "new-session", "-d", "-x", fmt.Sprint(columns), "-y", fmt.Sprint(rows),
		"env", "PS1=ready> ", "TERM=screen-256color", "LC_ALL=C.UTF-8", "sh")
	t.Cleanup(func() { _ = exec.Command("tmux", "-S", p.socket, "kill-server").Run() })
	p.await("a prompt", func(s string) bool { return strings.Contains(s, "ready>") })
	return p
}

func (p *pane) tmux(args ...string) string {
	p.Helper()
	out, err := exec.Command("tmux", append([]string{"-u", "-S", p.socket}, args...)...).CombinedOutput()
	if err != nil {
		p.Fatalf("tmux %v: %v: %s", args, err, out)
	}
	return string(out)
}

func (p *pane) types(line string) {
	p.Helper()
	p.tmux("send-keys", "-l", line)
	p.tmux("send-keys", "Enter")
}

func (p *pane) resize(columns, rows int) {
	p.Helper()
	p.tmux("resize-window", "-x", fmt.Sprint(columns), "-y", fmt.Sprint(rows))
}

// screen returns the visible text of the window, without the scrollback.
func (p *pane) screen() string     { p.Helper(); return p.tmux("capture-pane", "-p") }
func (p *pane) everything() string { p.Helper(); return p.tmux("capture-pane", "-p", "-S", "-") }

func (p *pane) await(what string, ok func(screen string) bool) string {
	p.Helper()
	var s string
	defer func() {
		if p.Failed() && !ok(s) {
			p.Logf("the window shows:\n%s", s)
		}
	}()
	await(p.T, what, func() bool {
		s = p.screen()
		return ok(s)
	})
	return s
}

// leave interrupts the running command, which must exit with code 0. The terminal must then show a prompt, the typed text and the cursor.
func (p *pane) leave() {
	p.Helper()
	p.tmux("send-keys", "C-c")
	p.await("a prompt after Ctrl-C", func(s string) bool {
		lines := strings.Split(strings.TrimSpace(s), "\n")
		return strings.HasPrefix(strings.TrimPrefix(lines[len(lines)-1], "^C"), "ready>")
	})
	p.types("echo left with $?")
	p.await("the typed command and its answer", func(s string) bool {
		return strings.Contains(s, "ready> echo left with $?") && strings.Contains(s, "\nleft with 0")
	})
	if flags := p.tmux("display-message", "-p", "#{cursor_flag} #{alternate_on}"); strings.TrimSpace(flags) != "1 0" {
		p.Errorf("the cursor is hidden or the alternate screen is on: %s", flags)
	}
}

// shows returns a condition that is true for texts that contain all parts.
func shows(parts ...string) func(string) bool {
	return func(s string) bool {
		return !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(s, part) })
	}
}

// TestWatchInATerminal watches a release in a window that changes its size. The app must be drawn only once, always
// in the same place. At the release's pause, the screen must name the next action.
func TestWatchInATerminal(t *testing.T) {
	w, p := newHealthyWorld(t, version("v1", halfThenGate))
	term := newPane(t, 120, 40)
	term.types("clear; gitrollout get " + w.app + " -w --refresh 200ms --repo " + w.server.URL + " --cluster test --kubeconfig " +
		w.api.kubeconfig)
	head := regexp.MustCompile(`(?m)^. ` + w.app + `  `)
	once := func(when string) {
		t.Helper()
		if n := len(head.FindAllString(term.screen(), -1)); n != 1 {
			t.Errorf("%s: the app is drawn %d times:\n%s", when, n, term.screen())
		}
	}
	term.await("the healthy app", shows("✔ "+w.app+"  Healthy", "2/2 ready"))

	second := w.pushVersion("v2")
	p.awaitPaused(second)
	term.await("the gate", shows("‖ "+w.app+"  Paused", "● 2  pause", "50%", "To go on", "git merge --no-ff origin/"+w.promotion()))
	once("paused")
	if n := len(head.FindAllString(term.everything(), -1)); n != 1 {
		t.Errorf("%d drawings, scrolled-out lines included:\n%s", n, term.everything())
	}

	for _, size := range [][2]int{{80, 30}, {100, 24}, {120, 40}} {
		term.resize(size[0], size[1])
		time.Sleep(1500 * time.Millisecond) // the program redraws when the size changes, and again a second later
		term.await(fmt.Sprintf("the gate in %v", size), shows("Paused", "To go on", "gitrollout abort"))
		once(fmt.Sprint(size))
	}

	w.repo.Merge(w.promotion())
	p.awaitHealthy(second)
	term.await("the end", shows("✔ "+w.app+"  Healthy"))
	once("healthy")
	term.leave()
}

// TestListInATerminal watches a list with more apps than the window has lines.
func TestListInATerminal(t *testing.T) {
	repo := fleetRepo(t, 250)
	term := newPane(t, 100, 20)
	fleet := " --cluster prod --kubeconfig /nowhere --repo " + repo.HTTP(gittest.HTTPOptions{}).URL
	term.types("clear; gitrollout list -w --refresh 200ms" + fleet)
	drawn := shows("250 apps", "more")
	s := term.await("the fleet", drawn)
	if !regexp.MustCompile(`(?m)^NAME.*\napp-0000\b`).MatchString(s) || !strings.Contains(s, "\napp-0200  fleet      Paused") {
		t.Errorf("those that wait are not first:\n%s", s)
	}
	for _, rows := range []int{12, 30} {
		term.resize(90, rows)
		time.Sleep(1500 * time.Millisecond)
		s = term.await("the fleet in another window", drawn)
		if strings.Count(s, "NAME ") != 1 {
			t.Errorf("%d rows:\n%s", rows, s)
		}
	}
	term.leave()
	term.resize(100, 20)
	term.types("clear; gitrollout list -w --waiting 'app-02*'" + fleet)
	term.await("one app", shows("1 app:", "app-0200  fleet      Paused"))
	term.leave()
}
