package convert_test

import (
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/render/convert"
)

// TestLongLine converts a line and a patch with many versions. The time must be proportional to the length.
func TestLongLine(t *testing.T) {
	const many = 16000
	for _, text := range []string{
		"items: [" + strings.Repeat("{apiVersion: OLD, ü: a}, ", many) + "]\n",
		"patches:\n- patch: '[" + strings.Repeat("{apiVersion: OLD, ü: a}, ", many) + "]'\n",
	} {
		got, err := convert.File([]byte(strings.ReplaceAll(text, "OLD", "gitrollout.dev/v1alpha1")))
		if err != nil || string(got) != strings.ReplaceAll(text, "OLD", "gitrollout.dev/v1beta1") {
			t.Errorf("%.200s…, %v", got, err)
		}
	}
}

// TestFile converts the files in testdata. All bytes but the versions stay, and a second conversion changes nothing.
func TestFile(t *testing.T) {
	archive, err := txtar.ParseFile("testdata/files.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range archive.Files {
		text := string(f.Data)
		if strings.Contains(f.Name, "Windows") {
			text = strings.ReplaceAll(text, "\n", "\r\n")
		}
		fill := func(version string) string {
			return strings.NewReplacer("BARE", version, "OLD", "gitrollout.dev/"+version).Replace(text)
		}
		got, why := convert.File([]byte(fill("v1alpha1")))
		compare.CheckNamed(t, f.Name, fill("v1beta1"), string(got))
		_, want, isKept := strings.Cut(f.Name, ": ")
		if (why != nil) != isKept || isKept && !strings.Contains(why.Error(), want) {
			t.Errorf("%s: the reason is %v", f.Name, why)
		}
		if again, _ := convert.File(got); string(again) != string(got) {
			t.Errorf("%s: converted again:\n%s", f.Name, again)
		}
	}
}
