package status

import (
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// Live is one Deployment as the cluster alone shows it: what runs, and what gitrollout wrote on it.
type Live struct {
	Workload rollout.Workload
	Observed rollout.ObservedWorkload
	Commit   string // whose version its template is
	Held     string // at which step of which release it is held, "" if it is not
}

// Unknown is the phase of an app that is at rest and of which Git is not known.
const Unknown rollout.Phase = "Unknown"

// OfCluster says of an app what the cluster alone tells, when Git cannot be read: which versions run, and where a
// release is held. What Git asks for, the steps to come, what was measured and who released it is in Git.
func OfCluster(app, cluster string, live []Live) App {
	a := App{App: app, Cluster: cluster, Phase: Unknown,
		Reason: "all pods are of one version; whether Git asks for another one is not known"}
	for _, l := range live {
		w := Workload{Workload: l.Workload.String(), Replicas: l.Observed.Replicas, FullWeight: 100, Moving: l.Held != ""}
		fresh := 0
		for _, r := range l.Observed.Revisions {
			if r.Pods == 0 && r.Desired == 0 && len(r.Members) == 0 && !r.Current {
				continue
			}
			role := "stable"
			if l.Held != "" && r.Hash == l.Observed.Hash {
				role = "canary"
				fresh += r.Ready()
			} else if l.Held != "" && a.Stable == nil {
				a.Stable = &Release{Hash: r.Hash}
			} else if l.Held == "" && !r.Current {
				role = "" // on its way out
			}
			w.Ready += r.Ready()
			w.Revisions = append(w.Revisions, revisionOf(r, role))
		}
		if w.Ready > 0 {
			w.RealWeight = fresh * 100 / w.Ready
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
