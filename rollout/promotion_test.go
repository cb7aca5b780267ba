package rollout

import (
	"errors"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
)

const promotionHead = "apiVersion: gitrollout.dev/v1alpha1\nkind: Promotion\n"

func TestParsePromotion(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		data   string
		want   Promotion
	}{
		"Least": {"the defaults promote fully", "release: h1-1\n", Promotion{Release: "h1-1", Through: Full, Decision: Promote}},
		"Name": {"a step by name", "release: h1-1\nthrough: smoke\ndecision: promote\n",
			Promotion{Release: "h1-1", Through: "smoke", Decision: Promote}},
		"Index":  {"people write indices as numbers", "release: h1-1\nthrough: 2\n", Promotion{Release: "h1-1", Through: "2", Decision: Promote}},
		"Quoted": {"or quote them", "release: h1-1\nthrough: \"2\"\n", Promotion{Release: "h1-1", Through: "2", Decision: Promote}},
		"NoStep": {"an empty through is the default", "release: h1-1\nthrough: \"\"\n",
			Promotion{Release: "h1-1", Through: Full, Decision: Promote}},
		"NullStep": {"so is null", "release: h1-1\nthrough: null\n", Promotion{Release: "h1-1", Through: Full, Decision: Promote}},
		"Hold": {"hold", "release: h1-1\ndecision: hold\nreason: lunch\n",
			Promotion{Release: "h1-1", Through: Full, Decision: Hold, Reason: "lunch"}},
		"Abort": {"abort", "release: h1-1\ndecision: abort\n", Promotion{Release: "h1-1", Through: Full, Decision: Abort}},
		"Retry": {"retry, with a time to make it differ", "release: h1-1\ndecision: retry\nat: \"2026-11-20\"\n",
			Promotion{Release: "h1-1", Through: Full, Decision: Retry, At: "2026-11-20"}},
	} {
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
			compare.CheckNamed(t, tc.reason, tc.want, *got)
		})
	}
}

func TestParsePromotionRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
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
		"Both": {"which of them?", promotionHead + "release: h1-1\nthrough: 1\nworkloads: {shop/web: 2}\n", "workloads",
			"exclude each other"},
		"NoWorkload": {"a workload has a namespace", promotionHead + "release: h1-1\nworkloads: {web: 2}\n", "workloads[web]", "namespace"},
		"Version":    {"another version", "apiVersion: gitrollout.dev/v2\nkind: Promotion\nrelease: h1-1\n", "apiVersion", "not known"},
		"Twice":      {"two values", promotionHead + "release: h1-1\nrelease: h1-2\n", "", "already set"},
		"Two": {"a second document would be ignored although a reviewer approved both",
			promotionHead + "release: h1-1\n---\n" + promotionHead + "release: h1-2\n", "", "more than one document"},
		"Fraction": {"half a step", promotionHead + "release: h1-1\nthrough: 1.5\n", "through", "belongs"},
		"List":     {"several steps", promotionHead + "release: h1-1\nthrough: [1, 2]\n", "through", "belongs"},
		"Garbage":  {"not YAML", "\x00", "", "not valid YAML"},
	} {
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
		must(t, err)
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
	web, api := Workload{Namespace: "shop", Name: "web"}, Workload{Namespace: "shop", Name: "api"}
	all, nothing := []bool{true, true, true, true}, []bool{false, false, false, false}
	first := []bool{true, false, false, false}
	promote := func(through string) *Promotion {
		return &Promotion{Release: "h1-1", Decision: Promote, Through: through}
	}
	old := func(through string) *Promotion { p := promote(through); p.APIVersion = APIVersion; return p }
	for name, tc := range map[string]struct {
		reason  string
		p       *Promotion
		release Hash
		of      Workload
		want    []bool // for each index
	}{
		"None":       {"no file", nil, "h1-1", web, nothing},
		"Full":       {"all gates", promote(Full), "h1-1", web, all},
		"Number":     {"up to and including the step, from 1", promote("1"), "h1-1", web, first},
		"Name":       {"up to and including the step", promote("smoke"), "h1-1", web, []bool{true, true, false, false}},
		"NameDigits": {"a name wins over a number", promote("2"), "h1-1", web, all},
		"Third":      {"numbers are of all steps", promote("3"), "h1-1", web, []bool{true, true, true, false}},
		"Last":       {"the last one", promote("4"), "h1-1", web, all},
		"Zero":       {"there is no step 0", promote("0"), "h1-1", web, nothing},
		"Beyond":     {"a step that does not exist opens nothing", promote("5"), "h1-1", web, nothing},
		"Negative":   {"nor does this one", promote("-1"), "h1-1", web, nothing},
		"Unknown":    {"nor an unknown name", promote("smok"), "h1-1", web, nothing},
		"Empty":      {"nor none", promote(""), "h1-1", web, nothing},
		"Stale":      {"a late merge approves nothing else", &Promotion{Release: "h1-0", Decision: Promote, Through: Full}, "h1-1", web, nothing},
		"Hold":       {"another decision", &Promotion{Release: "h1-1", Decision: Hold, Through: Full}, "h1-1", web, nothing},
		"NoRelease":  {"nothing is in flight", &Promotion{Release: "", Decision: Promote, Through: Full}, "", web, nothing},
		"OldIndex":   {"an old file counts from 0", old("1"), "h1-1", web, []bool{true, true, false, false}},
		"OldZero":    {"so its first step is 0", old("0"), "h1-1", web, first},
		"OldBeyond":  {"and its last one is one less", old("4"), "h1-1", web, nothing},
		"OldName":    {"names are names", old("smoke"), "h1-1", web, []bool{true, true, false, false}},
		"Workload": {"the workload that it names", &Promotion{Release: "h1-1", Decision: Promote, Workloads: map[Workload]string{web: "1"}},
			"h1-1", web, first},
		"Another": {"and no other one", &Promotion{Release: "h1-1", Decision: Promote, Workloads: map[Workload]string{web: "1"}},
			"h1-1", api, nothing},
		"OneFully": {"all of one", &Promotion{Release: "h1-1", Decision: Promote, Workloads: map[Workload]string{web: Full}}, "h1-1", web, all},
	} {
		t.Run(name, func(t *testing.T) {
			for i, want := range tc.want {
				if got := tc.p.Opens(tc.release, tc.of, names, i); got != want {
					t.Errorf("%s: Opens(%d) = %t, want %t", tc.reason, i, got, want)
				}
			}
		})
	}
	for name, tc := range map[string]struct {
		p           *Promotion
		all, skips  bool
		last, found any
	}{
		"no file":         {nil, false, false, 0, false},
		"all":             {promote(Full), true, true, 4, true},
		"one step":        {promote("1"), false, false, 0, true},
		"all, by no hash": {&Promotion{Decision: Promote, Through: Full}, false, true, 4, true},
		"all of one":      {&Promotion{Release: "h1-1", Decision: Promote, Workloads: map[Workload]string{web: Full}}, false, true, 4, true},
		"all of one, and so": {&Promotion{Release: "h1-1", Decision: Promote, Through: Full, Workloads: map[Workload]string{web: "1"}},
			false, true, 0, true},
		"a step of one":      {&Promotion{Release: "h1-1", Decision: Promote, Workloads: map[Workload]string{web: "1"}}, false, false, 0, true},
		"a hold":             {&Promotion{Release: "h1-1", Decision: Hold, Through: Full}, false, false, 4, true},
		"a number below all": {old("-1"), false, false, -1, false},
	} {
		last, found := tc.p.Last(web, names)
		if tc.p.OpensAll("h1-1") != tc.all || tc.p.SkipsSteps() != tc.skips || any(last) != tc.last || any(found) != tc.found {
			t.Errorf("%s: opens all %t, skips steps %t, last %d %t", name, tc.p.OpensAll("h1-1"), tc.p.SkipsSteps(), last, found)
		}
	}
}

func TestPromotionEncode(t *testing.T) {
	began := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	web, api := Workload{Namespace: "shop", Name: "web"}, Workload{Namespace: "shop", Name: "api"}
	const now, before = "apiVersion: gitrollout.dev/v1alpha2\n", "apiVersion: gitrollout.dev/v1alpha1\n"
	for name, tc := range map[string]struct {
		p    Promotion
		want string
	}{
		"Step": {Promotion{Release: "h1-7b4e2a91d0", Through: "2", Decision: Promote},
			now + "decision: promote\nkind: Promotion\nrelease: h1-7b4e2a91d0\nthrough: \"2\"\n"},
		"Try": {Promotion{Release: "h1-1", Through: Full, Decision: Promote, Since: began},
			now + "decision: promote\nkind: Promotion\nrelease: h1-1\nsince: \"2026-11-22T10:00:00Z\"\nthrough: full\n"},
		"Two": {Promotion{Release: "h1-1", Decision: Promote, Workloads: map[Workload]string{web: "2", api: "6"}},
			now + "decision: promote\nkind: Promotion\nrelease: h1-1\nworkloads:\n  shop/api: \"6\"\n  shop/web: \"2\"\n"},
		"Old": {Promotion{APIVersion: APIVersion, Release: "h1-1", Through: "2", Decision: Promote},
			before + "decision: promote\nkind: Promotion\nrelease: h1-1\nthrough: \"2\"\n"},
		// An older reconciler obeys it, too.
		"Abort": {Promotion{Release: "h1-1", Decision: Abort}, before + "decision: abort\nkind: Promotion\nrelease: h1-1\n"},
		"Full": {Promotion{Release: "h1-1", Through: Full, Decision: Promote},
			before + "decision: promote\nkind: Promotion\nrelease: h1-1\nthrough: full\n"},
	} {
		data, err := tc.p.Encode()
		must(t, err)
		compare.CheckNamed(t, name, tc.want, string(data))
		if back, err := ParsePromotion("p", data); err != nil || back.Through != tc.p.Through && tc.p.Decision == Promote {
			t.Errorf("%s is read as %+v: %v", name, back, err)
		}
	}
	if got, want := PromotionPath("prod-eu", "shop"), ".gitrollout/prod-eu/promote/shop.yaml"; got != want {
		t.Errorf("path is %q, want %q", got, want)
	}
}

func FuzzParsePromotion(f *testing.F) {
	f.Add([]byte(promotionHead + "release: h1-7b4e2a91d0\nthrough: full\ndecision: promote\n"))
	f.Add([]byte(promotionHead + "release: h1-1\nthrough: 2\nat: x\nreason: y\n"))
	f.Add([]byte(strings.Replace(promotionHead, "v1alpha1", "v1alpha2", 1) +
		"release: h1-1\nsince: 2026-11-22T10:00:00Z\nworkloads: {shop/web: 2, shop/api: full}\n"))
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
			for i := range names { // no gate is open behind a closed one
				now := p.Opens(p.Release, Workload{Name: "web"}, names, i)
				if now && !opened {
					t.Fatalf("%+v opens step %d but not an earlier one", p, i)
				}
				opened = now
			}
		}
		once, err := p.Encode()
		must(t, err)
		back, err := ParsePromotion("p.yaml", once)
		if err != nil {
			t.Fatalf("a promotion that was written cannot be read: %v\n%s", err, once)
		}
		back.Digest, p.Digest = "", ""
		if diff := compare.Diff(p, back); diff != "" {
			t.Fatalf("round trip (-want +got):\n%s", diff)
		}
	})
}
