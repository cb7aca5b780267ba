package e2e

import (
	"bytes"
	"errors"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry/handlers"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/inmemory"
)

// newRegistry runs the CNCF's Distribution registry in this process and in memory, and returns its host.
func newRegistry(t *testing.T) string {
	config := &configuration.Configuration{Storage: configuration.Storage{"inmemory": nil}}
	config.HTTP.Secret, config.Log.Level = "of the test", "error"
	server := httptest.NewServer(handlers.NewApp(t.Context(), config))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// signed repackages a chart with Helm, which signs the chart and writes a provenance file beside the chart. The function also writes the
// public key to dir/ours.gpg, and an unrelated public key to dir/others.gpg.
func signed(t *testing.T, chart, dir string) string {
	t.Helper()
	to := t.TempDir()
	output(t, exec.Command("tar", "-C", to, "-xzf", chart))
	for _, name := range []string{"ours", "others"} {
		key, err := openpgp.NewEntity(name, "", name+"@example.com", nil)
		must(t, err)
		var public, secret bytes.Buffer
		must(t, errors.Join(key.Serialize(&public), key.SerializePrivate(&secret, nil)))
		err = errors.Join(os.WriteFile(filepath.Join(dir, name+".gpg"), public.Bytes(), 0o600),
			os.WriteFile(filepath.Join(to, name+".secret"), secret.Bytes(), 0o600))
		must(t, err)
	}
	helm(t, "package", filepath.Join(to, "gitrollout"), "--destination", to,
		"--sign", "--key", "ours", "--keyring", filepath.Join(to, "ours.secret"))
	return filepath.Join(to, filepath.Base(chart))
}

// TestRegistry pushes a release to a real registry. The release tool pushes the image twice, and Helm pushes the signed chart. If the
// signature is valid, gitrollout vendor writes the chart's newest version in the given range to a folder. An OCI source must be an artifact
// with manifests: gitrollout vendor refuses a container image.
func TestRegistry(t *testing.T) {
	t.Parallel()
	dist, host := releaseOf(t), newRegistry(t)
	program, err := binary()
	must(t, err)
	tool := filepath.Join(filepath.Dir(dist), "gitrollout-release")
	image := host + "/team/gitrollout:" + releasedVersion
	pushed := map[string]bool{}
	for range 2 {
		pushed[output(t, exec.Command(tool, "push", filepath.Join(dist, "image-"+releasedVersion+".tar"), image))] = true
	}
	if len(pushed) != 1 {
		t.Errorf("pushed twice, it is %v", pushed)
	}
	dir := t.TempDir()
	chart := signed(t, releasedChart(t), dir)
	helm(t, "push", chart, "oci://"+host+"/charts", "--plain-http")
	vendor := func(sources string, args ...string) (string, error) {
		text := "apiVersion: gitrollout.dev/v1alpha1\nkind: Vendor\nsources:\n" + sources
		must(t, os.WriteFile(filepath.Join(dir, "vendor.yaml"), []byte(text), 0o600))
		cmd := exec.Command(program, append([]string{"vendor"}, args...)...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "HOME="+dir)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	source := "- chart: {repo: oci://" + host + "/charts, name: gitrollout, version: \">=0.9.0-0\", provenance: KEYS}\n  into: charts\n"
	if out, err := vendor(strings.Replace(source, "KEYS", "others.gpg", 1)); err == nil ||
		!strings.Contains(out, "is not signed by any of the keys") {
		t.Errorf("a chart signed with another key is taken: %s", out)
	}
	for _, args := range [][]string{nil, {"--check"}} {
		if out, err := vendor(strings.Replace(source, "KEYS", "ours.gpg", 1), args...); err != nil {
			t.Fatalf("vendor %v: %v: %s", args, err, out)
		}
	}
	for _, name := range []string{"Chart.yaml", "values.schema.json"} {
		found, err := filepath.Glob(filepath.Join(dir, "charts", "*", "gitrollout", name))
		if err != nil || len(found) != 1 {
			t.Fatalf("%s is at %v: %v", name, found, err)
		}
		want, err := exec.Command("tar", "-xzOf", chart, "gitrollout/"+name).Output()
		must(t, err)
		if got := readText(t, found[0]); got != string(want) {
			t.Errorf("%s is not the chart's: %s", name, got)
		}
	}
	out, err := vendor("- oci: {url: oci://" + host + "/team/gitrollout, tag: " + releasedVersion + "}\n  into: bundle\n")
	if err == nil || !strings.Contains(out, releasedVersion) {
		t.Errorf("an image is taken for a bundle: %s", out)
	}
}
