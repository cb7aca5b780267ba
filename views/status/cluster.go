package status

import (
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// Live is a workload in the cluster, with gitrollout's annotations.
type Live struct {
	Workload rollout.Workload
	Observed rollout.ObservedWorkload
	Commit   string // commit of the template
	Held     string // the release in flight and its step, or ""
}

// Unknown is the displayed phase of an unreadable record.
const Unknown rollout.Phase = "Unknown"

// OfCluster describes an app only from its live workloads.
func OfCluster(app, cluster string, live []Live) App {
	a := App{App: app, Cluster: cluster, Phase: Unknown,
		Reason: "all pods have one version; whether Git has a newer version is not known"}
	for _, l := range live {
		a.Namespace = l.Workload.Namespace
		w := Workload{Workload: l.Workload.String(), Replicas: l.Observed.Replicas, FullWeight: 100, Moving: l.Held != ""}
		if b, err := rollout.ParseBreakGlass(l.Observed.BreakGlass); err == nil {
			a.Warnings = append(a.Warnings, l.Workload.Title()+": "+b.Text()+"; its annotation stays until Git has the record")
		}
		for _, r := range l.Observed.Revisions {
			if r.Pods == 0 && r.Desired == 0 && len(r.Members) == 0 && !r.Current {
				continue
			}
			role := "stable"
			if l.Held != "" && r.Hash == l.Observed.Hash {
				role = "canary"
			} else if l.Held != "" && a.Stable == nil {
				a.Stable = &Release{Hash: r.Hash}
			} else if l.Held == "" && !r.Current {
				role = "" // an old version that scales down
			}
			w.Ready += r.Ready()
			w.Revisions = append(w.Revisions, revisionOf(r, role))
		}
		switch running := (&Release{Hash: l.Observed.Hash, Commit: l.Commit}); {
		case l.Held != "":
			a.Phase, a.Release = rollout.Progressing, running
			a.Reason, _, _ = strings.Cut(l.Held, "; see:")
		case !l.Observed.Complete && a.Release == nil:
			a.Phase, a.Stable, a.Reason = rollout.Progressing, running, "the cluster is replacing pods"
		case a.Stable == nil:
			a.Stable = running
		}
		a.Workloads = append(a.Workloads, w)
	}
	return a
}
