package wire

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
)

// TestComplete checks the user name and password that Complete reads from each variable. Two variables with credentials are an error.
func TestComplete(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("from a file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const token, password = "GITROLLOUT_GIT_TOKEN", "GITROLLOUT_GIT_PASSWORD"
	const several = "more than one credential for https is set; keep only one: "
	for name, c := range map[string]struct {
		env  map[string]string
		want string
	}{
		"nothing":             {nil, ":"},
		"token":               {map[string]string{token: "t"}, "x-access-token:t"},
		"token and user":      {map[string]string{token: "t", "GITROLLOUT_GIT_USERNAME": "ann"}, "ann:t"},
		"password":            {map[string]string{password: "p", "GITROLLOUT_GIT_USERNAME": "ann"}, "ann:p"},
		"token file":          {map[string]string{token + "_FILE": file}, "x-access-token:from a file"},
		"password file":       {map[string]string{password + "_FILE": file, "GITROLLOUT_GIT_USERNAME": "ann"}, "ann:from a file"},
		"token, and password": {map[string]string{token: "t", password: "p"}, several + token + ", " + password},
		"two files": {map[string]string{token + "_FILE": file, password + "_FILE": file},
			several + token + "_FILE, " + password + "_FILE"},
		"token, and a file": {map[string]string{token: "t", token + "_FILE": file}, several + token + ", " + token + "_FILE"},
		"password, and an app": {map[string]string{password: "p", "GITROLLOUT_GITHUB_APP_ID": "1"},
			several + password + ", GITROLLOUT_GITHUB_APP_ID"},
	} {
		var a Auth
		err := a.Complete(func(name string) string { return c.env[name] }, time.Now)
		user, secret := a.Username, a.Password
		if err == nil && a.Refresh != nil {
			user, secret, err = a.Refresh(context.Background())
		}
		got := user + ":" + secret
		if err != nil {
			got = err.Error()
		}
		compare.CheckNamed(t, name, c.want, got)
	}
}
