package reconciler_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/reconciler"
	"gitrollout.dev/gitrollout/reconciler/report"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/simulate/kube"
)

// commonAt returns an edit that sets newMany's shared content to a version.
func commonAt(v string) map[string]string {
	return map[string]string{"common/config.yaml": strings.Replace(configMap, "shop", "common", 1) + "data: {a: " + v + "}\n"}
}

// newMany returns two clusters. Each has the app shop, and 50 apps that share content. The stage prod needs approvals. If restarts is true,
// the reconciler of prod restarts every 13 seconds.
func newMany(t *testing.T, restarts bool) *many {
	files := commonAt("v1")
	files["common/kustomization.yaml"] = "resources: [config.yaml]\n"
	for _, cluster := range []string{"staging", "prod"} {
		files[rollout.ConfigPath(cluster)] = strings.Replace(plainConfig, "apps/*", cluster+"/*", 1) +
			"sharedChanges: {over: 0}\nforge: {type: gitea, url: https://git.example.com, repository: acme/deploy}\n"
		for i := range 50 {
			files[fmt.Sprintf("%s/a%d/kustomization.yaml", cluster, i)] = fmt.Sprintf("resources: [../../common]\nnamePrefix: a%d-\n", i)
		}
	}
	c := &many{newClusters(t, files), restarts, nil}
	o := c.prod.r.Options
	o.ShowsForge, o.Tell = true, func(r report.Report) {
		if r.Forge != nil {
			c.told = append(c.told, r.Forge.Updates...)
		}
	}
	c.prod.r = reconciler.New(o)
	fleet := strings.NewReplacer("clusters: [prod]", "clusters: [prod], approve: merge", "1m", "5s").Replace(stagesFile)
	c.push(map[string]string{rollout.FleetPath: fleet})
	c.run(5)
	return c
}

type many struct {
	*clusters
	restarts bool
	told     []rollout.ForgeUpdate
}

func (c *many) run(seconds int) {
	c.Helper()
	for i := range seconds {
		if c.restarts && i%13 == 3 {
			c.prod.r = reconciler.New(c.prod.r.Options)
		}
		c.clusters.run(1)
	}
}

// change pushes a version of the shared content and of shop. In staging, this version of shop becomes ready only after a call of heal.
func (c *many) change(v string) string {
	c.staging.cluster.Fate = func(version string) kube.Lifetime { return kube.Lifetime{Never: version == v} }
	files := commonAt(v)
	maps.Copy(files, baseAt(v))
	c.push(files)
	return rollout.JointBranch("prod", c.prod.git.main())
}

func (c *many) heal() {
	c.staging.cluster.Fate = func(string) kube.Lifetime { return kube.Lifetime{} }
	for _, d := range c.staging.cluster.Deployments {
		for _, set := range d.Sets {
			for _, p := range set.Pods {
				p.Never, p.Due = false, c.staging.now
			}
		}
	}
	c.staging.cluster.OnChange("heal")
}

// proposed fails the test unless the proposals are the given branches. It returns the files of the first branch.
func (c *many) proposed(what string, want ...string) map[string]string {
	c.Helper()
	got := c.prod.git.Server.Branches("gitrollout/promote/prod/")
	slices.Sort(want)
	if !slices.Equal(got, want) {
		c.Fatalf("%s: %d proposals %v, want %v; shop held %+v, a0 held %+v", what, len(got), got, want, c.prod.state().Held,
			c.prod.stateOf("a0").Held)
	}
	files := map[string]string{}
	if len(got) > 0 {
		for name, content := range c.prod.git.Server.Merge(c.prod.git.Server.Head(got[0]), c.prod.git.main()).Edits {
			files[name] = string(content)
		}
	}
	return files
}

func (c *many) own() (all []string) {
	for i := range 50 {
		all = append(all, fmt.Sprintf("gitrollout/promote/prod/a%d", i))
	}
	return all
}

// at returns how many apps have the given content.
func (c *many) at(v string) (n int) {
	for i := range 50 {
		if s := c.prod.stateOf(fmt.Sprintf("a%d", i)); strings.Contains(c.prod.git.Server.Files(s.Source)["common/config.yaml"], "a: "+v) {
			n++
		}
	}
	return n
}

// TestJointProposal checks the proposals of apps that await the approval of a commit. 50 apps have one proposal each, but 51 apps have one
// joint proposal. After an app's own promotion, the joint proposal omits this app. A newer change's joint proposal replaces the older one.
// After a merge, all 51 apps take the change. Restarts change nothing.
func TestJointProposal(t *testing.T) {
	for _, restarts := range []bool{false, true}[map[bool]int{testing.Short(): 1}[true]:] {
		t.Run(fmt.Sprint("restarts ", restarts), func(t *testing.T) {
			c := newMany(t, restarts)
			second := c.change("v2")
			c.run(75) // content without a new version must be healthy for a minute
			c.proposed("50 apps", c.own()...)
			c.heal()
			c.run(45)
			files := c.proposed("51 apps", second)
			compare.CheckNamed(t, "files", 51, len(files))
			compare.Contains(t, files[rollout.PromotionPath("prod", "a7")], "through: entry")
			told := c.told[len(c.told)-1].Proposals
			if p := told[len(told)-1]; p.Branch != second || len(p.Enters) != 51 || p.Commit != c.prod.git.Server.Head(second) {
				t.Errorf("the forge is told %+v", p)
			}
			c.prod.recordsNothing(func() { c.run(10) })
			head := c.prod.git.Server.Head(second)
			c.push(map[string]string{"README": "2"})
			c.run(10)
			compare.CheckNamed(t, "the proposal after another push", head, c.prod.git.Server.Head(second))
			file := rollout.PromotionPath("prod", "a0")
			c.push(map[string]string{file: files[file]})
			c.run(20)
			compare.CheckNamed(t, "apps that entered alone", 1, c.at("v2"))
			compare.CheckNamed(t, "files without a0", 50, len(c.proposed("a0 has entered", second)))
			third := c.change("v3")
			c.heal()
			c.run(80)
			files = c.proposed("a newer change", third)
			compare.CheckNamed(t, "files of the newer change", 51, len(files))
			c.push(files)
			c.run(40)
			compare.CheckNamed(t, "apps after the merge", 50, c.at("v3"))
			c.want("v3", "v3", "")
			c.proposed("after the merge")
			c.prod.recordsNothing(func() { c.run(10) })
		})
	}
}
