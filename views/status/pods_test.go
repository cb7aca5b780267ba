package status

import (
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// TestPodsOfAVersion checks the pods that each Version selects, and the text for an app without such pods.
func TestPodsOfAVersion(t *testing.T) {
	of := func(role, hash string, pods ...string) Revision {
		r := Revision{Name: "rs-" + hash, Role: role, PodHash: hash}
		for _, name := range pods {
			r.Pods = append(r.Pods, Pod{Name: name, UID: "uid-" + name})
		}
		return r
	}
	workload := func(name string, revisions ...Revision) Workload {
		return Workload{Workload: name, Revisions: revisions}
	}
	moving := App{App: "shop", Release: &Release{Hash: "h1-new"}, Workloads: []Workload{
		workload("shop/web", of("stable", "b", "web-b"), of("canary", "a", "web-a"), of("", "0", "web-0")),
		workload("StatefulSet/data/db", of("active", "d", "db-0"), of("preview", "e", "db-1")),
		workload("shop/plain", of("", "p", "plain")),
	}}
	begun, rest, none, unread := moving, App{App: "shop"}, App{App: "shop"}, App{App: "shop", Note: "no right"}
	begun.Workloads = []Workload{workload("shop/web", of("stable", "b", "web-b", "web-c"), of("canary", "a"))}
	rest.Workloads = []Workload{workload("shop/web", Revision{Role: "stable", Hash: "h1-old", Pods: []Pod{{Name: "web-b"}}})}
	unread.Workloads = []Workload{{Workload: "shop/web", Unread: true}}
	for name, c := range map[string]struct {
		version Version
		app     App
		want    []string
		missing string
	}{
		"all":      {"", moving, []string{"shop/web-0", "shop/web-a", "shop/web-b", "data/db-0", "data/db-1", "shop/plain"}, ""},
		"new":      {New, moving, []string{"shop/web-a", "data/db-1"}, ""},
		"stable":   {Stable, moving, []string{"shop/web-b", "data/db-0"}, ""},
		"none yet": {New, begun, nil, "app shop has no pods of the new version; these versions run: stable b of shop/web (2 pods)"},
		"no release": {New, rest, nil,
			"app shop has no pods of the new version, because no release is in flight; these versions run: stable h1-old of shop/web (1 pod)"},
		"no pods":  {"", none, nil, "app shop has no pods; no version runs"},
		"not read": {Stable, unread, nil, "the pods of app shop are not known: no right"},
	} {
		t.Run(name, func(t *testing.T) {
			pods := c.version.Of(c.app)
			names := rollout.Mapped(pods, func(p VersionPod) string { return p.Namespace + "/" + p.Name })
			compare.Check(t, strings.Join(c.want, " "), strings.Join(names, " "))
			if c.missing != "" {
				compare.CheckNamed(t, "the reason", c.missing, c.version.Missing(c.app))
			}
		})
	}
	compare.CheckNamed(t, "a pod", VersionPod{Pod: Pod{Name: "web-a", UID: "uid-web-a"}, Namespace: "shop", Role: "canary", PodHash: "a"},
		New.Of(moving)[0])
}
