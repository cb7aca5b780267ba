package simulate

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/contract"
	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/kube"
	"gitrollout.dev/gitrollout/simulate/memgit"
)

// memoryRemote adapts the simulator's Git server to the tests of package contract.
type memoryRemote struct {
	*memgit.Server
	down, lose bool
}

func (m *memoryRemote) Open(*testing.T) reconciler.Repository {
	return m.Clone("test", testBranch, "test", func(verb, _ string) (bool, error) {
		switch {
		case m.down:
			return false, errDown
		case m.lose && verb == "push":
			m.lose = false
			return true, errLost
		default:
			return false, nil
		}
	})
}

func (m *memoryRemote) Commit(_ *testing.T, branch string, files map[string]string) string {
	return m.Server.Commit(memgit.Change{Branch: branch, Author: "Ann", Message: "by a person", When: noon, Edits: edits(files)})
}

func (m *memoryRemote) Force(_ *testing.T, branch, commit string) { m.Set("Ann", branch, commit) }
func (m *memoryRemote) Head(_ *testing.T, branch string) string   { return m.Server.Head(branch) }
func (m *memoryRemote) Down(down bool)                            { m.down = down }
func (m *memoryRemote) LoseAnswer()                               { m.lose = true }

func TestGitKeepsTheContract(t *testing.T) {
	contract.Repository(t, func(*testing.T) contract.Remote { return &memoryRemote{Server: memgit.New(nil)} })
}

// memoryCluster adapts the simulator's cluster to the tests of package contract.
type memoryCluster struct {
	*View
	others others
}

func (m *memoryCluster) Share(_ *testing.T, ref rollout.Ref, data map[string]string) {
	m.others[ref] = data
}

func (m *memoryCluster) Data(_ *testing.T, ref rollout.Ref) map[string]string {
	return m.others.data(m.cluster, ref)
}

func (m *memoryCluster) Exists(_ *testing.T, ref rollout.Ref) bool {
	return m.cluster.objects[ref] != nil
}

func (m *memoryCluster) Delete(_ *testing.T, ref rollout.Ref) { m.cluster.Delete(ref) }
func (m *memoryCluster) Writes(*testing.T) int                { return m.cluster.writes }
func (m *memoryCluster) Namespace() string                    { return namespace }

func (m *memoryCluster) Await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 100 {
		for m.cluster.Kube.Micro() {
		}
		if ok() {
			return
		}
		m.cluster.Kube.Now = m.cluster.Kube.Now.Add(time.Second)
	}
	t.Fatalf("not after 100 seconds: %s", what)
}

func (m *memoryCluster) Scale(_ *testing.T, deployment string, replicas int) {
	d := m.cluster.Kube.Deployments[rollout.Workload{Namespace: namespace, Name: deployment}]
	d.Replicas = replicas
	d.Generation++
	m.cluster.Kube.OnChange("replicas")
}

func TestClusterKeepsTheContract(t *testing.T) {
	contract.ClusterCases(t, openMemory)
	contract.CloneSets(t, openMemory)
	contract.AdvancedDaemonSets(t, openMemory)
}

func openMemory(*testing.T) contract.Cluster {
	c := NewCluster(rand.New(rand.NewPCG(1, 1)), noon)
	c.Kube.Fate = func(version string) kube.Lifetime {
		return kube.Lifetime{Never: strings.HasSuffix(version, "-neverready")}
	}
	m := &memoryCluster{c.View("test", Open), others{}}
	c.writing = func(_ *View, _ string, o rollout.Object) { m.others.applied(c.objects[o.Ref()], o) }
	return m
}

// TestStaleClusterShowsItsOwnWrites checks that a process whose watches are broken still sees its own writes.
func TestStaleClusterShowsItsOwnWrites(t *testing.T) {
	c := NewCluster(rand.New(rand.NewPCG(1, 1)), noon)
	c.wrote = (*View).learn
	v := c.View("test", Open)
	v.refresh()
	v.Stale = true
	web := workloadSource{name: "web", version: "v1", limits: [2]any{1, 0}, replicas: new(2), deadline: 60}
	d, w := objectOf(web.deployment()), web.workload()
	must(t, v.Apply(t.Context(), "shop", []rollout.Object{d}))
	if live := v.Observe("shop", []rollout.Workload{w}, nil).Workloads[w]; live.Replicas != 2 || live.Synced {
		t.Errorf("it shows %+v", live)
	}
	if before := c.writes; v.Apply(t.Context(), "shop", []rollout.Object{d}) != nil || c.writes != before {
		t.Error("it writes its objects again")
	}
}

// Open is a Gate that lets every effect happen.
func Open(Effect) Outcome { return Outcome{} }

// refresh makes later stale reads return the present cluster.
func (v *View) refresh() {
	if v.Stale {
		return
	}
	v.observed, v.digests = v.cluster.Kube.Observe(), map[rollout.Ref]string{}
	for ref := range v.cluster.objects {
		v.digests[ref] = v.cluster.digest(ref)
	}
}
