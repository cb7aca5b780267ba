package rollout_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// form is the struct of a test document. It has fields of all kinds, and most of the tags that Field describes.
type form struct {
	inner
	Name    string                            `json:"name" needs:"name it" is:"label"`
	Count   *int                              `json:"count" min:"1" max:"5" fix:"count on one hand"`
	Below   int                               `json:"below" min:"-1"`
	Plain   int                               `json:"plain" default:"30"`
	On      bool                              `json:"set" default:"true"`
	Share   float64                           `json:"share"`
	Kind    rollout.Verb                      `json:"kind" oneOf:"promote hold" default:"hold"`
	Wait    *time.Duration                    `json:"wait"`
	At      time.Time                         `json:"at"`
	About   rollout.Ref                       `json:"about"`
	Names   []string                          `json:"names" max:"2" is:"label" fix:"name fewer"`
	Inner   *inner                            `json:"inner"`
	Listed  []choice                          `json:"listed" needs:"list one"`
	Texts   map[string]string                 `json:"texts"`
	ByApp   map[rollout.Workload]rollout.Hash `json:"byApp"`
	Any     any                               `json:"any"`
	Only    string                            `json:"only" argo:"use the Deployment"`
	Ours    string                            `json:"ours" own:""`
	Hidden  string
	_       any  `field:"later" notYet:"wait"`
	_       any  `field:"wrong" refused:"leave it out"`
	_       any  `field:"useless" ignored:"nothing reads it"`
	Verbose bool `json:"-"`
}

type inner struct {
	Deep string `json:"deep"`
}

type choice struct {
	_ any  `one:"a b" none:"choose" many:"choose one"`
	A *int `json:"a"`
	B *int `json:"b"`
}

type open struct {
	Known string         `json:"known"`
	Rest  map[string]any `json:"*"`
}

const enough = "name: x\nlisted: [{a: 1}]\n"

func readForm(t *testing.T, text string, argo bool) (form, *rollout.Reader) {
	t.Helper()
	data, err := yaml.YAMLToJSONStrict([]byte(text))
	must(t, err)
	raw, err := rollout.FromJSON[any](data)
	must(t, err)
	r := &rollout.Reader{Argo: argo}
	var f form
	r.Read("spec", raw, &f)
	return f, r
}

func TestReaderReads(t *testing.T) {
	one, minute := 1, 90*time.Second
	got, r := readForm(t, enough+`
deep: down
count: 1
below: -1
share: 0.5
kind: promote
wait: "90"
at: 2026-01-02T03:04:05Z
about: core/Service/shop/web
names: [a, b]
inner: {deep: here}
texts: {k: v}
byApp: {shop/web: h1-1}
any: [1]
ours: yes it is
useless: {a: 1}
`, false)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	want := form{
		inner: inner{Deep: "down"}, Name: "x", Count: &one, Below: -1, Plain: 30, On: true, Share: 0.5, Kind: rollout.Promote, Wait: &minute,
		At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), About: rollout.Ref{Kind: "Service", Namespace: "shop", Name: "web"},
		Names: []string{"a", "b"},
		Inner: &inner{Deep: "here"}, Listed: []choice{{A: &one}}, Texts: map[string]string{"k": "v"},
		ByApp: map[rollout.Workload]rollout.Hash{{Namespace: "shop", Name: "web"}: "h1-1"}, Any: []any{int64(1)}, Ours: "yes it is",
	}
	compare.Check(t, want, got)
	compare.CheckNamed(t, "warnings", []string{"spec.useless is ignored: nothing reads it"}, r.Warnings)
	if got, _ := readForm(t, enough+"only: x\n", true); got.Only != "x" {
		t.Errorf("Argo's own field is %q", got.Only)
	}
}

// TestReaderRefuses checks the error text for each kind of mistake, because the errors of all documents have these texts.
func TestReaderRefuses(t *testing.T) {
	for name, tt := range map[string]struct{ text, want string }{
		"missing":              {"listed: [{a: 1}]", "spec.name: is missing; name it"},
		"empty text":           {"name: ''\nlisted: [{a: 1}]", "spec.name: is empty; name it"},
		"empty list":           {"name: x\nlisted: []", "spec.listed: is empty; list one"},
		"unknown":              {enough + "zebra: 1", "spec.zebra: is not a known field; correct its name, or leave it out"},
		"misspelt":             {enough + "Count: 1", "spec.Count: is not a known field; did you mean count?"},
		"one letter":           {enough + "cuont: 1", "spec.cuont: is not a known field; did you mean count?"},
		"few are listed":       {enough + "inner: {zebra: 1}", "spec.inner.zebra: is not a known field; use one of deep"},
		"a mapping for a text": {enough + "deep: {}", "spec.deep: must be a string, not a mapping; quote it"},
		"a number for a text":  {enough + "deep: 1.5", "spec.deep: must be a string, not 1.5; quote it"},
		"a text for a mapping": {enough + "inner: x", `spec.inner: must be a mapping, not the string "x"; write its fields below it`},
		"a mapping for a list": {enough + "names: {}", "spec.names: must be a list, not a mapping; begin each entry with a dash"},
		"a text for a number": {enough + `count: "1"`,
			`spec.count: must be a whole number, not the string "1"; write a whole number, without quotes`},
		"a fraction":            {enough + "count: 1.5", "spec.count: must be a whole number, not 1.5"},
		"a number for a switch": {enough + "set: 1", "spec.set: must be true or false, not 1"},
		"a text for a share": {enough + "share: much",
			`spec.share: must be a number, not the string "much"; write a number, without quotes`},
		"a list for a map":    {enough + "texts: []", "spec.texts: must be a mapping, not a list; write its fields below it"},
		"within a map":        {enough + "texts: {k: 1}", "spec.texts[k]: must be a string, not 1; quote it"},
		"a map's key":         {enough + "byApp: {web: h1-1}", `spec.byApp[web]: workload "web": want namespace/name or Kind/namespace/name`},
		"an empty entry":      {enough + "names: [a, null]", "spec.names[1]: is empty"},
		"within a list":       {"name: x\nlisted: [{a: 1}, {c: 1}]", "spec.listed[1].c: is not a known field; use one of a, b"},
		"below":               {enough + "count: 0", "spec.count: 0 is not within 1..5; count on one hand"},
		"beyond":              {enough + "count: 6", "spec.count: 6 is not within 1..5; count on one hand"},
		"negative":            {enough + "plain: -1", "spec.plain: -1 is negative; give 0 or more"},
		"less than it may be": {enough + "below: -2", "spec.below: -2 is less than -1"},
		"much":                {enough + "plain: 3000000000", "spec.plain: 3000000000 is more than Kubernetes can hold"},
		"too many":            {enough + "names: [a, b, c]", "spec.names: has 3 entries, at most 2 are allowed; name fewer"},
		"one of several":      {enough + "kind: retry", `spec.kind: "retry" is not one of promote, hold`},
		"format":              {"name: X\nlisted: [{a: 1}]", `spec.name: "X" is not a name; use lower-case letters, digits and -, at most 63`},
		"format in a list":    {enough + "names: [a, B]", `spec.names[1]: "B" is not a name; use lower-case letters, digits and -, at most 63`},
		"duration": {enough + "wait: soon",
			`spec.wait: "soon" is not a duration; write seconds, or a duration such as 30s, 5m, 1h30m`},
		"negative duration": {enough + "wait: -5s", `spec.wait: "-5s" is negative; write seconds, or a duration such as 30s, 5m, 1h30m`},
		"negative seconds":  {enough + "wait: -5", `spec.wait: -5 is negative; write seconds, or a duration such as 30s, 5m, 1h30m`},
		"time":              {enough + "at: 5", "spec.at: 5 is not a time; write it as in 2026-01-02T15:04:05Z"},
		"time, of a word":   {enough + "at: yesterday", "spec.at: the string \"yesterday\" is not a time; write it as in 2026-01-02T15:04:05Z"},
		"reads itself": {enough + "about: web",
			`spec.about: object "web": want group/Kind/namespace/name, with core for no group and - for no namespace`},
		"none of": {"name: x\nlisted: [{}]", "spec.listed[0]: needs one of a, b; choose"},
		"two of":  {"name: x\nlisted: [{a: 1, b: 2}]", "spec.listed[0]: has a and b; choose one"},
		"several": {"listed: [{a: 1}]\ncount: 9\ninner: x\nwrong: 1\nset: 1", "spec.name: is missing; name it; " +
			"also spec.count: 9 is not within 1..5; count on one hand; also spec.set: must be true or false, not 1; " +
			`also spec.inner: must be a mapping, not the string "x"; write its fields below it; ` +
			"also spec.wrong: is not supported here; leave it out"},
		"Argo's":                {enough + "only: x", "spec.only: is not supported here; use the Deployment"},
		"not yet":               {enough + "later: x", "spec.later: is not supported yet; wait"},
		"refused":               {enough + "wrong: x", "spec.wrong: is not supported here; leave it out"},
		"no field of documents": {enough + "Hidden: x", "spec.Hidden: is not a known field; correct its name, or leave it out"},
	} {
		if _, r := readForm(t, tt.text, false); r.Err == nil || r.Err.Error() != tt.want {
			t.Errorf("%s:\n got: %v\nwant: %s", name, r.Err, tt.want)
		}
	}
	if _, r := readForm(t, enough+"ours: x", true); r.Err == nil ||
		!strings.Contains(r.Err.Error(), "spec.ours: is not a field of Argo Rollouts; use apiVersion gitrollout.dev") {
		t.Errorf("ours in a document of Argo Rollouts: %v", r.Err)
	}
}

// TestReaderKeepsTheRest checks that a field with the tag json:"*" gets all fields without a struct field.
func TestReaderKeepsTheRest(t *testing.T) {
	var o open
	if err := rollout.Read("", map[string]any{"known": "a", "other": int64(1)}, &o); err != nil {
		t.Fatal(err)
	}
	compare.Check(t, open{Known: "a", Rest: map[string]any{"other": int64(1)}}, o)
}

// TestTags checks the struct tags of all files: each named format must exist, and each default must be valid.
func TestTags(t *testing.T) {
	for kind, of := range rollout.FileTypes() {
		checkTags(t, kind, of)
	}
}

func checkTags(t *testing.T, path string, of reflect.Type) {
	t.Helper()
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice || of.Kind() == reflect.Map {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || of == reflect.TypeFor[time.Time]() {
		return
	}
	r := &rollout.Reader{}
	r.Read(path, map[string]any{}, reflect.New(of).Interface()) // Read panics if a default is invalid
	for _, f := range rollout.Fields(of) {
		for _, key := range []string{"is", "like"} {
			if _, known := rollout.Formats()[f.Tag.Get(key)]; f.Has(key) && !known {
				t.Errorf("%s.%s: %s is not a format", path, f.Name, f.Tag.Get(key))
			}
		}
		checkTags(t, path+"."+f.Name, f.Type)
	}
}
