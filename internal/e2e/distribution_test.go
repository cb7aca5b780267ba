package e2e

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/internal/compare"
)

// sums returns the SHA-256 sums of a folder's files, by file name.
func sums(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(file)
		all[filepath.Base(file)] = fmt.Sprintf("%x", sha256.Sum256(data))
		return err
	})
	must(t, err)
	return all
}

// git runs git in gitrollout's own repository. It returns "" if the tests do not run in a clone.
func git(args ...string) string {
	out, err := exec.Command("git", append([]string{"-C", "../.."}, args...)...).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// TestReleaseIsReproducible makes the release again in another folder, from a copy without a Git repository. Both releases must have
// identical files.
func TestReleaseIsReproducible(t *testing.T) {
	t.Parallel()
	first := releaseOf(t) // signed with the key
	elsewhere := t.TempDir()
	root := filepath.Join(elsewhere, "a", "copy")
	for _, name := range strings.Split(git("ls-files", "-z", "--cached", "--others", "--exclude-standard"), "\x00") {
		data, err := os.ReadFile(filepath.Join("../..", name))
		if err != nil {
			continue // the file is removed, but the removal is not committed yet
		}
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700))
		must(t, os.WriteFile(filepath.Join(root, name), data, 0o600))
	}
	out := filepath.Join(elsewhere, "dist")
	must(t, makeRelease(root, out, "-commit", git("rev-parse", "HEAD"), "-date", git("log", "-1", "--format=%ct")))
	want := sums(t, first)
	compare.CheckNamed(t, "the release, and a copy's", want, sums(t, out))
	for _, name := range []string{"checksums.txt", "install.yaml", "gitrollout.krew.yaml", "gitrollout.rb", releasedFiles + ".tar.gz"} {
		if want[name] == "" {
			t.Errorf("the release has no %s", name)
		}
	}
}

// releasedFiles is the prefix of the names of a release's files for this machine's platform.
const releasedFiles = "gitrollout_" + releasedVersion + "_linux_" + runtime.GOARCH

// unpacked unpacks an archive of the release, and returns the folder.
func unpacked(t *testing.T, archive string) string {
	t.Helper()
	dir := t.TempDir()
	output(t, exec.Command("tar", "-C", dir, "-xzf", filepath.Join(releaseOf(t), archive)))
	return dir
}

// TestArchive unpacks the archive for this machine, runs the program, and runs the demo with this program.
func TestArchive(t *testing.T) {
	t.Parallel()
	dir := unpacked(t, releasedFiles+".tar.gz")
	compare.CheckNamed(t, "the archive's files", []string{"LICENSE", "gitrollout"}, slices.Sorted(maps.Keys(sums(t, dir))))
	out := output(t, exec.Command(filepath.Join(dir, "gitrollout"), "version"))
	if want := fmt.Sprintf("gitrollout %s (%.12s) ", releasedVersion, git("rev-parse", "HEAD")); !strings.HasPrefix(out, want) {
		t.Errorf("version: %s, want %s", out, want)
	}
	called, asked := filepath.Join(dir, "called"), filepath.Join(dir, "asked") // the script "asked" records its calls in the file "called"
	script := fmt.Sprintf("#!/bin/sh\necho \"$1\" >>%s\nexec %s/gitrollout \"$@\"\n", called, dir)
	must(t, os.WriteFile(asked, []byte(script), 0o700))
	demo := exec.Command("../../examples/demo.sh", "--fast", "--program", asked)
	demo.Env = slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "CONTEXT=") })
	output(t, demo)
	compare.Contains(t, readText(t, called), "run\n", "get\n")
}

// TestVerify runs the script of docs/install.md on a release. The script must refuse another key, a changed file, and changed checksums.
func TestVerify(t *testing.T) {
	t.Parallel()
	script := regexp.MustCompile("(?s)```sh\n(#!/bin/sh\n.*?)```").FindStringSubmatch(readText(t, "../../docs/install.md"))
	if script == nil {
		t.Fatal("docs/install.md has no verify.sh")
	}
	dir := t.TempDir()
	must(t, os.CopyFS(dir, os.DirFS(releaseOf(t))))
	write := func(name, content string) {
		t.Helper()
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o700))
	}
	write("verify.sh", script[1])
	write("signers", "release@example.com "+readText(t, releaseKey()+".pub"))
	write("strangers", "release@example.com "+readText(t, newKey(t, "")+".pub"))
	verify := func(signers string) (string, error) {
		cmd := exec.Command("./verify.sh", signers)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := verify("signers"); err != nil || !strings.Contains(out, "install.yaml: OK") || !strings.Contains(out, ".tar.gz: OK") {
		t.Errorf("a good release: %v\n%s", err, out)
	}
	if out, err := verify("strangers"); err == nil {
		t.Errorf("a release signed with another key is good:\n%s", out)
	}
	write("install.yaml", "changed\n")
	if out, err := verify("signers"); err == nil || !strings.Contains(out, "install.yaml: FAILED") {
		t.Errorf("a changed file: %v\n%s", err, out)
	}
	write("checksums.txt", strings.Replace(readText(t, filepath.Join(dir, "checksums.txt")), "  install", " *install", 1))
	if out, err := verify("signers"); err == nil {
		t.Errorf("changed checksums are good:\n%s", out)
	}
}

// TestKrew uses the release's manifest as krew does: it checks this platform's archive, unpacks it, and runs the program as a plugin.
func TestKrew(t *testing.T) {
	t.Parallel()
	var manifest struct {
		APIVersion, Kind string
		Metadata         struct{ Name string }
		Spec             struct {
			Version, ShortDescription, Homepage, Description string
			Platforms                                        []struct {
				Selector         struct{ MatchLabels map[string]string }
				URI, SHA256, Bin string
				Files            []struct{ From, To string }
			}
		}
	}
	must(t, yaml.UnmarshalStrict([]byte(readText(t, filepath.Join(releaseOf(t), "gitrollout.krew.yaml"))), &manifest))
	if manifest.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || manifest.Kind != "Plugin" ||
		manifest.Metadata.Name != "gitrollout" ||
		manifest.Spec.Version != releasedVersion || manifest.Spec.ShortDescription == "" || len(manifest.Spec.Platforms) != 1 {
		t.Fatalf("the manifest is %+v", manifest)
	}
	p := manifest.Spec.Platforms[0]
	if p.Selector.MatchLabels["os"] != "linux" || p.Selector.MatchLabels["arch"] != runtime.GOARCH {
		t.Errorf("it is for %v", p.Selector.MatchLabels)
	}
	compare.CheckNamed(t, "the sum of "+p.URI, sums(t, releaseOf(t))[path.Base(p.URI)], p.SHA256)
	downloaded, installed := unpacked(t, path.Base(p.URI)), t.TempDir()
	for _, f := range p.Files {
		must(t, os.Rename(filepath.Join(downloaded, f.From), filepath.Join(installed, f.To, f.From)))
	}
	plugin := filepath.Join(installed, "kubectl-gitrollout")
	must(t, os.Symlink(filepath.Join(installed, p.Bin), plugin))
	compare.Contains(t, output(t, exec.Command(plugin, "--help")), "kubectl gitrollout")
}

// TestSBOMs checks that both SBOMs list exactly the modules that the Go toolchain records in the program.
func TestSBOMs(t *testing.T) {
	t.Parallel()
	info := output(t, exec.Command("go", "version", "-m", filepath.Join(unpacked(t, releasedFiles+".tar.gz"), "gitrollout")))
	var want []string
	for _, m := range regexp.MustCompile(`(?m)^\tdep\t(\S+)\t(\S+)`).FindAllStringSubmatch(info, -1) {
		want = append(want, m[1]+" "+m[2])
	}
	slices.Sort(want)
	type component struct{ Name, Version, VersionInfo, SPDXID, BOMRef, PURL string }
	var cdx struct {
		BOMFormat, SpecVersion, SerialNumber string
		Components                           []component
	}
	var spdx struct {
		SPDXVersion, DocumentNamespace string
		Packages                       []component
		Relationships                  []struct{ SPDXElementID, RelationshipType, RelatedSPDXElement string }
	}
	for suffix, into := range map[string]any{".cdx.json": &cdx, ".spdx.json": &spdx} {
		must(t, json.Unmarshal([]byte(readText(t, filepath.Join(releaseOf(t), releasedFiles+suffix))), into))
	}
	listed := func(all []component) (names []string) {
		for _, c := range all {
			if c.Name != "gitrollout" && c.Name != "stdlib" {
				names = append(names, c.Name+" "+c.Version+c.VersionInfo)
			}
		}
		slices.Sort(names)
		return names
	}
	if len(want) < 20 || cdx.BOMFormat != "CycloneDX" || cdx.SpecVersion != "1.6" || !slices.Equal(listed(cdx.Components), want) {
		t.Errorf("CycloneDX lists %v, and go version %v", listed(cdx.Components), want)
	}
	if spdx.SPDXVersion != "SPDX-2.3" || !slices.Equal(listed(spdx.Packages), want) || len(spdx.Relationships) != len(spdx.Packages) {
		t.Errorf("SPDX lists %v, and go version %v", listed(spdx.Packages), want)
	}
}
