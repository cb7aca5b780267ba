package worker

import (
	"bytes"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/traffic"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// exact returns an outcome with values that other encodings change.
func exact(t testing.TB) outcome {
	t.Helper()
	router, err := traffic.Parse("istio", map[string]any{"virtualService": map[string]any{"name": "web", "routes": []any{"primary"}}}, nil)
	must(t, err)
	long := strings.Repeat("long ", 100)
	return outcome{
		Render: &rollout.Render{
			App: rollout.App{Name: "shop", Limits: rollout.Limits{Memory: 1 << 40}},
			Objects: []rollout.Object{
				{"apiVersion": "v1", "kind": "ConfigMap", "none": nil, "list": []any{}, "map": map[string]any{}},
				{"whole": int64(1), "not whole": 1.0, "least": int64(math.MinInt64), "most": int64(math.MaxInt64), "small": 5e-324,
					"minus": math.Copysign(0, -1)},
				{"yes": true, "no": false, "text": "", "long": long, "again": long, "bytes": "\xff\x00",
					"deep": []any{[]any{map[string]any{"a": []any{nil, "kind", false}}}}},
				nil, {},
			},
			Specs: []rollout.Spec{{
				Name: "shop", Replicas: new(0), RollbackWindow: nil, MaxSurge: rollout.Amount{Percent: true},
				Canary: &rollout.Canary{
					Steps: []rollout.Step{{SetWeight: new(0)}, {Pause: &rollout.Pause{}}, {Pause: &rollout.Pause{Duration: new(time.Duration(0))}},
						{Experiment: &rollout.Experiment{Templates: []rollout.ExperimentTemplate{{Service: new("")}},
							Analyses: []rollout.ExperimentAnalysis{{Analysis: &rollout.Analysis{}}}}}},
					Traffic: &rollout.Traffic{Routers: []rollout.Router{router, {Kind: "none"}}, Sticky: &rollout.Sticky{MaxAge: time.Hour}},
					Analysis: &rollout.Analysis{Metrics: []rollout.Metric{{Name: "m", Compare: &rollout.Compare{MaxIncrease: 0.01},
						Config: map[string]any{"a": int64(1)}, Pods: map[string]string{}}}},
				},
			}, {BlueGreen: &rollout.BlueGreen{}}},
			Templates: map[rollout.Workload]rollout.Hash{{Name: "web", Namespace: "shop"}: "h1-0"},
			Files:     []string{}, Digest: "d", Warnings: nil,
		},
		Invalid: &rollout.InvalidError{About: rollout.Ref{Kind: "Service", Name: "web"}, File: "f", Field: "g", Msg: "m", Fix: "x"},
		Err:     "e", Looked: render.Looked{At: []string{"", "a", "a/b"}, All: []string{"a"}}, Panic: "p", Stack: []byte{0, 1},
	}
}

// TestExact checks that a decoded outcome equals the encoded outcome. Nil lists stay nil, empty lists stay empty, and 1.0 stays a float.
func TestExact(t *testing.T) {
	want := exact(t)
	data, err := encoding.Marshal(want)
	must(t, err)
	var got outcome
	must(t, decode(data, &got))
	compare.CheckNamed(t, "arrived, want the sent outcome", want, got)
	if !math.Signbit(got.Render.Objects[1]["minus"].(float64)) {
		t.Error("-0 is 0")
	}
}

// TestAllFieldsCross checks that CBOR encodes every field of a message: each field is exported, and each field with the tag json:"-" has a
// cbor tag.
func TestAllFieldsCross(t *testing.T) {
	seen := map[reflect.Type]bool{reflect.TypeFor[time.Time](): true}
	var check func(of reflect.Type)
	check = func(of reflect.Type) {
		if seen[of] {
			return
		}
		switch seen[of] = true; of.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			check(of.Elem())
		case reflect.Struct:
			for i := range of.NumField() {
				f := of.Field(i)
				if of == reflect.TypeFor[rollout.Render]() && (f.Name == "packed" || f.Name == "of") {
					continue // only the parent packs renders
				}
				if left := f.Tag.Get("json") == "-" && f.Tag.Get("cbor") == ""; f.Name != "_" && (left || !f.IsExported()) {
					t.Errorf("%s.%s does not cross", of, f.Name)
				}
				check(f.Type)
			}
		case reflect.Func, reflect.Chan:
			t.Errorf("%s does not cross", of)
		}
	}
	check(reflect.TypeFor[order]())
	check(reflect.TypeFor[word]())
	for _, router := range traffic.Types() {
		check(router)
	}
	if err := send(&bytes.Buffer{}, order{Content: []byte{maxMessage + 1: 0}}); !errors.Is(err, errTooLarge) {
		t.Errorf("a message of more than it may have: %v", err)
	}
}

// TestUnknownRouter checks that decoding a message with a router of an unknown kind fails with errGarbled.
func TestUnknownRouter(t *testing.T) {
	sent := exact(t)
	sent.Render.Specs[0].Canary.Traffic.Routers[0].Kind = "none"
	data, err := encoding.Marshal(sent)
	must(t, err)
	if err := decode(data, &outcome{}); !errors.Is(err, errGarbled) {
		t.Errorf("got %v, want %v", err, errGarbled)
	}
}

// FuzzDecode decodes any bytes and must not panic. A decoded outcome can be encoded and decoded again.
func FuzzDecode(f *testing.F) {
	data, err := encoding.Marshal(exact(f))
	must(f, err)
	f.Add(data)
	f.Add([]byte{1})
	f.Fuzz(func(t *testing.T, data []byte) {
		var o outcome
		if err := decode(data, &o); err != nil {
			return
		}
		again, err := encoding.Marshal(o)
		must(t, err)
		var o2 outcome
		if err := decode(again, &o2); err != nil {
			t.Fatalf("the outcome that was encoded anew: %v", err)
		}
	})
}

// TestLastWords checks that cause finds the reason of a crash in a worker's output. The output may end with a stack of
// any length, or begin with any other text.
func TestLastWords(t *testing.T) {
	reason := "runtime: cannot allocate memory\nfatal error: out of memory\n"
	inRuntime := "SIGSEGV: segmentation violation\nPC=0xce47dd m=3 sigcode=1 addr=0x0\n\ngoroutine 0 gp=0x8b m=3 [idle]:\n" +
		"runtime.(*spanQueue).tryDrain(0x8b100002000?, 0x200000001?, 0xcdb938?)\n"
	inProgram := "panic: runtime error: invalid memory address or nil pointer dereference\n" +
		"[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0xd3dd28]\n"
	much := strings.Repeat("main.recurse(0x1)\n\t/recurse.go:12 +0x1d\n", 20_000)
	for name, c := range map[string]struct {
		said   []string
		ranOut bool
		cause  string
	}{
		"stacks after it":          {[]string{reason, much}, true, "out of memory"},
		"warnings before it":       {[]string{much, reason}, true, "out of memory"},
		"both in pieces":           {[]string{much[:10_000], reason, much[:30_000], much}, true, "out of memory"},
		"Go's collector has none":  {[]string{inRuntime, much}, true, "segmentation violation"},
		"another fault of Go's":    {[]string{strings.Replace(inRuntime, "0x0\n", "0x18\n", 1)}, false, "segmentation violation"},
		"a fault of the program's": {[]string{inProgram}, false, "runtime error: invalid memory address or nil pointer dereference"},
	} {
		t.Run(name, func(t *testing.T) {
			w := &process{}
			for _, s := range c.said {
				if n, err := w.last.Write([]byte(s)); n != len(s) || err != nil {
					t.Fatalf("wrote %d of %d bytes: %v", n, len(s), err)
				}
			}
			if w.hasRunOut() != c.ranOut || w.cause() != c.cause || len(w.last.bytes()) > mostWords {
				t.Errorf("ran out: %v, of %q, %d bytes", w.hasRunOut(), w.cause(), len(w.last.bytes()))
			}
		})
	}
}
