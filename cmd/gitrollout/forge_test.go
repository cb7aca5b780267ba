package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/git/wire"
	"gitrollout.dev/gitrollout/rollout"
)

// listener replaces the forge, and records the reports that the loop sends to the forge.
type listener struct {
	mu   sync.Mutex
	told []string
	last map[string]rollout.Proposal
}

func (l *listener) hear(verb string, transitions []rollout.ForgeUpdate, branches []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = map[string]rollout.Proposal{}
	for _, t := range transitions {
		text := verb + " " + string(t.After.Phase)
		for _, p := range t.Proposals {
			l.last[string(p.Kind)] = p
			if p.Commit == "" {
				text += " without " + strings.Split(p.Branch, "/")[1]
			} else {
				text += " with " + string(p.Kind)
			}
		}
		l.told = append(l.told, text)
	}
	if len(transitions) == 0 {
		l.told = append(l.told, verb+" nothing")
	}
	if len(branches) > 0 {
		l.told[len(l.told)-1] += " of " + strings.Join(branches, ",")
	}
}

func (l *listener) Show(_ rollout.Forge, transitions []rollout.ForgeUpdate) {
	l.hear("show", transitions, nil)
}

func (l *listener) Resume(_ rollout.Forge, transitions []rollout.ForgeUpdate, branches []string) {
	l.hear("resume", transitions, branches)
}

// heard returns the reports since the previous call of heard. It omits a report that equals the previous report.
func (l *listener) heard() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := strings.Join(slices.Compact(l.told), "; ")
	l.told = nil
	return text
}

// TestForgeIsTold checks that each transition of a release is reported. After a restart or a new configuration, all states are reported.
func TestForgeIsTold(t *testing.T) {
	w := newLoopWorld(t, version("v1", halfThenGate))
	branch, heard := w.promotion(), &listener{}
	p := w.start()
	p.sinks.Forge = heard
	p.awaitHealthy(w.repo.Head())
	if got := heard.heard(); got != "" {
		t.Errorf("without a forge in the configuration: %s", got)
	}
	config := w.config("- path: apps/*")
	first := w.configure(config + "forge: {type: gitea}\n")
	_ = p.passes(2)
	if got := heard.heard(); got != "resume Healthy" && got != "resume nothing" {
		t.Errorf("with one, at %s: %s", first, got)
	}
	s := p.awaitPaused(w.pushVersion("v2"))
	if got := heard.heard(); !strings.HasSuffix(got, "show Paused with promote") || strings.Contains(got, "resume") {
		t.Errorf("a release: %s", got)
	}
	promote := heard.last["promote"]
	if promote.Commit != w.repo.Ref(branch) || promote.Gate != 1 || len(promote.Standing) != 1 || promote.Standing[0].Replicas != 2 {
		t.Errorf("the proposal is told as %+v", promote)
	}
	changesImage := func(c rollout.Change) bool { return len(c.Images) == 1 && c.Images[0].To != c.Images[0].From }
	if !slices.ContainsFunc(promote.Changes, changesImage) {
		t.Errorf("it changes %+v", promote.Changes)
	}

	p = p.restart()
	p.sinks.Forge = heard
	_ = p.passes(3)
	if got := heard.heard(); got != "resume Paused with promote of "+branch {
		t.Errorf("another process: %s", got)
	}
	w.configure(config + "forge: {type: gitea, labels: [x]}\n")
	_ = p.passes(2)
	if got := heard.heard(); got != "resume Paused with promote of "+branch {
		t.Errorf("another configuration: %s", got)
	}
	w.decide(s.Release.Hash, "abort", "too slow")
	p.awaitPhase(rollout.Degraded)
	if got := heard.heard(); !strings.Contains(got, "without promote") || !strings.Contains(got, "with revert") {
		t.Errorf("an abort: %s", got)
	}
	if revert := heard.last["revert"]; revert.Commit == "" || len(revert.Changes) == 0 {
		t.Errorf("the revert is told as %+v", revert)
	}
}

// TestMergedProposalIsTidiedLater checks that a merged proposal's branch stays for ten seconds, even if the process restarts. Meanwhile the
// forge notices the merge.
func TestMergedProposalIsTidiedLater(t *testing.T) {
	t.Parallel()
	for name, restarts := range map[string]bool{"one process": false, "two processes": true} {
		t.Run(name, func(t *testing.T) {
			w := newLoopWorld(t, version("v1", halfThenGate))
			w.configure(w.config("- path: apps/*") + "forge: {type: gitea}\n")
			heard := &listener{}
			p := w.start()
			p.sinks.Forge = heard
			p.awaitHealthy(w.repo.Head())
			p.awaitPaused(w.pushVersion("v2"))
			w.repo.Merge(w.promotion())
			for s := w.state(); s.Phase == rollout.Paused; s = w.state() {
				_ = p.pass()
			}
			if w.repo.Ref(w.promotion()) == "" {
				t.Fatal("its branch is gone at once")
			}
			if restarts {
				p = p.restart()
				p.sinks.Forge = heard
			}
			// After a restart, the ten seconds begin at the last change of the record, which may be the change to Healthy.
			p.awaitPhase(rollout.Healthy)
			w.skew += 11 * time.Second
			_ = p.passes(2)
			w.wantBranch(w.promotion(), "")
			if got := heard.heard(); strings.Count(got, "show  without promote") != 1 {
				t.Errorf("the forge was told %s", got)
			}
		})
	}
}

func TestForgeToken(t *testing.T) {
	ctx := context.Background()
	fresh := func(context.Context) (string, string, error) { return "x", "fresh", nil }
	for name, tt := range map[string]struct {
		env, repo, want string
		auth            wire.Auth
	}{
		"its own":         {"own", "https://me:url@git.example.com/a/b", "own", wire.Auth{Password: "git"}},
		"Git's":           {"", "https://git.example.com/a/b", "git", wire.Auth{Username: "x", Password: "git"}},
		"the URL's token": {"", "https://me:url@git.example.com/a/b", "url", wire.Auth{}},
		"none":            {"", "git@git.example.com:a/b", "", wire.Auth{}},
		"refreshed":       {"", "https://git.example.com/a/b", "fresh", wire.Auth{Password: "old", Refresh: fresh}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("GITROLLOUT_FORGE_TOKEN", tt.env)
			got, err := forgeToken(sourceOptions{repo: tt.repo}, tt.auth)(ctx)
			if err != nil || got != tt.want {
				t.Errorf("token %q, %v; want %q", got, err, tt.want)
			}
		})
	}
	broken := wire.Auth{Refresh: func(context.Context) (string, string, error) { return "", "", errors.New("expired") }}
	if _, err := forgeToken(sourceOptions{}, broken)(ctx); err == nil {
		t.Error("an error is lost")
	}
}
