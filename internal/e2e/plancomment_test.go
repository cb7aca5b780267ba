package e2e

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/giteatest"
	"gitrollout.dev/gitrollout/internal/gittest"
)

// planJob runs the job of docs/plan.md in a checkout, as Gitea's runner does.
type planJob struct {
	*clone
	steps            []string
	program, summary string
	environment      []string
}

// planSteps returns the steps of the job for Gitea in docs/plan.md.
func planSteps(t *testing.T) []string {
	t.Helper()
	_, section, _ := strings.Cut(readText(t, "../../docs/plan.md"), "\nGitea and Forgejo Actions:\n")
	section, _, _ = strings.Cut(section, "\n```\n")
	var steps []string
	for _, m := range regexp.MustCompile(`(?m)^    - run: (.*)$`).FindAllStringSubmatch(section, -1) {
		steps = append(steps, m[1])
	}
	if len(steps) != 2 {
		t.Fatalf("the job for Gitea has the steps %q: are they read right?", steps)
	}
	return steps
}

func (j *planJob) pushVersion(branch, version string) {
	j.Helper()
	j.write(map[string]string{configFile: "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps: [{path: app, namespace: shop}]\n"})
	for name, content := range newShop(2, "", "setWeight: 50", "pause: {}").at(version).files() {
		j.write(map[string]string{"app/" + name: content})
	}
	j.git("checkout", "-q", "-B", branch)
	j.commit(version)
	j.git("push", "-q", "origin", branch)
}

func (j *planJob) run(token string) string {
	j.Helper()
	out, err := j.try(token)
	if err != nil {
		j.Fatalf("%v\n%s", err, out)
	}
	return out
}

// try runs the steps with a token until a step fails. It returns their output, and the error of the failed step.
func (j *planJob) try(token string) (string, error) {
	var all strings.Builder
	for _, step := range j.steps {
		c := exec.Command("sh", "-e", "-c", step)
		c.Dir = j.dir
		c.Env = append(gittest.Env(), append(j.environment, "GITROLLOUT_GIT_TOKEN="+token,
			"PATH="+filepath.Dir(j.program)+":"+os.Getenv("PATH"), "GITHUB_STEP_SUMMARY="+j.summary)...)
		out, err := c.CombinedOutput()
		all.Write(out)
		if err != nil {
			return all.String(), fmt.Errorf("%s: %w", step, err)
		}
	}
	return all.String(), nil
}

// TestPlanComment runs the documented job for several pushes to one pull request on a real Gitea. After each push, the pull request has a
// single comment. With a read-only token, such as a fork's, the plan is only in the job's summary.
func TestPlanComment(t *testing.T) {
	t.Parallel()
	server := giteatest.Start(t)
	owner, bot := server.User("olive"), server.User("bot", "write:repository", "write:issue")
	reader := server.User("reader", "read:repository", "read:issue")
	repo := server.Repository(owner, "deploy", bot, reader)
	path, err := binary()
	must(t, err)
	program := filepath.Join(t.TempDir(), "gitrollout")
	must(t, os.Symlink(path, program))
	j := &planJob{clone: newClone(t, server.CloneURL(owner, repo)), steps: planSteps(t), program: program,
		summary: filepath.Join(t.TempDir(), "summary")}
	j.pushVersion("main", "v1")
	j.pushVersion("change", "v2")
	var pull struct{ Number int }
	giteatest.Eventually(t, "a pull request", func() bool {
		status, _ := server.API(owner, http.MethodPost, "/repos/"+repo+"/pulls",
			map[string]any{"title": "v2", "head": "change", "base": "main"}, &pull)
		return status == http.StatusCreated
	})
	j.environment = []string{"GITEA_ACTIONS=true", "GITHUB_ACTIONS=true", fmt.Sprintf("GITHUB_REF=refs/pull/%d/head", pull.Number),
		"GITHUB_SERVER_URL=" + server.URL, "GITHUB_REPOSITORY=" + repo, "GITHUB_BASE_REF=main"}
	var comments []struct {
		Body string
		User struct{ Login string }
	}
	look := func() {
		t.Helper()
		server.Must(owner, http.MethodGet, fmt.Sprintf("/repos/%s/issues/%d/comments", repo, pull.Number), nil, &comments)
	}
	for n := 2; n <= 11; n++ { // ten pushes to the same pull request
		version := fmt.Sprintf("v%d", n)
		if n > 2 {
			j.pushVersion("change", version)
		}
		j.run(bot.Token)
		if look(); len(comments) != 1 || comments[0].User.Login != "bot" || !strings.Contains(comments[0].Body, "shop:"+version) {
			t.Fatalf("after the push of %s the comments are %+v", version, comments)
		}
	}
	if out, err := j.try("wrong"); err == nil || !strings.Contains(out, "the token is wrong, or has expired") {
		t.Errorf("with a wrong token: %v\n%s", err, out)
	}
	before := comments[0].Body
	j.pushVersion("change", "v12")
	out := j.run(reader.Token)
	if look(); len(comments) != 1 || comments[0].Body != before {
		t.Errorf("with a token that may read, the comments are %+v", comments)
	}
	if text := readText(t, j.summary); !strings.Contains(text, "shop:v12") || !strings.Contains(out, "not added as a comment to "+server.URL) {
		t.Errorf("the job's summary is %q, and it says\n%s", text, out)
	}
}
