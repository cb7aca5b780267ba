// Package proxytest puts a real proxy in front of the pods of a test's cluster and records users' requests. The proxy
// is Traefik (bin/traefik, built from internal/traefik) with its three Kubernetes providers. Requests come at a fixed
// rate, even if responses are late.
//
// Pods have addresses only in a network namespace, so a package that uses proxytest needs a TestMain that runs the
// tests in such a namespace:
//
//	func TestMain(m *testing.M) { os.Exit(proxytest.Main(m)) }
//
// internal/testcluster starts the cluster, and internal/crds installs the routers' kinds. The product
// does not use this package. If a program is missing, tests fail and are not skipped.
package proxytest

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// insideVariable is the environment variable that marks the test program inside the namespace.
const insideVariable = "GITROLLOUT_PROXYTEST_INSIDE"

// Main runs the package's tests in a new network namespace, by starting the test program again there. It
// returns the exit code.
func Main(m *testing.M) int {
	if os.Getenv(insideVariable) == "" {
		return outside()
	}
	if err := routePods(); err != nil {
		fmt.Fprintln(os.Stderr, "proxytest:", err)
		return 1
	}
	defer closeShared()
	return m.Run()
}

// outside starts the test program in the namespace and forwards signals. Without root, it uses a user
// namespace, which the machine must allow.
func outside() int {
	runtime.LockOSThread() // Pdeathsig depends on the thread that starts the program
	defer runtime.UnlockOSThread()
	inside := exec.Command(os.Args[0], os.Args[1:]...)
	inside.Env = append(os.Environ(), insideVariable+"=1")
	inside.Stdin, inside.Stdout, inside.Stderr = os.Stdin, os.Stdout, os.Stderr
	inside.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		inside.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		inside.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		inside.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	if err := inside.Start(); err != nil {
		fmt.Fprintf(os.Stderr, "proxytest: these tests need a separate network namespace: run them as root on Linux, or allow user namespaces: %v\n", err)
		return 1
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT)
	defer signal.Stop(signals)
	go func() {
		for s := range signals {
			_ = inside.Process.Signal(s)
		}
	}()
	if err := inside.Wait(); err != nil && inside.ProcessState.ExitCode() <= 0 {
		fmt.Fprintln(os.Stderr, "proxytest: the tests in the namespace ended early:", err)
		return 1
	}
	return inside.ProcessState.ExitCode()
}

// routePods makes every pod's address a local address.
func routePods() error {
	for _, setup := range []string{"link set lo up", "route add local 10.244.0.0/16 dev lo"} {
		if out, err := exec.Command("ip", strings.Fields(setup)...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %s: %w: %s (ip is in Debian's iproute2)", setup, err, strings.TrimSpace(string(out)))
		}
	}
	return nil
}
