package giteatest

import (
	"os/exec"
	"testing"
)

// TestStart checks that accounts and a repository can be created, and that a collaborator can push.
func TestStart(t *testing.T) {
	s := Start(t)
	owner, bot := s.User("owner"), s.User("bot")
	repo := s.Repository(owner, "deploy", bot)
	git := func(args ...string) string {
		t.Helper()
		c := exec.Command("git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	dir := t.TempDir()
	git("init", "-q", "-b", "main", dir)
	git("-C", dir, "commit", "-q", "--allow-empty", "-m", "first")
	git("-C", dir, "push", "-q", s.CloneURL(bot, repo), "main")
	Eventually(t, "the branch is listed", func() bool { // Gitea registers pushes in the background
		var branches []struct{ Name string }
		s.Must(bot, "GET", "/repos/"+repo+"/branches", nil, &branches)
		return len(branches) == 1 && branches[0].Name == "main"
	})
}
