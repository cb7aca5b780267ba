package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// signedAs is the namespace of the signature, so that a signature of a commit or a login is not valid for a release.
const signedAs = "gitrollout-release"

// writeSums writes checksums.txt of all other files, like sha256sum, and signs it if there is a key.
func (r *release) writeSums(map[platform]string) error {
	files, err := os.ReadDir(r.out)
	if err != nil {
		return err
	}
	var text []byte
	for _, f := range files { // by name
		data, err := os.ReadFile(filepath.Join(r.out, f.Name()))
		if err != nil {
			return err
		}
		text = fmt.Appendf(text, "%x  %s\n", sha256.Sum256(data), f.Name())
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
