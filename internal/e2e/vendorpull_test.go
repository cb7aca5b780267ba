package e2e

import (
	"net/http"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/giteatest"
	"gitrollout.dev/gitrollout/internal/gittest"
)

// TestVendorPull runs gitrollout vendor --update --pr with a chart repository and a real Gitea, from a CI job and from
// a user's clone. A new version of the chart updates the single pull request. A repeated run changes nothing.
func TestVendorPull(t *testing.T) {
	t.Parallel()
	server := giteatest.Start(t)
	owner := server.User("vera")
	bot := server.User("vendorbot", "write:repository", "write:issue")
	repo := server.Repository(owner, "infra", bot)
	var version atomic.Value
	version.Store("1.2.0")
	path, err := binary()
	must(t, err)
	c := newClone(t, server.CloneURL(owner, repo))
	vendor := func(env ...string) (string, error) {
		cmd := exec.Command(path, "vendor", "--update", "--pr")
		cmd.Dir = c.dir
		cmd.Env = append(append(gittest.Env(), "HOME="+t.TempDir(), "GITROLLOUT_FORGE_TOKEN="+bot.Token), env...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	c.write(map[string]string{
		"infra/vendor.yaml": "apiVersion: gitrollout.dev/v1alpha1\nkind: Vendor\nsources:\n- chart: {repo: " + podinfoCharts(t, &version) +
			", name: podinfo, version: \">=1\"}\n  into: charts\n",
		configFile: "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps: [{path: apps/*}]\nforge: {type: gitea, url: " + server.URL + "}\n",
	})
	if out, err := vendor(); err == nil || !strings.Contains(out, "commit or stash these changes") {
		t.Errorf("with changes of one's own: %v\n%s", err, out)
	}
	c.push("sources")
	giteatest.Eventually(t, "Gitea has seen the push", func() bool {
		status, _ := server.API(owner, http.MethodGet, "/repos/"+repo+"/pulls", nil, nil)
		return status == http.StatusOK
	})

	type pull struct {
		Title, Body, State string
		Head               struct{ Ref, Sha string }
		User               struct{ Login string }
	}
	inJob := []string{"GITEA_ACTIONS=true", "GITHUB_SERVER_URL=" + server.URL, "GITHUB_REPOSITORY=" + repo}
	commits := map[string]bool{}
	for i, run := range []struct {
		version string
		env     []string
		commits int
	}{{"1.2.0", inJob, 1}, {"1.2.0", nil, 1}, {"1.3.0", nil, 2}, {"1.3.0", inJob, 2}} {
		version.Store(run.version)
		out, err := vendor(run.env...)
		if err != nil {
			t.Fatalf("run %d: %v\n%s", i, err, out)
		}
		var pulls []pull
		server.Must(owner, http.MethodGet, "/repos/"+repo+"/pulls?state=all", nil, &pulls)
		if len(pulls) != 1 || pulls[0].State != "open" || pulls[0].User.Login != "vendorbot" || pulls[0].Head.Ref != "gitrollout-vendor" ||
			!strings.Contains(pulls[0].Title, "charts/podinfo-"+run.version) || !strings.Contains(out, "proposed by pull request 1") {
			t.Fatalf("run %d: the pull requests are %+v, and it says\n%s", i, pulls, out)
		}
		if commits[pulls[0].Head.Sha] = true; len(commits) != run.commits {
			t.Errorf("run %d: there were the commits %v", i, commits)
		}
		compare.Contains(t, c.git("status", "--porcelain", "--untracked-files=all"),
			"?? infra/charts/podinfo-"+run.version+"/podinfo/Chart.yaml")
		c.git("clean", "-q", "-f", "-d")
	}
	c.git("fetch", "-q", "origin", "gitrollout-vendor")
	c.git("merge", "-q", "FETCH_HEAD")
	if out, err := vendor(inJob...); err != nil || !strings.Contains(out, "nothing is new") {
		t.Errorf("when it is merged: %v\n%s", err, out)
	}
}
