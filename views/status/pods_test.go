package status_test

import (
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

// TestPodsOfAVersion checks the pods that each Version selects, and the text for an app without such pods.
func TestPodsOfAVersion(t *testing.T) {
	of := func(role, hash string, pods ...string) status.Revision {
		r := status.Revision{Name: "rs-" + hash, Role: role, PodHash: hash}
		for _, name := range pods {
			r.Pods = append(r.Pods, status.Pod{Name: name, UID: "uid-" + name})
		}
		return r
	}
	workload := func(name string, revisions ...status.Revision) status.Workload {
		return status.Workload{Workload: name, Revisions: revisions}
	}
	moving := status.App{App: "shop", Release: &status.Release{Hash: "h1-new"}, Workloads: []status.Workload{
		workload("shop/web", of("stable", "b", "web-b"), of("canary", "a", "web-a"), of("", "0", "web-0")),
		workload("StatefulSet/data/db", of("active", "d", "db-0"), of("preview", "e", "db-1")),
		workload("shop/plain", of("", "p", "plain")),
	}}
	begun, rest, none, unread := moving, status.App{App: "shop"}, status.App{App: "shop"}, status.App{App: "shop", Note: "no right"}
	begun.Workloads = []status.Workload{workload("shop/web", of("stable", "b", "web-b", "web-c"), of("canary", "a"))}
	rest.Workloads = []status.Workload{workload("shop/web",
		status.Revision{Role: "stable", Hash: "h1-old", Pods: []status.Pod{{Name: "web-b"}}})}
	unread.Workloads = []status.Workload{{Workload: "shop/web", Unread: true}}
	for name, c := range map[string]struct {
		version status.Version
		app     status.App
		want    []string
		missing string
	}{
		"all":      {"", moving, []string{"shop/web-0", "shop/web-a", "shop/web-b", "data/db-0", "data/db-1", "shop/plain"}, ""},
		"new":      {status.New, moving, []string{"shop/web-a", "data/db-1"}, ""},
		"stable":   {status.Stable, moving, []string{"shop/web-b", "data/db-0"}, ""},
		"none yet": {status.New, begun, nil, "app shop has no pods of the new version; these versions run: stable b of shop/web (2 pods)"},
		"no release": {status.New, rest, nil,
			"app shop has no pods of the new version, because no release is in flight; these versions run: stable h1-old of shop/web (1 pod)"},
		"no pods":  {"", none, nil, "app shop has no pods; no version runs"},
		"not read": {status.Stable, unread, nil, "the pods of app shop are not known: no right"},
	} {
		t.Run(name, func(t *testing.T) {
			pods := c.version.Of(c.app)
			names := rollout.Mapped(pods, func(p status.VersionPod) string { return p.Namespace + "/" + p.Name })
			compare.Check(t, strings.Join(c.want, " "), strings.Join(names, " "))
			if c.missing != "" {
				compare.CheckNamed(t, "the reason", c.missing, c.version.Missing(c.app))
			}
		})
	}
	compare.CheckNamed(t, "a pod",
		status.VersionPod{Pod: status.Pod{Name: "web-a", UID: "uid-web-a"}, Namespace: "shop", Role: "canary", PodHash: "a"},
		status.New.Of(moving)[0])
}
