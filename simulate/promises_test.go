package simulate

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/kube"
	"gitrollout.dev/gitrollout/strategies"
)

// promises checks the laws of a release, independently of the oracle and of the code that decides. It reads only public facts: pushes,
// records, and the cluster's pods, Services and routes.
//
// Some steps end only with a promotion by a user. This file calls such a step a gate, the promotion a key, and a release attempt a try. A
// record may advance only as far as the keys of its try allow. Pods and requests of the new version may not exceed the recorded step's
// share.
type promises struct {
	u        *universe
	tries    map[string]*try                 // the current try of each app, by the app's first name
	keys     map[string][]*rollout.Promotion // users' promotion files, by app, oldest first
	line     map[string][]rollout.Hash       // stable versions, by app, oldest first; the last version is stable now
	rejected map[string]bool                 // rejected versions, by app and version
	served   map[rollout.Workload]served
	ready    map[string]bool               // versions that have had a ready pod, by workload and version
	whole    map[string]bool               // versions that once had the ready pods that maxUnavailable requires, by workload and version
	recent   map[string]string             // main's commit when an app was last recorded
	sizes    map[rollout.Workload]int      // replicas of each workload at the last call of atRest
	unsure   map[rollout.Workload]bool     // workloads whose replicas or steps have changed since then
	void     map[*rollout.Promotion]bool   // promotion files for a version that was already stable
	passed   map[string]bool               // workloads that have passed all steps while they had pods, by release attempt and workload
	left     map[string]bool               // apps that left Git without a known new name
	bad      []strategies.Measured         // unsuccessful measurements
	glass    map[string]rollout.BreakGlass // users' requests to abort a release in the cluster (break glass), by their text
	made     map[string]time.Time          // when Kubernetes created each pod
	weights  map[rollout.Workload]*weight  // the weights of experiments, by the experiment's Deployment
	watches  map[string]bool               // watches that have gone back
}

// law is the short name of a law.
type law string

const (
	lawGates   law = "gates"        // a step that waits for a promotion ends only with a promotion
	lawEdited  law = "edited steps" // an edit of the list of steps ends no step that waits for a promotion
	lawSteps   law = "steps"        // a workload with pods goes through the steps of its document, even if the document is new
	lawNothing law = "zero"         // a workload without pods runs no experiment, and ends no step that waits for a promotion
	lawStable  law = "stable"       // a version becomes stable only after its pods were ready
	lawBroken  law = "broken"       // no release advances while main's head is unreadable
	lawFrozen  law = "frozen"       // no release starts or advances during a freeze
	lawSeen    law = "seen"         // no release advances while the cluster cannot be watched
	lawFix     law = "fix"          // a release whose new pods are all ready replaces old pods that are not ready
	lawApart   law = "apart"        // if the kind of one app cannot be watched, other apps continue
	lawBackOff law = "back off"     // after repeated failures, the next attempt is not immediate
	lawQuiet   law = "quiet"        // a workload is not written if only its status texts would change
	lawShare   law = "share"        // pods and requests of the new version do not exceed the step's share
	lawForward law = "forward"      // users get an older version only after a user's decision, or after a rejection
	lawOwner   law = "owner"        // each field follows its owner: replicas follow Git or, if Git does not set them, the scaler
	lawGone    law = "gone"         // an object is deleted if it left Git or belongs to a finished release
	lawTick    law = "tick"         // each new record changes more than texts
	lawWedged  law = "wedged"       // if no timer is left, an app that is not healthy has a reason on record
	lawOrphan  law = "orphan"       // a rollback takes effect even if the Rollout document was removed
	lawWayOut  law = "way out"      // an abort or a revert takes effect
	lawName    law = "name"         // a renamed app keeps its record
	lawOld     law = "old"          // a StatefulSet has only old pods if only the old version is requested
	lawOrder   law = "order"        // a release of a DaemonSet takes the nodes in the documented order
	lawGlass   law = "glass"        // an abort by break glass ends only the attempt that the user named, and this attempt does not advance
	lawNow     law = "now"          // abort --now does nothing but roll back its app
	lawRestart law = "restart"      // a restart replaces each older pod once, while no release is in flight
	lawWeights law = "weights"      // pods of an experiment are ready while proxies may send them users' requests
	lawOver    law = "over"         // measurements belong to one release, and end with this release or its watch
	lawWatch   law = "watch"        // a watch rolls back at most once, only after a failure, and never after a newer push
)

// notKept has the laws that are known to be broken, with the reason.
var notKept = map[law]string{}

// fail records a violation of a law. Without the flag -law, it ignores the laws in notKept. The flag selects a single law instead.
func (p *promises) fail(l law, format string, args ...any) {
	if _, known := notKept[l]; known && *lawFlag == "" || *lawFlag != "" && *lawFlag != string(l) {
		return
	}
	p.u.fail(string(l)+": "+format, args...)
}

// try is one attempt at a release.
type try struct {
	id    string
	hash  rollout.Hash
	since time.Time
	back  bool // the release returns to an earlier stable version, and so takes no steps
	walks map[rollout.Workload]*walk
	low   map[rollout.Workload]int // the fewest pods of a workload since the attempt began; no entry after a scale to 0
	nodes map[rollout.Workload]*nodesOf
	kept  map[rollout.Workload]int // the most new pods that earlier steps allowed
}

// walk has one workload's steps in a release attempt. Step i may start at the time at[i] or later. Steps without a time may not start yet.
type walk struct {
	legs   []leg
	at     []time.Time
	edited bool
	done   bool // the workload has passed all steps; later edits of the steps have no effect
	empty  bool // the workload had no pods when it passed a gate without a promotion
}

// leg is one step of a Rollout document.
type leg struct {
	text, name string
	weight     int             // percentage of the requests, or of the pods
	pods       func(n int) int // returns the most new pods among n pods
	people     bool            // the step is a gate: only a promotion ends the step
	after      time.Duration   // if people is not set, the step ends after this time
}

// served has the version that all users of a workload had at the end of a pass.
type served struct {
	version string
	excuse  bool // users may now get an older version
}

func newPromises(u *universe) *promises {
	return &promises{
		u: u, tries: map[string]*try{}, keys: map[string][]*rollout.Promotion{}, line: map[string][]rollout.Hash{},
		rejected: map[string]bool{}, served: map[rollout.Workload]served{}, ready: map[string]bool{}, whole: map[string]bool{},
		recent: map[string]string{}, sizes: map[rollout.Workload]int{}, unsure: map[rollout.Workload]bool{},
		glass: map[string]rollout.BreakGlass{}, left: map[string]bool{}, passed: map[string]bool{}, void: map[*rollout.Promotion]bool{},
		made: map[string]time.Time{}, weights: map[rollout.Workload]*weight{},
		watches: map[string]bool{},
	}
}

// appIn returns the source of an app at a commit, nil if the commit lacks the app.
func (u *universe) appIn(commit, app string) *appSource {
	all := u.sources[commit].apps
	if i := slices.IndexFunc(all, func(a appSource) bool { return a.id == u.ids[app] }); i >= 0 {
		return &all[i]
	}
	return nil
}

// find returns the source of a workload, nil if the app lacks the workload or its Rollout document.
func (a *appSource) find(w rollout.Workload) *workloadSource {
	if a == nil {
		return nil
	}
	if i := a.index(w); i >= 0 && !a.workloads[i].plain {
		return &a.workloads[i]
	}
	return nil
}

// index returns the index of a workload in an app, -1 if the workload is missing.
func (a *appSource) index(w rollout.Workload) int {
	return slices.IndexFunc(a.workloads, func(s workloadSource) bool { return s.name == w.Name && !s.gone })
}

// onRecord returns the record of a workload's app, and the workload's source at the recorded commit. Without a document, the source is nil.
func (p *promises) onRecord(w rollout.Workload) (rollout.State, *workloadSource) {
	s := p.u.oracle.states[p.u.oracle.appOf(w)]
	return s, p.u.appIn(s.Source, s.App).find(w)
}

// excuse notes that users of a workload may get an older version from now on.
func (p *promises) excuse(w rollout.Workload) {
	was := p.served[w]
	was.excuse = true
	p.served[w] = was
}

// legs returns the steps of a workload. A blue-green workload has one step, which ends with the switch of the active Service.
func (w *workloadSource) legs() []leg {
	if b := w.blueGreen; b != nil {
		l := leg{text: "blueGreen", name: "promotion", pods: func(n int) int { return n }}
		switch seconds, _ := b["autoPromotionSeconds"].(int); {
		case b["autoPromotionEnabled"] != true:
			l.people = true
		case seconds > 0:
			l.after = time.Duration(seconds) * time.Second
		}
		return []leg{l}
	}
	floor, _ := w.canary["minPodsPerReplicaSet"].(int)
	var legs []leg
	weight, matched := 0, 0
	exactly, share := -1, -1 // the values of setCanaryScale
	for _, raw := range w.steps() {
		step := raw.(map[string]any)
		l := leg{text: dump(step)}
		l.name, _ = step["name"].(string)
		if n, is := step["setWeight"].(int); is {
			weight, exactly, share = n, -1, -1
		}
		if scale, is := step["setCanaryScale"].(map[string]any); is {
			exactly, share = -1, -1
			if n, given := scale["replicas"].(int); given {
				exactly = n
			}
			if n, given := scale["weight"].(int); given {
				share = n
			}
		}
		if routeOf(step) != nil {
			matched = 1
		}
		if pause, is := step["pause"].(map[string]any); is {
			l.people = pause["duration"] == nil
			if !l.people {
				l.after = durationOf(pause["duration"])
			}
		}
		if e, is := step["experiment"].(map[string]any); is {
			l.after = durationOf(e["duration"])
		}
		l.weight = weight
		now, exactly, share, matched := weight, exactly, share, matched
		l.pods = func(n int) int {
			switch {
			case exactly >= 0:
				return min(n, exactly)
			case share >= 0:
				return max(ceilOf(n, share), min(n, floor))
			}
			most := max(ceilOf(n, now), min(n, matched))
			if most > 0 {
				most = max(most, min(n, floor))
			}
			return most
		}
		legs = append(legs, l)
	}
	return legs
}

func ceilOf(n, percent int) int { return (n*percent + 99) / 100 }

// most returns the largest number of new pods (of n pods) and the largest percentage of requests that legs[:step+1] allow.
func most(legs []leg, step, n int) (pods, requests int) {
	if step >= len(legs) {
		return n, 100
	}
	for _, l := range legs[:step+1] {
		pods, requests = max(pods, l.pods(n)), max(requests, l.weight)
	}
	return pods, requests
}

// asked notes which promotion files users have pushed, and which workloads users have rolled back.
func (p *promises) asked() {
	head := p.u.git.Head(testBranch)
	for _, a := range p.u.sources[head].apps {
		keys := p.keys[a.id]
		if a.promotion != nil && (len(keys) == 0 || keys[len(keys)-1] != a.promotion) {
			p.keys[a.id] = append(keys, a.promotion)
			stable := p.u.oracle.states[a.name].Stable
			p.void[a.promotion] = stable != nil && stable.Hash == a.promotion.Release
		}
		for w, s := range p.served { // also workloads that were renamed in Git
			i := slices.IndexFunc(a.workloads, func(has workloadSource) bool { return has.name == w.Name })
			isAborted := p.u.oracle.appOf(w) == a.name && a.promotion != nil && a.promotion.Decision == rollout.Abort
			if isAborted || i >= 0 && number(a.workloads[i].version) < number(s.version) {
				p.excuse(w)
			}
		}
	}
}

// number returns N of the version vN. A newer version has a higher number.
func number(version string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(version, "v"))
	if err != nil {
		return 1 << 30 // an image that was set by hand counts as the newest version
	}
	return n
}

// recorded checks a new record of an app. The writer is a process, or nil for a user.
func (p *promises) recorded(by *actor, app string, was, is rollout.State) {
	id := p.u.ids[app]
	if is.Source == "" && !p.u.chaos.meddling {
		return // the app continues under a new name, now or when the new folder becomes readable
	}
	for _, r := range is.Rejected {
		p.rejected[id+string(r.Hash)] = true
	}
	if is.Stable != nil {
		// A rollback can no longer go to versions that came after this stable version.
		if i := slices.Index(p.line[id], is.Stable.Hash); i >= 0 {
			p.line[id] = p.line[id][:i]
		}
		p.line[id] = append(p.line[id], is.Stable.Hash)
	}
	p.checkEnd(id, app, was, is)
	if p.follow(id, was, is) {
		p.checkSteps(id, app, was, is)
	}
	if is.Source != was.Source {
		for _, pr := range is.Progress {
			p.unsure[pr.Workload] = true
		}
		p.keep(id, app, was)
	}
	p.checkName(by, app, is)
	p.checkTick(by, app, was, is)
	p.checkGates(app, is)
	if was.Stable != nil && is.Stable != nil && was.Stable.Hash != is.Stable.Hash && !p.u.chaos.meddling {
		p.checkStable(by, app, was, is)
		p.checkWhole(by, app, was, is)
	}
	p.checkBroken(by, app, was, is)
	p.checkFrozen(by, app, was, is)
	p.checkSeen(by, app, was, is)
	p.checkVerdict(app, was, is)
	p.checkWatch(by, app, was, is)
	p.checkGlass(by, app, was, is)
}

// checkName checks the record of an app that left Git. If an app without a record has this app's Deployment, this app was renamed. The
// record must then have the new name.
func (p *promises) checkName(by *actor, app string, is rollout.State) {
	if p.left[app] = false; by == nil || is.Held == nil {
		return
	}
	s := p.u.sources[by.Clone.Main]
	p.left[app] = !slices.ContainsFunc(s.apps, func(a appSource) bool { return a.name == app })
	if !p.left[app] || s.slip == slipConfig {
		return // while the configuration is unreadable, the list of apps is unknown
	}
	heir := p.u.appIn(by.Clone.Main, app)
	if heir == nil || p.u.chaos.pumps || p.u.oracle.states[heir.name].Source != "" {
		return // if pumps run at the same time, the decision may be from another commit
	}
	for _, ref := range is.Inventory {
		if w, isDeployment := p.u.kube.WorkloadOf(ref); isDeployment && heir.index(w) >= 0 && !heir.broken {
			p.fail(lawName, "%s is held as gone, and %s has its %s", app, heir.name, ref)
		}
	}
}

// follow notes the start and the end of release attempts, and reports whether an attempt starts. While the new folder of a
// renamed app is unreadable, the new name has an empty record beside the old name's record. An empty record ends no attempt.
func (p *promises) follow(id string, was, is rollout.State) (begins bool) {
	if is.Release == nil && is.Stable == nil && len(is.Inventory) == 0 {
		return false
	}
	if t := p.tries[id]; t != nil && (is.Release == nil || is.Phase == rollout.Aborting || t.id != tryID(is)) {
		p.tries[id] = nil
	}
	if is.Release == nil || is.Phase == rollout.Aborting || p.tries[id] != nil {
		return false
	}
	t := &try{
		id: tryID(is), hash: is.Release.Hash, since: is.Release.Since, walks: map[rollout.Workload]*walk{},
		low: map[rollout.Workload]int{}, nodes: map[rollout.Workload]*nodesOf{}, kept: map[rollout.Workload]int{},
	}
	for _, d := range p.u.kube.Deployments {
		t.scaled(d)
	}
	if is.Stable != nil {
		t.back = slices.Contains(p.line[id], t.hash) && is.Stable.Hash != t.hash && !p.rejected[id+string(t.hash)]
	}
	p.tries[id] = t
	return true
}

// checkSteps checks the start of a release attempt: a workload with pods and a Rollout document must take the new version in steps. It
// ignores workloads that the stable version lacks, and an unfinished first deployment, which has no stable version to protect.
func (p *promises) checkSteps(id, app string, was, is rollout.State) {
	full := slices.ContainsFunc(p.keys[id], func(k *rollout.Promotion) bool { return k.OpensAll(is.Release.Hash) })
	if full || is.Stable == nil || p.u.chaos.meddling {
		return
	}
	source, stable := p.u.appIn(is.Release.Commit, app), p.u.appIn(is.Stable.Commit, app)
	for w := range is.Release.Templates {
		d, s := p.u.kube.Deployments[w], source.find(w)
		_, moves := is.ProgressOf(w)
		if moves || d == nil || s == nil || d.Replicas == 0 || kube.VersionOf(d.Template) == s.version {
			continue
		}
		if first := p.u.appIn(was.Source, app).find(w); was.Stable == nil && was.Release != nil && first != nil && !p.allServe(d, first) {
			continue
		}
		had := stable == nil || stable.index(w) >= 0
		isNew := func(rs *kube.ReplicaSet) bool { return kube.VersionOf(rs.Template) == s.version && rs.Replicas > 0 }
		if had && !slices.ContainsFunc(d.Sets, isNew) {
			p.fail(lawSteps, "%s: %s has %s, and %s comes without steps", app, w, kube.VersionOf(d.Template), s.version)
		}
	}
}

func tryID(s rollout.State) string { return string(s.Release.Hash) + s.Release.Since.String() }

// reach returns the last step that a workload may have reached by now. The next call continues at the recorded step.
func (p *promises) reach(id string, t *try, is rollout.State, pr rollout.Progress, source *workloadSource) int {
	k, legs := t.walks[pr.Workload], source.legs()
	if k == nil {
		k = &walk{legs: legs, at: []time.Time{is.Release.Since}}
		t.walks[pr.Workload] = k
	}
	same := 0
	for same < min(len(legs), len(k.legs)) && legs[same].text == k.legs[same].text {
		same++
	}
	if same < max(len(legs), len(k.legs)) { // after an edit of the list, the walk repeats the steps from the first difference on
		k.at, k.edited = k.at[:min(len(k.at), same+1)], true
	}
	if k.legs = legs; k.done {
		return len(legs)
	}
	reach := p.walkOn(id, t, pr.Workload, k)
	now := at(source, legs, pr)
	if d := p.u.kube.Deployments[pr.Workload]; source.isOnNodes() && d != nil && t.nodes[pr.Workload] != nil {
		t.taken(d, legs, now)
	}
	if now <= reach {
		k.at, k.done = k.at[:now+1], now == len(legs)
		if pr.Entered.After(k.at[now]) {
			k.at[now] = pr.Entered
		}
	}
	return reach
}

// walkOn advances a walk past all steps that promotions or elapsed time have ended. It returns the first step that has not ended.
func (p *promises) walkOn(id string, t *try, w rollout.Workload, k *walk) int {
	for i := len(k.at) - 1; i < len(k.legs); i++ {
		opened, ok := p.opens(id, t, w, k.legs, i, k.at[i])
		if !ok {
			break
		}
		k.at = append(k.at, opened)
	}
	return len(k.at) - 1
}

// opens returns the time from which a release attempt may leave step i. It returns false if the attempt must still wait.
func (p *promises) opens(id string, t *try, w rollout.Workload, legs []leg, i int, entered time.Time) (time.Time, bool) {
	l := legs[i]
	if t.back || !l.people && (l.after == 0 || p.u.chaos.clock) {
		return entered, true
	}
	if slices.ContainsFunc(p.keys[id], func(k *rollout.Promotion) bool { return t.isMeant(k) && keyOpens(k, w, legs, i) }) {
		return entered, true
	}
	over := entered.Add(l.after)
	return over, l.after > 0 && !p.u.kube.Now.Before(over)
}

// isMeant reports whether a promotion is for this attempt. A promotion with a zero Since is for each attempt of its version.
func (t *try) isMeant(k *rollout.Promotion) bool {
	return k.Release == t.hash && k.Decision == rollout.Promote && (k.Since.IsZero() || k.Since.Equal(t.since))
}

// keyOpens reports whether a promotion lets a workload leave step i. Promotions count steps from 1; files of the first apiVersion count
// from 0.
func keyOpens(k *rollout.Promotion, w rollout.Workload, legs []leg, i int) bool {
	through := k.Through
	if k.Workloads != nil {
		through = k.Workloads[w]
	}
	last := slices.IndexFunc(legs, func(l leg) bool { return l.name != "" && l.name == through })
	if n, err := strconv.Atoi(through); last < 0 && err == nil {
		if last = n - 1; k.APIVersion == rollout.AlphaVersion {
			last = n
		}
	}
	return through == rollout.Full || last >= i
}

// at returns the recorded step of a workload, or the number of steps if the workload has passed all steps.
func at(w *workloadSource, legs []leg, pr rollout.Progress) int {
	switch {
	case pr.Step == pr.Of:
		return len(legs)
	case w.blueGreen == nil:
		return min(pr.Step, len(legs))
	case pr.Name == "preview" || pr.Name == "wait for promotion" || strings.HasPrefix(pr.Name, "analysis ") && pr.Weight == 0:
		return 0
	default:
		return len(legs)
	}
}

// checkGates checks that no workload's recorded step is further than the promotions of the release attempt allow.
func (p *promises) checkGates(app string, is rollout.State) {
	id := p.u.ids[app]
	t := p.tries[id]
	if t == nil || is.Stable == nil || p.u.chaos.meddling {
		return
	}
	source := p.u.appIn(is.Source, app)
	for _, pr := range is.Progress {
		w := source.find(pr.Workload)
		if w == nil {
			continue
		}
		live := p.u.kube.Deployments[pr.Workload]
		reach, now := p.reach(id, t, is, pr, w), at(w, w.legs(), pr)
		if now == len(w.legs()) && live != nil && live.Replicas > 0 {
			p.passed[t.id+pr.Workload.String()] = true
		}
		if now > reach {
			l := lawGates
			k := t.walks[pr.Workload]
			if k.empty = k.empty || live == nil || live.Replicas == 0 || w.replicas != nil && *w.replicas == 0; k.empty && len(is.Progress) > 1 &&
				!slices.ContainsFunc(w.legs()[reach:now], func(l leg) bool { return l.people }) {
				k.done = now == len(w.legs()) // a workload without pods advances with the others, but ends no step that needs a promotion
				continue
			}
			switch {
			case k.empty:
				l = lawNothing
			case k.edited:
				l = lawEdited
			}
			p.fail(l, "%s: %s is on record at step %d of %s, and no key opens step %d", app, pr.Workload, now, t.hash, reach)
		}
	}
}

// checkEnd checks that no workload still needed a promotion when the version became stable, even if a Deployment was renamed.
func (p *promises) checkEnd(id, app string, was, is rollout.State) {
	t := p.tries[id]
	if t == nil || is.Stable == nil || was.Stable == nil || is.Stable.Hash != t.hash || is.Release != nil || p.u.chaos.meddling {
		return
	}
	for _, pr := range was.Progress {
		k := t.walks[pr.Workload]
		if k == nil || k.done || k.empty {
			continue
		}
		reach := p.walkOn(id, t, pr.Workload, k)
		if slices.ContainsFunc(k.legs[reach:], func(l leg) bool { return l.people }) {
			p.fail(lawGates, "%s: %s is stable, and no key opens step %d of %s", app, t.hash, reach, pr.Workload)
		}
	}
}

// checkTick checks that consecutive records differ in more than texts. A commit outside an app's folder must not lead to a record.
func (p *promises) checkTick(by *actor, app string, was, is rollout.State) {
	if by == nil || was.Phase == "" || p.u.chaos.meddling {
		return
	}
	head, before := by.Clone.Main, was
	known := p.recent[app] == head && !p.u.chaos.pumps // the pump that pushes may know another commit than the pump that decided
	p.recent[app], before.Serial = head, is.Serial
	if known && was.Reason != "" && is.Reason != "" {
		before.Reason = is.Reason
	}
	if h, old := is.Held, was.Held; h != nil && old != nil && h.Reason == old.Reason && h.Commit == old.Commit && known {
		before.Held = is.Held
	}
	if p.u.sameFiles(was.Source, is.Source, app) && len(p.u.procs) == 1 { // another process may still use an older commit
		before.Source = is.Source
	}
	if before.Equal(&is) && !p.u.isLost(was) {
		p.fail(lawTick, "%s: nothing but words changed: %q is %q, %+v is %+v, %s is %s", app, was.Reason, is.Reason, was.Held, is.Held,
			was.Source, is.Source)
	}
}

// sameFiles reports whether an app's folder has the same path and content in two commits.
func (u *universe) sameFiles(a, b, app string) bool {
	first, second := u.git.Commits[a], u.git.Commits[b]
	if first == nil || second == nil {
		return false
	}
	path := u.oracle.appAt(app, a).Path
	one, _, _ := first.Lookup(path)
	two, _, _ := second.Lookup(path)
	return path == u.oracle.appAt(app, b).Path && one.ID == two.ID
}

// checkStable checks that a pod of a version was ready before a record names the version as stable.
func (p *promises) checkStable(by *actor, app string, was, is rollout.State) {
	source := p.u.appIn(is.Source, app)
	var unseen, empty []rollout.Workload
	passed := false
	for w := range is.Stable.Templates {
		d := p.u.kube.Deployments[w]
		none := d != nil && (d.Replicas == 0 || by.hadNone(w))
		switch s := source.find(w); {
		case s == nil || was.StableHash(w) == "" || was.StableHash(w) == is.StableHash(w):
		case none && (p.hadPassed(app, was, w) || p.wasStable(app, is.Stable.Hash) || len(s.legs()) == 0):
			passed = true // a workload without pods has nothing left to wait for
		case p.ready[w.String()+s.version]:
			return // one workload with a ready pod is enough
		case none:
			empty = append(empty, w)
		default:
			unseen = append(unseen, w)
		}
	}
	if !passed { // if a workload has passed all steps while it had pods, workloads without pods need no ready pod
		unseen = append(unseen, empty...)
	}
	full := slices.ContainsFunc(p.keys[p.u.ids[app]], func(k *rollout.Promotion) bool { return k.OpensAll(is.Stable.Hash) })
	if len(unseen) > 0 && !full { // after a full promotion, no ready pod is needed
		p.fail(lawStable, "%s: %s is on record as stable, and no pod of %s was ever ready", app, is.Stable.Hash, unseen)
	}
}

// checkWhole checks that a stable version once had as many ready pods as maxUnavailable requires. With chaos.lag, the controller may delete
// the last old pods earlier. Then one ready pod is enough if Git has a newer version.
func (p *promises) checkWhole(by *actor, app string, was, is rollout.State) {
	for w := range is.Stable.Templates {
		s, d := p.u.appIn(is.Source, app).find(w), p.u.kube.Deployments[w]
		isNew := s != nil && was.StableHash(w) != "" && was.StableHash(w) != is.StableHash(w)
		next := p.u.appIn(p.u.git.Head(testBranch), app).find(w)
		isSuperseded := p.u.chaos.lag && next != nil && s != nil && next.version != s.version && p.ready[w.String()+s.version]
		if isNew && d != nil && d.Replicas > 0 && !by.hadNone(w) && !p.whole[w.String()+s.version] && !isSuperseded {
			p.fail(lawStable, "%s: %s is on record as stable, and never were as many pods of %s ready as its users need", app, is.Stable.Hash, w)
		}
	}
}

// wasStable reports whether a version was stable before the app's newest record, under any name of the app. A return
// to such a version has no steps.
func (p *promises) wasStable(app string, hash rollout.Hash) bool {
	own := p.u.oracle.records[app]
	for name, records := range p.u.oracle.records {
		if len(own) > 0 && p.u.ids[name] == p.u.ids[app] && slices.ContainsFunc(records, func(r rollout.State) bool {
			return r.Stable != nil && r.Stable.Hash == hash && r.Serial < own[len(own)-1].Serial
		}) {
			return true
		}
	}
	return false
}

// hadPassed reports whether a workload passed all steps of this release attempt while it had pods, or had no steps at
// some time during the attempt. Later edits of steps or replicas have no effect.
func (p *promises) hadPassed(app string, s rollout.State, w rollout.Workload) bool {
	if s.Release == nil || p.passed[tryID(s)+w.String()] {
		return s.Release != nil
	}
	for name, records := range p.u.oracle.records {
		// Also read the records under former names of the app.
		if p.u.ids[name] == p.u.ids[app] && slices.ContainsFunc(records, func(r rollout.State) bool {
			source := p.u.appIn(r.Source, name).find(w)
			return r.Release != nil && tryID(r) == tryID(s) && source != nil && len(source.legs()) == 0
		}) {
			return true
		}
	}
	return false
}

// checkBroken checks that no release advances while the process knows that main's head is unreadable. No record may name an invalid commit.
func (p *promises) checkBroken(by *actor, app string, was, is rollout.State) {
	if a := p.u.appIn(is.Source, app); a != nil && a.broken && len(was.Inventory) > 0 && !p.u.chaos.meddling {
		p.fail(lawBroken, "%s follows %s, which cannot be followed", app, is.Source)
	}
	if by == nil || p.u.chaos.pumps || by.seen != by.Clone.Main || releaseOf(was) == "" || releaseOf(was) != releaseOf(is) {
		return
	}
	source := p.u.appIn(by.seen, app)
	if source == nil || !source.broken && p.u.sources[by.seen].slip != slipConfig {
		return
	}
	if pr, goesOn := advances(was, is); goesOn {
		p.fail(lawBroken, "%s: %s goes on to step %d while Git's head cannot be read", app, pr.Workload, pr.Step)
	}
}

// advances returns the first workload that a record moves to a later step of the same release.
func advances(was, is rollout.State) (rollout.Progress, bool) {
	return rollout.Find(is.Progress, func(pr rollout.Progress) bool {
		before, known := was.ProgressOf(pr.Workload)
		return known && was.Release != nil && releaseOf(was) == releaseOf(is) && pr.Step > before.Step
	})
}

// checkFrozen checks that no release starts or advances while the process knows of a freeze.
func (p *promises) checkFrozen(by *actor, app string, was, is rollout.State) {
	if by == nil || by.seen != by.Clone.Main || !p.u.sources[by.seen].isFrozen || is.Phase == rollout.Aborting {
		return
	}
	if releaseOf(was) == "" && releaseOf(is) != "" && was.Stable != nil {
		p.fail(lawFrozen, "%s: %s starts during a freeze", app, releaseOf(is))
	}
	for _, pr := range is.Progress {
		before, known := was.ProgressOf(pr.Workload)
		isPromoting := slices.ContainsFunc([]string{"scale up", "send all requests", "switch", "keep "}, func(step string) bool {
			return strings.HasPrefix(before.Name, step) // a promotion that has begun may finish during a freeze
		})
		if known && !isPromoting && releaseOf(was) == releaseOf(is) && pr.Step > before.Step {
			p.fail(lawFrozen, "%s: %s goes on to step %d during a freeze", app, pr.Workload, pr.Step)
		}
	}
}

// checkSeen checks that a process neither advances nor ends a release if the process's watches were already broken at the start of the
// pass.
func (p *promises) checkSeen(by *actor, app string, was, is rollout.State) {
	if by == nil || p.u.chaos.pumps || !by.blind || by.View.Unseen == "" || was.Release == nil {
		return
	}
	if is.Release == nil && is.Phase == rollout.Healthy {
		p.fail(lawSeen, "%s is healthy for %s, which does not see it", app, by.Name)
	}
	if pr, goesOn := advances(was, is); goesOn {
		p.fail(lawSeen, "%s: %s goes on to step %d for %s, which does not see it", app, pr.Workload, pr.Step, by.Name)
	}
}

func releaseOf(s rollout.State) rollout.Hash {
	if s.Release == nil {
		return ""
	}
	return s.Release.Hash
}

// inCluster runs after each change in the cluster. It notes the versions with ready pods, and checks the users' versions and shares.
func (p *promises) inCluster() {
	// A deleted workload has no scaler.
	maps.DeleteFunc(p.u.scaled, func(w rollout.Workload, _ int) bool { return p.u.kube.Deployments[w] == nil })
	p.checkWeights()
	for _, w := range p.u.workloads() {
		d := p.u.kube.Deployments[w]
		for _, rs := range d.Sets {
			if rs.Ready() > 0 {
				p.ready[w.String()+kube.VersionOf(rs.Template)] = true
			}
			if g := p.u.oracle.guard(w); rs.Ready() >= max(1, g.Floor-g.Excused) {
				p.whole[w.String()+kube.VersionOf(rs.Template)] = true
			}
		}
		if d.Replicas != p.sizes[w] {
			p.unsure[w] = true
		}
		if t := p.tries[p.u.ids[p.u.oracle.appOf(w)]]; t != nil {
			t.scaled(d)
		}
		if !p.u.chaos.meddling && len(p.u.procs) == 1 {
			p.checkUsers(w)
			if !p.unsure[w] {
				p.checkShare(w)
			}
		}
	}
}

// checkShare checks that pods and requests of the new version do not exceed the step's share. It reports whether pods may still change.
func (p *promises) checkShare(w rollout.Workload) (unsure bool) {
	s, source := p.onRecord(w)
	pr, moves := s.ProgressOf(w)
	if !moves || source == nil || s.Stable == nil || s.Phase == rollout.Aborting || s.Phase == rollout.Promoting {
		return false
	}
	d, legs := p.u.kube.Deployments[w], source.legs()
	step := at(source, legs, pr)
	pods, requests := most(legs, step, d.Replicas)
	t := p.tries[p.u.ids[s.App]]
	switch {
	case t != nil && source.isOnNodes():
		pods = t.taken(d, legs, step)
	case t != nil && source.policy != "":
		pods = max(pods, t.kept[w], t.came(d, legs, step))
	}
	if p.unsure[w] && p.isUnderWay(source) {
		return true
	}
	if source.isShared() && p.shares(w, source)[source.services[1]] > 0 {
		p.fail(lawShare, "%s: a router has a weight, and the share of the pods is one already", w)
	}
	// If a rollback has paused the Deployment but is not recorded yet, the controller distributes the surge over both versions.
	isBack := p.u.oracle.back[s.App] && p.takenBack(s.App, p.u.git.Head(testBranch)) != ""
	for _, rs := range d.Sets {
		if kube.VersionOf(rs.Template) != source.version || rs.Template != d.Template && len(rs.Live()) == 0 {
			continue
		}
		// With a router, surplus pods of the new version are removed only after the next record. While main's head is unreadable,
		// gitrollout records nothing. With chaos.spoils, stable pods may be broken, so that only the surplus pods serve.
		isKept := source.isRouted() && p.isUnreadable(s.App) || p.u.chaos.spoils || isBack
		if n := len(rs.Live()); n > pods && isKept {
			unsure = true
		} else if n > pods {
			p.fail(lawShare, "%s: %d of %d pods are of %s, and step %d asks for %d at most", w, n, d.Replicas, source.version, step, pods)
		} else if t != nil {
			t.kept[w] = min(t.kept[w], n) // removed surplus pods must not come back
		}
		if source.isShared() && requests == 0 && rs.Ready() > 0 && p.isOpen(w, source, rs) {
			p.fail(lawShare, "%s: all pods get the requests that nothing matches, pods of %s too, before any weight", w, source.version)
		}
		if n := p.requests(w, source, rs.PodHash); n > requests {
			p.fail(lawShare, "%s: %d of 100 requests go to %s, and step %d asks for %d at most", w, n, source.version, step, requests)
		}
	}
	return unsure
}

// isUnreadable reports whether an app's folder or the configuration cannot be read at main's head.
func (p *promises) isUnreadable(app string) bool {
	head := p.u.git.Head(testBranch)
	a := p.u.appIn(head, app)
	return a == nil || a.broken || p.u.sources[head].slip == slipConfig
}

// isUnderWay reports whether a process has a timer that ends within minReadySeconds, or within the time that proxies need for a route.
// After an edit of steps or replicas, surplus pods stay until the timer ends.
func (p *promises) isUnderWay(source *workloadSource) bool {
	within := time.Duration(source.minReady) * time.Second
	if source.isRouted() {
		within = max(within, durationOf(source.canary["trafficRouting"].(map[string]any)["settle"]))
	}
	return slices.ContainsFunc(p.u.procs, func(a *actor) bool {
		due, now := a.NextDue(), p.u.now(a)
		late := max(0, -a.skew) // if the clock is late, pods seem to be ready for a shorter time
		return due.After(now) && !due.After(now.Add(within+late))
	})
}

// requests returns how many of 100 requests without a matching route reach a version through Services that select only this version.
func (p *promises) requests(w rollout.Workload, source *workloadSource, podHash string) (n int) {
	for service, weight := range p.shares(w, source) {
		if p.u.kube.Pins[rollout.Ref{Kind: "Service", Namespace: w.Namespace, Name: service}] == podHash {
			n += weight
		}
	}
	return n
}

// isShared reports whether a workload that is no Deployment has a router. The router sends only matching requests to the new version. Other
// requests go to pods that are replaced in place.
func (w workloadSource) isShared() bool { return w.isRouted() && w.policy != "" }

// isOpen reports whether the users' Service selects pods of all versions, although ready pods of another version remain.
func (p *promises) isOpen(w rollout.Workload, source *workloadSource, fresh *kube.ReplicaSet) bool {
	d := p.u.kube.Deployments[w]
	isNews := func(pod *kube.Pod) bool { // the pod became ready after a process last observed the cluster
		return slices.ContainsFunc(p.u.procs, func(a *actor) bool { return !pod.Since.Before(a.visits.Add(-a.skew)) })
	}
	isOther := func(rs *kube.ReplicaSet) bool {
		return rs != fresh && rs.Ready() > 0 && rs.Ready() == len(rs.Live()) && !slices.ContainsFunc(rs.Live(), isNews)
	}
	return p.u.kube.Pins[rollout.Ref{Kind: "Service", Namespace: w.Namespace, Name: source.services[0]}] == "" &&
		d.Template == fresh.Template && slices.ContainsFunc(d.Sets, isOther)
}

// shares returns how many of 100 requests each Service for users gets. It returns nil if no strategy changes Services.
func (p *promises) shares(w rollout.Workload, source *workloadSource) map[string]int {
	switch {
	case source.blueGreen != nil:
		return map[string]int{source.blueGreen["activeService"].(string): 100}
	case source.isRouted():
		shares := map[string]int{}
		rules := kube.Backends(p.u.kube.Routes[routeRef(w)])
		for i, rule := range rules {
			for _, b := range rule {
				if i == len(rules)-1 && b.Weight > 0 {
					shares[b.Service] += int(b.Weight)
				}
			}
		}
		return shares
	case source.canary["stableService"] != nil:
		return map[string]int{source.canary["stableService"].(string): 100}
	default:
		return nil
	}
}

// users returns the versions with pods that users' requests can reach.
func (p *promises) users(w rollout.Workload, source *workloadSource) []string {
	var versions []string
	shares := p.shares(w, source)
	if shares == nil && len(source.services) > 0 { // no strategy changes the Service now, but its selector may still have a pod hash
		shares = map[string]int{source.services[0]: 100}
	}
	for _, rs := range p.u.kube.Deployments[w].Sets {
		reached := shares == nil
		for service := range shares {
			pin := p.u.kube.Pins[rollout.Ref{Kind: "Service", Namespace: w.Namespace, Name: service}]
			reached = reached || pin == "" || pin == rs.PodHash
		}
		if v := kube.VersionOf(rs.Template); reached && len(rs.Live()) > 0 && !slices.Contains(versions, v) {
			versions = append(versions, v)
		}
	}
	return versions
}

// checkUsers checks that no user gets an older version after all users had a newer version, unless a push or a rejection requested a
// rollback.
func (p *promises) checkUsers(w rollout.Workload) {
	s, source := p.onRecord(w)
	if source == nil || s.Stable == nil {
		return
	}
	users, was := p.users(w, source), p.served[w]
	if s.Release != nil && len(users) == 0 && p.u.kube.Deployments[w].Replicas == 0 {
		delete(p.served, w) // there are no users, and the new version was not stable
		return
	}
	if _, moves := s.ProgressOf(w); moves && s.Release != nil && p.u.kube.Deployments[w].Replicas > 0 && was.version != source.version {
		for _, pr := range s.Progress { // this workload had no pods before, and its rollback would also roll back the other workloads
			if other := p.u.appIn(s.Source, s.App).find(pr.Workload); other != nil && p.served[pr.Workload].version == other.version {
				delete(p.served, pr.Workload)
			}
		}
	}
	if s.Phase == rollout.Degraded || s.Rollback != nil && s.Rollback.Reject || p.isAsked(s) || p.hasDecayed(s) {
		p.excuse(w)
	}
	// After pods were killed, users reach the remaining pods. With a wrong clock, a process does not know how long pods have been ready.
	if p.u.oracle.guard(w).Excused > 0 || p.u.chaos.clock && source.isRouted() {
		isReady := func(rs *kube.ReplicaSet) bool { return rs.Ready() > 0 }
		if s.Release != nil && !slices.ContainsFunc(p.u.kube.Deployments[w].Sets, isReady) {
			delete(p.served, w) // the new version lost all pods before Git had the record of its promotion
		}
		return
	}
	for _, v := range users {
		if was.version != "" && !p.served[w].excuse && number(v) < number(was.version) {
			p.fail(lawForward, "%s: users are on %s, and all of them were on %s, without a rollback", w, v, was.version)
		}
	}
}

// allOn returns the recorded version of each workload whose users all reach this version. It omits a release until all its workloads
// qualify.
func (p *promises) allOn() map[rollout.Workload]string {
	all := map[rollout.Workload]string{}
	for _, w := range p.u.workloads() {
		s, source := p.onRecord(w)
		if source == nil || s.Stable == nil {
			continue
		}
		through := s.Phase == rollout.Healthy || s.Phase == rollout.Promoting || s.Phase != rollout.Aborting && s.Phase != rollout.Degraded &&
			len(s.Progress) > 0 && !slices.ContainsFunc(s.Progress, func(pr rollout.Progress) bool {
			w := p.u.appIn(s.Source, s.App).find(pr.Workload)
			return w == nil || at(w, w.legs(), pr) < len(w.legs()) || w.isJudged(pr)
		})
		if s.Phase != rollout.Healthy && p.u.appIn(s.Source, s.App).isChecked() {
			continue // the result of a Job may roll the release back before Git has a record
		}
		// A rollback counts as soon as it is applied, even before it is recorded.
		if through && p.serves(w, source, time.Duration(source.minReady)*time.Second) && !p.awaits(s) && !p.u.oracle.back[s.App] {
			all[w] = source.version
		}
	}
	return all
}

// isJudged reports whether the analysis after the switch still measures a version. A bad result may still roll the version back.
func (w *workloadSource) isJudged(pr rollout.Progress) bool {
	return w.blueGreen["postPromotionAnalysis"] != nil && pr.Step < pr.Of && !strings.HasPrefix(pr.Name, "keep ")
}

// serves reports whether all users of a workload, except users of ignored versions, reach only source's version. A pod of this version must
// have been ready for minReady, and no other version may get new pods.
func (p *promises) serves(w rollout.Workload, source *workloadSource, minReady time.Duration, ignored ...string) bool {
	d := p.u.kube.Deployments[w]
	if d == nil || d.Base() != "" && d.Base() != source.version {
		return false
	}
	users := slices.DeleteFunc(p.users(w, source), func(v string) bool { return slices.Contains(ignored, v) })
	return slices.Equal(users, []string{source.version}) &&
		slices.ContainsFunc(d.Sets, func(rs *kube.ReplicaSet) bool {
			return kube.VersionOf(rs.Template) == source.version && rs.Serving(p.u.kube.Now, minReady) > 0
		})
}

// allServe reports whether all pods of a workload have the version of source, and have been ready for minReadySeconds.
func (p *promises) allServe(d *kube.Deployment, source *workloadSource) bool {
	serving := 0
	for _, rs := range d.Sets {
		if kube.VersionOf(rs.Template) == source.version {
			serving += rs.Serving(p.u.kube.Now, time.Duration(source.minReady)*time.Second)
		}
	}
	return serving == d.Replicas
}

// looked notes the versions that all users had at the start and also at the end of a process's pass.
func (p *promises) looked(a *actor) {
	if a.err != nil || a.View.Stale || a.dead || p.u.chaos.meddling || len(p.u.procs) > 1 {
		return
	}
	now := p.allOn()
	for w, version := range a.allOn {
		if now[w] == version && p.served[w].version != version {
			p.served[w] = served{version: version}
		}
	}
	p.asked() // the newest push may already request a rollback
}

// awaits reports whether users of any workload of a release still have another version. The whole app can then still roll back.
func (p *promises) awaits(s rollout.State) bool {
	return slices.ContainsFunc(progressOf(s), func(pr rollout.Progress) bool {
		source, d := p.u.appIn(s.Source, s.App).find(pr.Workload), p.u.kube.Deployments[pr.Workload]
		return source != nil && d != nil && d.Replicas > 0 && // a workload without pods advances with the others
			!p.serves(pr.Workload, source, time.Duration(source.minReady)*time.Second)
	})
}

// progressOf returns the recorded progress of a release's workloads. During a promotion, it adds changed workloads
// without recorded steps, such as workloads with their first document.
func progressOf(s rollout.State) []rollout.Progress {
	all := slices.Clone(s.Progress)
	if s.Phase == rollout.Promoting {
		for w, hash := range s.Release.Templates {
			if _, has := s.ProgressOf(w); !has && hash != s.StableHash(w) {
				all = append(all, rollout.Progress{Workload: w})
			}
		}
	}
	return all
}

// atRest checks the laws that hold only while no event is due.
func (p *promises) atRest() {
	if due := p.u.kube.NextDue(); due.After(p.u.kube.Now) || p.u.chaos.meddling {
		return
	}
	for _, a := range p.u.procs {
		if a.seen != p.u.git.Head(testBranch) || a.View.Stale {
			return // the process is new, or does not see the change that it has to undo
		}
	}
	for _, w := range p.u.workloads() {
		p.unsure[w] = p.checkShare(w)
		if !p.isLeftEmpty(w) {
			p.checkOwner(w)
			p.checkByHand(w)
			p.checkTried(w)
			p.checkSet(w)
		}
		p.sizes[w] = p.u.kube.Deployments[w].Replicas
	}
	for _, a := range p.u.head().apps {
		p.checkWayOut(&a)
	}
	p.checkMeasuring()
	p.checkWatched()
	p.checkRestart("")
}

// checkByHand checks that gitrollout replaces an image that was set by hand, unless the app is held.
func (p *promises) checkByHand(w rollout.Workload) {
	s, source := p.onRecord(w)
	if s.Held == nil && source != nil && kube.VersionOf(p.u.kube.Deployments[w].Template) == byHand {
		p.fail(lawOwner, "%s: an image that was set by hand stays", w)
	}
}

// checkTried checks that no experiment runs for a workload without pods.
func (p *promises) checkTried(w rollout.Workload) {
	s, source := p.onRecord(w)
	if source == nil || s.Held != nil || p.u.kube.Deployments[w].Replicas > 0 {
		return
	}
	for ref, o := range p.u.cluster.objects {
		if ref.Kind == "Deployment" && o.body.Annotation(rollout.AnnotationGenerated) == w.Name {
			p.fail(lawNothing, "%s: it has no pods, and %s runs", w, ref)
		}
	}
}

// checkOwner checks that a workload has the replicas in Git or, if Git does not set replicas, the replicas that a scaler set.
func (p *promises) checkOwner(w rollout.Workload) {
	s := p.u.oracle.states[p.u.oracle.appOf(w)]
	source, head := p.u.appIn(s.Source, s.App), p.u.appIn(p.u.git.Head(testBranch), s.App)
	n, scaled := p.u.scaled[w]
	is := p.u.kube.Deployments[w].Replicas
	for _, a := range []*appSource{source, head} {
		if a == nil {
			return
		}
		i := a.index(w)
		if i < 0 {
			return
		}
		switch want := a.workloads[i].replicas; {
		case want == nil && (!scaled || n == is), want != nil && *want == is:
			return
		}
	}
	if p.u.chaos.spoils && s.Phase == rollout.Aborting {
		return // replicas change only after the rollback, which does not end while the stable version is broken
	}
	if slices.ContainsFunc(s.Replicas, func(r rollout.Replicas) bool { return r.Workload == w && r.Count != nil && *r.Count == is }) {
		return // the record has the replicas of a commit between the recorded commit and the unreadable head
	}
	p.fail(lawOwner, "%s: it has %d replicas, and the last who scaled it said %d (%t)", w, is, n, scaled)
}

// isLeftEmpty reports whether a folder was renamed while it had no objects, and is still unreadable. The new name's
// record then has no objects. The old name's record still has the Deployment, which gitrollout does not change.
func (p *promises) isLeftEmpty(w rollout.Workload) bool {
	s := p.u.oracle.states[p.u.oracle.appOf(w)]
	source, head := p.u.appIn(s.Source, s.App), p.u.appIn(p.u.git.Head(testBranch), s.App)
	isOfNothing := source != nil && source.broken && source.emptied && len(s.Inventory) == 0
	return isOfNothing && head.broken && p.isLeft(w.Ref(), "")
}

// isLeft reports whether an object belongs to an app that left Git without a known new name.
func (p *promises) isLeft(ref rollout.Ref, app string) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(p.u.oracle.states)), func(s rollout.State) bool {
		return p.left[s.App] && s.Held != nil && (s.App == app || slices.Contains(s.Inventory, ref))
	})
}

// checkGone checks, when no event is due, that gitrollout has deleted the objects that left Git, except objects with disabled deletion.
func (p *promises) checkGone() {
	for ref, o := range p.u.cluster.objects {
		if p.isLeft(ref, o.app) || p.u.removed[o.app] {
			continue // only `gitrollout remove` deletes the object
		}
		p.checkFields(o.app, o.body)
		if p.u.oracle.astray[ref] && len(p.u.procs) > 1 {
			continue // one process wrote the object after another process had pruned it
		}
		if !p.u.listed(ref) && o.body.Annotation(rollout.AnnotationPrune) != "disabled" && !p.u.chaos.meddling {
			p.fail(lawGone, "%s of %s is in the cluster, and not in Git", ref, o.app)
		}
	}
}

// checkWedged checks, when no timer is left, that each unfinished app has a recorded reason. No release with ready new pods may wait for
// unready old pods.
func (p *promises) checkWedged() {
	for _, a := range p.u.head().apps {
		s := p.u.oracle.states[a.name]
		works := s.Phase == rollout.Progressing || s.Phase == rollout.Promoting || s.Phase == rollout.Aborting
		if works && s.Reason == "" && s.Held == nil {
			p.fail(lawWedged, "%s is %s for ever, and does not say why: %s", a.name, s.Phase, dump(s.Progress))
		}
		isOnWay := s.Phase == rollout.Progressing || s.Phase == rollout.Stalled
		if isOnWay && s.Stable != nil && s.Held == nil && p.areNewReady(s) {
			p.fail(lawFix, "%s waits for ever at %s, and all its new pods are ready", a.name, dump(s.Progress))
		}
	}
}

// areNewReady reports whether all new pods of a release are ready, and some old pods are not. The steps should then remove old pods.
func (p *promises) areNewReady(s rollout.State) bool {
	isBroken := false
	for _, pr := range s.Progress {
		d, source := p.u.kube.Deployments[pr.Workload], p.u.appIn(s.Source, s.App).find(pr.Workload)
		if d == nil || source == nil || source.policy != "" && !source.isOnNodes() {
			return false // a StatefulSet replaces its pods in order
		}
		fresh := slices.IndexFunc(d.Sets, func(rs *kube.ReplicaSet) bool { return kube.VersionOf(rs.Template) == source.version })
		if fresh < 0 || d.Sets[fresh].Replicas == 0 || d.Sets[fresh].Ready() < d.Sets[fresh].Replicas {
			return false
		}
		legs := source.legs()
		if step := at(source, legs, pr); step < len(legs) && d.Sets[fresh].Replicas > legs[step].pods(d.Replicas) {
			return false // the step requires fewer new pods than exist, but only these pods serve
		}
		isBroken = isBroken || slices.ContainsFunc(d.Sets, func(rs *kube.ReplicaSet) bool {
			return rs != d.Sets[fresh] && rs.Ready() < rs.Replicas
		})
	}
	return isBroken
}

// checkWayOut checks that a release is rolled back if a user has requested this.
func (p *promises) checkWayOut(a *appSource) {
	s := p.u.oracle.states[a.name]
	if s.Release == nil || s.Stable == nil || s.Phase == rollout.Aborting || s.Release.Hash == s.Stable.Hash {
		return
	}
	if why := p.takenBack(a.name, p.u.git.Head(testBranch)); why != "" {
		p.fail(p.wayOut(s), "%s: release %s was %s, and it is %s", a.name, s.Release.Hash, why, s.Phase)
	}
}

// wayOut returns the law that a release violates if it does not roll back.
func (p *promises) wayOut(s rollout.State) law {
	head := p.u.appIn(p.u.git.Head(testBranch), s.App)
	if slices.ContainsFunc(s.Progress, func(pr rollout.Progress) bool { return head.find(pr.Workload) == nil }) {
		return lawOrphan
	}
	return lawWayOut
}

// goesAlong reports whether a workload has no pods, and each later step that needs a promotion has its promotion.
func (p *promises) goesAlong(w *workloadSource, pr rollout.Progress, release rollout.Hash, key *rollout.Promotion) bool {
	d, legs := p.u.kube.Deployments[pr.Workload], w.legs()
	shut := d == nil || d.Replicas != 0
	for i := at(w, legs, pr); i < len(legs); i++ {
		shut = shut || legs[i].people && !(key.Says(rollout.Promote, release) && keyOpens(key, pr.Workload, legs, i))
	}
	return !shut
}

// takenBack returns how a commit requests a rollback of an app's release, such as "aborted"; "" without a request. A newer version does not
// supersede a release that all users have. Users of an image set by hand do not count.
func (p *promises) takenBack(app, commit string) string {
	s, source := p.u.oracle.states[app], p.u.appIn(commit, app)
	if source == nil || s.Release == nil {
		return ""
	}
	head := p.u.oracle.at(app, commit)
	moved := progressOf(s)
	all := len(moved) > 0 && !slices.ContainsFunc(moved, func(pr rollout.Progress) bool {
		w := p.u.appIn(s.Source, app).find(pr.Workload)
		return w == nil || p.served[pr.Workload].version != w.version && !p.serves(pr.Workload, w, 0, byHand) &&
			!p.goesAlong(w, pr, s.Release.Hash, source.promotion)
	})
	all = all || len(s.Progress) == 0 && p.u.isFollowed(app, s)
	// After a Rollout document was removed, a newer version does not supersede the release.
	removed := slices.ContainsFunc(s.Progress, func(pr rollout.Progress) bool {
		return source.find(pr.Workload) == nil && head != nil && head.Templates[pr.Workload] != ""
	})
	switch {
	case source.promotion.Says(rollout.Abort, s.Release.Hash) && !p.void[source.promotion]:
		return "aborted"
	case head == nil || head.Release() == s.Release.Hash || p.u.sources[commit].slip == slipConfig:
		return ""
	case head.Release() == s.Stable.Hash:
		return "reverted"
	case !all && !removed && head.Release() != "":
		return "superseded"
	default:
		return ""
	}
}
