package rollout

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const promotionHead = "apiVersion: gitrollout.dev/v1alpha1\nkind: Promotion\n"

func TestParsePromotion(t *testing.T) {
	cases := map[string]struct {
		reason string
		data   string
		want   Promotion
	}{
		"Least":    {"the defaults promote fully", "release: h1-1\n", Promotion{Release: "h1-1", Through: Full, Decision: Promote}},
		"Name":     {"a step by name", "release: h1-1\nthrough: smoke\ndecision: promote\n", Promotion{Release: "h1-1", Through: "smoke", Decision: Promote}},
		"Index":    {"people write indices as numbers", "release: h1-1\nthrough: 2\n", Promotion{Release: "h1-1", Through: "2", Decision: Promote}},
		"Quoted":   {"or quote them", "release: h1-1\nthrough: \"2\"\n", Promotion{Release: "h1-1", Through: "2", Decision: Promote}},
		"NoStep":   {"an empty through is the default", "release: h1-1\nthrough: \"\"\n", Promotion{Release: "h1-1", Through: Full, Decision: Promote}},
		"NullStep": {"so is null", "release: h1-1\nthrough: null\n", Promotion{Release: "h1-1", Through: Full, Decision: Promote}},
		"Hold":     {"hold", "release: h1-1\ndecision: hold\nreason: lunch\n", Promotion{Release: "h1-1", Through: Full, Decision: Hold, Reason: "lunch"}},
		"Abort":    {"abort", "release: h1-1\ndecision: abort\n", Promotion{Release: "h1-1", Through: Full, Decision: Abort}},
		"Retry":    {"retry, with a time to make it differ", "release: h1-1\ndecision: retry\nat: \"2026-11-20\"\n", Promotion{Release: "h1-1", Through: Full, Decision: Retry, At: "2026-11-20"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := ParsePromotion("p.yaml", []byte(promotionHead+tc.data))
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if len(got.Digest) != 10 {
				t.Errorf("digest is %q, want ten digits", got.Digest)
			}
			got.Digest = ""
			tc.want.APIVersion, tc.want.Kind = APIVersion, "Promotion"
			if diff := cmp.Diff(tc.want, *got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestParsePromotionRefuses(t *testing.T) {
	cases := map[string]struct {
		reason string
		data   string
		field  string
		text   string
	}{
		"NoRelease":    {"an approval of nothing", promotionHead, "release", "missing"},
		"UnknownField": {"a typing error must not be dropped", promotionHead + "release: h1-1\ntrough: full\n", "trough", "not a known field"},
		"WrongCase":    {"Decision: hold must not promote", promotionHead + "release: h1-1\nDecision: hold\n", "Decision", "not a known field"},
		"Decision":     {"decisions are a closed set", promotionHead + "release: h1-1\ndecision: rollback\n", "decision", "not one of"},
		"Kind":         {"another kind", "apiVersion: gitrollout.dev/v1alpha1\nkind: Rollout\nrelease: h1-1\n", "kind", "not Promotion"},
		"Version":      {"another version", "apiVersion: gitrollout.dev/v2\nkind: Promotion\nrelease: h1-1\n", "apiVersion", "not known"},
		"Twice":        {"two values", promotionHead + "release: h1-1\nrelease: h1-2\n", "", "already set"},
		"Two":          {"a second document would be ignored: what did the reviewer approve?", promotionHead + "release: h1-1\n---\n" + promotionHead + "release: h1-2\n", "", "more than one document"},
		"Fraction":     {"half a step", promotionHead + "release: h1-1\nthrough: 1.5\n", "through", "belongs"},
		"List":         {"several steps", promotionHead + "release: h1-1\nthrough: [1, 2]\n", "through", "belongs"},
		"Garbage":      {"not YAML", "\x00", "", "not valid YAML"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := ParsePromotion("p.yaml", []byte(tc.data))
			var invalid *InvalidError
			if !errors.As(err, &invalid) {
				t.Fatalf("%s: got %v and %v, want an InvalidError", tc.reason, got, err)
			}
			if invalid.File != "p.yaml" || invalid.Field != tc.field || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("%s: got %q (field %q), want field %q and %q", tc.reason, err, invalid.Field, tc.field, tc.text)
			}
		})
	}
}

func TestPromotionDigestDiffersByBytes(t *testing.T) {
	digest := func(rest string) string {
		p, err := ParsePromotion("p.yaml", []byte(promotionHead+"release: h1-1\n"+rest))
		if err != nil {
			t.Fatal(err)
		}
		return p.Digest
	}
	if digest("") != digest("") {
		t.Error("the same bytes have two digests")
	}
	if digest("at: \"1\"\n") == digest("at: \"2\"\n") {
		t.Error("a second retry cannot be told from the first")
	}
}

func TestPromotionOpens(t *testing.T) {
	names := []string{"", "smoke", "", "2"}
	cases := map[string]struct {
		reason  string
		p       *Promotion
		release Hash
		want    []bool // for each index
	}{
		"None":       {"no file", nil, "h1-1", []bool{false, false, false, false}},
		"Full":       {"all gates", &Promotion{Release: "h1-1", Decision: Promote, Through: Full}, "h1-1", []bool{true, true, true, true}},
		"Index":      {"up to and including the step", &Promotion{Release: "h1-1", Decision: Promote, Through: "1"}, "h1-1", []bool{true, true, false, false}},
		"Name":       {"up to and including the step", &Promotion{Release: "h1-1", Decision: Promote, Through: "smoke"}, "h1-1", []bool{true, true, false, false}},
		"NameDigits": {"a name wins over an index", &Promotion{Release: "h1-1", Decision: Promote, Through: "2"}, "h1-1", []bool{true, true, true, true}},
		"Zero":       {"only the first", &Promotion{Release: "h1-1", Decision: Promote, Through: "0"}, "h1-1", []bool{true, false, false, false}},
		"Beyond":     {"a step that does not exist opens nothing", &Promotion{Release: "h1-1", Decision: Promote, Through: "4"}, "h1-1", []bool{false, false, false, false}},
		"Negative":   {"nor does this one", &Promotion{Release: "h1-1", Decision: Promote, Through: "-1"}, "h1-1", []bool{false, false, false, false}},
		"Unknown":    {"nor an unknown name", &Promotion{Release: "h1-1", Decision: Promote, Through: "smok"}, "h1-1", []bool{false, false, false, false}},
		"Stale":      {"a late merge approves nothing else", &Promotion{Release: "h1-0", Decision: Promote, Through: Full}, "h1-1", []bool{false, false, false, false}},
		"Hold":       {"another decision", &Promotion{Release: "h1-1", Decision: Hold, Through: Full}, "h1-1", []bool{false, false, false, false}},
		"NoRelease":  {"nothing is in flight", &Promotion{Release: "", Decision: Promote, Through: Full}, "", []bool{false, false, false, false}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for i, want := range tc.want {
				if got := tc.p.Opens(tc.release, names, i); got != want {
					t.Errorf("%s: Opens(%d) = %t, want %t", tc.reason, i, got, want)
				}
			}
		})
	}
}

func TestPromotionEncode(t *testing.T) {
	data, err := Promotion{Release: "h1-7b4e2a91d0", Through: "2", Decision: Promote}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	want := promotionHead[:len(promotionHead)-len("kind: Promotion\n")] + "decision: promote\nkind: Promotion\nrelease: h1-7b4e2a91d0\nthrough: \"2\"\n"
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, want := PromotionPath("prod-eu", "shop"), ".gitrollout/prod-eu/promote/shop.yaml"; got != want {
		t.Errorf("path is %q, want %q", got, want)
	}
}

func FuzzParsePromotion(f *testing.F) {
	f.Add([]byte(promotionHead + "release: h1-7b4e2a91d0\nthrough: full\ndecision: promote\n"))
	f.Add([]byte(promotionHead + "release: h1-1\nthrough: 2\nat: x\nreason: y\n"))
	f.Add([]byte("---\n" + promotionHead + "release: h1-1\ndecision: abort\n---\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := ParsePromotion("p.yaml", data)
		if err != nil {
			var invalid *InvalidError
			if !errors.As(err, &invalid) {
				t.Fatalf("%T is not an InvalidError: %v", err, err)
			}
			return
		}
		for _, names := range [][]string{nil, {""}, {"a", "b", "c"}} {
			opened := true
			for i := range names { // a gate is never open behind a closed one
				now := p.Opens(p.Release, names, i)
				if now && !opened {
					t.Fatalf("%+v opens step %d but not an earlier one", p, i)
				}
				opened = now
			}
		}
		once, err := p.Encode()
		if err != nil {
			t.Fatal(err)
		}
		back, err := ParsePromotion("p.yaml", once)
		if err != nil {
			t.Fatalf("a promotion that was written cannot be read: %v\n%s", err, once)
		}
		back.Digest, p.Digest = "", ""
		if diff := cmp.Diff(p, back); diff != "" {
			t.Fatalf("round trip (-want +got):\n%s", diff)
		}
	})
}
