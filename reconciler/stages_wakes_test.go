package reconciler_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/rollout"
)

// TestCohortsBehindAnApproval checks that an approved app takes a shared change after the first app is proven. Meanwhile, other apps wait
// for their stage. One of these apps is the app whose pass checks all cohorts.
func TestCohortsBehindAnApproval(t *testing.T) {
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
	has := func(app string) bool {
		return strings.Contains(c.prod.git.Server.Files(c.prod.stateOf(app).Source)["common/config.yaml"], "v2")
	}
	quiet := func(seconds int) { // without a watch of the cluster
		for range seconds {
			c.prod.now = c.prod.now.Add(time.Second)
			c.prod.cluster.Now = c.prod.now
			must(t, c.prod.r.RunOnce(t.Context(), c.prod.clock, true))
		}
	}
	count := func() (n int) {
		for i := range 12 {
			if has(fmt.Sprintf("a%d", i)) {
				n++
			}
		}
		return n
	}
	c.push(common("v2"))
	for i := 0; count() == 0; i++ {
		if c.run(1); i > 200 {
			t.Fatalf("no app of prod takes v2: held %+v", c.prod.stateOf("a0").Held)
		}
	}
	quiet(2)
	second := "" // the last app of the second cohort
	for i := range 12 {
		app := fmt.Sprintf("a%d", i)
		if h := c.prod.stateOf(app).Held; h != nil && strings.Contains(h.Message, "cohort 2 of 3") {
			second = app
		}
	}
	next := common("v3") // makes the first app wait for staging
	next[rollout.FleetPath] = strings.Replace(stagesFile, "clusters: [prod]", "clusters: [prod], approve: merge", 1)
	c.push(next)
	quiet(5)
	compare.CheckNamed(t, "apps with v2", 1, count())
	h := c.prod.stateOf(second).Held
	if h == nil || !strings.Contains(h.Message, "an approval") {
		t.Fatalf("%s is held: %+v", second, h)
	}
	c.push(map[string]string{rollout.PromotionPath("prod", second): "apiVersion: gitrollout.dev/v1beta1\nkind: Promotion\n" +
		"through: entry\nrelease: " + strings.Fields(h.Message)[1] + "\ncommit: " + h.Commit + "\n"})
	quiet(5)
	if h = c.prod.stateOf(second).Held; !h.Is(rollout.HeldCohort) {
		t.Fatalf("%s is held: %+v", second, h)
	}
	quiet(200)
	if !has(second) {
		t.Errorf("%s is held: %+v", second, c.prod.stateOf(second).Held)
	}
}

// TestNewAppAndUntrustedRecord checks that an app without a record is deployed when the state branch becomes trusted, even if the process
// started while it was untrusted.
func TestNewAppAndUntrustedRecord(t *testing.T) {
	var distrust error
	w := newWorld(t, func(o *reconciler.Options) { o.Believe = func(reconciler.Snapshot) error { return distrust } })
	distrust = errors.New("not signed")
	w.commit("a new app", map[string]string{"apps/cart/kustomization.yaml": "resources: [config.yaml]\n",
		"apps/cart/config.yaml": strings.Replace(configMap, "shop", "cart", 1)})
	w.r = reconciler.New(w.r.Options)
	quiet := func() error { // without a watch of the cluster
		w.now = w.now.Add(time.Second)
		w.cluster.Now = w.now
		return w.r.RunOnce(t.Context(), w.clock, true)
	}
	if err := quiet(); err == nil {
		t.Error("an untrusted state branch is no error")
	}
	distrust = nil
	for range 100 {
		must(t, quiet())
	}
	if s := w.stateOf("cart"); s.Phase != rollout.Healthy {
		t.Errorf("cart is %q, held %+v", s.Phase, s.Held)
	}
}

// TestRetryBehindAnApproval checks the retry of a rejected version in a stage with approvals. The retried commit also adds a ConfigMap. The
// promotion file must have both the retry and the approval.
func TestRetryBehindAnApproval(t *testing.T) {
	c := newClusters(t)
	c.push(map[string]string{rollout.FleetPath: strings.Replace(stagesFile, "clusters: [prod]", "clusters: [prod], approve: merge", 1)})
	approve := func() {
		t.Helper()
		h := c.prod.state().Held
		if h == nil || !strings.Contains(h.Message, "an approval") {
			t.Fatalf("held %+v", h)
		}
		c.push(map[string]string{rollout.PromotionPath("prod", "shop"): "apiVersion: gitrollout.dev/v1beta1\nkind: Promotion\n" +
			"through: entry\nrelease: " + strings.Fields(h.Message)[1] + "\ncommit: " + h.Commit + "\n"})
	}
	c.run(70)
	c.push(baseAt("v2"))
	c.run(100)
	approve()
	c.run(2)
	for i := 0; c.prod.state().Release == nil && i < 20; i++ {
		c.run(1)
	}
	release := c.prod.state().Release
	if release == nil {
		t.Fatalf("%+v", c.prod.state())
	}
	c.push(map[string]string{rollout.PromotionPath("prod", "shop"): "apiVersion: gitrollout.dev/v1beta1\nkind: Promotion\n" +
		"decision: abort\nrelease: " + string(release.Hash) + "\n"})
	c.run(60)
	compare.CheckNamed(t, "phase", rollout.Degraded, c.prod.state().Phase)
	fixed := baseAt("v2")
	fixed["base/app.yaml"] += "---\n" + strings.Replace(configMap, "name: shop", "name: more", 1)
	c.push(fixed)
	c.run(150)
	retry := func(more string) {
		c.push(map[string]string{rollout.PromotionPath("prod", "shop"): "apiVersion: gitrollout.dev/v1beta1\nkind: Promotion\n" +
			"decision: retry\nat: \"2026-11-20T13:00:00Z\"\nrelease: " + string(release.Hash) + "\n" + more})
		c.run(60)
	}
	retry("")
	commit := c.prod.state().Held.Commit
	approve()
	c.run(60)
	compare.CheckNamed(t, "phase after the approval", rollout.Degraded, c.prod.state().Phase)
	retry("through: entry\ncommit: " + commit + "\n")
	if s := c.prod.state(); c.prod.pods("v2") != 4 || s.Source != commit {
		t.Errorf("%s %q at %s, want %s; held %+v", s.Phase, s.Reason, s.Source, commit, s.Held)
	}
}
