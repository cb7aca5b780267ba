package vendoring

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"slices"

	"github.com/ProtonMail/go-crypto/openpgp"
	"helm.sh/helm/v4/pkg/provenance"
)

const provenanceType = "application/vnd.cncf.helm.chart.provenance.v1.prov"

// signers are the keys in a file next to vendor.yaml. If nil, charts need no signature.
type signers openpgp.EntityList

func readSigners(dir *os.Root, file string) (signers, error) {
	if file == "" {
		return nil, nil
	}
	data, err := dir.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("provenance: %w", err)
	}
	read := openpgp.ReadKeyRing
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("-----BEGIN")) {
		read = openpgp.ReadArmoredKeyRing
	}
	keys, err := read(bytes.NewReader(data))
	if err != nil || len(keys) == 0 {
		return nil, fmt.Errorf("provenance: %s holds no public keys: export them with gpg --export --armor", file)
	}
	if slices.ContainsFunc(keys, func(e *openpgp.Entity) bool { return e.PrivateKey != nil }) {
		return nil, fmt.Errorf("provenance: %s holds a secret key, which must not be in a repository: generate a new key, "+
			"and export its public key with gpg --export --armor", file)
	}
	return signers(keys), nil
}

func (s signers) verify(archive []byte, name string, signed []byte) (fingerprint string, err error) {
	helm := provenance.Signatory{KeyRing: openpgp.EntityList(s)}
	by, err := helm.Verify(archive, signed, name)
	if err != nil {
		return "", fmt.Errorf("%s is not signed by any of the keys: %w", name, err)
	}
	return hex.EncodeToString(by.SignedBy.PrimaryKey.Fingerprint), nil
}
