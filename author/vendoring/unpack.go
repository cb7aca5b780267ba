package vendoring

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

const (
	maxBytes   = 20 << 20 // maximum size of the unpacked files
	maxEntries = 5000     // files and folders
	maxPath    = 1000     // bytes
)

type files map[string][]byte

func unzip(archive []byte) (files, error) {
	plain, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, fmt.Errorf("is not a .tar.gz archive: %w", err)
	}
	return untar(plain)
}

func untar(from io.Reader) (files, error) {
	all, archive, total := files{}, tar.NewReader(io.LimitReader(from, 2*maxBytes+1<<20)), 0 // in bytes
	for n := 1; ; n++ {
		header, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF):
			return all, all.check()
		case err != nil:
			return nil, fmt.Errorf("cannot be unpacked: %w", err)
		case n > maxEntries:
			return nil, fmt.Errorf("has more than %d files and folders", maxEntries)
		case header.Typeflag == tar.TypeXGlobalHeader: // the commit of "git archive"
			continue
		}
		name, isDir := strings.TrimPrefix(header.Name, "./"), header.Typeflag == tar.TypeDir
		if isDir {
			name = strings.TrimSuffix(name, "/")
		}
		_, twice := all[name]
		switch err := checkName(name); {
		case isDir && (name == "" || name == "."):
			continue
		case err != nil:
			return nil, err
		case isDir:
			continue
		case header.Typeflag != tar.TypeReg:
			return nil, fmt.Errorf("has %s, which is a link or a device and no plain file", name)
		case twice:
			return nil, fmt.Errorf("has %s twice", name)
		}
		content, err := io.ReadAll(io.LimitReader(archive, int64(maxBytes-total)+1))
		if err != nil {
			return nil, fmt.Errorf("cannot be unpacked: %s: %w", name, err)
		}
		if total += len(content); total > maxBytes {
			return nil, fmt.Errorf("is more than %d MiB when it is unpacked", maxBytes>>20)
		}
		if rollout.GitName(path.Base(name)) == "" { // such as .gitignore
			all[name] = content
		}
	}
}

// checkName refuses a path that leaves the folder on some operating system, or that has a special meaning for tools.
func checkName(name string) error {
	if !rollout.IsPlainPath(name) || name == "." || len(name) > maxPath {
		return fmt.Errorf("has a file with the path %.100q, which leaves the archive's folder or is too long", name)
	}
	if part := rollout.ReservedPart(name); part != "" {
		return fmt.Errorf("has the path %.100q, and an archive must not contain %s", name, part)
	}
	if own, base := rollout.GitName(path.Base(name)), path.Base(name); own != "" && own != base {
		return fmt.Errorf("has the path %.100q, and some file systems take %q for Git's %s", name, base, own)
	}
	return nil
}

// check refuses paths that cannot exist together on every file system.
func (f files) check() error {
	if len(f) == 0 {
		return errors.New("has no file")
	}
	folded := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(f)) {
		for at := name; at != "."; at = path.Dir(at) {
			other, known := folded[strings.ToLower(at)]
			if _, isFile := f[at]; known && other != at || at != name && isFile {
				return fmt.Errorf("has %s and %s, which cannot both exist on every file system", name, max(other, at))
			}
			folded[strings.ToLower(at)] = at
		}
	}
	return nil
}

func (f files) below(dir string) files {
	if dir == "." || dir == "" {
		return f
	}
	out := files{}
	for name, content := range f {
		if rest, is := strings.CutPrefix(name, dir+"/"); is {
			out[rest] = content
		}
	}
	return out
}

func (f files) tree() string {
	sum := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(f)) {
		_, _ = fmt.Fprintf(sum, "%s\x00%s\n", name, digest(f[name]))
	}
	return "sha256:" + hex.EncodeToString(sum.Sum(nil))
}

func digest(data []byte) string { return "sha256:" + rollout.Digest(data, sha256.Size) }
