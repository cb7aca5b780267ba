package simulate

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	gitsource "gitrollout.dev/gitrollout/reconciler/source"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/kube"
	"gitrollout.dev/gitrollout/strategies"
)

// checkWrite checks each write to the cluster in advance. The content must come from a commit that the newest record
// in Git names: the released commit, the stable commit, the previous stable commit, or the rollback's target. A
// rollback that is not recorded yet may also use the commit in which users reverted the release.
func (o *oracle) checkWrite(v *View, app string, object rollout.Object) {
	a := o.u.actor(v.name)
	o.writes++
	isBehind := false
	for _, other := range o.u.procs {
		// The other process has written after this process last observed the cluster.
		if other != a && o.written[other.Name+" "+app] > v.toldAt {
			o.stale[app], isBehind = true, true
		}
	}
	if a.Name == userName && !isBehind {
		o.checkUser(a, app, object)
	}
	o.written[a.Name+" "+app] = o.u.cluster.writes + 1
	o.u.note("  %s writes %s of %s", v.name, name(object), app)
	state, records := o.states[app], o.records[app]
	for ref, by := range o.u.cluster.foreign {
		if w, _ := o.u.kube.WorkloadOf(ref); o.appOf(w) == app {
			o.u.fail("foreign: %s writes %s of %s, of which %s has %s in hand", a.Name, name(object), app, by, ref)
		}
	}
	o.checkQuiet(v, app, object)
	if o.goesBack(app, state, object) {
		o.back[app] = true
	}
	isKnown := slices.Contains(state.Inventory, object.Ref()) || slices.Contains(state.Generated, object.Ref())
	made, now := object.Annotation(rollout.AnnotationGenerated) != "", o.at(app, state.Source)
	isOver := now != nil && !hasObject(now, object.Ref())
	if !isKnown && (made || isOver) {
		o.astray[object.Ref()] = true // the write belongs to a release whose end is recorded
	}
	if o.wrote[app] == nil {
		o.wrote[app] = map[rollout.Ref]string{}
	}
	if by := o.wrote[app][object.Ref()]; by != "" && by != a.Name {
		o.stale[app] = true // one process may have rolled back for a reason that the other process has not read
	}
	o.wrote[app][object.Ref()] = a.Name
	if o.explains(app, state, object) || o.explains(app, state, object, o.takenBackBy(a, app, state)...) {
		return
	}
	if i := slices.IndexFunc(records, func(r rollout.State) bool { return r.Release != nil }); o.u.chaos.pumps && i >= 0 {
		for _, r := range records[i:] { // a rollback may begin before the rolled-back release is recorded as stable
			var to []string
			if r.Stable != nil && o.overtook[app] {
				to = []string{r.Stable.Commit}
			}
			if r.Release != nil && o.explains(app, rollout.State{}, object, append(to, o.takenBackBy(a, app, r)...)...) {
				return
			}
		}
	}
	for i := len(records) - 1; i >= 0; i-- {
		if !o.explains(app, records[i], object) {
			continue
		}
		o.stale[app], o.astray[object.Ref()] = true, true
		o.staleWrites++
		if o.u.chaos.processes <= 1 && !o.u.chaos.git && !o.u.chaos.meddling {
			o.u.fail("%s writes %s as of an older record (%d of %d)", a.Name, name(object), i+1, len(records))
		}
		return
	}
	o.u.fail("%s writes %s of %s, which no record in Git explains (%s)", a.Name, name(object), app, o.brings(object))
}

// checkQuiet checks that the start of a pause does not write a workload only to change status texts. Such a write makes the Deployment
// controller update all ReplicaSets' annotations. The end of an experiment is exempt.
func (o *oracle) checkQuiet(v *View, app string, object rollout.Object) {
	live, records := o.u.cluster.objects[object.Ref()], o.records[app]
	w, moves := o.u.kube.WorkloadOf(object.Ref())
	isDrifted := v.Stale && v.digests[object.Ref()] == "" || !v.Stale && v.cluster.digest(object.Ref()) == ""
	if !moves || live == nil || isDrifted || len(records) < 2 {
		return
	}
	was, is := records[len(records)-2], records[len(records)-1]
	isPause := was.Phase == rollout.Progressing && is.Phase == rollout.Paused && was.Source == is.Source && len(was.Generated) == 0 &&
		is.StableHash(w) != rollout.Hash(object.Annotation(rollout.AnnotationHash)) &&
		o.u.promises.takenBack(app, o.u.actor(v.name).Clone.Main) == ""
	isElse := func(pr rollout.Progress) bool { // more than a text changes
		before, _ := was.ProgressOf(pr.Workload)
		return !strings.HasPrefix(pr.Name, "pause") || !reflect.DeepEqual(before.Routed, pr.Routed)
	}
	isMeasured := func(m strategies.Measured) bool { return m.Release == is.Release.Hash }
	// After a bad measurement or an abort by break glass, the write may belong to a rollback that is not recorded yet.
	isBroken := func(w rollout.Workload) bool { return o.appOf(w) == app && o.u.kube.Deployments[w].BreakGlass != "" }
	isBad := isPause && slices.ContainsFunc(o.u.promises.bad, isMeasured) || slices.ContainsFunc(o.u.workloads(), isBroken)
	if isBad || !isPause || slices.ContainsFunc(is.Progress, isElse) || len(o.u.procs) > 1 || o.u.chaos.meddling {
		return
	}
	bare := func(from rollout.Object) string {
		b := from.Copy()
		delete(b.Map("metadata", "labels"), rollout.LabelSerial)
		delete(b.Map("metadata", "annotations"), rollout.AnnotationStatus)
		return dump(b)
	}
	if bare(live.body) == bare(object) {
		o.u.promises.fail(lawQuiet, "%s writes %s, of which only words change", v.name, name(object))
	}
}

// takenBackBy returns the commits that may have reverted an app's release to an earlier version. It considers the process's fetched head of
// main and all commits since the release, because another push may follow the revert.
func (o *oracle) takenBackBy(a *actor, app string, s rollout.State) []string {
	commits := []string{a.Clone.Main}
	if s.Release != nil {
		commits = append(commits, o.u.history[max(0, slices.Index(o.u.history, s.Release.Commit)):]...)
	}
	return slices.DeleteFunc(commits, func(commit string) bool {
		r := o.at(app, commit)
		return r == nil || s.Stable == nil || r.Release() != s.Stable.Hash && (s.Draining == nil || r.Release() != s.Draining.Release.Hash)
	})
}

// brings returns the version in an object: the version of its pods, or the data of a ConfigMap. It returns "" for other objects.
func (o *oracle) brings(object rollout.Object) string {
	switch object.Kind() {
	case "Deployment", "StatefulSet", "CloneSet", "DaemonSet", "GameServerSet", "ShardSet":
		return kube.VersionOf(dump(object.Map("spec")["template"]))
	case "ConfigMap":
		text, _ := object.Map("data")["n"].(string)
		return text
	case "Service":
		pin, _ := object.Map("spec", "selector")[rollout.LabelPodHash].(string)
		if by, is := object.Map("spec", "selector")[rollout.LabelRevision].(string); is {
			pin = by
		}
		for _, w := range o.u.workloads() {
			for _, rs := range o.u.kube.Deployments[w].Sets {
				if pin != "" && rs.PodHash == pin {
					return kube.VersionOf(rs.Template)
				}
			}
		}
	}
	return ""
}

// explains reports whether an object's content is in a commit that the record names, or in another given commit.
func (o *oracle) explains(app string, s rollout.State, object rollout.Object, more ...string) bool {
	brings, commits := o.brings(object), append([]string{s.Source}, more...)
	if s.Stable != nil {
		commits = append(commits, s.Stable.Commit)
	}
	if s.Rollback != nil {
		commits = append(commits, s.Rollback.To)
	}
	if s.Draining != nil { // the pods of this release are kept for a rollback
		commits = append(commits, s.Draining.Release.Commit)
	}
	if s.Watch != nil {
		commits = append(commits, s.Watch.Former.Commit)
	}
	return slices.ContainsFunc(commits, func(commit string) bool {
		r := o.at(app, commit)
		if r == nil {
			return false
		}
		if object.Kind() != "Service" && object.Annotation(rollout.AnnotationGenerated) == "" {
			return slices.ContainsFunc(r.Objects, func(has rollout.Object) bool {
				return has.Ref() == object.Ref() && o.brings(has) == brings
			})
		}
		versions := slices.ContainsFunc(r.Objects, func(has rollout.Object) bool {
			_, is := o.u.kube.WorkloadOf(has.Ref())
			return is && o.brings(has) == brings
		})
		// Pods with an image set by hand have the release's hash until gitrollout restores the image, so a Service may select them.
		return brings == "" || brings == byHand || versions
	})
}

// goesBack reports whether an object changes a workload from another version to the stable version.
func (o *oracle) goesBack(app string, s rollout.State, object rollout.Object) bool {
	w, is := o.u.kube.WorkloadOf(object.Ref())
	if s.Watch != nil {
		s.Release, s.Stable = s.Stable, &s.Watch.Former
	}
	if !is || s.Release == nil || s.Stable == nil || s.Phase == rollout.Aborting {
		return false
	}
	d, to := o.u.kube.Deployments[w], o.at(app, s.Stable.Commit)
	return d != nil && to != nil && o.explains(app, rollout.State{Source: s.Stable.Commit}, object) &&
		o.brings(object) != kube.VersionOf(d.Template)
}

// isTold reports whether a process must know the newest state and must have acted on this state.
func (o *oracle) isTold(a *actor) bool {
	switch {
	case a.dead || a.View.Stale || o.u.chaos.meddling || len(o.u.procs) > 1 || errors.Is(a.err, gitsource.ErrNotReady):
		return false
	case !a.unread.IsZero() && o.u.kube.Now.Sub(a.unread) < time.Second:
		return false // the process lacked a commit just now, and will make another pass
	case !o.u.apiFault.IsZero() && o.u.kube.Now.Sub(o.u.apiFault) < 5*time.Minute:
		return false // the process may be waiting for a retry
	default:
		return true
	}
}

// checkBacks checks that app passes have applied each rollback whose reason the process knows, even before Git has the rollback's record.
func (o *oracle) checkBacks(a *actor) {
	if !o.isTold(a) {
		return
	}
	for _, s := range o.u.head().apps {
		if len(o.records[s.name]) == a.records[s.name] { // otherwise, the process decided from an older record
			o.checkBack(a, s.name)
		}
	}
}

// checkBack checks that no user reaches a release if the process knows that this release must roll back.
func (o *oracle) checkBack(a *actor, app string) {
	s := o.states[app]
	if s.Release == nil || s.Stable == nil || s.Phase == rollout.Aborting || s.Release.Hash == s.Stable.Hash {
		return
	}
	if !a.Clone.Local[s.Source] || !a.Clone.Local[s.Stable.Commit] || o.u.isLost(s) {
		return // a rollback cannot use a commit that is unreadable or that left main's history
	}
	why := o.u.promises.takenBack(app, a.Clone.Main)
	source := o.u.appIn(s.Source, app)
	isRouted := slices.ContainsFunc(s.Progress, func(pr rollout.Progress) bool {
		w := source.find(pr.Workload)
		return w != nil && o.u.promises.shares(pr.Workload, w) != nil
	})
	for _, pr := range s.Progress {
		w := source.find(pr.Workload)
		if d := o.u.kube.Deployments[pr.Workload]; why != "" && w != nil && d != nil {
			o.checkLeft(a, s, d, w, why, isRouted)
		}
	}
}

// checkLeft checks that a workload no longer serves a release that must roll back. The pods of a release with routes stay until proxies
// know the new routes.
func (o *oracle) checkLeft(
	a *actor, s rollout.State, d *kube.Deployment, w *workloadSource, why string, isRouted bool,
) {
	p, seen := o.u.promises, fmt.Sprintf("%s: %s has seen that release %s was %s", s.App, a.Name, s.Release.Hash, why)
	if version := kube.VersionOf(d.Template); version == w.version && (!isRouted || s.Phase == rollout.Promoting) {
		p.fail(p.wayOut(s), "%s, and %s still asks for it", seen, d.Workload)
	}
	for _, rs := range d.Sets {
		if kube.VersionOf(rs.Template) == w.version && p.requests(d.Workload, w, rs.PodHash) > 0 {
			p.fail(p.wayOut(s), "%s, and requests still go to %s", seen, rs.PodHash)
		}
	}
}
