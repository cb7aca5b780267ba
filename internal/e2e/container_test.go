package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// releasedVersion is the version of the release that the tests make.
const releasedVersion = "v0.9.1-test"

// nextVersion is the version of the next release, to which tests upgrade.
const nextVersion = "v0.9.2-test"

// makeRelease makes a release for this machine's platform, from the repository in source into the folder out.
func makeRelease(source, out string, more ...string) error {
	tool := filepath.Join(filepath.Dir(out), "gitrollout-release")
	build := exec.Command("go", "build", "-o", tool, ".")
	build.Dir = filepath.Join("..", "release")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the tool: %w: %s", err, out)
	}
	args := append([]string{"build", "-source", source, "-out", out, "-version", releasedVersion, "-platforms", "linux/" + runtime.GOARCH,
		"-key", releaseKey()}, more...)
	if out, err := exec.Command(tool, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w: %s", tool, args, err, out)
	}
	return nil
}

// releaseParent is a folder that TestMain creates and removes.
var releaseParent string

// releaseFolder makes one release for all tests, and returns its folder.
var releaseFolder = sync.OnceValues(func() (string, error) {
	out := filepath.Join(releaseParent, "dist")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", releaseKey()).CombinedOutput(); err != nil {
		return "", fmt.Errorf("ssh-keygen: %w: %s", err, out)
	}
	return out, makeRelease("../..", out)
})

// releaseKey returns the file with the key that signs releases.
func releaseKey() string { return filepath.Join(releaseParent, "key") }

func releaseOf(t *testing.T) string {
	t.Helper()
	dir, err := releaseFolder()
	must(t, err)
	return dir
}

func untar(r io.Reader) (files map[string][]byte, headers map[string]*tar.Header, err error) {
	files, headers = map[string][]byte{}, map[string]*tar.Header{}
	for all := tar.NewReader(r); ; {
		h, err := all.Next()
		if errors.Is(err, io.EOF) {
			return files, headers, nil
		}
		if err != nil {
			return nil, nil, err
		}
		if files[h.Name], err = io.ReadAll(all); err != nil {
			return nil, nil, err
		}
		headers[h.Name] = h
	}
}

func gunzip(t *testing.T, data []byte) []byte {
	t.Helper()
	r, err := gzip.NewReader(bytes.NewReader(data))
	must(t, err)
	plain, err := io.ReadAll(r)
	must(t, err)
	return plain
}

// ociDescriptor and the types below follow the OCI's specification, so that a test does not need the library that wrote the image.
type ociDescriptor struct {
	MediaType   string
	Digest      string
	Size        int
	Annotations map[string]string
	Platform    struct{ OS, Architecture string }
}

type ociManifest struct {
	MediaType string
	Manifests []ociDescriptor
	Config    ociDescriptor
	Layers    []ociDescriptor
}

type ociConfig struct {
	OS, Architecture string
	Created          string
	Config           struct {
		User, WorkingDir string
		Entrypoint, Cmd  []string
		Env              []string
		Labels           map[string]string
	}
	RootFS struct {
		DiffIDs []string `json:"diff_ids"`
	}
}

// ociImage is this platform's image in a release's tar.
type ociImage struct {
	names   map[string]string // image names by annotation: programs that load images read different annotations
	config  ociConfig
	layer   []byte // a tar
	files   map[string][]byte
	headers map[string]*tar.Header
}

func readImage(t *testing.T, file string) ociImage {
	t.Helper()
	f, err := os.Open(file)
	must(t, err)
	defer f.Close()
	files, _, err := untar(f)
	must(t, err)
	blob := func(d ociDescriptor) []byte {
		data := files["blobs/"+strings.Replace(d.Digest, ":", "/", 1)]
		if got := fmt.Sprintf("sha256:%x", sha256.Sum256(data)); got != d.Digest || len(data) != d.Size {
			t.Fatalf("a blob of %d bytes is %s, and not %s of %d", len(data), got, d.Digest, d.Size)
		}
		return data
	}
	var top, index, manifest ociManifest
	var image ociImage
	parse := func(data []byte, into any) {
		t.Helper()
		must(t, json.Unmarshal(data, into))
	}
	if layout := string(files["oci-layout"]); !strings.Contains(layout, `"imageLayoutVersion": "1.0.0"`) {
		t.Errorf("oci-layout is %s", layout)
	}
	parse(files["index.json"], &top)
	if len(top.Manifests) != 1 {
		t.Fatalf("index.json has %d images", len(top.Manifests))
	}
	image.names = top.Manifests[0].Annotations
	parse(blob(top.Manifests[0]), &index)
	for _, d := range index.Manifests {
		if d.Platform.OS == "linux" && d.Platform.Architecture == runtime.GOARCH {
			parse(blob(d), &manifest)
		}
	}
	if len(manifest.Layers) != 1 {
		t.Fatalf("the image has %d layers", len(manifest.Layers))
	}
	parse(blob(manifest.Config), &image.config)
	image.layer = gunzip(t, blob(manifest.Layers[0]))
	if diff := fmt.Sprintf("sha256:%x", sha256.Sum256(image.layer)); len(image.config.RootFS.DiffIDs) != 1 ||
		image.config.RootFS.DiffIDs[0] != diff {
		t.Errorf("the layer is %s, and the configuration has %v", diff, image.config.RootFS.DiffIDs)
	}
	if image.files, image.headers, err = untar(bytes.NewReader(image.layer)); err != nil {
		t.Fatal(err)
	}
	return image
}

// container runs an image as a container runtime does, with a read-only root, /proc, /dev/null, and the files of volumes. It uses the
// machine's network.
type container struct {
	root   string
	config ociConfig
}

// newContainer unpacks an image, and adds the files of volumes.
func newContainer(t *testing.T, image ociImage, volumes map[string]string) *container {
	t.Helper()
	c := &container{root: t.TempDir(), config: image.config}
	put := func(name string, mode os.FileMode, data []byte) {
		path := filepath.Join(c.root, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, data, mode))
	}
	for name, data := range image.files {
		if image.headers[name].Typeflag == tar.TypeReg {
			put(name, image.headers[name].FileInfo().Mode(), data)
		}
	}
	for name, content := range volumes {
		put(name, 0o644, []byte(content))
	}
	put("dev/null", 0o644, nil)
	must(t, os.MkdirAll(filepath.Join(c.root, "proc"), 0o755))
	return c
}

// command returns a command for the image's program. The program runs as the image's user if the tests run as root, else as the current
// user.
func (c *container) command(args ...string) *exec.Cmd {
	script := `set -e
mount --make-rprivate /
mount --bind "$0" "$0"
mount -t proc proc "$0/proc"
mount --bind /dev/null "$0/dev/null"
mount -o remount,bind,ro "$0"
exec chroot $USERSPEC "$0" "$@"`
	cmd := exec.Command("sh", append(append([]string{"-c", script, c.root}, c.config.Config.Entrypoint...), args...)...)
	// The script's mount needs PATH; the image's program does not.
	cmd.Env = append(append([]string{}, c.config.Config.Env...), "PATH="+os.Getenv("PATH"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL}
	if os.Getuid() == 0 {
		cmd.Env = append(cmd.Env, "USERSPEC=--userspec="+c.config.Config.User)
		return cmd
	}
	cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
	cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
	cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	return cmd
}
