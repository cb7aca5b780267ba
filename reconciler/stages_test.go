package reconciler_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/kube"
)

// clusters is a fleet of two clusters with one users' branch. Each cluster has its own reconciler. The reconciler of prod reads the state
// branch of staging.
type clusters struct {
	*testing.T
	staging, prod *world
	failed        error // of the read
	reads         int
}

// Branches implements Branches: it reads the state branch of staging.
func (c *clusters) Branches(_ context.Context, _ string, known map[string]string) (map[string]string, error) {
	heads, branch := map[string]string{}, rollout.StateBranch("staging")
	if c.reads += len(known); c.failed != nil {
		return nil, c.failed
	}
	if _, asked := known[branch]; asked {
		heads[branch] = c.prod.git.Server.Head(branch)
		c.prod.git.Local[heads[branch]] = true
	}
	return heads, nil
}

// Held implements Branches.
func (c *clusters) Held(commit string) (reconciler.Snapshot, bool) { return c.prod.git.Held(commit) }

const stagesFile = `apiVersion: gitrollout.dev/v1alpha1
kind: Fleet
stages:
- {name: staging, clusters: [staging], requiredSoakTime: 1m}
- {name: prod, clusters: [prod]}
`

// baseAt returns an edit that sets the version in the base of both clusters.
func baseAt(v string) map[string]string {
	return map[string]string{"base/app.yaml": strings.Replace(version(v), ", {pause: {}}", "", 1)}
}

// newClusters returns the clusters staging and prod with v1 of the app shop, whose soak time in staging is over. The parameter "more" adds
// files.
func newClusters(t *testing.T, more ...map[string]string) *clusters {
	t.Helper()
	c := &clusters{T: t}
	config := func(cluster string) string {
		return strings.Replace(plainConfig, "apps/*", cluster+"/*", 1)
	}
	files := baseAt("v1")
	files["base/kustomization.yaml"] = "resources: [app.yaml]\n"
	for _, cluster := range []string{"staging", "prod"} {
		files[rollout.ConfigPath(cluster)] = config(cluster)
		files[cluster+"/shop/kustomization.yaml"] = "resources: [../../base, config.yaml]\n"
		files[cluster+"/shop/config.yaml"] = configMap
	}
	for _, m := range more {
		maps.Copy(files, m)
	}
	c.prod = worldOf(t, files, func(o *reconciler.Options) { o.Branches = c })
	c.staging = &world{T: t, now: c.prod.now,
		git:     mirrorIn(c.prod.git.Server, "staging"),
		cluster: &server{Cluster: kube.New(rand.New(rand.NewPCG(2, 2)), c.prod.now)},
	}
	o := c.prod.r.Options
	o.Cluster, o.UID, o.Repository, o.Past, o.Renderer, o.Observer, o.Applier, o.Branches, o.Log = "staging", "other", c.staging.git,
		c.staging.git, render.New(render.InProcess{}), c.staging.cluster, c.staging.cluster, nil, slog.New(slog.DiscardHandler)
	c.staging.r = reconciler.New(o)
	c.push(map[string]string{})
	c.run(20)
	if c.reads > 0 {
		t.Errorf("%d reads without fleet.yaml", c.reads)
	}
	c.push(map[string]string{rollout.FleetPath: stagesFile})
	c.run(65)
	return c
}

// push commits files to the users' branch of both clusters.
func (c *clusters) push(files map[string]string) {
	c.prod.commit("", files)
}

// run runs both reconcilers for some seconds. Each pass must succeed.
func (c *clusters) run(seconds int) {
	c.Helper()
	for range seconds {
		c.staging.pass()
		c.prod.pass()
	}
}

// want fails the test unless all pods of the clusters have the given versions, and prod is held with the given text.
func (c *clusters) want(staging, prod, held string) {
	c.Helper()
	text := ""
	if h := c.prod.state().Held; h != nil {
		text = string(h.Reason) + ": " + h.Message
	}
	if c.staging.pods(staging) != 4 || c.prod.pods(prod) != 4 || (held == "") != (text == "") || !strings.Contains(text, held) {
		c.Fatalf("staging %s has %d pods of %s, prod %s has %d pods of %s, held %q, want %q", c.staging.state().Phase, c.staging.pods(staging),
			staging, c.prod.state().Phase, c.prod.pods(prod), prod, text, held)
	}
}

// TestStages pushes changes through two clusters. Prod takes a change after its soak time in staging, even if the users' branch has newer
// changes. A revert, or a change of prod's folder alone, does not wait.
func TestStages(t *testing.T) {
	c := newClusters(t)
	c.want("v1", "v1", "")
	c.push(baseAt("v2"))
	c.run(20)
	c.want("v2", "v1", "Stage: release ")
	c.prod.recordsNothing(func() { c.run(20) })
	c.run(60)
	c.want("v2", "v2", "")
	c.push(map[string]string{"prod/shop/config.yaml": configMap + "data: {a: b}\n"})
	c.run(10)
	if s := c.prod.state(); s.Source != c.prod.git.main() || s.Held != nil {
		t.Errorf("a change of prod alone: at %s, held %+v", s.Source, s.Held)
	}
	c.push(baseAt("v3"))
	c.run(20)
	c.push(baseAt("v4"))
	c.run(20)
	c.want("v3", "v2", "waits for stage staging")
	c.run(60)
	c.want("v4", "v3", "waits for stage staging")
	third := c.prod.state().Stable.Commit
	c.push(baseAt("v3"))
	c.run(30)
	c.want("v3", "v3", "")
	compare.CheckNamed(t, "commit", third, c.prod.state().Stable.Commit)
	c.push(baseAt("v2"))
	c.run(20)
	c.want("v2", "v2", "") // both clusters have verified this version
	before := c.reads
	c.run(10)
	compare.CheckNamed(t, "reads in a steady state", before, c.reads)
	c.prod.recordsNothing(func() { c.run(120) })
	c.staging.recordsNothing(func() { c.run(120) })
}

// TestWaitingAppsRest checks an app that waits for a stage, or for a usable fleet.yaml. The app decides again after a new commit or a
// change of a record, and otherwise once in ten minutes. Any commit causes a decision, because another cluster's record may name it.
func TestWaitingAppsRest(t *testing.T) {
	c := newClusters(t)
	passes := func(what string, most int, push map[string]string) {
		t.Helper()
		quiet := func() { // without a watch of the cluster
			c.prod.now = c.prod.now.Add(time.Second)
			must(t, c.prod.r.RunOnce(t.Context(), c.prod.clock, true))
		}
		quiet()
		before := c.prod.r.Stats().Decided
		if push != nil {
			c.push(push)
		}
		for range 150 {
			quiet()
		}
		if n := c.prod.r.Stats().Decided - before; n > most || push != nil && n == 0 {
			t.Errorf("%s: %d passes of the app, want at most %d", what, n, most)
		}
	}
	c.push(baseAt("v2"))
	c.run(20)
	c.want("v2", "v1", "Stage: release ")
	passes("no change", 0, nil)
	c.prod.recordsNothing(func() {
		before := c.prod.r.Stats().Decided
		for range 4 {
			passes("a further try, in case an event is lost", 1, nil)
		}
		compare.CheckNamed(t, "tries in ten minutes", 1, c.prod.r.Stats().Decided-before)
	})
	passes("a commit of other files", 1, map[string]string{"README": "shop"})
	c.push(map[string]string{rollout.FleetPath: "stages: [\n"})
	c.run(3)
	c.want("v2", "v1", "Fleet: release ")
	passes("no change of an unusable fleet.yaml", 0, nil)
	passes("another error", 3, map[string]string{rollout.FleetPath: "kind: Fleet\n"})
	c.push(map[string]string{rollout.FleetPath: stagesFile})
	c.run(90)
	c.want("v2", "v2", "")
}

// TestRecordsThatDoNotCount checks that prod waits while staging's state branch is unreadable. The message names the cluster. A promotion
// with through: entry ends the wait.
func TestRecordsThatDoNotCount(t *testing.T) {
	c := newClusters(t)
	c.failed = errors.New("no answer")
	c.push(baseAt("v2"))
	try := func(seconds int) {
		for range seconds {
			c.staging.passes(1)
			c.prod.passes(1)
		}
	}
	try(100)
	c.want("v2", "v1", "waits for staging of stage staging: its state branch is unusable")
	c.prod.recordsNothing(func() { try(10) })
	held := strings.Fields(c.prod.state().Held.Message)
	c.push(map[string]string{rollout.PromotionPath("prod", "shop"): "apiVersion: gitrollout.dev/v1alpha1\nkind: Promotion\nthrough: entry\n" +
		"release: " + held[1] + "\n"})
	try(20)
	c.want("v2", "v2", "")
	c.failed = nil
	c.run(20)
	c.want("v2", "v2", "")
}

// TestRejectedBefore checks that prod does not take a change that staging rejected.
func TestRejectedBefore(t *testing.T) {
	c := newClusters(t)
	c.push(baseAt("v2"))
	c.run(3)
	release := c.staging.state().Release
	if release == nil {
		t.Fatalf("staging is %s", c.staging.state().Phase)
	}
	c.push(map[string]string{rollout.PromotionPath("staging", "shop"): "apiVersion: gitrollout.dev/v1alpha1\nkind: Promotion\n" +
		"decision: abort\nrelease: " + string(release.Hash) + "\n"})
	c.run(200)
	c.want("v1", "v1", "waits for staging of stage staging: rejected the change")
}

// TestUnusableStages checks that an unusable fleet.yaml holds changes, but no revert.
func TestUnusableStages(t *testing.T) {
	c := newClusters(t)
	c.push(map[string]string{rollout.FleetPath: "stages: [\n"})
	c.run(5)
	c.want("v1", "v1", "")
	c.push(baseAt("v2"))
	c.run(30)
	c.want("v1", "v1", "Fleet: release ")
	compare.Contains(t, c.prod.state().Held.Message, "waits for usable stages: .gitrollout/fleet.yaml: is not valid YAML")
	c.push(map[string]string{rollout.FleetPath: stagesFile})
	c.run(3)
	if c.staging.state().Release == nil {
		t.Fatalf("staging is %s, held %+v", c.staging.state().Phase, c.staging.state().Held)
	}
	files := baseAt("v1")
	files[rollout.FleetPath] = "stages: [\n"
	c.push(files)
	c.run(30)
	c.want("v1", "v1", "")
}

// TestFirstDeploymentOfAStage checks that a new app waits in prod until the app has soaked in staging. An app that staging does not have is
// deployed at once, with a note.
func TestFirstDeploymentOfAStage(t *testing.T) {
	c := newClusters(t)
	app := func(cluster, name string) map[string]string {
		return map[string]string{cluster + "/" + name + "/kustomization.yaml": "resources: [config.yaml]\n",
			cluster + "/" + name + "/config.yaml": strings.Replace(configMap, "name: shop", "name: "+name, 1)}
	}
	files := app("staging", "cart")
	for name, content := range app("prod", "cart") {
		files[name] = content
	}
	for name, content := range app("prod", "till") {
		files[name] = content
	}
	c.push(files)
	c.run(30)
	cart, till := c.prod.stateOf("cart"), c.prod.stateOf("till")
	if cart.Phase != rollout.Pending || !cart.Held.Is(rollout.HeldStage) ||
		!strings.HasSuffix(cart.Held.Message, " by Ann waits for stage staging") {
		t.Errorf("cart is %s, held %+v", cart.Phase, cart.Held)
	}
	if till.Phase != rollout.Healthy {
		t.Errorf("till is %s, held %+v", till.Phase, till.Held)
	}
	compare.Contains(t, strings.Join(c.prod.git.messages, "\n"), "; stage staging has no app till")
	c.run(120)
	if cart = c.prod.stateOf("cart"); cart.Phase != rollout.Healthy || cart.Held != nil {
		t.Errorf("cart is %s, held %+v", cart.Phase, cart.Held)
	}
}

// TestApproval checks a stage with approve: merge. The first cluster proposes promotion files for all clusters of the stage, and a merge
// lets the change in. The approval of an older change counts while a newer change waits.
func TestApproval(t *testing.T) {
	const branch = "gitrollout/promote/prod/shop"
	c := newClusters(t)
	c.push(map[string]string{rollout.FleetPath: strings.Replace(stagesFile, "clusters: [prod]", "clusters: [prod], approve: merge", 1)})
	c.push(baseAt("v2"))
	c.run(100)
	c.want("v2", "v1", "waits for an approval for stage prod: gitrollout promote shop --through entry")
	proposed := func() map[string]string {
		t.Helper()
		head := c.prod.git.Server.Head(branch)
		if head == "" {
			t.Fatalf("no proposal among %v", c.prod.git.Server.Branches(""))
		}
		file := rollout.PromotionPath("prod", "shop")
		return map[string]string{file: c.prod.git.Server.Files(head)[file]}
	}
	second := proposed()
	compare.Contains(t, second[rollout.PromotionPath("prod", "shop")], "through: entry")
	c.prod.r = reconciler.New(c.prod.r.Options)
	c.prod.recordsNothing(func() { c.run(30) })
	compare.CheckNamed(t, "the proposal after a restart", second, proposed())
	c.push(baseAt("v3"))
	c.run(100)
	c.want("v3", "v1", "waits for an approval")
	third := proposed()
	if third[rollout.PromotionPath("prod", "shop")] == second[rollout.PromotionPath("prod", "shop")] {
		t.Errorf("the proposal is about the older change: %v", third)
	}
	c.push(second)
	c.run(30)
	c.want("v3", "v2", "waits for an approval")
	c.push(proposed())
	c.run(30)
	c.want("v3", "v3", "")
	compare.CheckNamed(t, "proposals", 0, len(c.prod.git.Server.Branches("gitrollout/promote/")))
}

// TestApprovalOfAnAuthor checks that an approval by an author who may not promote opens no stage. A person's approval does.
func TestApprovalOfAnAuthor(t *testing.T) {
	c, r, author := newClusters(t), &rules{}, bot
	r.set(t, ", rollouts: {byAuthor: [{authors: ['*[bot]'], mayPromote: false}]}")
	o := c.prod.r.Options
	r.options(&o)
	o.Approve = func(context.Context, string, string, string) (string, error) { return author, nil }
	c.prod.r = reconciler.New(o)
	c.push(map[string]string{rollout.FleetPath: strings.Replace(stagesFile, "clusters: [prod]", "clusters: [prod], approve: merge", 1)})
	c.push(baseAt("v2"))
	c.run(100)
	c.want("v2", "v1", "waits for an approval")
	file := rollout.PromotionPath("prod", "shop")
	proposed := c.prod.git.Server.Files(c.prod.git.Server.Head("gitrollout/promote/prod/shop"))[file]
	c.push(map[string]string{file: proposed})
	c.run(30)
	c.want("v2", "v1", "waits for an approval")
	compare.Contains(t, c.prod.state().Ignored, "project web, rule rollouts.byAuthor[0].mayPromote: "+bot+" committed this promotion")
	author = "Ann <ann@example.com>"
	c.push(map[string]string{file: proposed + "reason: again\n"})
	c.run(30)
	c.want("v2", "v2", "")
	compare.CheckNamed(t, "ignored", "", c.prod.state().Ignored)
}

// TestStagesAndCohorts checks 12 apps of a stage that share a base. After the soak time in staging, one app of prod takes a change first,
// even if the branch has a newer change. In the end, all apps have the newest change.
func TestStagesAndCohorts(t *testing.T) {
	common := func(v string) map[string]string {
		return map[string]string{"common/config.yaml": strings.Replace(configMap, "shop", "common", 1) + "data: {a: " + v + "}\n"}
	}
	files := common("v1")
	files["common/kustomization.yaml"] = "resources: [config.yaml]\n"
	for cluster, over := range map[string]int{"staging": 0, "prod": 10} {
		files[rollout.ConfigPath(cluster)] = strings.Replace(plainConfig, "apps/*", cluster+"/*", 1) +
			fmt.Sprintf("sharedChanges: {over: %d, soak: 1s}\n", over)
		for i := range 12 {
			files[fmt.Sprintf("%s/a%d/kustomization.yaml", cluster, i)] = fmt.Sprintf("resources: [../../common]\nnamePrefix: a%d-\n", i)
		}
	}
	c := newClusters(t, files)
	count := func(v string) (n int) {
		for i := range 12 {
			s := c.prod.stateOf(fmt.Sprintf("a%d", i))
			if strings.Contains(c.prod.git.Server.Files(s.Source)["common/config.yaml"], v) {
				n++
			}
		}
		return n
	}
	c.push(common("v2"))
	c.run(20)
	compare.CheckNamed(t, "apps of prod with v2 before the proof", 0, count("v2"))
	c.push(common("v3"))
	c.run(20)
	for i := 0; count("v2") == 0; i++ {
		if c.run(1); i > 100 {
			t.Fatalf("no app of prod takes v2: held %+v", c.prod.stateOf("a0").Held)
		}
	}
	c.run(40)
	compare.CheckNamed(t, "apps of prod with v2 and v3, before the first is proven", []int{1, 0}, []int{count("v2"), count("v3")})
	c.run(400)
	compare.CheckNamed(t, "apps of prod with v3 at the end", 12, count("v3"))
	c.prod.recordsNothing(func() { c.run(70) })
}
