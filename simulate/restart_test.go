package simulate

import (
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// checkRestart checks, after each change, that gitrollout evicts only pods that a requested restart must replace. If event is "", no event
// is due, and all such pods must be gone. If maxUnavailable is 0 or all pods, a restart may evict one serving pod at a time. Package guard
// checks other values.
func (p *promises) checkRestart(event string) {
	if !p.u.chaos.restarts {
		return
	}
	for w, d := range p.u.kube.Deployments {
		s, source := p.onRecord(w)
		a, g, serving := p.u.appIn(p.u.procs[0].Clone.Main, s.App), p.u.oracle.guard(w), p.u.oracle.serving(w)
		restarts := a != nil && s.Stable != nil && s.Release == nil && s.Draining == nil && a.promotion.Says(rollout.Restart, s.Stable.Hash) &&
			!p.u.kube.Now.Before(a.promotion.RestartAt.Add(5*time.Second))
		for _, rs := range d.Sets {
			for _, pod := range rs.Pods {
				if p.made[pod.Name].IsZero() {
					p.made[pod.Name] = p.u.kube.Now
				}
				isOld := restarts && p.made[pod.Name].Before(a.promotion.RestartAt)
				switch isDeleted := event == "pod "+pod.Name+" evicted"; {
				case isDeleted && !isOld:
					p.fail(lawRestart, "%s: pod %s was created at %s and deleted, without a restart", w, pod.Name, p.made[pod.Name])
				case isDeleted && pod.Ready && g.Floor == 0 && d.Replicas-serving > 1+g.Excused:
					p.fail(lawRestart, "%s: %d of %d pods serve after the deletion of %s", w, serving, d.Replicas, pod.Name)
				case isDeleted && g.Floor == d.Replicas:
					g.Excused = max(g.Excused, 1)
				case event == "" && isOld && source != nil && s.Held == nil && serving == d.Replicas && !pod.Terminating:
					p.fail(lawRestart, "%s: pod %s was created at %s, and the restart did not replace it", w, pod.Name, p.made[pod.Name])
				}
			}
		}
	}
}

// aged is a mutation that shows all pods as older than any restart.
func aged(_ starting, _ string, live *rollout.ObservedWorkload) {
	for i, r := range live.Revisions {
		live.Revisions[i].Members = rollout.Mapped(r.Members, func(pod rollout.Pod) rollout.Pod { pod.Created = noon; return pod })
	}
}

// TestRestart restarts one of two apps by a command, and crashes the process after each second. The app's pods must
// be replaced one at a time. The other app's pods stay, and the restart is not recorded in Git.
func TestRestart(t *testing.T) {
	p := newStory(t, twoApps("v1"))
	p.start()
	p.settle()
	p.tick(1)
	was, commits := p.pods(), p.git.Head(stateBranch)
	must(t, p.command("slow", []string{"v1", "3s"}))
	must(t, p.command("restart", []string{"shop"}))
	least := 2
	for range 15 {
		p.settle()
		for w, d := range p.cluster.Kube.Deployments {
			ready := 0
			for _, set := range d.Sets {
				ready += set.Ready()
			}
			if w.Name == "till" && ready < 2 {
				t.Errorf("%d pods of %s are ready", ready, w)
			}
			least = min(least, ready)
		}
		p.start()
		must(t, p.wait(time.Second))
	}
	p.settle()
	if least != 1 {
		t.Errorf("at least %d pods were ready, want 1 of 2", least)
	}
	for _, name := range strings.Fields(was) {
		if is, want := strings.Contains(p.pods(), name), strings.HasPrefix(name, "till"); is != want {
			t.Errorf("pod %s exists: %t, want %t", name, is, want)
		}
	}
	if now := p.git.Head(stateBranch); now != commits {
		t.Errorf("the restart made a commit on the state branch: %v", p.git.Subject(now))
	}
	p.checkPhase("shop", rollout.Healthy)

	// A second request restarts the pods again. A request for a version that does not serve has no effect.
	again := p.pods()
	must(t, p.command("restart", []string{"shop"}))
	p.tick(1)
	if p.pods() == again {
		t.Error("the second restart has no effect")
	}
	again = p.pods()
	p.files("a restart of another version", promotionOf("h1-0000000000", "decision: restart\nrestartAt: \"2030-01-01T00:00:00Z\"\n"))
	p.tick(1)
	if p.pods() != again {
		t.Error("a restart of another version deletes pods")
	}
}

// restartsLater pushes a Rollout document with a restartAt in five minutes. It returns the old pods' names.
func restartsLater(t *testing.T) (*story, string) {
	p := newStory(t, twoApps("v1"))
	p.start()
	p.settle()
	p.tick(1)
	was := p.pods()
	later := p.cluster.Kube.Now.Add(5 * time.Minute).Format(time.RFC3339)
	p.files("restart", map[string]string{shopFile: strings.Replace(appFile("shop", "v1"), "  strategy: {canary",
		"  restartAt: \""+later+"\"\n  strategy: {canary", 1)})
	return p, was
}

// TestRestartInADocument checks a restart by a Rollout document with a future time in the field restartAt.
func TestRestartInADocument(t *testing.T) {
	p, was := restartsLater(t)
	p.tick(4)
	if p.pods() != was {
		t.Error("the restart came too early")
	}
	p.tick(3)
	for _, name := range strings.Fields(was) {
		if is, want := strings.Contains(p.pods(), name), strings.HasPrefix(name, "till"); is != want {
			t.Errorf("pod %s exists: %t, want %t", name, is, want)
		}
	}
	p.checkPhase("shop", rollout.Healthy)
}

// TestRestartOfARemovedApp requests a future restart, and removes the app from the configuration before this restart. The app's pods must
// stay.
func TestRestartOfARemovedApp(t *testing.T) {
	p, was := restartsLater(t)
	p.tick(1)
	p.files("remove shop", map[string]string{
		rollout.ConfigPath("sim"): "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps:\n- path: apps/till\n"})
	p.tick(8)
	if now := p.pods(); now != was {
		t.Errorf("the pods are %s, want %s", now, was)
	}
}
