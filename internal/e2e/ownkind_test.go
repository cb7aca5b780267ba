package e2e

import (
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/crds"
	"gitrollout.dev/gitrollout/internal/kruisetest"
	"gitrollout.dev/gitrollout/rollout"
)

// gameServers is an entry in the `workloads` of the configuration. Its status paths differ from the paths of Kubernetes' kinds.
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

// gamesThatCountNew is gameServers with a partition field that counts new pods instead of old pods.
var gamesThatCountNew = strings.Replace(gameServers, "{path: spec.rollout.old, unit: percent}", "{path: spec.rollout.new, counts: new}", 1)

func games(replicas string, steps ...string) shop {
	return shop{kind: "GameServerSet", api: "example.com/v1", version: "v1", replicas: replicas, strategy: canary("", steps...)}
}

// newGames returns a world with a controller for GameServerSets. The entry `is` describes the controller's fields. gitrollout's
// configuration has the entry `configured`, which can differ.
func newGames(t *testing.T, app shop, is, configured string) *world {
	t.Helper()
	w := newWorld(t, app.files())
	c, err := rollout.ParseConfig(configFile, []byte(w.configure("workloads:"+is)))
	must(t, err)
	crds.Apply(t, w.cluster.Config, crds.Documented)
	kruisetest.Model(t, w.cluster, w.ns, "gameserversets", c.Workloads[0])
	w.configure("workloads:" + configured)
	return w
}

func (w *world) gamePartition() string {
	return w.kubectl("get", "gameserverset", "shop", "-o", "jsonpath={.spec.rollout.old}{.spec.rollout.new}")
}

// TestKindOfAConfiguration checks that a workload of a configured kind is adopted without restarting its pods. Steps,
// promotions, aborts and reverts write the partition that the kind's entry defines.
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
			w.apply(app.files()["shop.yaml"])
			w.awaitClones(5, 0)
			w.start().awaitHealthy(w.repo.Head())
			w.pods.wantStarted(t, map[string]int{"v1": 5})
			at := func(want string) {
				t.Helper()
				compare.CheckNamed(t, "the partition", want, w.gamePartition())
			}
			mark := w.pods.mark()
			commit := w.stage("v2", app.at("v2").files())
			w.awaitClones(4, 1)
			at(test.first)
			w.promote().awaitPause(3)
			w.awaitClones(3, 2)
			at(test.second)
			w.promote().awaitHealthy(commit)
			w.awaitClones(0, 5)
			at(test.rest)
			w.pods.wantStarted(t, map[string]int{"v1": 5, "v2": 5})
			w.pods.wantReady(t, mark, 4)

			commit = w.stage("v3", app.at("v3").files())
			w.abort()
			w.repo.Pull()
			w.pods.awaitReady(t, map[string]int{"v2": 5})
			w.revert(commit)
			at(test.rest)

			commit = w.stage("v4", app.at("v4").files())
			w.pods.awaitReady(t, map[string]int{"v2": 4, "v4": 1})
			w.revert(commit)
			w.pods.awaitReady(t, map[string]int{"v2": 5})
		})
	}
}

// TestMistakenKindOfAConfiguration checks an entry with a field that the workload does not have. `gitrollout get` names the field. A
// release completes after the entry is corrected.
func TestMistakenKindOfAConfiguration(t *testing.T) {
	t.Parallel()
	const refused, unwritten = "the cluster refuses GameServerSet", "its controller writes no "
	for name, test := range map[string]struct{ is, not, says string }{
		"Partition":          {"spec.rollout.old", "spec.rolout.old", refused + "|.spec.rolout: field not declared in schema"},
		"ObservedGeneration": {"status.seen", "status.observed", unwritten + "status.observed"},
		"Replicas":           {"status.pods.all", "status.pods.total", unwritten + "status.pods.total"},
		"Updated":            {"status.pods.new\n", "status.pods.updated\n", unwritten + "status.pods.updated"},
		"UpdatedReady":       {"status.pods.newReady", "status.pods.ready", unwritten + "status.pods.ready"},
		"Available":          {"status.pods.available", "status.pods.up", unwritten + "status.pods.up"},
		"CurrentRevision":    {"status.revisions.base", "status.revisions.current", unwritten + "status.revisions.current"},
		"UpdateRevision":     {"status.revisions.newest", "status.revisions.updated", unwritten + "status.revisions.updated"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			app := games("replicas: 2", "setWeight: 50", "pause: {duration: 1s}")
			w := newGames(t, app, gameServers, strings.Replace(gameServers, test.is, test.not, 1))
			w.start()
			w.awaitGet(strings.Split(test.says, "|")...)
			w.configure("workloads:" + gameServers)
			commit := w.push("v2", app.at("v2").files())
			w.awaitHealthy(commit)
			w.awaitClones(0, 2)
		})
	}
}
