package e2e

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/internal/testcluster"
	"gitrollout.dev/gitrollout/rollout"
)

// fleetWorld is a repository whose app shop runs in several clusters, each with its own gitrollout process.
type fleetWorld struct {
	t      *testing.T
	repo   *gittest.Repo
	stages [][]*world // the clusters of each stage
	all    []*world
}

const soakTime = 3 * time.Second

// fleetOf starts gitrollout in the clusters of all stages. All clusters build shop from one base.
func fleetOf(t *testing.T, cluster func(testing.TB) *testcluster.Cluster, stages ...[]string) *fleetWorld {
	f := &fleetWorld{t: t, repo: gittest.New(t)}
	server := f.repo.HTTP(gittest.HTTPOptions{})
	app := newShop(2, "", "setWeight: 50")
	app.rollout = "  progressDeadlineSeconds: 10\n  progressDeadlineAbort: true\n"
	files := map[string]string{}
	for name, content := range app.files() {
		files["apps/shop/base/"+name] = content
	}
	for _, names := range stages {
		var stage []*world
		for _, name := range names {
			w := emptyWorld(t, cluster(t), f.repo)
			w.server, w.name, w.app = server, name, "shop"
			files[rollout.ConfigPath(name)] = configOf("*/overlays/"+name, w.ns, "")
			files["apps/shop/overlays/"+name+"/kustomization.yaml"] = "resources: [../../base]\n"
			stage = append(stage, w)
		}
		f.stages, f.all = append(f.stages, stage), append(f.all, stage...)
	}
	f.repo.Write(files)
	f.order("requiredSoakTime: 3s, maxUpdate: 1")
	for _, w := range f.all {
		w.start()
	}
	return f
}

// order pushes fleet.yaml with the given fields of the last stage. An app soaks for soakTime in all other stages.
func (f *fleetWorld) order(last string) {
	text := "apiVersion: gitrollout.dev/v1alpha1\nkind: Fleet\nstages:\n"
	for i, stage := range f.stages {
		names, fields := rollout.Mapped(stage, func(w *world) string { return w.name }), fmt.Sprint("requiredSoakTime: ", soakTime)
		if i == len(f.stages)-1 {
			fields = last
		}
		text += fmt.Sprintf("- {name: stage%d, clusters: [%s], %s}\n", i, strings.Join(names, ", "), fields)
	}
	f.repo.CommitFiles("order", map[string]string{rollout.FleetPath: text})
}

// base pushes another image tag for all clusters.
func (f *fleetWorld) base(tag string) (commit string) {
	f.repo.Pull()
	return f.repo.CommitFiles("base "+tag, map[string]string{"apps/shop/base/shop.yaml": newShop(2, "").at(tag).files()["shop.yaml"]})
}

// matrix returns the output of gitrollout fleet, without line breaks.
func (f *fleetWorld) matrix() string {
	path, err := binary()
	must(f.t, err)
	cmd := exec.Command(path, "fleet", "--repo", f.repo.Bare)
	cmd.Env = append(gittest.Env(), "HOME="+f.t.TempDir())
	return oneLine(output(f.t, cmd))
}

// awaitReleased waits until a commit has soaked in all clusters, and all pods have the tag. No cluster may start a pod with the tag before
// the commit has soaked in the previous cluster.
func (f *fleetWorld) awaitReleased(commit, tag string) {
	f.t.Helper()
	soaked := func(w *world) (at time.Time) {
		for _, e := range w.state().Soaked {
			if e.Commit == commit {
				at = e.At
			}
		}
		return at
	}
	for _, stage := range f.stages {
		for _, w := range stage {
			s := w.await(w.name+" has soaked with "+tag, func(s rollout.State) bool { return s.HasSoaked(commit) && s.Release == nil })
			if earliest := s.Stable.Since.Add(soakTime); soaked(w).Before(earliest) {
				f.t.Errorf("%s: %s soaked at %s, before %s", w.name, tag, soaked(w), earliest)
			}
			w.pods.awaitReady(f.t, map[string]int{tag: 2})
		}
	}
	var before []*world // the commit must soak in these clusters before the next cluster starts
	for _, stage := range f.stages {
		inOrder := slices.SortedFunc(slices.Values(stage), func(a, b *world) int { return a.pods.first(tag).Compare(b.pods.first(tag)) })
		for _, w := range inOrder {
			for _, earlier := range before {
				if first := w.pods.first(tag); first.Before(soaked(earlier)) {
					f.t.Errorf("%s had pods of %s at %s, before it soaked in %s at %s", w.name, tag, first, earlier.name, soaked(earlier))
				}
			}
			before = append(before, w)
		}
	}
}

// goThrough releases v2 in all clusters in order. v3 never becomes ready: only the first cluster starts pods of v3, and a revert follows.
// v4 is reverted while it soaks in the last stage, and no cluster delays this revert.
func (f *fleetWorld) goThrough() {
	f.t.Helper()
	first := f.all[0]
	f.awaitReleased(f.repo.Head(), "v1")
	f.awaitReleased(f.base("v2"), "v2")

	bad := f.base("v3-neverready")
	first.await("rejected", func(s rollout.State) bool { return s.Phase == rollout.Degraded && len(s.Rejected) == 1 })
	for _, w := range f.stages[1] {
		w.await("the next stage waits", func(s rollout.State) bool {
			return s.Held.Is(rollout.HeldStage) && strings.Contains(s.Held.Message, first.name+" of stage stage0: rejected the change")
		})
	}
	compare.Contains(f.t, f.matrix(), "waits for "+first.name+" of stage stage0: rejected the change")
	f.repo.Revert(bad)
	for _, w := range f.all {
		w.await("at rest after the revert", func(s rollout.State) bool {
			return s.Phase == rollout.Healthy && s.Release == nil && s.Held == nil
		})
		w.pods.awaitReady(f.t, map[string]int{"v2": 2})
	}

	f.order("requiredSoakTime: 1h")
	good := f.base("v4")
	for _, w := range f.all {
		w.awaitHealthy(good)
	}
	lengths := rollout.Mapped(f.all, func(w *world) int { return len(w.log0()) })
	f.repo.Revert(good)
	for i, w := range f.all {
		w.await("back", func(s rollout.State) bool {
			return s.Phase == rollout.Healthy && s.Release == nil && s.Held == nil && w.image() == "shop:v2"
		})
		w.pods.awaitReady(f.t, map[string]int{"v2": 2})
		log := w.log0()
		for _, subject := range log[:len(log)-lengths[i]] {
			if strings.Contains(subject, " held: ") {
				f.t.Errorf("%s waited after the revert: %s", w.name, subject)
			}
		}
	}
	for _, w := range f.all[1:] {
		w.pods.wantStarted(f.t, map[string]int{"v3-neverready": 0})
	}
}

// TestFleetOfTwoClusters runs goThrough with two clusters. Both clusters are namespaces of one control plane.
func TestFleetOfTwoClusters(t *testing.T) {
	t.Parallel()
	fleetOf(t, testcluster.Shared, []string{"dev"}, []string{"prod"}).goThrough()
}

// TestFleetOfFourClusters runs goThrough with four control planes: dev, staging, and two in production.
func TestFleetOfFourClusters(t *testing.T) {
	t.Parallel()
	fleetOf(t, testcluster.Start, []string{"dev"}, []string{"staging"}, []string{"prod-eu", "prod-us"}).goThrough()
}
