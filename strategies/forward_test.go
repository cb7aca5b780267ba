package strategies_test

import (
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/kube"
	"gitrollout.dev/gitrollout/strategies"
)

// forward is an invariant: the users of a workload move to newer versions only, or back to the last version that served all of them. The
// test reads the users' versions from Services and pods, not from the recorded state.
type forward struct {
	served []string // versions that have served all users, oldest first, each once
	judged bool     // the newest version in served was recorded as stable, or all pods had this version after its last step
}

// checkForward checks the invariant forward after each change of the cluster. Once a version serves all users after its last step, users
// return to an older version only by a user's decision or a failed analysis.
func (s *sim) checkForward(w rollout.Workload, d *kube.Deployment, spec rollout.Spec, x *watched) {
	f := &x.forward
	reached := s.reached(d, spec)
	if len(reached) == 0 {
		return
	}
	last := ""
	if n := len(f.served); n > 0 {
		last = f.served[n-1]
	}
	if len(reached) == 1 && reached[0] != last {
		f.judged = false
		f.served = append(slices.DeleteFunc(f.served, func(v string) bool { return v == reached[0] }), reached[0])
		return
	}
	if hash, ok := hashOf(d, last); ok && (s.isThrough(d, last) || s.state.Phase == rollout.Healthy && s.state.StableHash(w) == hash) {
		f.judged = true
	}
	if !f.judged || s.mayGoBack || s.overtaken || s.ready(d, last) == 0 {
		return
	}
	for _, v := range reached {
		if hash, _ := hashOf(d, v); s.state.Release != nil && s.state.Release.Templates[w] == hash {
			continue // a user has released this version again, step by step
		}
		if v != last && slices.Contains(f.served, v) {
			s.fail("%s: users meet %s again, and %s has served all of them", w, v, last)
		}
	}
}

// isThrough reports whether the release in flight has passed its last step and all its pods have the given version.
func (s *sim) isThrough(d *kube.Deployment, version string) bool {
	if s.state.Release == nil || s.state.Stable == nil || s.state.Phase == rollout.Aborting {
		return false
	}
	hash, _ := hashOf(d, version)
	return s.state.Release.Templates[d.Workload] == hash &&
		!slices.ContainsFunc(s.state.Progress, func(p rollout.Progress) bool { return p.Step < p.Of || s.runsOther(p.Workload) })
}

// runsOther reports whether a workload has pods whose version differs from the release's version.
func (s *sim) runsOther(w rollout.Workload) bool {
	d := s.kube.Deployments[w]
	return d != nil && slices.ContainsFunc(d.Sets, func(rs *kube.ReplicaSet) bool {
		return rollout.Hash(rs.Annotations[rollout.AnnotationHash]) != s.state.Release.Templates[w] && (rs.Replicas > 0 || len(rs.Live()) > 0)
	})
}

func hashOf(d *kube.Deployment, version string) (rollout.Hash, bool) {
	for _, rs := range d.Sets {
		if kube.VersionOf(rs.Template) == version {
			return rollout.Hash(rs.Annotations[rollout.AnnotationHash]), true
		}
	}
	return "", false
}

func (s *sim) ready(d *kube.Deployment, version string) int {
	n := 0
	for _, rs := range d.Sets {
		if kube.VersionOf(rs.Template) == version {
			n += rs.Ready()
		}
	}
	return n
}

// reached returns the versions whose pods users reach: pods that the main Service selects or, without one, all ready pods.
func (s *sim) reached(d *kube.Deployment, spec rollout.Spec) []string {
	main := ""
	switch {
	case spec.BlueGreen != nil:
		main = spec.BlueGreen.ActiveService
	case spec.Canary != nil && spec.Canary.Traffic == nil:
		main = spec.Canary.StableService
	case spec.Canary != nil:
		return nil // the guard checks routed requests
	}
	pin := s.kube.Pins[rollout.Ref{Kind: "Service", Namespace: d.Workload.Namespace, Name: main}]
	var versions []string
	for _, rs := range d.Sets {
		if rs.Ready() > 0 && (pin == "" || main == "" || rs.PodHash == pin) {
			versions = append(versions, kube.VersionOf(rs.Template))
		}
	}
	slices.Sort(versions)
	return slices.Compact(versions)
}

// allowBack permits users to return to an older version after a rejection, after a push of a version that served before, and in a rollback
// that begins while a version other than the release's has pods.
func (s *sim) allowBack(in strategies.Input, d strategies.Decision) {
	is := d.State
	switch {
	case is.Phase == rollout.Healthy && is.Release == nil:
		s.mayGoBack = false
	case is.Phase == rollout.Aborting && in.State.Phase != rollout.Aborting:
		reverted := in.Head.Render != nil && in.Head.Render.Release() == is.Stable.Hash
		s.mayGoBack = s.mayGoBack || is.Rollback.Reject || reverted || seesOthers(in)
	case is.Release != nil && is.Release.Fast:
		s.mayGoBack = true
	}
}

// seesOthers reports whether the input has pods of a version other than the release's. These pods may be gone by now.
func seesOthers(in strategies.Input) bool {
	return slices.ContainsFunc(in.State.Progress, func(p rollout.Progress) bool {
		return slices.ContainsFunc(in.Observed.Workloads[p.Workload].Revisions, func(r rollout.Revision) bool {
			return r.Pods > 0 && r.Hash != in.State.Release.Templates[p.Workload]
		})
	})
}

// unwell is an invariant: an app that lacks pods is not Healthy for long.
type unwell struct {
	since time.Time // when pods were first missing, or when another pod last became ready; zero if none is missing
	ready int
	looks int // the value of sim.crashes when since was set
}

// seen resets x when all pods are ready, even if only for a moment.
func (x *unwell) seen(d *kube.Deployment) {
	for _, rs := range d.Sets {
		if rs.Template == d.Template && rs.Ready() >= d.Replicas {
			*x = unwell{}
		}
	}
}

// checkHealth checks the invariant unwell when the simulated cluster has no pending event.
func (s *sim) checkHealth() {
	for w, live := range s.observe().Workloads {
		x := &s.watch(w).unwell
		ready := 0
		for _, r := range live.Revisions {
			if r.Current {
				ready = r.Ready()
			}
		}
		switch {
		case ready >= live.Replicas || s.state.Release != nil:
			*x = unwell{}
		case x.since.IsZero() || ready > x.ready || s.crashes > x.looks:
			*x = unwell{since: s.kube.Now, ready: ready, looks: s.crashes}
		case s.kube.Now.Sub(x.since) > 10*time.Minute && s.state.Shown() == rollout.Healthy:
			s.fail("%s has %d of %d pods ready since %s, and the app is Healthy", w, ready, live.Replicas, x.since)
		}
	}
}
