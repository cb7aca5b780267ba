package simulate

import (
	"fmt"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// converted returns main's files after replacing the apiVersion `from` by `to`.
func (p *story) converted(from, to string) map[string]string {
	files := map[string]string{}
	for name, text := range p.git.Files(p.head()) {
		files[name] = strings.ReplaceAll(text, from, to)
	}
	return files
}

// versionOf returns the apiVersion of a file at the head of a branch.
func (p *story) versionOf(branch, file string) string {
	_, after, _ := strings.Cut(p.git.Files(p.git.Head(branch))[file], "apiVersion: ")
	version, _, _ := strings.Cut(after, "\n")
	return version
}

// TestVersionsInARelease converts main's files to another apiVersion during two releases: no object and no record changes. Each new record
// gets the configuration's apiVersion, and promotion files get the record's apiVersion. A revert of the configuration gives the records the
// old apiVersion.
func TestVersionsInARelease(t *testing.T) {
	p := atGates(t)
	branch, apps, version := p.config.StateBranch, fmt.Sprint(p.status()), p.cluster.version
	record := p.git.Head(branch)
	p.files("convert", p.converted(rollout.AlphaVersion, rollout.APIVersion))
	if now := fmt.Sprint(p.status()); now != apps || p.cluster.version != version || p.git.Head(branch) != record {
		t.Errorf("the conversion changes the releases: %s, was %s", now, apps)
	}
	check := func(app, before, after string) {
		t.Helper()
		proposal, file := rollout.ProposalBranch(rollout.ProposePromotion, testCluster, app), rollout.PromotionPath(testCluster, app)
		compare.CheckNamed(t, app+": the proposal", before, p.versionOf(proposal, file))
		must(t, p.decide(rollout.Promote, []string{app}))
		p.settle()
		compare.CheckNamed(t, app+": the phase", rollout.Healthy, p.state(app).Phase)
		compare.CheckNamed(t, app+": the promotion", before, p.versionOf(Branch, file))
		for _, file := range []string{rollout.StatePath(app), rollout.ClusterPath} {
			compare.CheckNamed(t, app+": "+file, after, p.versionOf(branch, file))
		}
	}
	check("shop", rollout.StepsVersion, rollout.APIVersion)
	p.files("v3", map[string]string{shopFile: strings.ReplaceAll(appFile("shop", "v3"), rollout.AlphaVersion, rollout.APIVersion)})
	check("shop", rollout.APIVersion, rollout.APIVersion)
	serial := p.state("shop").Serial
	older := p.converted(rollout.APIVersion, rollout.AlphaVersion)
	p.files("an older configuration again", map[string]string{rollout.ConfigPath(testCluster): older[rollout.ConfigPath(testCluster)]})
	for _, file := range []string{rollout.StatePath("shop"), rollout.ClusterPath} { // without a transition
		compare.CheckNamed(t, file+" after the revert", rollout.AlphaVersion, p.versionOf(branch, file))
	}
	compare.CheckNamed(t, "the serial after the revert", serial, p.state("shop").Serial)
	p.files("an older version again", older)
	check("till", rollout.StepsVersion, rollout.AlphaVersion)
	p.files("v4", map[string]string{shopFile: appFile("shop", "v4")})
	check("shop", rollout.StepsVersion, rollout.AlphaVersion)
}

// TestUnknownVersions pushes a file with an unknown apiVersion during a release. No object changes, and the error names the apiVersion and
// the fix. When main has the former file again, the release continues at the same step.
func TestUnknownVersions(t *testing.T) {
	template := "---\napiVersion: gitrollout.dev/v1alpha1\nkind: AnalysisTemplate\nmetadata: {name: errors}\nspec: " +
		"{metrics: [{name: errors, provider: {prometheus: {address: \"http://p\", query: x}}}]}\n"
	for name, file := range map[string]struct{ path, text string }{
		"Config":           {rollout.ConfigPath(testCluster), twoApps("v2")[rollout.ConfigPath(testCluster)]},
		"Rollout":          {shopFile, appFile("shop", "v3")},
		"AnalysisTemplate": {shopFile, strings.Replace(appFile("shop", "v3"), "v1alpha1", "v1beta1", 1) + template},
		"Promotion":        {shopPromotion, "apiVersion: gitrollout.dev/v1alpha1\nkind: Promotion\nrelease: h1-0\n"},
		"Freeze":           {rollout.FreezePath(testCluster), "apiVersion: gitrollout.dev/v1alpha1\nkind: Freeze\nreason: holidays\n"},
		"Fleet": {rollout.FleetPath, "apiVersion: gitrollout.dev/v1alpha1\nkind: Fleet\nstages: [{name: all, clusters: [" + testCluster +
			"]}]\n"},
	} {
		t.Run(name, func(t *testing.T) {
			p := atGates(t)
			apps, version := fmt.Sprint(p.status()), p.cluster.version
			was, had := p.git.Files(p.head())[file.path]
			unknown := strings.Replace(file.text, rollout.AlphaVersion, "gitrollout.dev/v9", 1)
			p.files("a file of an unknown version", map[string]string{file.path: unknown})
			p.tick(10)
			const want = `apiVersion: "gitrollout.dev/v9" is not known`
			held, b := p.state("shop").Held, p.branch()
			if told := fmt.Sprint(held, p.event.Errors, b.Freeze, b.Unstaged); p.cluster.version != version ||
				!strings.Contains(told, want) || !strings.Contains(told, "or a newer gitrollout") {
				t.Errorf("held %+v, %q, %q", held, p.status(), p.event.Errors)
			}
			before := map[string][]byte{file.path: nil}
			if had {
				before[file.path] = []byte(was)
			}
			p.edit("as before", before)
			if now := fmt.Sprint(p.status()); now != apps || p.cluster.version != version {
				t.Errorf("%s, was %s", now, apps)
			}
			must(t, p.decide(rollout.Promote, []string{"shop"}))
			if p.settle(); p.state("shop").Phase != rollout.Healthy {
				t.Errorf("the release is %s", p.state("shop").Phase)
			}
		})
	}
}
