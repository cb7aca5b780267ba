package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/crds"
	"gitrollout.dev/gitrollout/internal/kruisetest"
	"gitrollout.dev/gitrollout/rollout"
)

// gameServers is a row of workloads in a configuration. The paths of its status differ from Kubernetes' kinds.
const gameServers = `
- apiVersion: example.com/v1
  kind: GameServerSet
  partition: {path: spec.rollout.old, unit: percent}
  minReadySeconds: spec.rollout.minReadySeconds
  status:
    observedGeneration: status.seen
    replicas: status.pods.all
    updated: status.pods.new
    updatedReady: status.pods.newReady
    available: status.pods.available
    currentRevision: status.revisions.base
    updateRevision: status.revisions.newest
`

// gamesThatCountNew is gameServers with a partition that is the number of new pods.
var gamesThatCountNew = strings.Replace(gameServers, "{path: spec.rollout.old, unit: percent}", "{path: spec.rollout.new, counts: new}", 1)

func games(replicas string, steps ...string) shop {
	return shop{kind: "GameServerSet", api: "example.com/v1", version: "v1", replicas: replicas, strategy: canary("", steps...)}
}

// newGames returns a world with GameServerSets, whose controller has the fields of one row, and whose configuration has
// another row.
func newGames(t *testing.T, app shop, is, configured string) *world {
	t.Helper()
	w := newWorld(t, app.files())
	c, err := rollout.ParseConfig(".gitrollout/test/config.yaml", []byte(w.configure(is)))
	must(t, err)
	crds.Apply(t, w.cluster.Config, crds.Documented)
	kruisetest.Model(t, w.cluster, w.ns, "gameserversets", c.Workloads[0])
	w.configure(configured)
	return w
}

// configure pushes a configuration with rows of workloads.
func (w *world) configure(rows string) (config string) {
	w.t.Helper()
	w.repo.Pull()
	config = fmt.Sprintf("apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps:\n- path: apps/%s\n  namespace: %s\n"+
		"workloads:%s", w.app, w.ns, rows)
	w.repo.CommitFiles("the kind is described", map[string]string{".gitrollout/test/config.yaml": config})
	return config
}

func (w *world) gamePartition() string {
	return w.kubectl("get", "gameserverset", "shop", "-o", "jsonpath={.spec.rollout.old}{.spec.rollout.new}")
}

// TestKindOfAConfiguration adopts a workload of a configured kind without a restart. Its steps, a promotion, an abort
// and a revert use the field of its row.
func TestKindOfAConfiguration(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ row, first, second, rest string }{
		"CountsOld": {gameServers, "4", "3", "0"},
		"CountsNew": {gamesThatCountNew, "1", "2", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app := games("replicas: 5", "setWeight: 20", "pause: {}", "setWeight: 40", "pause: {}")
			w := newGames(t, app, test.row, test.row)
			w.kubectl("apply", "-f", w.repo.Work+"/apps/"+w.app+"/shop.yaml")
			w.awaitClones(5, 0)
			w.start()
			w.awaitHealthy(w.repo.Head())
			w.pods.wantStarted(t, "v1", 5)
			at := func(want string) {
				t.Helper()
				if got := w.gamePartition(); got != want {
					t.Errorf("the partition is %q, want %q", got, want)
				}
			}
			mark := w.pods.mark()
			commit := w.push("v2", app.at("v2").files())
			w.awaitStep(1, rollout.Paused)
			w.awaitClones(4, 1)
			at(test.first)
			w.promote()
			w.awaitStep(3, rollout.Paused)
			w.awaitClones(3, 2)
			at(test.second)
			w.promote()
			w.awaitHealthy(commit)
			w.awaitClones(0, 5)
			at(test.rest)
			if v1, v2, low := w.pods.count("v1"), w.pods.count("v2"), w.pods.lowest(mark); v1 != 5 || v2 != 5 || low < 4 {
				t.Errorf("%d pods of v1 and %d of v2 were started, and ready ones fell to %d; want 5, 5 and 4", v1, v2, low)
			}

			commit = w.push("v3", app.at("v3").files())
			w.awaitStep(1, rollout.Paused)
			w.ran("abort", w.app)
			w.await("back at stable", func(s rollout.State) bool { return s.Phase == rollout.Degraded })
			w.repo.Pull()
			w.pods.awaitReady(t, map[string]int{"v2": 5})
			w.repo.Revert(commit)
			w.await("at rest after the revert", func(s rollout.State) bool { return s.Phase == rollout.Healthy && s.Release == nil })
			at(test.rest)

			commit = w.push("v4", app.at("v4").files())
			w.awaitStep(1, rollout.Paused)
			w.pods.awaitReady(t, map[string]int{"v2": 4, "v4": 1})
			w.repo.Revert(commit)
			w.await("healthy again", func(s rollout.State) bool { return s.Phase == rollout.Healthy && s.Release == nil })
			w.pods.awaitReady(t, map[string]int{"v2": 5})
		})
	}
}

// TestMistakenKindOfAConfiguration has a row with a nonexistent field: the release stops, the message names the field,
// and the release continues with the correct row.
func TestMistakenKindOfAConfiguration(t *testing.T) {
	t.Parallel()
	const refused, unwritten = "the cluster refuses GameServerSet", "its controller writes no"
	for name, test := range map[string]struct{ is, not, says string }{
		"Partition":          {"spec.rollout.old", "spec.rolout.old", refused + "|.spec.rolout: field not declared in schema"},
		"ObservedGeneration": {"status.seen", "status.observed", unwritten + "|status.observed: name"},
		"Replicas":           {"status.pods.all", "status.pods.total", unwritten + "|status.pods.total: name"},
		"Updated":            {"status.pods.new\n", "status.pods.updated\n", unwritten + "|status.pods.updated: name"},
		"UpdatedReady":       {"status.pods.newReady", "status.pods.ready", unwritten + "|status.pods.ready: name"},
		"Available":          {"status.pods.available", "status.pods.up", unwritten + "|status.pods.up: name"},
		"CurrentRevision":    {"status.revisions.base", "status.revisions.current", unwritten + "|status.revisions.current: name"},
		"UpdateRevision":     {"status.revisions.newest", "status.revisions.updated", unwritten + "|status.revisions.updated: name"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app := games("replicas: 2", "setWeight: 50", "pause: {duration: 1s}")
			w := newGames(t, app, gameServers, strings.Replace(gameServers, test.is, test.not, 1))
			w.start()
			var out string
			for deadline := time.Now().Add(timeout); ; time.Sleep(glance) {
				out, _ = w.cli("get", w.app)
				words := strings.Join(strings.Fields(out), " ") // lines are as wide as a terminal
				missing := slices.DeleteFunc(strings.Split(test.says, "|"), func(s string) bool { return strings.Contains(words, s) })
				if len(missing) == 0 {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("not told: %q:\n%s", missing, out)
				}
			}
			w.configure(gameServers)
			commit := w.push("v2", app.at("v2").files())
			w.awaitHealthy(commit)
			w.awaitClones(0, 2)
		})
	}
}
