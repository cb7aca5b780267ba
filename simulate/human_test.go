package simulate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/kube"
	"gitrollout.dev/gitrollout/simulate/memgit"
)

// humanMove is an action of users or autoscalers during a release. The function play returns false if the action does not apply now.
type humanMove struct {
	name string
	play func(u *universe, i int) bool
}

// rareMoves are moves that seldom apply. Therefore, human() first tries to play a rare move.
var rareMoves = []humanMove{
	{"push in a phase", pushInPhase},
	{"push while pods are kept", pushWhileKept},
	{"no pods at a gate", emptyAtAGate},
	{"another name at a gate", renameAtAGate},
	{"people during an analysis", duringAnalysis},
}

// editMoves are further moves that seldom apply, for worlds with chaos.edits.
var editMoves = []humanMove{{"all steps or none", allOrNoSteps}}

// moves are the actions of users in worlds with chaos.humans. All are equally likely.
var moves = []humanMove{
	{"one weight", editSteps(oneWeight)},
	{"a pause more", editSteps(pauseMore)},
	{"a step less", editSteps(stepLess)},
	{"settings", otherSettings},
	{"the way of scaling", otherScaling},
	{"the strategy", otherStrategy},
	{"replicas in Git", replicasInGit},
	{"replicas in the cluster", replicasInCluster},
	{"replicas by hand", replicasByHand},
	{"a pod that stays unavailable", weakVersion},
	{"a slip in the configuration", slip},
	{"the Rollout document", toggleDocument},
	{"a Deployment's name", renameDeployment},
	{"an app's name", renameApp},
	{"a late merge", lateMerge},
	{"a decision about another release", otherRelease},
	{"a new root", newRoot},
	{"an edit by hand", editByHand},
}

// notPlayed maps the names of disabled moves to the reason.
var notPlayed = map[string]string{}

// human makes a random move for app i.
func (u *universe) human(i int) {
	rare := rareMoves
	if u.chaos.edits {
		rare = slices.Concat(rareMoves, editMoves)
	}
	for _, j := range u.rng.Perm(len(rare)) {
		m := rare[j]
		if u.rng.IntN(3) == 0 && (*onlyFlag == "" || strings.Contains(*onlyFlag, m.name)) && m.play(u, i) {
			u.played[m.name]++
			return
		}
	}
	for range 10 {
		m := moves[u.rng.IntN(len(moves))]
		if _, left := notPlayed[m.name]; left && !*allFlag || *onlyFlag != "" && !strings.Contains(*onlyFlag, m.name) {
			continue
		}
		if m.play(u, i) {
			u.played[m.name]++
			return
		}
	}
}

func (u *universe) editApp(i int, what string, change func(*appSource)) {
	u.edit(what+" of "+u.head().apps[i].name, func(s *source) { change(&s.apps[i]) })
}

// editWorkload pushes a change of a random workload of app i. It returns false if the workload is not in Git or the change does not apply.
func (u *universe) editWorkload(i int, what string, change func(*workloadSource) bool) bool {
	next := u.head().clone()
	all := next.apps[i].workloads
	w := &all[u.rng.IntN(len(all))]
	if w.gone || !change(w) {
		return false
	}
	if a, is := w.canary["analysis"].(map[string]any); is && a["startingStep"].(int) >= len(w.steps()) {
		w.canary = maps.Clone(w.canary)
		delete(w.canary, "analysis") // the analysis would start at a step that no longer exists
	}
	u.note("PEOPLE %s of %s", what, w.name)
	u.push(next, what)
	return true
}

// pushInPhase pushes a version during a rollback, or during the last phase of a release.
func pushInPhase(u *universe, i int) bool {
	s := u.oracle.states[u.head().apps[i].name]
	if s.Phase != rollout.Aborting && s.Phase != rollout.Promoting {
		return false
	}
	u.played["push while "+string(s.Phase)]++
	u.pushAll(i, string(s.Phase))
	return true
}

// pushWhileKept pushes a version while the pods of the previous stable version are kept.
func pushWhileKept(u *universe, i int) bool {
	for range u.head().apps { // few apps keep pods, and only for some seconds
		if u.oracle.states[u.head().apps[i].name].Draining != nil {
			u.pushAll(i, "pods are kept")
			return true
		}
		i = (i + 1) % len(u.head().apps)
	}
	return false
}

func (u *universe) pushAll(i int, when string) {
	u.editApp(i, "a version while "+when, func(a *appSource) {
		for j := range a.workloads {
			a.workloads[j].version = u.nextVersion()
		}
	})
}

// emptyAtAGate scales one workload to 0, or back up, during a release with several workloads.
func emptyAtAGate(u *universe, i int) bool {
	s := u.oracle.states[u.head().apps[i].name]
	if len(s.Progress) < 2 || s.Stable == nil || s.Phase == rollout.Aborting {
		return false
	}
	pr := s.Progress[u.rng.IntN(len(s.Progress))]
	d := u.kube.Deployments[pr.Workload]
	if d == nil {
		return false
	}
	n := map[bool]int{true: 0, false: 3}[d.Replicas > 0]
	a := u.head().apps[i]
	if j := a.index(pr.Workload); j >= 0 && a.workloads[j].replicas != nil {
		u.editApp(i, fmt.Sprintf("%d replicas at a gate", n), func(a *appSource) { a.workloads[j].replicas = &n })
	} else {
		u.scaleTo(pr.Workload, n)
	}
	return true
}

// allOrNoSteps removes all steps of a workload during its release, or adds steps to a workload without steps.
func allOrNoSteps(u *universe, i int) bool {
	s, all := u.oracle.states[u.head().apps[i].name], u.head().apps[i].workloads
	j := u.rng.IntN(len(all))
	w := &all[j]
	if pr, moves := s.ProgressOf(w.workload()); !moves || s.Stable == nil || s.Phase == rollout.Aborting || w.canary == nil ||
		pr.Of == 0 && s.Phase != rollout.Promoting {
		return false
	}
	u.editApp(i, "all steps or none", func(a *appSource) {
		w := &a.workloads[j]
		if len(w.steps()) == 0 {
			otherSteps(u.rng, u.chaos, w)
			return
		}
		w.setSteps([]any{})
		delete(w.canary, "analysis") // the analysis would start at a step that no longer exists
	})
	return true
}

// renameAtAGate renames the only Deployment of a release in phase Paused. The pod template stays the same.
func renameAtAGate(u *universe, i int) bool {
	s, all := u.oracle.states[u.head().apps[i].name], u.head().apps[i].workloads
	if s.Phase != rollout.Paused || len(s.Progress) != 1 || len(all) != 1 || all[0].name != s.Progress[0].Workload.Name || u.rng.IntN(2) == 0 {
		return false
	}
	return u.rename(i, func(w *workloadSource) { w.label = cmp.Or(w.label, w.name) })
}

// editSteps returns a move that edits the steps of a canary.
func editSteps(edit func(u *universe, steps []any) []any) func(*universe, int) bool {
	return func(u *universe, i int) bool {
		return u.editWorkload(i, "edited steps", func(w *workloadSource) bool {
			if w.canary == nil {
				return false
			}
			steps := edit(u, slices.Clone(w.steps()))
			if steps != nil {
				w.setSteps(steps)
			}
			return steps != nil
		})
	}
}

func oneWeight(u *universe, steps []any) []any {
	for _, i := range u.rng.Perm(len(steps)) {
		if _, is := steps[i].(map[string]any)["setWeight"]; is {
			step := maps.Clone(steps[i].(map[string]any))
			step["setWeight"] = u.rng.IntN(101)
			steps[i] = step
			return steps
		}
	}
	return nil
}

func pauseMore(u *universe, steps []any) []any {
	return slices.Insert(steps, u.rng.IntN(len(steps)+1), any(map[string]any{"pause": map[string]any{}}))
}

func stepLess(u *universe, steps []any) []any {
	if len(steps) < 2 {
		return nil
	}
	i := 1 + u.rng.IntN(len(steps)-1) // keep the first step
	return slices.Delete(steps, i, i+1)
}

// otherSettings changes delays and the progress deadline, without a new version.
func otherSettings(u *universe, i int) bool {
	return u.editWorkload(i, "settings", func(w *workloadSource) bool {
		w.canary, w.blueGreen = maps.Clone(w.canary), maps.Clone(w.blueGreen)
		for _, key := range []string{"scaleDownDelaySeconds", "abortScaleDownDelaySeconds", "autoPromotionSeconds"} {
			for _, fields := range []map[string]any{w.canary, w.blueGreen} { // the map of the unused strategy is nil
				if _, given := fields[key]; given {
					fields[key] = u.rng.IntN(4) * 20
				}
			}
		}
		w.deadline = 60 + u.rng.IntN(600)
		return true
	})
}

func otherScaling(u *universe, i int) bool {
	return u.editWorkload(i, "the way of scaling", func(w *workloadSource) bool {
		if w.canary == nil || w.isRouted() {
			return false
		}
		w.canary = maps.Clone(w.canary)
		for _, key := range []string{"abortScaleDownDelaySeconds", "scaleDownDelaySeconds", "minPodsPerReplicaSet"} {
			delete(w.canary, key)
		}
		w.canary["scaling"] = map[any]string{"surge": "inPlace", "inPlace": "surge"}[w.canary["scaling"]]
		var steps []any
		for _, step := range w.steps() {
			if step.(map[string]any)["setCanaryScale"] == nil {
				steps = append(steps, step)
			}
		}
		w.canary["steps"] = steps
		return true
	})
}

func otherStrategy(u *universe, i int) bool {
	return u.editWorkload(i, "the strategy", func(w *workloadSource) bool {
		if w.isRouted() || len(w.services) == 0 {
			return false
		}
		if w.blueGreen != nil {
			w.blueGreen, w.canary = nil, map[string]any{"scaling": "inPlace", "steps": randomSteps(u.rng, "inPlace")}
			return true
		}
		w.canary = nil
		w.randomBlueGreen(u.rng)
		return true
	})
}

func replicasInGit(u *universe, i int) bool {
	return u.editWorkload(i, "replicas", func(w *workloadSource) bool {
		if w.replicas == nil {
			return false
		}
		w.replicas = new(sizes[u.rng.IntN(len(sizes))])
		return true
	})
}

// replicasInCluster scales workloads in the cluster, as an autoscaler does.
func replicasInCluster(u *universe, _ int) bool {
	u.scale()
	return true
}

// replicasByHand scales a workload by hand, although Git sets its replicas.
func replicasByHand(u *universe, _ int) bool {
	all := u.workloads()
	if len(all) > 0 {
		u.scaleTo(all[u.rng.IntN(len(all))], sizes[u.rng.IntN(len(sizes))])
	}
	return len(all) > 0
}

// weakVersion pushes a version whose first pod never becomes ready.
func weakVersion(u *universe, i int) bool {
	u.editApp(i, "a version with a pod that stays unavailable", func(a *appSource) {
		v := u.nextVersion()
		delete(u.bad, v)
		u.weak[v] = 1
		a.workloads[0].version = v
	})
	return true
}

// slip pushes a mistake that concerns all apps, or repairs the pushed mistake.
func slip(u *universe, _ int) bool {
	u.edit("a slip in the configuration (toggled)", func(s *source) {
		u.played["a slip "+map[bool]string{true: "made", false: "mended"}[s.slip == ""]]++
		if s.slip == "" {
			s.slip = []string{slipConfig, slipFolder}[u.rng.IntN(2)]
		} else {
			s.slip = ""
		}
	})
	return true
}

func toggleDocument(u *universe, i int) bool {
	return u.editWorkload(i, "the Rollout document (toggled)", func(w *workloadSource) bool {
		u.toggleDocument(w)
		u.played["a document "+map[bool]string{true: "removed", false: "put back"}[w.plain]]++
		return true
	})
}

// toggleDocument removes or restores a Rollout document. In half of the cases, a new version comes with the restored document.
func (u *universe) toggleDocument(w *workloadSource) {
	if w.plain = !w.plain; !w.plain && u.serial%2 == 0 {
		w.version = u.nextVersion()
		u.played["a document put back with a version"]++
	}
}

func renameDeployment(u *universe, i int) bool { return u.rename(i, func(*workloadSource) {}) }

func (u *universe) rename(i int, first func(*workloadSource)) bool {
	return u.editWorkload(i, "another name", func(w *workloadSource) bool {
		first(w)
		u.serial++
		base, _, _ := strings.Cut(w.name, "-n")
		w.name = fmt.Sprintf("%s-n%d", base, u.serial)
		if w.isRouted() {
			w.canary = maps.Clone(w.canary)
			routing := maps.Clone(w.canary["trafficRouting"].(map[string]any))
			routing["gatewayAPI"] = map[string]any{"httpRoute": w.name}
			w.canary["trafficRouting"] = routing
		}
		return true
	})
}

func renameApp(u *universe, i int) bool {
	u.editApp(i, "another folder", func(a *appSource) {
		u.serial++
		a.name = fmt.Sprintf("%s-%d", a.id, u.serial)
		u.ids[a.name] = a.id
	})
	return true
}

// lateMerge merges an earlier proposal of an app, which may be outdated.
func lateMerge(u *universe, i int) bool {
	if len(u.proposed) == 0 {
		return false
	}
	p := u.proposed[u.rng.IntN(len(u.proposed))]
	name := u.head().apps[i].name
	if p.app != name {
		return false
	}
	what := fmt.Sprintf("a late merge of %s through %s", p.promotion.Release, p.promotion.Through)
	u.editApp(i, what, func(a *appSource) { a.promotion = p.promotion })
	return true
}

// otherRelease pushes a decision about an earlier release, which was verified or rejected.
func otherRelease(u *universe, i int) bool {
	state := u.oracle.states[u.head().apps[i].name]
	all := slices.Concat(state.Verified, rollout.Mapped(state.Rejected, func(r rollout.Rejection) rollout.Hash { return r.Hash }))
	if len(all) == 0 {
		return false
	}
	release := all[u.rng.IntN(len(all))]
	verb := []rollout.Verb{rollout.Promote, rollout.Hold, rollout.Abort, rollout.Retry}[u.rng.IntN(4)]
	u.decide(i, fmt.Sprintf("%s of the older release %s", verb, release), verb, release)
	u.oracle.full[release] = u.oracle.full[release] || verb == rollout.Promote
	return true
}

// decide pushes a promotion file with a decision about a release.
func (u *universe) decide(i int, what string, verb rollout.Verb, release rollout.Hash) {
	u.serial++
	p := &rollout.Promotion{Release: release, Decision: verb, Through: rollout.Full, At: fmt.Sprint(u.serial)}
	u.editApp(i, what, func(a *appSource) { a.promotion = p })
}

// newRoot replaces the history of main by one commit with the same files.
func newRoot(u *universe, _ int) bool {
	if !u.chaos.rewrites {
		return false
	}
	u.note("PEOPLE begin the history anew")
	u.serial++
	head := u.git.Head(testBranch)
	made := u.git.Make("", memgit.Change{
		Author: "Ann", Message: fmt.Sprintf("new root %d", u.serial), When: u.kube.Now, Edits: edits(u.git.Files(head)),
	})
	u.sources[made] = u.sources[head]
	u.history = []string{made}
	u.git.Set("Ann", testBranch, made)
	u.promises.asked()
	return true
}

// byHand is the version of an image that a user has set by hand.
const byHand = "hand"

// editByHand edits a Deployment in the cluster, as kubectl edit, patch or set image does.
func editByHand(u *universe, _ int) bool {
	all := u.workloads()
	if len(all) == 0 {
		return false
	}
	w := all[u.rng.IntN(len(all))]
	image := u.rng.IntN(3) == 0
	u.note("BY HAND: %s is edited (image %t)", w, image)
	u.oracle.guard(w).Excused += u.kube.Deployments[w].Replicas
	u.promises.unsure[w] = true
	if image {
		u.promises.excuse(w) // pods with this image may replace all other pods
	}
	err := u.cluster.Edit(w.Ref(), func(o rollout.Object) {
		spec := o.Map("spec")
		spec["strategy"] = map[string]any{"rollingUpdate": map[string]any{"maxSurge": "25%", "maxUnavailable": "25%"}}
		if u.serial%2 == 1 {
			spec["minReadySeconds"] = int64(0) // without the large minReadySeconds, the controller replaces all pods
		}
		if image {
			container := o.Map("spec", "template", "spec")["containers"].([]any)[0].(map[string]any)
			container["image"] = "example/by-hand:" + byHand
		}
	})
	if err != nil {
		return false
	}
	u.changed("edited by hand") // watches report the edit
	return true
}

// isByHand reports whether a Deployment or its pods have an image that was set by hand, or whether a Service selects such pods.
func (u *universe) isByHand(d *kube.Deployment) bool {
	pinned := slices.Collect(maps.Values(u.kube.Pins))
	return kube.VersionOf(d.Template) == byHand || slices.ContainsFunc(d.Sets, func(rs *kube.ReplicaSet) bool {
		return kube.VersionOf(rs.Template) == byHand && (len(rs.Live()) > 0 || slices.Contains(pinned, rs.PodHash))
	})
}

// proposal is a promotion file that gitrollout has proposed for an app.
type proposal struct {
	app       string
	promotion *rollout.Promotion
}

// propose notes the promotion file of a proposal, so that lateMerge can push the file later.
func (u *universe) propose(branch, commit string) {
	name, is := strings.CutPrefix(branch, "gitrollout/promote/"+testCluster+"/")
	if !is || commit == "" || !u.chaos.humans {
		return
	}
	if p := u.proposalIn(commit, branch, name); p != nil {
		p.At += fmt.Sprintf(" late %d", len(u.proposed))
		u.proposed = append(u.proposed, proposal{name, p})
	}
}

// proposalIn returns the promotion file of an app in a commit of a proposal branch.
func (u *universe) proposalIn(commit, branch, app string) *rollout.Promotion {
	path := rollout.PromotionPath(testCluster, app)
	p, err := rollout.ParsePromotion(path, []byte(u.git.Files(commit)[path]))
	if err != nil {
		u.fail("the proposal %s cannot be read: %v", branch, err)
		return nil
	}
	return p
}
