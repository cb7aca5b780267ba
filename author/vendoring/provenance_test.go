package vendoring_test

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"helm.sh/helm/v4/pkg/provenance"

	"gitrollout.dev/gitrollout/internal/compare"
)

type signer struct{ *openpgp.Entity }

// newSigner makes a key. That takes about a second of CPU time.
func newSigner(t *testing.T) signer {
	t.Helper()
	key, err := openpgp.NewEntity("Ann", "", "ann@example.com", nil)
	must(t, err)
	return signer{key}
}

// as returns the key, and the public key in the format of gpg --export (with --armor if armored is true).
func (s signer) as(t *testing.T, armored bool) (key *openpgp.Entity, public string) {
	t.Helper()
	var out bytes.Buffer
	if !armored {
		must(t, s.Serialize(&out))
		return s.Entity, out.String()
	}
	w, err := armor.Encode(&out, openpgp.PublicKeyType, nil)
	must(t, err)
	must(t, s.Serialize(w))
	must(t, w.Close())
	return s.Entity, out.String()
}

// sign returns the file that helm package --sign writes next to an archive.
func sign(t *testing.T, key *openpgp.Entity, archive []byte, name string) []byte {
	t.Helper()
	text, err := (&provenance.Signatory{Entity: key}).ClearSign(archive, name, []byte("name: redis\n"))
	must(t, err)
	return []byte(text)
}

// TestProvenance checks that a chart is accepted if a listed key has signed the archive and the archive's name. The
// lock records the key. Without such a signature, nothing is written.
func TestProvenance(t *testing.T) {
	ann, other := newSigner(t), newSigner(t)
	const redis, web = "/charts/redis-20.1.4.tgz", "web-1.2.3+b1.tgz"
	chart := "- chart: {repo: http://HOST/charts, name: redis, version: 20.1.4, provenance: keys/team.asc}\n  into: charts\n"
	oci := "- chart: {repo: oci://HOST/charts, name: web, version: ^1, provenance: keys/team.asc}\n  into: charts\n"
	for name, c := range map[string]struct {
		source string
		binary bool
		spoil  func(w *world, key *openpgp.Entity)
		want   []string // words of the error; nil if the chart is accepted
	}{
		"signed":          {source: chart},
		"a keyring":       {source: chart, binary: true},
		"of a registry":   {source: oci},
		"no file of keys": {chart, false, func(w *world, _ *openpgp.Entity) { w.remove("keys") }, []string{"keys/team.asc"}},
		"keys that are no": {chart, false, func(w *world, _ *openpgp.Entity) { w.write("keys/team.asc", "x") },
			[]string{"holds no public keys", "gpg --export"}},
		"keys elsewhere": {strings.Replace(chart, "keys/", "../", 1), false, func(*world, *openpgp.Entity) {},
			[]string{"../team.asc", "escapes"}},
		"not signed": {chart, false, func(w *world, _ *openpgp.Entity) { delete(w.answers, redis+".prov") },
			[]string{redis + ".prov answers 404"}},
		"no signature": {chart, false, func(w *world, _ *openpgp.Entity) { w.answers[redis+".prov"] = []byte("x") },
			[]string{"is not signed by any of the keys"}},
		"signed by another key": {chart, false, func(w *world, _ *openpgp.Entity) {
			w.answers[redis+".prov"] = sign(t, other.Entity, w.answers[redis], "redis-20.1.4.tgz")
		}, []string{"redis-20.1.4.tgz is not signed by any of the keys"}},
		"another version": {chart, false, func(w *world, key *openpgp.Entity) {
			w.answers[redis+".prov"] = sign(t, key, w.answers["/charts/redis-20.1.5.tgz"], "redis-20.1.5.tgz")
		}, []string{"is not signed by any of the keys"}},
		"another archive": {chart, false, func(w *world, key *openpgp.Entity) {
			w.answers[redis+".prov"] = sign(t, key, w.answers["/charts/redis-20.1.5.tgz"], "redis-20.1.4.tgz")
		}, []string{"is not signed by any of the keys", "sum does not match"}},
		"a registry without": {oci, false, func(w *world, _ *openpgp.Entity) {
			w.artifact("charts/web", "1.2.3_b1", packed(t, plain("web/Chart.yaml", "name: web\nversion: 1.2.3+b1\n")))
		}, []string{"is not signed by any of the keys"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := withoutGit(t)
			key, public := ann.as(t, !c.binary)
			w.write("keys/team.asc", public)
			w.answers[redis+".prov"] = sign(t, key, w.answers[redis], "redis-20.1.4.tgz")
			archive := packed(t, plain("web/Chart.yaml", "name: web\nversion: 1.2.3+b1\n"))
			w.signed("charts/web", "1.2.3_b1", archive, sign(t, key, archive, web))
			w.vendor(c.source)
			if c.spoil != nil {
				c.spoil(w, key)
			}
			w.update("", c.want...)
			lock := w.read("vendor.lock")
			if c.want != nil {
				compare.CheckNamed(t, "the lock", "", lock)
				return
			}
			compare.Contains(t, lock, "signed: "+hex.EncodeToString(key.PrimaryKey.Fingerprint))
			w.update("")
			w.vendor(strings.Replace(c.source, ", provenance: keys/team.asc", "", 1))
			if wrong := w.wrong(); len(wrong) == 0 {
				t.Error("without the keys it is taken for the same")
			}
		})
	}
}
