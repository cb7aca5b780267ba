package main

import (
	"bytes"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fakeRelease returns a release and, instead of its programs, small text files.
func fakeRelease(t *testing.T) (*release, map[platform]string) {
	t.Helper()
	dir := t.TempDir()
	r := &release{source: "../..", out: dir, version: "v1.2.3", image: "localhost/gitrollout", downloads: "https://example.com/x",
		commit: strings.Repeat("a", 40), date: time.Unix(1_700_000_000, 0).UTC(),
		platforms: []platform{{"linux", "amd64"}, {"linux", "arm64"}, {"windows", "amd64"}}}
	programs := map[platform]string{}
	for _, p := range r.platforms {
		programs[p] = filepath.Join(t.TempDir(), "program")
		must(t, os.WriteFile(programs[p], []byte("program for "+p.String()), 0o755))
	}
	return r, programs
}

// archive writes the image of a fake release, and returns the path of the image's tar.
func archive(t *testing.T) string {
	t.Helper()
	r, programs := fakeRelease(t)
	must(t, r.writeImage(programs))
	return filepath.Join(r.out, "image-v1.2.3.tar")
}

// TestPush checks that an image can be pushed twice. The registry must then have the index under the printed digest. The index must list an
// image for each Linux platform.
func TestPush(t *testing.T) {
	file := archive(t)
	server := httptest.NewServer(registry.New())
	t.Cleanup(server.Close)
	to := strings.TrimPrefix(server.URL, "http://") + "/team/gitrollout:v1.2.3"
	var out bytes.Buffer
	for range 2 {
		out.Reset()
		must(t, run(t.Context(), []string{"push", file, to}, &out))
	}
	reference, err := name.ParseReference(strings.TrimSpace(strings.Replace(out.String(), ":v1.2.3@", "@", 1)))
	must(t, err)
	index, err := remote.Index(reference)
	must(t, err)
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	manifest, err := index.IndexManifest()
	must(t, err)
	var platforms []string
	for _, m := range manifest.Manifests {
		platforms = append(platforms, m.Platform.String())
	}
	if got := strings.Join(platforms, " "); got != "linux/amd64 linux/arm64" {
		t.Errorf("the registry has the image for %s", got)
	}
}

// TestPushNeedsATag checks that a push without a tag is refused. The image would get the tag "latest", which no manifest of the release
// uses.
func TestPushNeedsATag(t *testing.T) {
	if err := run(t.Context(), []string{"push", archive(t), "registry.example.com/gitrollout"}, &bytes.Buffer{}); err == nil {
		t.Error("an image was pushed without a tag")
	}
}

func TestFlags(t *testing.T) {
	for args, want := range map[string]string{
		"":                                       "usage:",
		"build":                                  "-version \"\" is none",
		"build -version 1.2":                     "-version \"1.2\" is none",
		"build -version v1.2.3 -platforms linux": "-platforms: \"linux\" is not a platform",
		"build -version v1.2.3 -date yesterday":  "-date \"yesterday\"",
		"push image.tar":                         "usage:",
	} {
		if err := run(t.Context(), strings.Fields(args), &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", args, err, want)
		}
	}
}
