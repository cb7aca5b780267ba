package rollout_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

const promotionHead = "apiVersion: gitrollout.dev/v1alpha1\nkind: Promotion\n"

func TestParsePromotion(t *testing.T) {
	for name, tc := range map[string]struct {
		data string
		want rollout.Promotion
	}{
		"by default all":     {"", rollout.Promotion{Through: rollout.Full, Decision: rollout.Promote}},
		"a step by name":     {"through: smoke\ndecision: promote\n", rollout.Promotion{Through: "smoke", Decision: rollout.Promote}},
		"a step by number":   {"through: 2\n", rollout.Promotion{Through: "2", Decision: rollout.Promote}},
		"a number in quotes": {"through: \"2\"\n", rollout.Promotion{Through: "2", Decision: rollout.Promote}},
		"an empty through":   {"through: \"\"\n", rollout.Promotion{Through: rollout.Full, Decision: rollout.Promote}},
		"null for through":   {"through: null\n", rollout.Promotion{Through: rollout.Full, Decision: rollout.Promote}},
		"hold": {"decision: hold\nreason: lunch\n",
			rollout.Promotion{Through: rollout.Full, Decision: rollout.Hold, Reason: "lunch"}},
		"abort": {"decision: abort\n", rollout.Promotion{Through: rollout.Full, Decision: rollout.Abort}},
		"retry, made different": {"decision: retry\nat: \"2026-11-20\"\n",
			rollout.Promotion{Through: rollout.Full, Decision: rollout.Retry, At: "2026-11-20"}},
		"restart": {"decision: restart\nrestartAt: \"2026-11-20T10:00:00Z\"\n",
			rollout.Promotion{Through: rollout.Full, Decision: rollout.Restart, RestartAt: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)}},
	} {
		got, err := rollout.ParsePromotion("p.yaml", []byte(promotionHead+"release: h1-1\n"+tc.data))
		must(t, err)
		if len(got.Digest) != 10 {
			t.Errorf("%s: digest is %q, want ten digits", name, got.Digest)
		}
		got.Digest = ""
		tc.want.APIVersion, tc.want.Kind, tc.want.Release = rollout.AlphaVersion, "Promotion", "h1-1"
		compare.CheckNamed(t, name, tc.want, *got)
	}
}

func TestParsePromotionRefuses(t *testing.T) {
	const release = promotionHead + "release: h1-1\n"
	for name, tc := range map[string]struct{ data, field, text string }{
		"an approval of nothing":      {promotionHead, "release", "missing"},
		"a typing error":              {release + "trough: full\n", "trough", "not a known field"},
		"Decision is not decision":    {release + "Decision: hold\n", "Decision", "not a known field"},
		"decisions are a closed set":  {release + "decision: rollback\n", "decision", "not one of"},
		"another kind":                {"apiVersion: gitrollout.dev/v1alpha1\nkind: Rollout\nrelease: h1-1\n", "kind", "not Promotion"},
		"a step and workloads":        {release + "through: 1\nworkloads: {shop/web: 2}\n", "workloads", "conflicts with through"},
		"a workload has a namespace":  {release + "workloads: {web: 2}\n", "workloads[web]", "namespace"},
		"a restart at no time":        {release + "decision: restart\n", "restartAt", "is needed with"},
		"a time for another decision": {release + "restartAt: \"2026-11-20T10:00:00Z\"\n", "restartAt", "is needed with"},
		"not a time":                  {release + "decision: restart\nrestartAt: now\n", "restartAt", "not a time"},
		"another version":             {"apiVersion: gitrollout.dev/v2\nkind: Promotion\nrelease: h1-1\n", "apiVersion", "not known"},
		"two values":                  {release + "release: h1-2\n", "", "already set"},
		"a second, approved document": {release + "---\n" + promotionHead + "release: h1-2\n", "", "more than one document"},
		"half a step":                 {release + "through: 1.5\n", "through", "must be the name or the number of a step"},
		"several steps":               {release + "through: [1, 2]\n", "through", "must be the name or the number of a step"},
		"not YAML":                    {"\x00", "", "not valid YAML"},
	} {
		got, err := rollout.ParsePromotion("p.yaml", []byte(tc.data))
		var invalid *rollout.InvalidError
		if !errors.As(err, &invalid) {
			t.Fatalf("%s: got %v and %v, want an InvalidError", name, got, err)
		}
		if invalid.File != "p.yaml" || invalid.Field != tc.field || !strings.Contains(err.Error(), tc.text) {
			t.Errorf("%s: got %q (field %q), want field %q and %q", name, err, invalid.Field, tc.field, tc.text)
		}
	}
}

func TestPromotionDigestDiffersByBytes(t *testing.T) {
	digest := func(rest string) string {
		p, err := rollout.ParsePromotion("p.yaml", []byte(promotionHead+"release: h1-1\n"+rest))
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
	promote := func(through string) *rollout.Promotion {
		return &rollout.Promotion{Release: "h1-1", Decision: rollout.Promote, Through: through}
	}
	old := func(through string) *rollout.Promotion {
		p := promote(through)
		p.APIVersion = rollout.AlphaVersion
		return p
	}
	only := func(of rollout.Workload, through string) *rollout.Promotion {
		return &rollout.Promotion{Release: "h1-1", Decision: rollout.Promote, Workloads: map[rollout.Workload]string{of: through}}
	}
	for name, tc := range map[string]struct {
		p    *rollout.Promotion
		want int // the number of open steps
	}{
		"no file":                            {nil, 0},
		"all gates":                          {promote(rollout.Full), 4},
		"up to and including a step, from 1": {promote("1"), 1},
		"up to and including a named step":   {promote("smoke"), 2},
		"a name wins over a number":          {promote("2"), 4},
		"numbers are of all steps":           {promote("3"), 3},
		"the last one":                       {promote("4"), 4},
		"there is no step 0":                 {promote("0"), 0},
		"a step that does not exist":         {promote("5"), 0},
		"a negative step":                    {promote("-1"), 0},
		"an unknown name":                    {promote("smok"), 0},
		"none":                               {promote(""), 0},
		"a late merge for another release":   {&rollout.Promotion{Release: "h1-0", Decision: rollout.Promote, Through: rollout.Full}, 0},
		"another decision":                   {&rollout.Promotion{Release: "h1-1", Decision: rollout.Hold, Through: rollout.Full}, 0},
		"an old file counts from 0":          {old("1"), 2},
		"so its first step is 0":             {old("0"), 1},
		"and its last one is one less":       {old("4"), 0},
		"an old file's names are names":      {old("smoke"), 2},
		"the workload that it names":         {only(web, "1"), 1},
		"and no other one":                   {only(api, "1"), 0},
		"all of one":                         {only(web, rollout.Full), 4},
	} {
		for i := range names {
			compare.CheckNamed(t, fmt.Sprintf("%s: step %d", name, i), i < tc.want, tc.p.Opens("h1-1", web, names, i))
		}
	}
	for i := range names {
		if (&rollout.Promotion{Decision: rollout.Promote, Through: rollout.Full}).Opens("", web, names, i) {
			t.Errorf("step %d opens with nothing in flight", i)
		}
	}
	for name, tc := range map[string]struct {
		p           *rollout.Promotion
		all, skips  bool
		last, found any
	}{
		"no file":         {nil, false, false, 0, false},
		"all":             {promote(rollout.Full), true, true, 4, true},
		"one step":        {promote("1"), false, false, 0, true},
		"all, by no hash": {&rollout.Promotion{Decision: rollout.Promote, Through: rollout.Full}, false, true, 4, true},
		"all of one":      {only(web, rollout.Full), false, true, 4, true},
		"all of one, and so": {&rollout.Promotion{Release: "h1-1", Decision: rollout.Promote, Through: rollout.Full,
			Workloads: map[rollout.Workload]string{web: "1"}},
			false, true, 0, true},
		"a step of one":      {only(web, "1"), false, false, 0, true},
		"a hold":             {&rollout.Promotion{Release: "h1-1", Decision: rollout.Hold, Through: rollout.Full}, false, false, 4, true},
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
	const now, before = "apiVersion: gitrollout.dev/v1alpha2\n", "apiVersion: gitrollout.dev/v1alpha1\n"
	const promote = "decision: promote\nkind: Promotion\nrelease: h1-1\n"
	for name, tc := range map[string]struct {
		p    rollout.Promotion
		want string
	}{
		"Step": {rollout.Promotion{Release: "h1-1", Through: "2", Decision: rollout.Promote}, now + promote + "through: \"2\"\n"},
		"Try": {rollout.Promotion{Release: "h1-1", Through: rollout.Full, Decision: rollout.Promote, Since: began},
			now + promote + "since: \"2026-11-22T10:00:00Z\"\nthrough: full\n"},
		"Two": {rollout.Promotion{Release: "h1-1", Decision: rollout.Promote, Workloads: map[rollout.Workload]string{web: "2", api: "6"}},
			now + promote + "workloads:\n  shop/api: \"6\"\n  shop/web: \"2\"\n"},
		"Old": {rollout.Promotion{APIVersion: rollout.AlphaVersion, Release: "h1-1", Through: "2", Decision: rollout.Promote}, before + promote +
			"through: \"2\"\n"},
		// Encode writes the older APIVersion, so that older reconcilers obey the file as well.
		"Abort": {rollout.Promotion{Release: "h1-1", Decision: rollout.Abort}, before + "decision: abort\nkind: Promotion\nrelease: h1-1\n"},
		"Full":  {rollout.Promotion{Release: "h1-1", Through: rollout.Full, Decision: rollout.Promote}, before + promote + "through: full\n"},
		"Restart": {rollout.Promotion{Release: "h1-1", Decision: rollout.Restart, RestartAt: began},
			before + "decision: restart\nkind: Promotion\nrelease: h1-1\nrestartAt: \"2026-11-22T10:00:00Z\"\n"},
	} {
		data, err := tc.p.Encode()
		must(t, err)
		compare.CheckNamed(t, name, tc.want, string(data))
		if back, err := rollout.ParsePromotion("p", data); err != nil || back.Through != tc.p.Through && tc.p.Decision == rollout.Promote {
			t.Errorf("%s is read as %+v: %v", name, back, err)
		}
	}
	if got, want := rollout.PromotionPath("prod-eu", "shop"), ".gitrollout/prod-eu/promote/shop.yaml"; got != want {
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
		p, err := rollout.ParsePromotion("p.yaml", data)
		if err != nil {
			var invalid *rollout.InvalidError
			if !errors.As(err, &invalid) {
				t.Fatalf("%T is not an InvalidError: %v", err, err)
			}
			return
		}
		for _, names := range [][]string{nil, {""}, {"a", "b", "c"}} {
			opened := true
			for i := range names { // after a closed gate, no gate is open
				now := p.Opens(p.Release, rollout.Workload{Name: "web"}, names, i)
				if now && !opened {
					t.Fatalf("%+v opens step %d but not an earlier one", p, i)
				}
				opened = now
			}
		}
		once, err := p.Encode()
		must(t, err)
		back, err := rollout.ParsePromotion("p.yaml", once)
		if err != nil {
			t.Fatalf("a promotion that was written cannot be read: %v\n%s", err, once)
		}
		back.Digest, p.Digest = "", ""
		if diff := compare.Diff(p, back); diff != "" {
			t.Fatalf("round trip (-want +got):\n%s", diff)
		}
	})
}
