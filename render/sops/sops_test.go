package sops_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	yaml "sigs.k8s.io/kustomize/kyaml/yaml"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/sopstest"
	"gitrollout.dev/gitrollout/render/sops"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, file string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file))
	must(t, err)
	return string(data)
}

func testKeys(t testing.TB) *sops.Keys {
	t.Helper()
	k, err := sops.ReadKeys(map[string]string{"test.agekey": read(t, "test.agekey")})
	must(t, err)
	return k
}

func opened(k *sops.Keys, name, content string) (string, error) {
	f, err := sops.Read(name, []byte(content))
	if err != nil {
		return "", err
	}
	if f == nil {
		return content, nil
	}
	key, err := k.Unlock(f.Locks)
	if err != nil {
		return "", err
	}
	plain, err := f.Open(key)
	return string(plain), err
}

// meaning returns a file's content without formatting: its YAML or JSON documents, or its lines without comments.
func meaning(t testing.TB, name, content string) any {
	t.Helper()
	switch filepath.Ext(name) {
	case ".yaml", ".json":
		var all []any
		for decoder := yaml.NewDecoder(strings.NewReader(content)); ; {
			var doc any
			if err := decoder.Decode(&doc); err != nil {
				return all
			}
			all = append(all, doc)
		}
	case ".env":
		return slices.DeleteFunc(strings.Split(content, "\n"), func(line string) bool { return strings.HasPrefix(line, "#") })
	default:
		return content
	}
}

func encrypted(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*-*")
	if err != nil || len(files) != 16 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for i, f := range files {
		files[i] = filepath.Base(f)
	}
	return files
}

// TestFilesOfSOPS checks that each file that the sops program has encrypted is decrypted to its original content.
func TestFilesOfSOPS(t *testing.T) {
	for _, name := range encrypted(t) {
		t.Run(name, func(t *testing.T) {
			content := read(t, name)
			if !sops.Is([]byte(content)) {
				t.Fatal("is not taken for a file of SOPS")
			}
			got, err := opened(testKeys(t), name, content)
			must(t, err)
			_, plain, _ := strings.Cut(name, "-")
			compare.Check(t, meaning(t, name, read(t, "plain/"+plain)), meaning(t, name, got))
			if strings.Contains(got, "ENC[") || strings.Contains(got, "sops") {
				t.Errorf("something is left: %s", got)
			}
		})
	}
}

// TestSealed checks that sealing needs no key and always gives the same result. The sealed file contains no part of a value.
func TestSealed(t *testing.T) {
	for _, name := range encrypted(t) {
		seal := func() string {
			f, err := sops.Read(name, []byte(read(t, name)))
			must(t, err)
			sealed, err := f.Seal(false)
			must(t, err)
			return string(sealed)
		}
		first := seal()
		compare.CheckNamed(t, name+", the second time", first, seal())
		hasWord := strings.Contains(first, "gitrollout-sealed:") ||
			strings.Contains(first, base64.StdEncoding.EncodeToString([]byte("gitrollout-sealed:")))
		if strings.Contains(first, "hunter2") || strings.Contains(first, "ENC[") || !hasWord {
			t.Errorf("%s: %s", name, first)
		}
	}
}

// TestWhatWasChanged changes one byte of an encrypted file at a time. The file must be refused or have the same values. Its field names may
// change, because SOPS authenticates only the field names above encrypted values.
func TestWhatWasChanged(t *testing.T) {
	k, name := testKeys(t), "regex-secret.yaml"
	content := read(t, name)
	want, refused := values(meaning(t, name, read(t, "plain/secret.yaml"))), 0
	for i := range content {
		changed := []byte(content)
		changed[i] ^= 1
		got, err := opened(k, name, string(changed))
		if err != nil {
			if wrong := (*sops.Error)(nil); !errors.Is(err, sops.ErrLocked) && (!errors.As(err, &wrong) || wrong.Fix == "" || wrong.Msg == "") {
				t.Errorf("byte %d, %q instead of %q: no fix in %v", i, changed[i], content[i], err)
			}
			refused++
			continue
		}
		if diff := compare.Diff(want, values(meaning(t, name, got))); diff != "" && !strings.Contains(got, "ENC[") {
			t.Fatalf("byte %d, %q instead of %q, goes unnoticed:\n%s", i, changed[i], content[i], diff)
		}
	}
	if refused < len(content)/2 {
		t.Errorf("%d of %d changes are refused", refused, len(content))
	}
}

// values returns the sorted values in v, without the keys of mappings.
func values(v any) (all []string) {
	switch v := v.(type) {
	case map[string]any:
		for _, below := range v {
			all = append(all, values(below)...)
		}
	case []any:
		for _, below := range v {
			all = append(all, values(below)...)
		}
	default:
		if v != nil && v != "" { // SOPS does not distinguish null from ""
			all = append(all, fmt.Sprint(v))
		}
	}
	slices.Sort(all)
	return all
}

// TestLocked checks that another key decrypts no file, and that no error contains a part of a key.
func TestLocked(t *testing.T) {
	secret := sopstest.Whole(t, "a.env", "A=b\n", sopstest.PGP(t))
	for _, key := range []sopstest.Key{sopstest.Age(t), sopstest.PGP(t)} {
		k, err := sops.ReadKeys(map[string]string{key.Name: key.Secret, "README": "no key"})
		must(t, err)
		if _, err := opened(k, "a.env", secret); !errors.Is(err, sops.ErrLocked) {
			t.Errorf("error %v", err)
		}
	}
	for name, content := range map[string]string{"a.agekey": "AGE-SECRET-KEY-1PLANTED", "a.asc": "planted", "a.txt": "PLANTED", "": ""} {
		if _, err := sops.ReadKeys(map[string]string{name: content}); err == nil || strings.Contains(strings.ToUpper(err.Error()), "PLANTED") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

// TestWhatIsNoFileOfSOPS checks that Read returns nil for files that only look encrypted.
func TestWhatIsNoFileOfSOPS(t *testing.T) {
	for name, content := range map[string]string{
		"a.yaml": "sops: {of: ours}\nlastmodified: x\n", "b.yaml": "a: ENC[AES256_GCM,data:\n",
		"c.md": "# sops\n\nsops: writes ENC[AES256_GCM,data:…\n", "d.json": `{"sops": 1, "a": "ENC[AES256_GCM,data:"}`,
		"e.yaml": "- sops:\n- ENC[AES256_GCM,data:\n", "f": "sops:\n\x00ENC[AES256_GCM,data:",
	} {
		if got, err := opened(testKeys(t), name, content); err != nil || got != content {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// FuzzRead reads, seals and opens any bytes. It must not panic, and each error must have a fix.
func FuzzRead(f *testing.F) {
	for _, name := range encrypted(f) {
		f.Add(name, read(f, name))
	}
	f.Fuzz(func(t *testing.T, name, content string) {
		for _, seal := range []bool{true, false} {
			file, err := sops.Read(name, []byte(content))
			if err == nil && file != nil && seal {
				_, err = file.Seal(false)
			} else if err == nil && file != nil {
				_, err = file.Open(make([]byte, 32))
			}
			if wrong := (*sops.Error)(nil); err != nil && (!errors.As(err, &wrong) || wrong.Fix == "") {
				t.Errorf("no fix in %v", err)
			}
		}
	})
}
