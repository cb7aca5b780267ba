package reconciler_test

import (
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/kube"
)

// contentAt returns an edit that sets the content of a ConfigMap in the bases of both clusters.
func contentAt(v string) map[string]string {
	return map[string]string{"base/content.yaml": strings.Replace(configMap, "shop", "content", 1) + "data: {a: " + v + "}\n"}
}

// newContents returns clusters whose base has a ConfigMap. If "merge" is true, the stage prod needs approvals.
func newContents(t *testing.T, merge bool) *clusters {
	t.Helper()
	c := newClusters(t)
	files := contentAt("a1")
	files["base/kustomization.yaml"] = "resources: [app.yaml, content.yaml]\n"
	c.push(files)
	c.run(160)
	if merge {
		c.push(map[string]string{rollout.FleetPath: strings.Replace(stagesFile, "clusters: [prod]", "clusters: [prod], approve: merge", 1)})
		c.run(3)
	}
	c.wantContent("a1")
	return c
}

// wantContent fails the test unless prod has the content v.
func (c *clusters) wantContent(v string) {
	c.Helper()
	s := c.prod.state()
	if is := c.prod.git.Server.Files(s.Source)["base/content.yaml"]; !strings.Contains(is, "a: "+v) {
		c.Fatalf("prod has %q, want %s: %s, held %+v", is, v, s.Phase, s.Held)
	}
}

// mergeProposal merges the proposal about an app of prod.
func (c *clusters) mergeProposal(app string) {
	c.Helper()
	head, file := c.prod.git.Server.Head("gitrollout/promote/prod/"+app), rollout.PromotionPath("prod", app)
	if head == "" {
		c.Fatalf("no proposal among %v; held %+v", c.prod.git.Server.Branches(""), c.prod.stateOf(app).Held)
	}
	text := c.prod.git.Server.Files(head)[file]
	if text == c.prod.git.Server.Files(c.prod.git.main())[file] {
		c.Fatalf("the proposal changes nothing: %s", text)
	}
	c.push(map[string]string{file: text})
}

// TestApprovalOfContent checks that a merge also approves a change without a new version, and that each change needs its own approval.
func TestApprovalOfContent(t *testing.T) {
	c := newContents(t, true)
	for _, v := range []string{"a2", "a3"} {
		c.push(contentAt(v))
		c.run(160)
		c.wantContent(map[string]string{"a2": "a1", "a3": "a2"}[v])
		c.mergeProposal("shop")
		c.run(30)
		c.wantContent(v)
	}
}

// TestApprovalOpensNoLaterContent checks that an approval of a version does not admit later content with the same version.
func TestApprovalOpensNoLaterContent(t *testing.T) {
	c := newContents(t, true)
	c.push(baseAt("v2"))
	c.run(100)
	c.want("v2", "v1", "an approval")
	c.push(contentAt("a2"))
	c.run(160)
	c.wantContent("a1")
	c.mergeProposal("shop")
	c.run(30)
	c.wantContent("a2")
	c.push(baseAt("v3"))
	c.run(100)
	c.want("v3", "v2", "an approval")
	head := c.prod.git.Server.Head("gitrollout/promote/prod/shop")
	old := c.prod.git.Server.Files(head)[rollout.PromotionPath("prod", "shop")]
	c.push(contentAt("a3"))
	c.run(160)
	c.push(map[string]string{rollout.PromotionPath("prod", "shop"): old})
	c.run(30)
	c.want("v3", "v3", "an approval")
	c.wantContent("a2")
}

// TestApprovalOfANewApp checks that a first deployment waits for an approval, which a merge gives.
func TestApprovalOfANewApp(t *testing.T) {
	c := newContents(t, true)
	files := map[string]string{}
	for _, cluster := range []string{"staging", "prod"} {
		files[cluster+"/cart/kustomization.yaml"] = "resources: [config.yaml]\n"
		files[cluster+"/cart/config.yaml"] = strings.Replace(configMap, "name: shop", "name: cart", 1)
	}
	c.push(files)
	c.run(160)
	compare.CheckNamed(t, "before", "", c.prod.stateOf("cart").Source)
	c.mergeProposal("cart")
	c.run(30)
	if s := c.prod.stateOf("cart"); s.Phase != rollout.Healthy {
		t.Errorf("%s, held %+v", s.Phase, s.Held)
	}
}

// TestPromotionOpensNoLaterContent checks that a promotion of a release in flight does not admit later content with the same version.
func TestPromotionOpensNoLaterContent(t *testing.T) {
	for _, through := range []string{"full", "entry"} {
		t.Run(through, func(t *testing.T) {
			c := newContents(t, false)
			c.push(map[string]string{"base/app.yaml": version("v2")}) // pauses in the middle
			c.run(10)
			hash := string(c.staging.state().Release.Hash)
			c.push(map[string]string{rollout.PromotionPath("staging", "shop"): "apiVersion: gitrollout.dev/v1alpha1\nkind: Promotion\n" +
				"through: full\nrelease: " + hash + "\n"})
			c.run(100)
			if r := c.prod.state().Release; r == nil {
				t.Fatalf("prod: %+v", c.prod.state().Held)
			}
			hash = string(c.prod.state().Release.Hash)
			c.push(contentAt("a2"))
			c.run(5)
			c.wantContent("a1")
			c.push(map[string]string{rollout.PromotionPath("prod", "shop"): "apiVersion: gitrollout.dev/v1alpha1\nkind: Promotion\n" +
				"through: " + through + "\nrelease: " + hash + "\nat: 2026-11-20T12:00:00Z\n"})
			c.run(5)
			c.wantContent("a1")
			c.run(200)
		})
	}
}

// TestRevertWithNewContent checks that a revert to an earlier version waits if the commit also has content that never ran in prod. A
// release in flight goes back at once, to the content before the release.
func TestRevertWithNewContent(t *testing.T) {
	c := newContents(t, false)
	c.push(baseAt("v2"))
	c.run(100)
	c.want("v2", "v2", "")
	files := baseAt("v1")
	for name, text := range contentAt("a2") {
		files[name] = text
	}
	c.push(files)
	c.run(10)
	c.wantContent("a1")
	c.want("v1", "v2", "Stage")
	c.run(200)
	c.wantContent("a2")
	c.want("v1", "v1", "")
	c.push(map[string]string{"base/app.yaml": version("v3")}) // pauses in the middle
	c.run(10)
	hash := string(c.staging.state().Release.Hash)
	c.push(map[string]string{rollout.PromotionPath("staging", "shop"): "apiVersion: gitrollout.dev/v1alpha1\nkind: Promotion\n" +
		"through: full\nrelease: " + hash + "\n"})
	c.run(100)
	if r := c.prod.state().Release; r == nil {
		t.Fatalf("prod: %+v", c.prod.state().Held)
	}
	files = baseAt("v1")
	for name, text := range contentAt("a3") {
		files[name] = text
	}
	c.push(files)
	c.run(3)
	if p := c.prod.pods("v1"); p != 4 {
		t.Errorf("%d pods of v1", p)
	}
	c.wantContent("a2")
	c.run(20)
	c.wantContent("a2")
	c.run(200)
	c.wantContent("a3")
	c.want("v1", "v1", "")
}

// TestRenameInStages checks an app that gets another name in both clusters, after a change that staging has not proven. Prod must not take
// the change, although staging no longer lists the former name.
func TestRenameInStages(t *testing.T) {
	c := newContents(t, false)
	named := func(name string) map[string]string {
		files := map[string]string{}
		for _, cluster := range []string{"staging", "prod"} {
			files[rollout.ConfigPath(cluster)] = strings.Replace(plainConfig, "- path: apps/*", "- {path: "+cluster+"/shop, name: "+name+"}", 1)
		}
		return files
	}
	c.push(named("shop"))
	c.run(20)
	c.staging.cluster.Fate = func(version string) kube.Lifetime { return kube.Lifetime{Never: version == "v2"} }
	c.push(baseAt("v2"))
	c.run(20)
	c.push(named("store"))
	for range 300 {
		c.staging.passes(1)
		c.prod.passes(1) // fails while the new name is being read
		if s := c.prod.stateOf("store"); c.prod.pods("v2") > 0 {
			t.Fatalf("prod takes v2 at %s: %s", rollout.ShortID(s.Source), c.prod.git.messages[len(c.prod.git.messages)-1])
		}
	}
	compare.CheckNamed(t, "prod has the new name", "store", c.prod.stateOf("store").App)
	c.push(baseAt("v3"))
	c.run(200)
	if p := c.prod.pods("v3"); p != 4 {
		t.Errorf("%d pods of v3; staging %+v, prod %+v", p, c.staging.stateOf("store").Held, c.prod.stateOf("store").Held)
	}
}
