package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

// Version selects an app's pods: New, Stable, or "" for all.
type Version string

const (
	New    Version = "new" // in flight
	Stable Version = "stable"
)

func (v Version) includes(role string) bool {
	switch role {
	case "canary", "preview":
		return v != Stable
	case "stable", "active":
		return v != New
	}
	return v == "" // an older version, or a workload without a Rollout
}

func (w Workload) podHash(of Version) string {
	r, _ := rollout.Find(w.Revisions, func(r Revision) bool { return of.includes(r.Role) })
	return r.PodHash
}

// VersionPod is a pod with its namespace and revision.
type VersionPod struct {
	Pod
	Namespace, Role, PodHash string
}

// Of returns the version's pods.
func (v Version) Of(a App) (pods []VersionPod) {
	for _, w := range a.Workloads {
		var name rollout.Workload
		_ = name.UnmarshalText([]byte(w.Workload)) // cannot fail after Workload.String
		revisions := slices.SortedFunc(slices.Values(w.Revisions), func(a, b Revision) int {
			return cmp.Compare(a.Name, b.Name)
		})
		for _, r := range revisions {
			for _, p := range r.Pods {
				if v.includes(r.Role) {
					pods = append(pods, VersionPod{Pod: p, Namespace: name.Namespace, Role: r.Role, PodHash: r.PodHash})
				}
			}
		}
	}
	return pods
}

// Missing explains why an app has no pods of the version, and names the versions that have pods.
func (v Version) Missing(a App) string {
	text := "app " + a.App + " has no pods"
	if v != "" {
		text = fmt.Sprintf("app %s has no pods of the %s version", a.App, v)
	}
	if slices.ContainsFunc(a.Workloads, func(w Workload) bool { return w.Unread }) {
		return "the pods of app " + a.App + " are not known: " + cmp.Or(a.Note, "the cluster was not read")
	}
	var running []string
	for _, w := range a.Workloads {
		for _, r := range w.Revisions {
			if len(r.Pods) > 0 {
				running = append(running, strings.TrimLeft(fmt.Sprintf("%s %s of %s (%s)", r.Role,
					cmp.Or(string(r.Hash), r.PodHash), w.Workload, rollout.Count(len(r.Pods), "pod")), " "))
			}
		}
	}
	if v == New && a.Release == nil {
		text += ", because no release is in flight"
	}
	if len(running) == 0 {
		return text + "; no version runs"
	}
	return text + "; these versions run: " + strings.Join(running, ", ")
}
