package archtest

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestVulncheckInCI checks that CI fails if make vulncheck fails. If the vulnerability database is unreachable, CI
// prints a line and does not run make vulncheck.
func TestVulncheckInCI(t *testing.T) {
	if run := read(t, ".ci/run"); !strings.Contains(run, "\n.ci/vulncheck") {
		t.Error(".ci/run does not call it")
	}
	database := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/index/db.json" {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(database.Close)
	copied := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(copied, "index"), 0o755))
	must(t, os.WriteFile(filepath.Join(copied, "index", "db.json"), []byte("{}"), 0o600))
	const called = "make vulncheck was called\n"
	for name, c := range map[string]struct {
		database, found string
		fails           bool
		says            string
	}{
		"nothing is found":              {database.URL, "0", false, called},
		"something is found":            {database.URL, "2", true, called},
		"a copy":                        {"file://" + copied, "0", false, called},
		"something is found by a copy":  {"file://" + copied, "2", true, called},
		"no server":                     {"http://127.0.0.1:1", "2", false, "vulncheck is left out: "},
		"a server that has no database": {database.URL + "/other", "2", false, "vulncheck is left out: "},
		"no copy":                       {"file://" + copied + "/other", "2", false, "vulncheck is left out: "},
	} {
		t.Run(name, func(t *testing.T) {
			bin := t.TempDir()
			must(t, os.WriteFile(filepath.Join(bin, "make"), []byte("#!/bin/sh\necho make $1 was called\nexit "+c.found+"\n"), 0o755))
			cmd := exec.Command(filepath.Join(root, ".ci", "vulncheck"))
			cmd.Env = append(os.Environ(), "GOVULNDB="+c.database, "PATH="+bin+":"+os.Getenv("PATH"), "NO_PROXY=*")
			out, err := cmd.CombinedOutput()
			if (err != nil) != c.fails {
				t.Errorf("it ends with %v, want an error: %v", err, c.fails)
			}
			said := string(out)
			if !strings.HasPrefix(said, c.says) || strings.Count(said, "\n") != 1 || c.says != called && !strings.Contains(said, c.database) {
				t.Errorf("it says %q, want one line with %q", said, c.says)
			}
		})
	}
}
