package e2e

import (
	"crypto/x509"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/internal/compare"
)

// rootsFile is the path from which programs on Linux read trusted certificates.
const rootsFile = "etc/ssl/certs/ca-certificates.crt"

// TestImage unpacks the image of a release, and runs it as a container runtime does, with a read-only root. The
// image's user is unprivileged. The image has neither a shell nor the folders of a base image.
func TestImage(t *testing.T) {
	t.Parallel()
	image := readImage(t, filepath.Join(releaseOf(t), "image-"+releasedVersion+".tar"))
	config := image.config.Config
	if config.User != "65532:65532" || len(config.Entrypoint) != 1 || config.Entrypoint[0] != "/gitrollout" || len(config.Cmd) != 0 {
		t.Errorf("the image runs %q %q as %q", config.Entrypoint, config.Cmd, config.User)
	}
	for _, label := range []string{"title", "version", "licenses", "created"} {
		if config.Labels["org.opencontainers.image."+label] == "" {
			t.Errorf("the image has no label %s: %v", label, config.Labels)
		}
	}
	if got := image.names["io.containerd.image.name"]; got != "localhost/gitrollout:"+releasedVersion {
		t.Errorf("once it is loaded, it is named %q", got)
	}
	var names []string
	for name, h := range image.headers {
		if names = append(names, name); h.Uid != 0 || h.Gid != 0 || h.Mode&0o022 != 0 {
			t.Errorf("%s is of %d:%d with mode %o: the image's user could change it", name, h.Uid, h.Gid, h.Mode)
		}
	}
	slices.Sort(names)
	if want := []string{"LICENSE", "etc/", "etc/group", "etc/passwd", "etc/ssl/", "etc/ssl/certs/", rootsFile,
		"gitrollout"}; !slices.Equal(names, want) {
		t.Errorf("the image has %v, want %v", names, want)
	}
	if roots := x509.NewCertPool(); !roots.AppendCertsFromPEM(image.files[rootsFile]) ||
		len(roots.Subjects()) < 100 { //nolint:staticcheck // not the system's
		t.Errorf("the image trusts %d authorities", len(roots.Subjects())) //nolint:staticcheck // the same
	}
	const most = 64 << 20 // the target is 60 MB
	if size := len(image.layer); size > most {
		t.Errorf("the image has %d bytes, more than %d", size, most)
	}

	files := shop{version: "v1", strategy: canary("", "setWeight: 50", "pause: {}")}.files()
	c := newContainer(t, image, map[string]string{
		"shop/" + configFile: "apiVersion: gitrollout.dev/v1alpha1\nkind: Config\napps: [{path: app, namespace: shop}]\n" +
			"windows: [{kind: allow, schedule: '0 9 * * 1-5', duration: 8h, timeZone: Europe/Berlin}]\n",
		"shop/app/kustomization.yaml": "resources: [shop.yaml, rollout.yaml, services.yaml]\n",
		"shop/app/shop.yaml":          files["shop.yaml"],
		"shop/app/services.yaml":      files["services.yaml"],
		"shop/app/rollout.yaml":       files["rollout.yaml"],
	})
	if out := output(t, c.command("version")); !strings.HasPrefix(out, "gitrollout "+releasedVersion+" (") {
		t.Errorf("version: %s", out)
	}
	compare.Contains(t, output(t, c.command("validate", "/shop")), "0 errors")
}
