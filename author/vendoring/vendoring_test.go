package vendoring_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/author/vendoring"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/gittest"
	"gitrollout.dev/gitrollout/rollout"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// packed returns a .tar.gz archive with the given entries.
func packed(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	archive := tar.NewWriter(zip)
	for _, e := range entries {
		h := e.Header
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
		}
		if h.Typeflag != tar.TypeXGlobalHeader {
			h.Mode, h.Size = 0o644, int64(len(e.content))
		}
		must(t, archive.WriteHeader(&h))
		_, err := archive.Write([]byte(e.content))
		must(t, err)
	}
	must(t, archive.Close())
	must(t, zip.Close())
	return b.Bytes()
}

type entry struct {
	tar.Header
	content string
}

func plain(name, content string) entry { return entry{tar.Header{Name: name}, content} }

func special(name string, kind byte, to string) entry {
	return entry{tar.Header{Name: name, Typeflag: kind, Linkname: to}, ""}
}

// TestMaliciousArchives checks that an archive is refused if it is too large, or has entries other than regular files and folders.
func TestMaliciousArchives(t *testing.T) {
	many := make([]entry, 5000+1)
	for i := range many {
		many[i] = special(fmt.Sprintf("d%d/", i), tar.TypeDir, "")
	}
	good := packed(t, plain("a/b.yaml", "x"))
	for name, c := range map[string]struct {
		archive []byte
		want    string
	}{
		"a path that leads up":         {packed(t, plain("../a", "x")), "leaves the archive's folder"},
		"one that leads up further in": {packed(t, plain("a/../../b", "x")), "leaves the archive's folder"},
		"an absolute path":             {packed(t, plain("/etc/passwd", "x")), "leaves the archive's folder"},
		"a path of Windows":            {packed(t, plain(`a\..\..\b`, "x")), "leaves the archive's folder"},
		"a drive":                      {packed(t, plain("C:/a", "x")), "leaves the archive's folder"},
		"a line end in a path":         {packed(t, plain("a\nb", "x")), "leaves the archive's folder"},
		"a path that is no UTF-8":      {packed(t, plain("a\xff", "x")), "leaves the archive's folder"},
		"a path of a letter too many":  {packed(t, plain(strings.Repeat("a/", 1000/2-1)+"abc", "x")), "leaves the archive's folder"},
		"a symlink":                    {packed(t, special("a", tar.TypeSymlink, "/etc")), "no plain file"},
		"a file behind a symlink":      {packed(t, special("a", tar.TypeSymlink, ".."), plain("a/b", "x")), "no plain file"},
		"a hard link":                  {packed(t, special("a", tar.TypeLink, "/etc/passwd")), "no plain file"},
		"a device":                     {packed(t, special("a", tar.TypeChar, "")), "no plain file"},
		"a pipe":                       {packed(t, special("a", tar.TypeFifo, "")), "no plain file"},
		"a hook of Git":                {packed(t, plain("a/.git/hooks/post-checkout", "x")), "an archive must not contain"},
		"a shortened name":             {packed(t, plain("a/GIT~1/config", "x")), "an archive must not contain"},
		"a folder of Git's name":       {packed(t, special(".git/", tar.TypeDir, ""), plain("a", "x")), "an archive must not contain"},
		"a hook of Git on Windows":     {packed(t, plain("a/.GIT. /config", "x")), "an archive must not contain"},
		"a configuration":              {packed(t, plain(".gitrollout/prod/config.yaml", "x")), "an archive must not contain"},
		"a configuration on Windows":   {packed(t, plain("GITROL~1/prod/config.yaml", "x")), "an archive must not contain"},
		"attributes in capitals":       {packed(t, plain("a/.GITATTRIBUTES", "* -text")), "take \".GITATTRIBUTES\" for Git's .gitattributes"},
		"ignored files on macOS":       {packed(t, plain("a/.git\u200dignore", "*")), "for Git's .gitignore"},
		"attributes on Windows":        {packed(t, plain("a/GITATT~1", "* -text")), "for Git's .gitattributes"},
		"the fifth of them on Windows": {packed(t, plain("a/gi7eba~9", "x")), "for Git's .gitmodules"},
		"modules with a dot more":      {packed(t, plain(".gitmodules .", "x")), "for Git's .gitmodules"},
		"a folder that leads up":       {packed(t, special("../a/", tar.TypeDir, ""), plain("b", "x")), "leaves the archive's folder"},
		"one file twice":               {packed(t, plain("a", "x"), plain("./a", "y")), "twice"},
		"two files of one name":        {packed(t, plain("a/B", "x"), plain("a/b", "y")), "cannot both exist on every file system"},
		"two folders of one name":      {packed(t, plain("a/x", "x"), plain("A/y", "y")), "cannot both exist on every file system"},
		"a file that is a folder":      {packed(t, plain("a", "x"), plain("a/b", "y")), "cannot both exist on every file system"},
		"a bomb":                       {packed(t, plain("a", strings.Repeat("\x00", 20<<20+1))), "more than 20 MiB"},
		"a bomb of several": {packed(t, plain("a", strings.Repeat("\x00", 20<<20/2)),
			plain("b", strings.Repeat("\x00", 20<<20/2+1))), "more than 20 MiB"},
		"too many":    {packed(t, many...), "more than 5000 files"},
		"nothing":     {packed(t), "has no file"},
		"half of one": {good[:len(good)/2], "cannot be unpacked"},
		"no archive":  {[]byte("<html>"), "is not a .tar.gz archive"},
	} {
		if all, err := vendoring.Unzip(c.archive); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %d files, error %v, want %s", name, len(all), err, c.want)
		}
	}
	all, err := vendoring.Unzip(packed(t, special("a/", tar.TypeDir, ""), plain("./a/b.yaml", "x"), plain("a/.gitignore", "*"),
		plain("a/.helmignore", "y")))
	must(t, err)
	compare.Check(t, vendoring.Files{"a/b.yaml": []byte("x"), "a/.helmignore": []byte("y")}, all)
}

// world is a chart repository, a registry with tokens, and a Git server. The HTTP servers' responses are in the field answers, by path.
type world struct {
	t       *testing.T
	answers map[string][]byte
	host    string
	asked   []string
	git     *gittest.Repo
	gitURL  string
	dir     string
	getter  *vendoring.Getter
}

func newWorld(t *testing.T) *world {
	w := withoutGit(t)
	w.git = gittest.New(t)
	w.git.Write(map[string]string{"deploy/base.yaml": "base: 1\n", "README.md": "x"})
	w.git.Commit("base")
	w.gitURL = w.git.HTTP(gittest.HTTPOptions{}).URL
	w.vendor(redis("~20.1") + "- git: {url: " + w.gitURL + ", ref: main, path: deploy}\n  into: base\n" +
		"- oci: {url: oci://HOST/manifests/podinfo, semver: \">=6.9\"}\n  into: podinfo\n" +
		"- chart: {repo: oci://HOST/charts, name: web, version: ^1}\n  into: charts\n")
	return w
}

// withoutGit returns a world without a vendor.yaml and without a Git server, which is slow to start.
func withoutGit(t *testing.T) *world {
	w := &world{t: t, answers: map[string][]byte{}, dir: t.TempDir()}
	w.getter, w.host = vendoring.Bench(t, w.ServeHTTP)
	w.chart("redis", "20.1.4", "a: 1\n")
	w.chart("redis", "20.1.5", "a: 2\n")
	w.chart("redis", "21.0.0", "a: 3\n")
	w.artifact("manifests/podinfo", "6.9.0", packed(t, plain("./podinfo.yaml", "v: 6.9.0\n")))
	w.artifact("manifests/podinfo", "6.10.1", packed(t, plain("./podinfo.yaml", "v: 6.10.1\n")))
	w.artifact("charts/web", "1.2.3_b1", packed(t, plain("web/Chart.yaml", "name: web\nversion: 1.2.3+b1\n")))
	return w
}

// ofSources returns a world with the given sources in vendor.yaml. GIT in sources stands for the Git server.
func ofSources(t *testing.T, sources string) *world {
	w := withoutGit(t)
	if strings.Contains(sources, "GIT") {
		w = newWorld(t)
	}
	w.vendor(strings.ReplaceAll(sources, "GIT", w.gitURL))
	return w
}

// copied returns a world for another test, with a copy of w's folder.
func (w *world) copied(t *testing.T) *world {
	t.Helper()
	own := *w
	own.t, own.dir = t, t.TempDir()
	must(t, os.CopyFS(own.dir, os.DirFS(w.dir)))
	return &own
}

// redis returns a source for a version or version range of the chart redis.
func redis(version string) string {
	return "- chart: {repo: http://HOST/charts, name: redis, version: " + version + "}\n  into: charts\n"
}

func (w *world) vendor(sources string) {
	w.write("vendor.yaml", "apiVersion: gitrollout.dev/v1alpha1\nkind: Vendor\nsources:\n"+strings.ReplaceAll(sources, "HOST", w.host))
}

func (w *world) write(name, content string) {
	w.t.Helper()
	put(w.t, filepath.Join(w.dir, name), content, 0o644)
}

func put(t *testing.T, file, content string, mode os.FileMode) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(file), 0o755))
	must(t, os.WriteFile(file, []byte(content), mode))
}

// read returns the content of a file, "" if the file does not exist.
func (w *world) read(name string) string {
	data, _ := os.ReadFile(filepath.Join(w.dir, name))
	return string(data)
}

func (w *world) remove(name string) { must(w.t, os.RemoveAll(filepath.Join(w.dir, name))) }

func (w *world) listed() []string {
	w.t.Helper()
	if w.read("vendor.yaml") == "" {
		return nil
	}
	sources, err := rollout.ParseVendor("vendor.yaml", []byte(w.read("vendor.yaml")))
	must(w.t, err)
	return rollout.Mapped(sources, func(s rollout.VendorSource) string { return s.Into + " " + s.Wants() })
}

// index replaces the chart index. The new index has only version 20.1.4, with additional fields.
func (w *world) index(more string) {
	w.answers["/charts/index.yaml"] = []byte(strings.ReplaceAll("entries: {redis: [{version: 20.1.4, "+more+"}]}", "HOST", w.host))
}

func (w *world) chart(name, version, values string) {
	file := "/charts/" + name + "-" + version + ".tgz"
	w.answers[file] = packed(w.t, plain(name+"/Chart.yaml", "name: "+name+"\nversion: "+version+"\n"), plain(name+"/values.yaml", values))
	index := w.answers["/charts/index.yaml"]
	if index == nil {
		index = []byte("entries:\n  redis:\n")
	}
	w.answers["/charts/index.yaml"] = fmt.Appendf(index, "  - {version: %s, urls: [%s], digest: %s}\n", version, file[len("/charts/"):],
		strings.TrimPrefix(vendoring.Digest(w.answers[file]), "sha256:"))
}

func (w *world) artifact(name, tag string, archive []byte) { w.signed(name, tag, archive, []byte("x")) }

func (w *world) signed(name, tag string, archive, prov []byte) {
	m := fmt.Appendf(nil,
		`{"layers": [{"mediaType": %q, "digest": %q}, {"mediaType": "application/vnd.cncf.flux.content.v1.tar+gzip", "digest": %q}]}`,
		"application/vnd.cncf.helm.chart.provenance.v1.prov", vendoring.Digest(prov), vendoring.Digest(archive))
	w.answers["/v2/"+name+"/manifests/"+tag] = m
	w.answers["/v2/"+name+"/blobs/"+vendoring.Digest(prov)] = prov
	w.answers["/v2/"+name+"/blobs/"+vendoring.Digest(archive)] = archive
	var list struct{ Tags []string }
	_ = json.Unmarshal(w.answers["/v2/"+name+"/tags/list"], &list)
	w.answers["/v2/"+name+"/tags/list"], _ = json.Marshal(map[string]any{"tags": append(list.Tags, tag)})
}

func (w *world) ServeHTTP(to http.ResponseWriter, req *http.Request) {
	w.asked = append(w.asked, req.URL.Path)
	basic := "Basic " + vendoring.Encoded("ann:secret")
	switch who := req.Header.Get("Authorization"); {
	case req.URL.Path == "/token" && who == basic && req.URL.Query().Get("service") == "s" &&
		strings.HasPrefix(req.URL.Query().Get("scope"), "repository:"):
		_, _ = to.Write([]byte(`{"token": "t"}`))
	case strings.HasPrefix(req.URL.Path, "/v2/") && who != "Bearer t":
		to.Header().Set("WWW-Authenticate", `Bearer realm="http://`+w.host+`/token",service="s",scope="repository:x:pull"`)
		to.WriteHeader(http.StatusUnauthorized)
	case strings.HasPrefix(req.URL.Path, "/charts/") && who != basic:
		to.WriteHeader(http.StatusForbidden)
	case w.answers[req.URL.Path] == nil:
		to.WriteHeader(http.StatusNotFound)
	default:
		_, _ = to.Write(w.answers[req.URL.Path])
	}
}

func (w *world) on() *os.Root {
	w.t.Helper()
	root, err := os.OpenRoot(w.dir)
	must(w.t, err)
	w.t.Cleanup(func() { _ = root.Close() })
	return root
}

// update runs Update. The error must contain the given words. If there are none, Update must succeed, and the folder must match the lock.
func (w *world) update(name string, words ...string) {
	w.t.Helper()
	_, err := w.getter.Update(context.Background(), w.on(), name)
	if (err == nil) != (len(words) == 0) {
		w.t.Fatalf("error %v, want %v", err, words)
	}
	compare.Contains(w.t, fmt.Sprint(err), words...)
	if err == nil {
		compare.CheckNamed(w.t, "wrong", []string(nil), w.wrong())
	} else if strings.Contains(err.Error(), "secret") {
		w.t.Errorf("a password is in the error %v", err)
	}
}

func (w *world) wrong() []string {
	w.t.Helper()
	wrong, err := vendoring.Check(w.on())
	must(w.t, err)
	return wrong
}

// has returns the files in the world's folder except vendor.yaml.
func (w *world) has() map[string]string {
	w.t.Helper()
	all, err := vendoring.OnDisk(w.on(), ".")
	must(w.t, err)
	out := map[string]string{}
	for name, content := range all {
		if name != "vendor.yaml" {
			out[name] = strings.ReplaceAll(string(content), w.host, "HOST")
		}
	}
	return out
}

// TestUpdate checks that Update fetches a chart from an index, a folder from a Git server, and an artifact and a chart from a registry. A
// second run writes the same bytes. A locked version stays until Update is called with the source's name.
func TestUpdate(t *testing.T) {
	w := newWorld(t)
	w.update("")
	first := w.has()
	lock := first["vendor.lock"]
	delete(first, "vendor.lock")
	want := map[string]string{
		"charts/redis-20.1.5/redis/Chart.yaml": "name: redis\nversion: 20.1.5\n", "charts/redis-20.1.5/redis/values.yaml": "a: 2\n",
		"base/base.yaml": "base: 1\n", "podinfo/podinfo.yaml": "v: 6.10.1\n",
		"charts/web-1.2.3+b1/web/Chart.yaml": "name: web\nversion: 1.2.3+b1\n",
	}
	compare.Check(t, want, first)
	compare.Contains(t, lock, "wants: chart http://HOST/charts redis ~20.1", "into: charts/redis-20.1.5", "version: 6.10.1", "commit: ",
		"digest: sha256:", "tree: sha256:")
	w.chart("redis", "20.1.6", "a: 6\n")
	w.artifact("manifests/podinfo", "7.0.0", packed(t, plain("podinfo.yaml", "v: 7\n")))
	w.update("")
	compare.CheckNamed(t, "vendor.lock after a second run", lock, w.has()["vendor.lock"])
	w.update("redis")
	if w.read("charts/redis-20.1.6/redis/values.yaml") != "a: 6\n" || w.read("charts/redis-20.1.5/redis/values.yaml") != "" ||
		w.read("podinfo/podinfo.yaml") != "v: 6.10.1\n" {
		t.Errorf("after an update of redis: %v", w.has())
	}
	w.update(vendoring.All)
	if w.read("podinfo/podinfo.yaml") != "v: 7\n" {
		t.Errorf("after an update of all: %v", w.has())
	}
	w.update("absent", "no source that is called absent")
}

// TestFlat checks that all versions of a flat chart share a folder whose name has no version. Without the field flat, the name ends with
// the version, as in kustomize.
func TestFlat(t *testing.T) {
	w := newWorld(t)
	w.vendor(redis("~20.1, flat: true") + redis("~20.1"))
	w.update("")
	w.chart("redis", "20.1.6", "a: 6\n")
	for range 2 {
		w.update(vendoring.All)
	}
	got := w.has()
	delete(got, "vendor.lock")
	head := "name: redis\nversion: 20.1.6\n"
	want := map[string]string{"charts/redis/Chart.yaml": head, "charts/redis/values.yaml": "a: 6\n",
		"charts/redis-20.1.6/redis/Chart.yaml": head, "charts/redis-20.1.6/redis/values.yaml": "a: 6\n"}
	compare.Check(t, want, got)
}

// TestMoved checks that Update refuses a locked version whose content has changed at the source, and that it writes nothing.
func TestMoved(t *testing.T) {
	for name, c := range map[string]struct {
		move func(w *world)
		want string
	}{
		"a version of a chart": {func(w *world) {
			w.answers["/charts/index.yaml"] = nil
			w.chart("redis", "20.1.5", "a: evil\n")
		}, "chart http://"},
		"a tag of a registry": {func(w *world) {
			w.artifact("manifests/podinfo", "6.10.1", packed(w.t, plain("podinfo.yaml", "evil")))
		}, "oci oci://"},
		"a branch": {func(w *world) { w.git.Write(map[string]string{"deploy/base.yaml": "base: 2\n"}).Commit("more") }, "git "},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.update("")
			before := w.has()
			c.move(w)
			w.update("", "has moved", "--update=", c.want)
			compare.CheckNamed(t, "something was written", before, w.has())
			w.update(vendoring.All)
		})
	}
}

// TestCheck checks that Check reports each difference from the lock, without a request.
func TestCheck(t *testing.T) {
	updated := newWorld(t)
	updated.update("")
	for name, c := range map[string]struct {
		change func(w *world)
		want   string
	}{
		"a byte":        {func(w *world) { w.write("base/base.yaml", "base: 2\n") }, "base differs from vendor.lock"},
		"one more file": {func(w *world) { w.write("base/more.yaml", "") }, "base differs from vendor.lock"},
		"one file less": {func(w *world) { w.remove("charts/redis-20.1.5/redis/values.yaml") }, "charts/redis-20.1.5 differs from vendor.lock"},
		"a folder less": {func(w *world) { w.remove("podinfo") }, "podinfo is missing"},
		"a symlink":     {func(w *world) { _ = os.Symlink("base.yaml", filepath.Join(w.dir, "base/x")) }, "base/x is not a regular file"},
		"another range": {func(w *world) { w.vendor(redis("~21")) }, "redis ~21 is not in vendor.lock"},
		"a source less": {func(w *world) { w.vendor(redis("~20.1")) }, "base is in vendor.lock, and not in vendor.yaml"},
		"a leftover of a merge": {func(w *world) {
			_ = os.CopyFS(filepath.Join(w.dir, "charts/redis-20.1.3"), os.DirFS(filepath.Join(w.dir, "charts/redis-20.1.5")))
		}, "charts/redis-20.1.3 is not in vendor.lock"},
		"a chart of one's own": {func(w *world) {
			_ = os.CopyFS(filepath.Join(w.dir, "charts/redis-operator"), os.DirFS(filepath.Join(w.dir, "charts/redis-20.1.5/redis")))
		}, ""},
		"no lock":            {func(w *world) { w.remove("vendor.lock") }, "is not in vendor.lock"},
		"nothing is changed": {func(w *world) {}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := updated.copied(t)
			c.change(w)
			updated.asked = nil // the copies' common server records requests in this field
			if got := strings.Join(w.wrong(), "\n"); !strings.Contains(got, c.want) || (c.want == "") != (got == "") {
				t.Errorf("wrong: %s\nwant %s", got, c.want)
			}
			compare.CheckNamed(t, "requests", []string(nil), updated.asked)
		})
	}
}

// TestRefused checks that errors name the invalid response or the invalid configuration, and that nothing is written.
func TestRefused(t *testing.T) {
	const podinfo = "- oci: {url: oci://HOST/manifests/podinfo, tag: 6.9.0}\n  into: podinfo\n"
	const archive = "/charts/redis-20.1.4.tgz"
	repacked := func(entries ...entry) func(*world) {
		return func(w *world) {
			w.answers[archive] = packed(w.t, entries...)
			w.index("urls: [redis-20.1.4.tgz]")
		}
	}
	chart := func(name string) entry { return plain("redis/Chart.yaml", "name: "+name+"\nversion: 20.1.4\n") }
	for name, c := range map[string]struct {
		sources string
		prepare func(w *world)
		want    string
	}{
		"another archive than its digest": {redis("20.1.4"),
			func(w *world) { w.answers[archive] = packed(w.t, plain("redis/Chart.yaml", "")) }, "but index.yaml says"},
		"another layer than its digest": {podinfo, func(w *world) {
			w.artifact("manifests/podinfo", "6.9.0", []byte("x"))
			w.answers["/v2/manifests/podinfo/blobs/"+vendoring.Digest([]byte("x"))] = []byte("y")
		}, "but the manifest says"},
		"another chart":                 {redis("20.1.4"), repacked(chart("evil")), "does not have the chart redis 20.1.4"},
		"files beside the chart":        {redis("20.1.4"), repacked(chart("redis"), plain("x", "")), "outside of the folder redis"},
		"a link in a chart":             {redis("20.1.4"), repacked(special("redis/x", tar.TypeSymlink, "/etc")), "no plain file"},
		"no such version":               {redis("~22"), nil, "none of its 3 versions is ~22"},
		"no range":                      {redis("newest"), nil, "is neither a version nor a range"},
		"no index":                      {strings.ReplaceAll(redis("20.1.4"), "/charts", "/none"), nil, "none/index.yaml answers 404"},
		"no tag":                        {strings.ReplaceAll(podinfo, "6.9.0", "6.9.9"), nil, "answers 404"},
		"another network without https": {strings.ReplaceAll(redis("20.1.4"), "HOST", "charts.example.com"), nil, "does not use https"},
		"no ref":                        {"- git: {url: GIT, ref: v9}\n  into: base\n", nil, "git fetch"},
		"no folder of a commit":         {"- git: {url: GIT, ref: main, path: none}\n  into: base\n", nil, "git archive"},
		"an option for a ref":           {"- git: {url: GIT, ref: --upload-pack=x}\n  into: base\n", nil, "is not a tag, branch or commit"},
		"a program for an address":      {"- git: {url: \"ext::sh -c x\", ref: main}\n  into: base\n", nil, "git fetch"},
		"a folder above":                {strings.ReplaceAll(podinfo, "into: podinfo", "into: ../x"), nil, "is not a folder beside vendor.yaml"},
		"one folder in the other":       {podinfo + strings.ReplaceAll(podinfo, "into: podinfo", "into: podinfo/x"), nil, "are nested"},
		"a folder that is not in the lock": {podinfo, func(w *world) { _ = os.Mkdir(filepath.Join(w.dir, "podinfo"), 0o755) },
			"podinfo exists and is not in vendor.lock"},
		"a symlink out": {strings.ReplaceAll(podinfo, "into: podinfo", "into: out/podinfo"),
			func(w *world) { _ = os.Symlink(w.t.TempDir(), filepath.Join(w.dir, "out")) }, "path escapes from parent"},
		"two kinds":             {"- git: {url: GIT, ref: main}\n  oci: {url: oci://x/y, tag: v1}\n  into: base\n", nil, "has git and oci"},
		"a lock that leads out": {podinfo, lockedInto("../x"), "is not a folder beside it"},
	} {
		t.Run(name, func(t *testing.T) {
			w := ofSources(t, c.sources)
			if c.prepare != nil {
				c.prepare(w)
			}
			before, err := os.ReadDir(w.dir)
			must(t, err)
			w.update("", c.want)
			if after, err := os.ReadDir(w.dir); err != nil || len(after) != len(before) {
				t.Errorf("something was written: %v, error %v", after, err)
			}
		})
	}
}

// TestNoCredentialGoesElsewhere checks that a chart repository's password is not sent to another host to which the index refers.
func TestNoCredentialGoesElsewhere(t *testing.T) {
	w := newWorld(t)
	told := ""
	other := httptest.NewServer(http.HandlerFunc(func(to http.ResponseWriter, req *http.Request) {
		told += req.Header.Get("Authorization")
		_, _ = to.Write(w.answers["/charts/redis-20.1.4.tgz"])
	}))
	defer other.Close()
	elsewhere := strings.Replace(other.URL, "127.0.0.1", "localhost", 1)
	w.index("urls: [" + elsewhere + "/x.tgz]")
	w.vendor(redis("20.1.4"))
	w.update("")
	if told != "" || w.has()["charts/redis-20.1.4/redis/values.yaml"] != "a: 1\n" {
		t.Errorf("told %q, has %v", told, w.has())
	}
}

// checkLogins compares the user and password for each host with logins.
func checkLogins(t *testing.T, login func(host string) (user, password string), logins map[string]string) {
	t.Helper()
	for host, want := range logins {
		if user, password := login(host); user+" "+password != want {
			t.Errorf("%s is told %s %s, want %s", host, user, password, want)
		}
	}
}

// TestLogins checks the logins in docker's file. For a host without a login, user and password are empty.
func TestLogins(t *testing.T) {
	home := t.TempDir()
	put(t, filepath.Join(home, ".docker/config.json"),
		`{"auths": {"https://index.docker.io/v1/": {"auth": "`+vendoring.Encoded("ann:a:b")+`"}, "ghcr.io": {}}}`, 0o600)
	checkLogins(t, vendoring.Logins(home, func(string) string { return "" }),
		map[string]string{"index.docker.io": "ann a:b", "ghcr.io": " ", "evil.example.com": " "})
}

// TestLoginsOfHelpers checks that each host's credential helper runs, as in docker. If a helper has no login, is
// missing or fails, user and password are empty.
func TestLoginsOfHelpers(t *testing.T) {
	home, programs := t.TempDir(), t.TempDir()
	program := func(name, script string) {
		put(t, filepath.Join(programs, "docker-credential-"+name), "#!/bin/sh\n"+script, 0o755)
	}
	program("one", `[ "$1" = get ] || exit 2; read host; printf '{"ServerURL": "%s", "Username": "ann", "Secret": "of-%s"}' "$host" "$host"`)
	program("all", `read host; case $host in c.*|https://index.docker.io/v1/) printf '{"Username": "bob", "Secret": "kept"}';; `+
		`t.*) printf '{"Username": "<token>", "Secret": "identity"}';; *) echo credentials not found in native keychain; exit 1;; esac`)
	program("bad", `echo '{'`)
	t.Setenv("PATH", programs+":"+os.Getenv("PATH"))
	put(t, filepath.Join(home, ".docker/config.json"), `{"credsStore": "all", "credHelpers": {"a.example.com": "one", "b.example.com": "bad",
		"m.example.com": "missing", "p.example.com": "../one"},
		"auths": {"a.example.com": {}, "f.example.com": {"auth": "`+vendoring.Encoded("eve:file")+`"}}}`, 0o600)
	put(t, filepath.Join(home, ".config/helm/registry/config.json"),
		`{"credsStore": "bad", "credHelpers": {"h.example.com": "one"}}`, 0o600)
	checkLogins(t, vendoring.Logins(home, func(string) string { return "" }), map[string]string{
		"h.example.com": "ann of-h.example.com", "a.example.com": "ann of-a.example.com", "b.example.com": " ", "m.example.com": " ",
		"p.example.com": " ", "c.example.com": "bob kept", "t.example.com": " ", "f.example.com": "eve file", "evil.example.com": " ",
		"index.docker.io": "bob kept", "registry-1.docker.io": "bob kept", // Docker Hub's hosts have the password of docker.io
	})
}

// TestLoggedInByAHelper checks that a registry's token is requested with the login of a credential helper.
func TestLoggedInByAHelper(t *testing.T) {
	w := newWorld(t)
	home, programs := t.TempDir(), t.TempDir()
	put(t, filepath.Join(programs, "docker-credential-one"), "#!/bin/sh\nprintf '{\"Username\": \"ann\", \"Secret\": \"secret\"}'", 0o755)
	t.Setenv("PATH", programs+":"+os.Getenv("PATH"))
	put(t, filepath.Join(home, ".docker/config.json"), `{"credHelpers": {"`+w.host+`": "one"}}`, 0o600)
	w.getter.Login = func(string) (string, string) { return "", "" }
	w.update("", "answers 403")
	w.getter.Login = vendoring.Logins(home, func(string) string { return "" })
	w.update("")
}
