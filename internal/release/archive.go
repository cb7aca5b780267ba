package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// entry is a file of an archive.
type entry struct {
	name string // folders end with "/"
	mode int64
	data []byte
}

// base returns the prefix of a platform's file names.
func (r *release) base(p platform) string {
	return "gitrollout_" + r.version + "_" + p.os + "_" + p.arch
}

// archiveName returns the file name of a platform's archive.
func (r *release) archiveName(p platform) string {
	if p.os == "windows" {
		return r.base(p) + ".zip"
	}
	return r.base(p) + ".tar.gz"
}

// programName returns the program's file name on a platform.
func programName(p platform) string {
	if p.os == "windows" {
		return "gitrollout.exe"
	}
	return "gitrollout"
}

// archives writes an archive for each platform: the program and its licence.
func (r *release) archives(programs map[platform]string) error {
	licence, err := os.ReadFile(filepath.Join(r.source, "LICENSE"))
	if err != nil {
		return err
	}
	for p, path := range programs {
		program, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		write := tarGzip
		if p.os == "windows" {
			write = zipped
		}
		data, err := write([]entry{{programName(p), 0o755, program}, {"LICENSE", 0o644, licence}}, r.date)
		if err != nil {
			return err
		}
		if err := r.write(r.archiveName(p), data); err != nil {
			return err
		}
	}
	return nil
}

// write adds a file to the release.
func (r *release) write(name string, data []byte) error {
	return os.WriteFile(filepath.Join(r.out, name), data, 0o644)
}

// entriesOf returns the files and folders below a folder, with a prefix before their names.
func entriesOf(dir, prefix string) (entries []entry, err error) {
	root := os.DirFS(dir)
	err = fs.WalkDir(root, ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || file == "." {
			return err
		}
		if d.IsDir() {
			entries = append(entries, entry{prefix + file + "/", 0o755, nil})
			return nil
		}
		data, err := fs.ReadFile(root, file)
		entries = append(entries, entry{prefix + file, 0o644, data})
		return err
	})
	return entries, err
}

// tarred returns a tar archive. Its files have no owner.
func tarred(entries []entry, date time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{
			Name: e.name, Mode: e.mode, Size: int64(len(e.data)), ModTime: date, Format: tar.FormatUSTAR, Typeflag: tar.TypeReg,
		}
		if e.name[len(e.name)-1] == '/' {
			h.Typeflag = tar.TypeDir
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

func tarGzip(entries []entry, date time.Time) ([]byte, error) {
	plain, err := tarred(entries, date)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // only an invalid level is an error
	if _, err := w.Write(plain); err != nil {
		return nil, err
	}
	err = w.Close()
	return b.Bytes(), err
}

func zipped(entries []entry, date time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: date}
		h.SetMode(os.FileMode(e.mode))
		f, err := w.CreateHeader(h)
		if err != nil {
			return nil, err
		}
		if _, err := f.Write(e.data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}
