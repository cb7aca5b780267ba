package main

import (
	"errors"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"gitrollout.dev/gitrollout/rollout"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"gitrollout": main, pluginName: main, completerName: main, "seal": seal})
}

// seal is a program for the scripts. It reads a handwritten record, and prints the record with the seal that the reconciler would add.
func seal() {
	data, err := io.ReadAll(os.Stdin)
	if err != nil {
		log.Fatal(err)
	}
	s, err := rollout.ParseEditedState("state", data)
	if err != nil {
		log.Fatal(err)
	}
	if data, err = s.Encode(); err != nil {
		log.Fatal(err)
	}
	if _, err := os.Stdout.Write(data); err != nil {
		log.Fatal(err)
	}
}

// firstScripts names the scripts that "make test" runs. "make test-all" runs all scripts.
var firstScripts = []string{"events", "exit-codes", "get", "help", "history", "hold-abort", "init", "logs", "promote", "render", "sync",
	"validate"}

// TestScripts runs the scripts in testdata/scripts. The scripts run users' commands on real bare repositories, without a cluster.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/scripts",
		RequireExplicitExec: true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
		Setup: func(env *testscript.Env) error {
			name := strings.TrimPrefix(filepath.Base(env.WorkDir), "script-")
			if testing.Short() && !slices.Contains(firstScripts, name) {
				env.T().Skip("only in make test-all")
			}
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("GIT_CONFIG_NOSYSTEM", "1")
			env.Setenv("GIT_CONFIG_GLOBAL", filepath.Join(env.WorkDir, ".gitconfig"))
			env.Setenv("GIT_CEILING_DIRECTORIES", env.WorkDir)
			for _, role := range []string{"AUTHOR", "COMMITTER"} {
				env.Setenv("GIT_"+role+"_NAME", "Ann Lee")
				env.Setenv("GIT_"+role+"_EMAIL", "ann@example.com")
			}
			setup, err := os.ReadFile("testdata/setup.sh")
			if err == nil {
				err = os.WriteFile(filepath.Join(env.WorkDir, "setup.sh"), setup, 0o644)
			}
			if err == nil {
				err = os.CopyFS(filepath.Join(env.WorkDir, "fixture"), os.DirFS("testdata/fixture"))
			}
			return err
		},
	})
}

// exits is a script command. It runs a program and checks its exit code, for example: exits 2 gitrollout nonsense.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM [ARGUMENT...]")
	}
	want, err := strconv.Atoi(args[0])
	if err != nil {
		ts.Fatalf("exits: %v", err)
	}
	got := 0
	var exit *exec.ExitError
	if err := ts.Exec(args[1], args[2:]...); errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("exits: %v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d\n%s%s", got, want, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}
