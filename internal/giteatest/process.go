package giteatest

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/testbin"
)

// readyWithin limits the time until Gitea answers. It is long, because tests of several packages run at the same time.
const readyWithin = 2 * time.Minute

// configuration is Gitea's app.ini. The templates and texts are in the folder of Gitea's module. The
// frontend is not built, because an API does not need it.
const configuration = `RUN_MODE = prod
I_AM_BEING_UNSAFE_RUNNING_AS_ROOT = true
WORK_PATH = %[1]s
[server]
HTTP_ADDR = 127.0.0.1
HTTP_PORT = %[2]s
ROOT_URL = http://127.0.0.1:%[2]s/
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
	root, err := testbin.Root()
	if err != nil {
		return nil, err
	}
	binary, err := testbin.Ensure(root, "gitea", "more than five minutes")
	if err != nil {
		return nil, err
	}
	static, err := moduleDir(root)
	if err != nil {
		return nil, err
	}
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	work := tb.TempDir()
	ini := filepath.Join(work, "app.ini")
	if err := os.WriteFile(ini, fmt.Appendf(nil, configuration, work, port, static), 0o600); err != nil {
		return nil, err
	}
	s := &Server{URL: "http://127.0.0.1:" + port, Admin: Account{Name: "gitadmin"}, tb: tb}
	for _, args := range [][]string{
		{"migrate"},
		{"admin", "user", "create", "--admin", "--username", s.Admin.Name, "--password", password, "--email", "admin@example.com", "--must-change-password=false"},
	} {
		if out, err := command(binary, ini, work, args...).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%v: %w: %s", args[0], err, bytes.TrimSpace(out))
		}
	}
	if err := run(tb, command(binary, ini, work, "web"), s.URL); err != nil {
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

// run starts the server and stops it when the test ends. The kernel kills the server when the thread
// that started it ends. Therefore run locks a thread until the server has ended.
func run(tb testing.TB, c *exec.Cmd, url string) error {
	var log bytes.Buffer
	c.Stdout, c.Stderr = &log, &log
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	started, ended := make(chan error, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.Start()
		started <- err
		if err == nil {
			ended <- c.Wait()
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	over := false
	tb.Cleanup(func() {
		if !over {
			_ = c.Process.Signal(syscall.SIGTERM)
			select {
			case <-ended:
			case <-time.After(20 * time.Second):
				_ = c.Process.Kill()
				<-ended
			}
		}
		if tb.Failed() {
			tb.Logf("gitea's log:\n%s", log.String())
		}
	})
	for deadline := time.Now().Add(readyWithin); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		select {
		case err := <-ended:
			over = true
			return fmt.Errorf("gitea ended before it was ready: %w: %s", err, strings.TrimSpace(log.String()))
		default:
		}
		if res, err := http.Get(url + "/api/healthz"); err == nil {
			_ = res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return nil
			}
		}
	}
	return fmt.Errorf("it was not ready after %s", readyWithin)
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}

// moduleDir returns the folder of Gitea's module, which has the templates and texts.
func moduleDir(root string) (string, error) {
	list := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "code.gitea.io/gitea")
	list.Dir = filepath.Join(root, "internal", "gitea")
	out, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("find the folder of module code.gitea.io/gitea: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}
