package vendoring_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/author/vendoring"
	"gitrollout.dev/gitrollout/internal/compare"
)

// TestEndedInTheMiddle checks all states in which a killed update can leave the files. Each folder is old, new or missing, the lock is old,
// and staged files exist. From each state, a repeated update completes.
func TestEndedInTheMiddle(t *testing.T) {
	w := newWorld(t)
	w.update("")
	before, lock := w.copied(t).dir, w.read("vendor.lock")
	w.git.Write(map[string]string{"deploy/base.yaml": "base: 2\n"}).Commit("more")
	w.artifact("manifests/podinfo", "7.0.0", packed(t, plain("podinfo.yaml", "v: 7\n")))
	w.chart("redis", "20.1.6", "a: 6\n")
	w.update(vendoring.All)
	want, after := w.has(), w.copied(t).dir
	restore := func(from, folder string) {
		t.Helper()
		to := filepath.Join(w.dir, folder)
		err := os.RemoveAll(to)
		if _, none := os.Stat(filepath.Join(from, folder)); err == nil && from != "" && none == nil {
			err = os.CopyFS(to, os.DirFS(filepath.Join(from, folder)))
		}
		must(t, err)
	}
	states, step := []string{before, after, ""}, 1
	if testing.Short() {
		step = 5 // a fifth of the states covers each state of each folder
	}
	for n := 0; n < 27; n += step {
		restore(states[n%3], "base")
		restore(states[n/3%3], "podinfo")
		restore(before, "charts")
		restore(states[n/9], "charts/redis-20.1.6")
		w.write("vendor.lock", lock)
		must(t, os.CopyFS(filepath.Join(w.dir, ".vendor-new", "1"), os.DirFS(filepath.Join(before, "base"))))
		w.update(vendoring.All)
		compare.CheckNamed(t, fmt.Sprintf("from state %d", n), want, w.has())
	}
}

// TestNothingIsChangedHalf checks that, if one folder cannot be written, all folders and the lock stay unchanged.
func TestNothingIsChangedHalf(t *testing.T) {
	w := newWorld(t)
	w.update("")
	w.git.Write(map[string]string{"deploy/base.yaml": "base: 2\n"}).Commit("more")
	w.vendor("- git: {url: " + w.gitURL + ", ref: main, path: deploy}\n  into: base\n" +
		"- oci: {url: oci://HOST/manifests/podinfo, tag: 6.9.0}\n  into: out/podinfo\n")
	out, before := filepath.Join(w.dir, "out"), w.has()
	must(t, os.Symlink(t.TempDir(), out))
	w.update(vendoring.All, "nothing was changed: out/podinfo: ", "path escapes")
	must(t, os.Remove(out))
	compare.Check(t, before, w.has())
}

// TestTwoRanges checks that two ranges share one folder while both select the same version. When one range selects a newer version, the
// folder stays for the other range.
func TestTwoRanges(t *testing.T) {
	w := newWorld(t)
	w.vendor(redis("~20.1") + redis("20.1.5"))
	for _, want := range []string{"charts/redis-20.1.5", "charts/redis-20.1.5 charts/redis-20.1.6"} {
		w.update(vendoring.All)
		found, _ := filepath.Glob(filepath.Join(w.dir, "charts/*"))
		compare.Check(t, want, strings.ReplaceAll(strings.Join(found, " "), w.dir+"/", ""))
		w.chart("redis", "20.1.6", "a: 6\n")
	}
}

// TestForgedLock checks a folder whose content was changed together with its digest in the lock. The error tells the
// user to restore the folder and the lock from Git.
func TestForgedLock(t *testing.T) {
	w := newWorld(t)
	w.update("")
	w.write("base/base.yaml", "base: evil\n")
	good, bad := vendoring.Files{"base.yaml": []byte("base: 1\n")}, vendoring.Files{"base.yaml": []byte("base: evil\n")}
	w.write("vendor.lock", strings.Replace(w.read("vendor.lock"), good.Tree(), bad.Tree(), 1))
	if wrong := w.wrong(); len(wrong) > 0 {
		t.Fatalf("the lock was to be forged: %v", wrong)
	}
	w.update("", "vendor.lock records other files for ", "restore vendor.lock and base from Git, and check their history")
}

// TestFolders checks that Folders lists folders with a vendor.yaml, except folders in vendored folders.
func TestFolders(t *testing.T) {
	w := newWorld(t)
	w.update("")
	content := w.read("vendor.yaml")
	for _, at := range []string{"base", "base/x/y", "charts/redis-20.1.5/redis", "charts", "charts/own", "basement", ".git/x"} {
		w.write(filepath.Join(at, "vendor.yaml"), content)
	}
	found, err := vendoring.Folders(w.dir)
	got := strings.ReplaceAll(strings.Join(found, " "), w.dir, ".")
	must(t, err)
	compare.Check(t, "./basement ./charts/own ./charts .", got)
}

// TestLockHasTheVersionOfItsSources checks that vendor.lock gets the apiVersion of vendor.yaml.
func TestLockHasTheVersionOfItsSources(t *testing.T) {
	w := newWorld(t)
	w.update("")
	head, _, _ := strings.Cut(w.read("vendor.lock"), "\n")
	compare.Check(t, "apiVersion: gitrollout.dev/v1alpha1", head)
}
