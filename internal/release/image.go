package main

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// user is the ID of the program's user and group in the image, as in deploy/kubernetes.
const user = 65532

// writeImage writes an OCI layout with an image for each Linux platform. An image has the program and
// the TLS root certificates, but no Linux distribution. The time zones are compiled into the program.
func (r *release) writeImage(programs map[platform]string) error {
	index := mutate.IndexMediaType(v1.ImageIndex(empty.Index), types.OCIImageIndex)
	images := 0
	for _, p := range r.platforms {
		if p.os != "linux" {
			continue
		}
		image, err := r.platformImage(p, programs[p])
		if err != nil {
			return fmt.Errorf("image for %s: %w", p, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: p.os, Architecture: p.arch}},
		})
		images++
	}
	if images == 0 {
		return nil
	}
	return r.writeLayout(index)
}

// platformImage returns an image without a base image.
func (r *release) platformImage(p platform, path string) (v1.Image, error) {
	program, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	licence, err := os.ReadFile(filepath.Join(r.source, "LICENSE"))
	if err != nil {
		return nil, err
	}
	id := strconv.Itoa(user)
	content, err := tarGzip([]entry{
		{"etc/", 0o755, nil},
		{"etc/group", 0o644, []byte("gitrollout:x:" + id + ":\n")},
		{"etc/passwd", 0o644, []byte("gitrollout:x:" + id + ":" + id + "::/:/gitrollout\n")},
		{"etc/ssl/", 0o755, nil},
		{"etc/ssl/certs/", 0o755, nil},
		{"etc/ssl/certs/ca-certificates.crt", 0o644, roots()},
		{"gitrollout", 0o755, program},
		{"LICENSE", 0o644, licence},
	}, r.date)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	return r.configured(p, layer)
}

// roots returns, as PEM, the root certificates that Mozilla trusts and the Go project publishes. They are stored in a
// file, because the program would parse compiled-in certificates at each start. A cluster can mount its own CA over the
// file. roots omits certificates with constraints, because a PEM file cannot express constraints.
func roots() (b []byte) {
	for root := range bundle.Roots() {
		if root.Constraint == nil {
			b = append(b, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate})...)
		}
	}
	return b
}

// labels returns the labels of the image's configuration.
func (r *release) labels() map[string]string {
	l := map[string]string{
		"org.opencontainers.image.title":       "gitrollout",
		"org.opencontainers.image.description": "progressive delivery on Kubernetes from a Git repository",
		"org.opencontainers.image.version":     r.version,
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.created":     r.date.Format(time.RFC3339),
	}
	if r.commit != "" {
		l["org.opencontainers.image.revision"] = r.commit
	}
	return l
}

// configured makes an image with one layer.
func (r *release) configured(p platform, layer v1.Layer) (v1.Image, error) {
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.Append(image, mutate.Addendum{
		Layer: layer, History: v1.History{Created: v1.Time{Time: r.date}, CreatedBy: "gitrollout-release"},
	})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = p.os, p.arch, v1.Time{Time: r.date}
	config.Config = v1.Config{
		User: strconv.Itoa(user) + ":" + strconv.Itoa(user), Entrypoint: []string{"/gitrollout"}, WorkingDir: "/",
		Env: []string{"PATH=/"}, Labels: r.labels(),
	}
	return mutate.ConfigFile(image, config)
}

// writeLayout writes the index as an OCI layout in a tar file. Annotations name the image for containerd, Docker, Podman and kind.
func (r *release) writeLayout(index v1.ImageIndex) error {
	dir, err := os.MkdirTemp("", "gitrollout-image")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	if err := path.AppendIndex(index, layout.WithAnnotations(map[string]string{
		"org.opencontainers.image.ref.name": r.version,
		"io.containerd.image.name":          r.image + ":" + r.version,
	})); err != nil {
		return err
	}
	written, err := released(dir)
	if err != nil {
		return err
	}
	if err := validate.Index(written); err != nil {
		return fmt.Errorf("the image as it was written: %w", err)
	}
	entries, err := entriesOf(dir, "")
	if err != nil {
		return err
	}
	data, err := tarred(entries, r.date)
	if err != nil {
		return err
	}
	return r.write("image-"+r.version+".tar", data)
}

// push sends the image in a tar file to a registry, with the credentials of docker login or podman login.
func push(ctx context.Context, file, to string, out io.Writer) error {
	reference, err := name.NewTag(to, name.StrictValidation)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "gitrollout-push")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := unpack(file, dir); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	index, err := released(dir)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	known := remote.WithAuthFromKeychain(authn.DefaultKeychain)
	if err := remote.WriteIndex(reference, index, remote.WithContext(ctx), known); err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s@%s\n", reference, digest)
	return err
}

// released returns the only image index of a layout.
func released(dir string) (v1.ImageIndex, error) {
	all, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return nil, err
	}
	manifest, err := all.IndexManifest()
	if err != nil {
		return nil, err
	}
	if n := len(manifest.Manifests); n != 1 {
		return nil, fmt.Errorf("it has %d images, and not one", n)
	}
	return all.ImageIndex(manifest.Manifests[0].Digest)
}

// unpack writes the files of a tar file into a folder, and refuses paths outside the folder.
func unpack(file, dir string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if h.Typeflag == tar.TypeDir {
			err = root.MkdirAll(h.Name, 0o755)
		} else if content, failed := io.ReadAll(r); failed != nil {
			err = failed
		} else {
			err = root.WriteFile(h.Name, content, 0o666)
		}
		if err != nil {
			return err
		}
	}
}
