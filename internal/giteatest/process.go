package giteatest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/testbin"
)

// readyWithin limits the time until Gitea responds. The limit is high, because tests of several packages run at the same time.
const readyWithin = 2 * time.Minute

// configuration is Gitea's app.ini. The templates and texts are in the folder of Gitea's module. The frontend
// is not built, because the API does not need the frontend.
const configuration = `RUN_MODE = prod
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true
WORK_PATH = %[1]s
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = %[2]d
ROOT_URL = http://127.0.0.1:%[2]d/
STATIC_ROOT_PATH = %[3]s
DISABLE_SSH = true
OFFLINE_MODE = true
[database]
DB_TYPE = sqlite3
PATH = %[1]s/gitea.db
[security]
INSTALL_LOCK = true
PASSWORD_HASH_ALGO = pbkdf2_hi
[webhook]
ALLOWED_HOST_LIST = loopback
[actions]
ENABLED = false
[log]
MODE = console
LEVEL = Error
[api]
ENABLE_SWAGGER = false
`

func start(tb testing.TB) (*Server, error) {
	binary, err := testbin.Ensure("gitea", "more than five minutes")
	if err != nil {
		return nil, err
	}
	static, err := testbin.Module("internal/gitea", "code.gitea.io/gitea")
	if err != nil {
		return nil, err
	}
	port, err := testbin.FreePort()
	if err != nil {
		return nil, err
	}
	work := tb.TempDir()
	ini := filepath.Join(work, "app.ini")
	if err := os.WriteFile(ini, fmt.Appendf(nil, configuration, work, port, static), 0o600); err != nil {
		return nil, err
	}
	s := &Server{URL: fmt.Sprintf("http://127.0.0.1:%d", port), Admin: Account{Name: "gitadmin"}, tb: tb}
	for _, args := range [][]string{
		{"migrate"},
		{"admin", "user", "create", "--admin", "--username", s.Admin.Name, "--password", password, "--email", "admin@example.com", "--must-change-password=false"},
	} {
		if out, err := command(binary, ini, work, args...).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%v: %w: %s", args[0], err, bytes.TrimSpace(out))
		}
	}
	server, err := testbin.Start(command(binary, ini, work, "web"))
	if err != nil {
		return nil, err
	}
	tb.Cleanup(func() {
		server.Stop()
		if tb.Failed() {
			tb.Logf("gitea's log:\n%s", server)
		}
	})
	if err := server.Await(s.URL+"/api/healthz", readyWithin); err != nil {
		return nil, err
	}
	s.Admin.Token = s.token(s.Admin.Name)
	return s, nil
}

func command(binary, ini, work string, args ...string) *exec.Cmd {
	c := exec.Command(binary, append([]string{"--config", ini}, args...)...)
	c.Dir = work
	c.Env = append(os.Environ(), "GITEA_WORK_DIR="+work, "HOME="+work)
	return c
}
