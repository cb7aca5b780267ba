package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// signedAs is the namespace of the SSH signature. Git signs commits in another namespace, so a commit's signature is
// not valid for a release.
const signedAs = "gitrollout-release"

// sum returns the SHA-256 of a file of the release, in hexadecimal digits.
func (r *release) sum(name string) (string, error) {
	data, err := os.ReadFile(filepath.Join(r.out, name))
	return fmt.Sprintf("%x", sha256.Sum256(data)), err
}

// writeSums writes the checksums of all other files to checksums.txt, in sha256sum's format. If the release has a key,
// writeSums signs checksums.txt.
func (r *release) writeSums(map[platform]string) error {
	files, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var text []byte
	for _, f := range files { // sorted by name
		sum, err := r.sum(f.Name())
		if err != nil {
			return err
		}
		text = fmt.Appendf(text, "%s  %s\n", sum, f.Name())
	}
	if err := r.write("checksums.txt", text); err != nil || r.key == "" {
		return err
	}
	sign := exec.Command("ssh-keygen", "-Y", "sign", "-q", "-n", signedAs, "-f", r.key, filepath.Join(r.out, "checksums.txt"))
	if out, err := sign.CombinedOutput(); err != nil {
		return fmt.Errorf("sign the checksums: %w: %s", err, out)
	}
	return nil
}
