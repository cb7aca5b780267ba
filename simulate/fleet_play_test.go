package simulate

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/kube"
	"gitrollout.dev/gitrollout/simulate/memgit"
)

// outage makes all pods of a cluster unready, or ready again.
func (w *fleetWorld) outage(m *member, down bool) {
	w.note("outage of %s: %t", m.name, down)
	m.isDown = down
	for _, d := range m.Kube.Deployments {
		d.Rests = false
		for _, rs := range d.Sets {
			for _, p := range rs.Pods {
				p.Never = down || strings.Contains(kube.VersionOf(rs.Template), "bad")
				p.Ready, p.Due = p.Ready && !down, m.Kube.Now.Add(time.Second)
			}
		}
	}
	m.Kube.OnChange("outage")
}

func (w *fleetWorld) decide(what string, m *member, app, text string, release rollout.Hash) {
	w.push(what, map[string]string{rollout.PromotionPath(m.name, app): "apiVersion: gitrollout.dev/v1alpha1\nkind: Promotion\n" + text +
		"\nrelease: " + string(release) + "\nat: " + w.now.Format(time.RFC3339) + "\n"})
}

// enter pushes a promotion with "through: entry" for the commit that the app waits for.
func (w *fleetWorld) enter(m *member, app string) {
	held := m.apps[app].is.Held
	if !held.Is(rollout.HeldStage) {
		return
	}
	r, err := fleetRenderer{}.Render(w.git.Commits[held.Commit],
		rollout.App{Name: app, Path: m.folder + "/" + app, Namespace: namespace}, rollout.Commit{})
	if err == nil {
		_, all := w.content(m, app, held.Commit)
		w.opened[m.name+" "+app+" "+all] = true
		w.decide("emergency", m, app, "through: entry\ncommit: "+held.Commit, r.Version())
	}
}

// merge merges all proposals.
func (w *fleetWorld) merge() {
	for _, branch := range w.git.Branches("gitrollout/promote/") {
		files, now := map[string]string{}, w.git.Files(w.git.Head(Branch))
		for name, content := range w.git.Merge(w.git.Head(branch), w.git.Head(Branch)).Edits {
			if now[name] != string(content) {
				files[name] = string(content)
			}
		}
		if len(files) > 0 {
			w.push("merge of "+branch[:18], files)
		}
	}
}

// act plays one random action of a user or one event.
func (w *fleetWorld) act() {
	w.serial++
	m := w.members[w.rng.IntN(len(w.members))]
	apps := fleetApps(m.folder)
	app := apps[w.rng.IntN(len(apps))]
	switch w.rng.IntN(18) {
	case 0, 1, 2, 3:
		w.pushBase([]string{"good", "good", "bad"}[w.rng.IntN(3)])
	case 4:
		if n := len(w.base); n > 1 {
			w.base = w.base[:n-1]
			files := map[string]string{"base/version": w.base[n-2]}
			if w.rng.IntN(2) == 0 {
				files["base/config"] = fmt.Sprint("c", w.serial)
			}
			w.push("revert", files)
		}
	case 5, 6:
		version := fmt.Sprint([]string{"v", "v", "bad", "invalid"}[w.rng.IntN(4)], w.serial)
		w.push("overlay", map[string]string{m.folder + "/" + app + "/version": version})
	case 7:
		w.push("content", map[string]string{"base/config": fmt.Sprint("c", w.serial)})
	case 8:
		w.push("note", map[string]string{m.folder + "/" + app + "/note": fmt.Sprint(w.serial)})
	case 9, 10:
		switch w.rng.IntN(4) {
		case 0:
			if w.gone = m.name; m.name == "dev" {
				w.gone = ""
			}
		case 1:
			w.most = []string{"40%", "1", "3", "100%"}[w.rng.IntN(4)]
		case 2:
			w.broken = !w.broken
		case 3:
			w.freeze = !w.freeze
		}
		w.push("fleet.yaml", map[string]string{rollout.FleetPath: w.fleetFile()})
	case 11:
		if w.rng.IntN(2) == 0 {
			m.isBlind = !m.isBlind
		} else {
			m.isMissing = !m.isMissing
		}
		w.note("%s is blind %t, missing %t", m.name, m.isBlind, m.isMissing)
	case 12:
		w.note("restart of %s", m.name)
		w.start(m)
	case 13:
		w.outage(m, !m.isDown)
	case 14:
		file := rollout.FreezePath(m.name)
		if w.git.Files(w.git.Head(Branch))[file] != "" {
			w.push("end of freeze", map[string]string{file: ""})
		} else {
			w.push("freeze", map[string]string{file: freezeAll})
		}
	case 15:
		w.enter(m, app)
	case 16:
		w.abort(m)
	case 17:
		w.recant(w.members[1+w.rng.IntN(2)])
	}
}

// recant makes a cluster reject a content that has soaked there, before the next stage takes the content.
func (w *fleetWorld) recant(m *member) {
	edits := map[string]string{rollout.FreezePath(m.name): ""}
	freeze := func(text string) {
		for _, p := range w.members[3:] {
			edits[rollout.FreezePath(p.name)] = text
		}
		w.push("freeze of prod", edits)
	}
	freeze(freezeAll)
	w.pushBase("good")
	w.run(40*time.Minute, true)
	w.serial++
	w.pushBase("good")
	w.run(15*time.Minute, true)
	w.outage(m, true)
	w.base = w.base[:len(w.base)-1]
	w.push("revert", map[string]string{"base/version": w.base[len(w.base)-1]})
	w.run(10*time.Minute, true)
	w.outage(m, false)
	freeze("")
}

// abort aborts a release in flight in a cluster.
func (w *fleetWorld) abort(m *member) {
	for _, app := range fleetApps(m.folder) {
		if r := m.apps[app].is.Release; r != nil {
			w.decide("abort", m, app, "decision: abort", r.Hash)
		}
	}
}

func (w *fleetWorld) pushBase(version string) {
	w.base = append(w.base, fmt.Sprint(version, w.serial))
	w.push("base", map[string]string{"base/version": w.base[len(w.base)-1]})
}

// goodEnd repairs everything, and pushes a good version of each file.
func (w *fleetWorld) goodEnd() {
	w.gone, w.most, w.broken, w.freeze = "", "40%", false, false
	files := map[string]string{rollout.FleetPath: w.fleetFile(), "base/version": "goodend", "base/config": "cend"}
	for _, m := range w.members {
		m.isBlind, m.isMissing = false, false
		if m.isDown {
			w.outage(m, false)
		}
		files[rollout.FreezePath(m.name)] = ""
		for _, app := range fleetApps(m.folder) {
			files[m.folder+"/"+app+"/version"] = "vend"
		}
	}
	w.push("the end", files)
}

// play runs one seed. At the end, all apps must have the newest commit.
func (w *fleetWorld) play() {
	for _, m := range w.members {
		w.start(m)
		m.poll = m.poll.Add(time.Duration(w.rng.IntN(60)) * time.Second)
	}
	w.run(90*time.Minute, false)
	if w.seed%4 == 3 {
		w.approve = "merge"
		w.push("fleet.yaml", map[string]string{rollout.FleetPath: w.fleetFile()})
	}
	for range 15 + w.rng.IntN(15) {
		if w.failure != "" {
			return
		}
		for range 1 + w.rng.IntN(3) {
			w.act()
		}
		w.run(time.Duration(w.rng.IntN(40*60))*time.Second, true)
		if w.rng.IntN(2) == 0 {
			w.merge()
		}
	}
	if w.brief {
		return
	}
	w.goodEnd()
	for range 18 {
		w.run(10*time.Minute, false)
		w.merge()
	}
	heads := func() (all []string) {
		for _, m := range w.members {
			all = append(all, w.git.Head(rollout.StateBranch(m.name)))
		}
		return all
	}
	for _, m := range w.members {
		for _, app := range fleetApps(m.folder) {
			t := m.apps[app]
			_, is := w.content(m, app, t.is.Source)
			_, want := w.content(m, app, w.git.Head(Branch))
			if w.failure == "" && (is != want || t.is.Shown() != rollout.Healthy || t.is.Release != nil) {
				w.failure = fmt.Sprintf("%s %s is %s at %s (%s), held %+v", m.name, app, t.is.Shown(), rollout.ShortID(t.is.Source), is, t.is.Held)
			}
		}
	}
	before := heads()
	if w.run(time.Hour, false); w.failure == "" && !slices.Equal(before, heads()) {
		w.failure = "a steady state was recorded again"
	}
}

// TestFleet plays random actions of users and faults. A cluster may take a change only after the change has soaked in the previous stage.
// At most maxUpdate clusters take a change at a time. At the end, all clusters have the last, good version.
func TestFleet(t *testing.T) {
	seeds := 12
	if testing.Short() {
		seeds = 1
	}
	seeds = seedsOr(seeds)
	acts := map[string]int{}
	for seed := range uint64(seeds) {
		w := newFleetWorld(t, seed+*fromFlag)
		w.play()
		for name, n := range w.acts {
			acts[name] += n
		}
		if w.failure != "" {
			t.Errorf("seed %d: %s\n%s", seed+*fromFlag, w.failure, strings.Join(w.trace[max(0, len(w.trace)-60):], "\n"))
			if *seedsFlag == 0 {
				return
			}
		}
		if seed%10 == 9 {
			t.Log(seed+1, "runs") // a long test run shows its progress
		}
	}
	t.Log(seeds, "runs:", acts)
}

// TestFleetMutations checks that the world notices reconcilers that break the rules of stages.
func TestFleetMutations(t *testing.T) {
	for name, m := range map[string]struct {
		seed uint64 // runs first, and is known to notice the fault
		read func(*member, *peerGit)
		wrap func(*Process, *reconciler.Options)
	}{
		"the present health counts as evidence": {seed: 1, read: func(_ *member, k *peerGit) {
			k.alter = func(s *rollout.State, _ bool) {
				s.Soaked = append([]rollout.Soaked{{Commit: s.Source, At: began}}, s.Soaked...)
			}
		}},
		"a rejection in the stage before is left out": {seed: 3, read: func(_ *member, k *peerGit) {
			k.alter = func(s *rollout.State, _ bool) { s.Rejected = nil }
		}},
		"an unreadable state branch counts as evidence": {seed: 4, read: func(_ *member, k *peerGit) {
			k.faith = true
			k.alter = func(s *rollout.State, unread bool) {
				for _, id := range k.w.line[max(0, len(k.w.line)-10):] {
					if unread {
						s.Soaked = append(s.Soaked, rollout.Soaked{Commit: id, At: began})
					}
				}
				s.Soaked = s.Soaked[max(0, len(s.Soaked)-10):]
			}
		}},
		"maxUpdate is left out": {seed: 1, wrap: func(p *Process, o *reconciler.Options) { o.Repository = hastyFleet{p.Clone} }},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(50) {
				if seed == 0 {
					seed = m.seed
				}
				w := newFleetWorld(t, seed)
				w.read, w.wrap, w.brief = m.read, m.wrap, true
				if w.play(); w.failure != "" {
					t.Logf("seed %d: %s", seed, w.failure)
					return
				}
			}
			t.Error("50 seeds do not notice it")
		})
	}
}

// hastyFleet removes maxUpdate from fleet.yaml, so that the default (100 %) applies.
type hastyFleet struct{ *memgit.Clone }

func (h hastyFleet) Held(id string) (reconciler.Snapshot, bool) {
	tree, held := h.Clone.Held(id)
	if !held {
		return nil, false
	}
	return hastyTree{tree}, true
}

type hastyTree struct{ reconciler.Snapshot }

func (h hastyTree) ReadBlob(id string) ([]byte, error) {
	data, err := h.Snapshot.ReadBlob(id)
	text, limit, found := strings.Cut(string(data), ", maxUpdate: ")
	if _, rest, ends := strings.Cut(limit, "}"); found && ends {
		data = []byte(text + "}" + rest)
	}
	return data, err
}

// TestFleetOfManyPushes checks, with a push every 5 minutes and soaks of 20 minutes, that each cluster of each stage gets a new version at
// least every 50 minutes.
func TestFleetOfManyPushes(t *testing.T) {
	if testing.Short() {
		t.Skip("takes 10 s of one CPU")
	}
	for _, most := range []string{"40%"} {
		w := newFleetWorld(t, 4)
		w.soaks, w.most = []string{"20m", "20m", "20m"}, most
		w.push("fleet.yaml", map[string]string{rollout.FleetPath: w.fleetFile()})
		for _, m := range w.members {
			w.start(m)
		}
		w.run(3*time.Hour, false)
		for minute := 0; minute < 5*60; minute += 5 {
			w.serial++
			w.pushBase("good")
			w.run(5*time.Minute, false)
			for _, m := range w.members {
				for app, a := range m.apps {
					if d := w.now.Sub(a.took); minute > 150 && d > 50*time.Minute {
						t.Fatalf("maxUpdate %s: %s %s has no new version since %s, held %+v", most, m.name, app, d, a.is.Held)
					}
				}
			}
		}
		if w.failure != "" {
			t.Error(w.failure)
		}
	}
}
