package vendoring_test

import (
	"archive/tar"
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/author/vendoring"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/rollout"
)

// TestBounds checks that an archive exactly at the bounds of bytes, entries and path lengths is accepted.
func TestBounds(t *testing.T) {
	most := make([]entry, 0, 5000)
	for i := range 5000 - 1 {
		most = append(most, special(fmt.Sprintf("d%d/", i), tar.TypeDir, ""))
	}
	half := strings.Repeat("x", 20<<20/2)
	long := strings.Repeat("a/", 1000/2-1) + "bc"
	for name, c := range map[string]struct {
		archive []byte
		want    int
	}{
		"bytes":             {packed(t, plain("a", half), plain("b", half)), 2},
		"entries":           {packed(t, append(most, plain("a", "x"))...), 1},
		"letters of a path": {packed(t, plain(long, "x")), 1},
		"entries of git archive": {packed(t, entry{tar.Header{Typeflag: tar.TypeXGlobalHeader,
			PAXRecords: map[string]string{"comment": "1f2e"}}, ""}, special("./", tar.TypeDir, ""), plain("./a", "x")), 1},
		"names that differ": {packed(t, plain("a/git~1a", "x"), plain("a/.github/x", "x"), plain("a/x.git", "x"), plain("b/x", "y")), 4},
	} {
		if all, err := vendoring.Unzip(c.archive); err != nil || len(all) != c.want {
			t.Errorf("%s: %d files, error %v, want %d", name, len(all), err, c.want)
		}
	}
}

// TestTheSameTree checks that different sets of files have different digests.
func TestTheSameTree(t *testing.T) {
	seen := map[string]int{}
	for i, f := range []vendoring.Files{
		{"a": []byte("x")}, {"a": []byte("y")}, {"b": []byte("x")}, {"a": []byte("x"), "b": nil}, {"a": nil, "b": []byte("x")}, {},
	} {
		if other, known := seen[f.Tree()]; known {
			t.Errorf("sets %d and %d have one digest", other, i)
		}
		seen[f.Tree()] = i
	}
	if one, other := (vendoring.Files{"a": []byte("x"), "b": nil}), (vendoring.Files{"b": {}, "a": []byte("x")}); one.Tree() != other.Tree() {
		t.Error("the order counts")
	}
}

// TestNewest checks that the newest version in a range is chosen. If a version is locked, that version is chosen and must exist. A tag that
// is no semantic version is chosen only by its exact name.
func TestNewest(t *testing.T) {
	for name, c := range map[string]struct {
		versions  []string
		wants     string
		locked    *vendoring.Pin
		want, err string
	}{
		"the newest is first":        {[]string{"1.10.0", "1.9.0"}, "^1", nil, "1.10.0", ""},
		"the newest is last":         {[]string{"1.9.0", "1.10.0"}, "^1", nil, "1.10.0", ""},
		"tags that are no versions":  {[]string{"latest", "1.0.0", "main"}, "^1", nil, "1.0.0", ""},
		"a range without the newest": {[]string{"1.0.0", "2.0.0"}, "<2", nil, "1.0.0", ""},
		"a word that is there":       {[]string{"latest", "1.0.0"}, "latest", nil, "latest", ""},
		"one before the newest":      {[]string{"1.1.0-rc.1", "1.0.0", "1.1.0-rc.2"}, ">=1.0.0-0", nil, "1.1.0-rc.2", ""},
		"none before the newest":     {[]string{"1.1.0-rc.1", "1.0.0"}, "^1", nil, "1.0.0", ""},
		"short ones":                 {[]string{"v1", "v1.2", "v1.1.9", "v2"}, "1.x", nil, "v1.2", ""},
		"the locked one":             {[]string{"1.0.0", "1.1.0"}, "^1", &vendoring.Pin{Version: "1.0.0"}, "1.0.0", ""},
		"the locked one has gone": {[]string{"1.1.0"}, "^1", &vendoring.Pin{Version: "1.0.0"}, "",
			"version 1.0.0, which is locked, is not there"},
		"nothing in the range":      {[]string{"1.0.0", "latest"}, ">1", nil, "", "none of its 2 versions is >1"},
		"neither version nor range": {[]string{"1.0.0"}, "stable", nil, "", `"stable" is neither a version nor a range of versions`},
	} {
		got, err := vendoring.Newest(c.versions, c.wants, c.locked)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %q, error %v, want %q %s", name, got, err, c.want, c.err)
		}
	}
}

// TestGet checks that the client follows at most ten redirects, and only to https. Responses have a maximum size. No error contains a URL's
// query.
func TestGet(t *testing.T) {
	g, host := vendoring.Bench(t, func(to http.ResponseWriter, req *http.Request) {
		switch n, err := strconv.Atoi(strings.TrimPrefix(req.URL.Path, "/hops/")); {
		case err == nil && n > 0:
			http.Redirect(to, req, fmt.Sprintf("/hops/%d?token=secret", n-1), http.StatusFound)
		case err == nil:
			_, _ = to.Write([]byte(req.Header.Get("Accept")))
		case req.URL.Path == "/plain":
			http.Redirect(to, req, "http://charts.example.com/x?token=secret", http.StatusFound)
		case req.URL.Path == "/cut":
			to.Header().Set("Content-Length", "10")
			_, _ = to.Write([]byte("x"))
		case req.URL.Path == "/full", req.URL.Path == "/more":
			_, _ = to.Write(bytes.Repeat([]byte("x"), 64<<20))
			if req.URL.Path == "/more" {
				_, _ = to.Write([]byte("x"))
			}
		}
	})
	for path, want := range map[string]string{
		"/hops/0": "", "/hops/10": "", "/hops/11": "too many redirects", "/plain": "to http://charts.example.com, which gets no request",
		"/cut": "unexpected EOF", "/full": "", "/more": "is more than 64 MiB",
	} {
		a, err := g.Get(t.Context(), "http://"+host+path+"?token=secret", "", "text/x")
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", path, err, want)
		}
		if err != nil && (strings.Contains(err.Error(), "secret") || !strings.HasPrefix(err.Error(), host+path+": ")) {
			t.Errorf("%s: the error is %v", path, err)
		}
		if err == nil && strings.HasPrefix(path, "/hops") && (string(a.Body()) != "text/x" || a.Status() != http.StatusOK) {
			t.Errorf("%s: %d %s", path, a.Status(), a.Body())
		}
	}
	if _, err := g.Get(t.Context(), "http://127.0.0.1:1/x?token=secret", "", ""); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("no server is there: %v", err)
	}
	if _, err := g.Get(t.Context(), "::", "", ""); err == nil || !strings.Contains(err.Error(), `"::" is not an address`) {
		t.Errorf("no address: %v", err)
	}
	used := false
	g.Client = &http.Client{Transport: vendoring.Transport(func(*http.Request) { used = true })}
	if _, err := g.Get(t.Context(), "https://charts.example.com/x", "", ""); err != nil || !used {
		t.Errorf("its own client is used: %t, error %v", used, err)
	}
}

// TestWhatServersSay checks that an invalid index, manifest, archive or folder is reported. Unusual but valid responses are accepted.
func TestWhatServersSay(t *testing.T) {
	const redis = "- chart: {repo: http://HOST/charts/, name: redis, version: 20.1.4}\n  into: charts\n"
	const podinfo = "- oci: {url: oci://HOST/manifests/podinfo/, tag: 6.9.0}\n  into: podinfo\n"
	index := func(more string) func(*world) { return func(w *world) { w.index(more) } }
	manifest := func(text string) func(*world) {
		return func(w *world) { w.answers["/v2/manifests/podinfo/manifests/6.9.0"] = []byte(text) }
	}
	for name, c := range map[string]struct {
		sources string
		prepare func(*world)
		want    string // "" if the source is fetched
	}{
		"a whole address": {redis, index("urls: [http://HOST/charts/redis-20.1.4.tgz]"), ""},
		"a digest with its kind": {redis, func(w *world) {
			w.index("urls: [redis-20.1.4.tgz], digest: " + vendoring.Digest(w.answers["/charts/redis-20.1.4.tgz"]))
		}, ""},
		"no address":               {redis, index("urls: []"), "version 20.1.4 has no address"},
		"an address that is none":  {redis, index(`urls: ["::"]`), "version 20.1.4 has an address that is not a URL"},
		"an archive that has gone": {redis, index("urls: [gone.tgz]"), "HOST/charts/gone.tgz answers 404"},
		"an archive out of reach":  {redis, index("urls: [\"http://127.0.0.1:1/x.tgz\"]"), "127.0.0.1:1/x.tgz: "},
		"an index that is no YAML": {redis, func(w *world) { w.answers["/charts/index.yaml"] = []byte("{") }, "its index.yaml cannot be read"},
		"a slash behind":           {podinfo, nil, ""},
		"a manifest that is none":  {podinfo, manifest("<html>"), "the manifest of 6.9.0 cannot be read"},
		"no archive in it": {podinfo, manifest(`{"layers": [{"mediaType": "text/plain", "digest": "x"}]}`),
			"6.9.0 has no layer that is a .tar.gz"},
		"a layer that has gone": {podinfo, manifest(`{"layers": [{"mediaType": "x.tar+gzip", "digest": "sha256:1"}]}`),
			"/blobs/sha256:1 answers 404"},
		"the type of Docker images": {podinfo, func(w *world) {
			m := w.answers["/v2/manifests/podinfo/manifests/6.9.0"]
			manifest(strings.ReplaceAll(string(m), "tar+gzip", "tar.gzip"))(w)
		}, ""},
		"tags that are none": {strings.ReplaceAll(podinfo, "tag: 6.9.0", `semver: "*"`),
			func(w *world) { w.answers["/v2/manifests/podinfo/tags/list"] = []byte("<") }, "invalid character"},
		"a folder of a commit": {"- git: {url: GIT, ref: main, path: empty}\n  into: base\n", func(w *world) {
			w.git.Write(map[string]string{"empty/.gitmodules": ""}).Commit("nothing else")
		}, "has no file"},
		"a repository without path": {"- git: {url: GIT, ref: main}\n  into: base\n", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := ofSources(t, c.sources)
			if c.prepare != nil {
				c.prepare(w)
			}
			if c.want == "" {
				if w.update(""); len(w.has()) < 2 {
					t.Errorf("it has %v", w.has())
				}
				return
			}
			w.update("", strings.ReplaceAll(c.want, "HOST", w.host))
		})
	}
}

// TestWhatIsSaid checks that Update returns a line with version, digest and number of files for each source. Update leaves no Git files in
// the temporary folder.
func TestWhatIsSaid(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	w := newWorld(t)
	said, err := w.getter.Update(t.Context(), w.on(), "")
	must(t, err)
	for i, want := range []string{"charts/redis-20.1.5  20.1.5 sha256:", "base  ", "podinfo  6.10.1 sha256:",
		"charts/web-1.2.3+b1  1.2.3+b1 sha256:"} {
		count := []string{", 2 files", ", 1 files"}[min(i, 1)]
		if !strings.HasPrefix(said[i], want) || !strings.HasSuffix(said[i], count) {
			t.Errorf("it says %q, want %q and %q", said[i], want, count)
		}
	}
	if commit := w.git.Git("rev-parse", "main"); said[1] != "base  "+strings.TrimSpace(commit)+", 1 files" {
		t.Errorf("it says %q of commit %s", said[1], commit)
	}
	if left, err := filepath.Glob(filepath.Join(temporary, "gitrollout-vendor-*")); err != nil || len(left) > 0 {
		t.Errorf("there are %v, error %v", left, err)
	}
}

// locked returns a function that writes a vendor.lock with this apiVersion and kind.
func locked(version, kind string) func(*world) {
	return func(w *world) { w.write("vendor.lock", "apiVersion: "+version+"\nkind: "+kind+"\n") }
}

// lockedInto returns a function that writes a vendor.lock. Its only source has the given folder.
func lockedInto(folder string) func(*world) {
	return locked("gitrollout.dev/v1alpha1", "VendorLock\nsources: [{wants: x, into: "+folder+", tree: y}]")
}

// TestWhatPeopleChanged checks that nothing is written if a folder differs from the lock, or contains an entry that
// is no regular file. A missing folder is restored, and a folder that vendor.yaml no longer lists is removed.
func TestWhatPeopleChanged(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *world)
		want   []string
	}{
		"a byte": {func(w *world) { w.write("base/base.yaml", "base: mine\n") },
			[]string{"base differs from vendor.lock", "keep your changes"}},
		"a symlink": {func(w *world) { _ = os.Symlink("base.yaml", filepath.Join(w.dir, "base/x")) },
			[]string{"base/x is not a regular file"}},
		"a folder": {func(w *world) { w.remove("podinfo") }, nil},
		"the source": {func(w *world) { w.vendor("- git: {url: " + w.gitURL + ", ref: main, path: deploy}\n  into: base\n") },
			nil},
		"a lock of something else":   {locked("v1", "ConfigMap"), []string{"vendor.lock", `"v1" is not known`, "restore it from Git"}},
		"a lock of another version":  {locked("gitrollout.dev/v2", "VendorLock"), []string{"or a newer gitrollout"}},
		"a lock of another kind":     {locked("gitrollout.dev/v1alpha1", "Vendor"), []string{"its kind is not VendorLock"}},
		"a lock of the whole folder": {lockedInto("."), []string{`"." is not a folder beside it`}},
		"no vendor.yaml":             {func(w *world) { w.remove("vendor.yaml") }, []string{"vendor.yaml"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.update("")
			first := w.has()
			c.change(w)
			changed, _ := os.ReadDir(filepath.Join(w.dir, "base"))
			w.update("", c.want...)
			if after, _ := os.ReadDir(filepath.Join(w.dir, "base")); len(c.want) > 0 && len(after) != len(changed) {
				t.Errorf("something was written: %v", after)
			}
			if name == "a folder" {
				compare.Check(t, first, w.has())
			}
			if name == "the source" && len(w.has()) != 2 {
				t.Errorf("it has %v", w.has())
			}
		})
	}
}

// TestFoldersApart checks that Update refuses equal or nested folders of two sources. Names with a common prefix are allowed.
func TestFoldersApart(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		into []string
		is   bool
	}{{[]string{"a", "a"}, false}, {[]string{"a", "a/b"}, false}, {[]string{"a/b", "a"}, false}, {[]string{"a", "ab"}, true},
		{[]string{"b", "c", "b/d"}, false}} {
		pins := rollout.Mapped(c.into, func(into string) vendoring.Pin { return vendoring.Pin{Into: into} })
		if err := vendoring.Apart(w.on(), pins, nil); (err == nil) != c.is {
			t.Errorf("%v: error %v", c.into, err)
		}
	}
}

// TestLoginsOfHelm checks that the login for a host comes from helm's file if docker's file lacks the host.
// DOCKER_CONFIG may name another folder for docker's file. An unreadable file counts as empty.
func TestLoginsOfHelm(t *testing.T) {
	home, elsewhere := t.TempDir(), t.TempDir()
	auth := func(who string) string { return `{"auth": "` + vendoring.Encoded(who) + `"}` }
	put(t, filepath.Join(home, ".config/helm/registry/config.json"), `{"auths": {"a.example.com": `+auth("helm:1")+
		`, "b.example.com": `+auth("helm:2")+`, "c.example.com": {"auth": "%"}}}`, 0o600)
	put(t, filepath.Join(elsewhere, "config.json"),
		`{"auths": {"https://b.example.com/v2/": `+auth("docker:3")+`, "a.example.com": {}}}`, 0o600)
	put(t, filepath.Join(home, ".docker/config.json"), `{"auths": {`, 0o600)
	for folder, ofB := range map[string]string{elsewhere: "docker 3", "": "helm 2"} {
		login := vendoring.Logins(home, func(name string) string { return map[string]string{"DOCKER_CONFIG": folder}[name] })
		checkLogins(t, login, map[string]string{"a.example.com": "helm 1", "b.example.com": ofB, "c.example.com": " "})
	}
}

// TestRefsAreNames checks that a ref is refused if Git would read it as several refs or as an option.
func TestRefsAreNames(t *testing.T) {
	w := newWorld(t)
	for _, ref := range []string{"main:other", "+main", "main^", "*", "-x"} {
		w.vendor(fmt.Sprintf("- git: {url: %s, ref: %q}\n  into: base\n", w.git.HTTP(gittest.HTTPOptions{}).URL, ref))
		w.update("", "is not a tag, branch or commit")
	}
}
