package render

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/applyconfigurations"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestPauseUntil(t *testing.T) {
	for name, tt := range map[string]struct{ group, pause, want string }{
		"a moment":       {ownGroup, `{until: "0 9 * * 1-5", timeZone: Europe/Berlin}`, ""},
		"in UTC":         {ownGroup, `{until: "0 9 * * *"}`, ""},
		"and a duration": {ownGroup, `{until: "0 9 * * *", duration: 5m}`, "pause.until: conflicts with duration or timeout"},
		"and a timeout":  {ownGroup, `{until: "0 9 * * *", timeout: 5m, onTimeout: abort}`, "pause.until: conflicts with duration or timeout"},
		"a zone alone":   {ownGroup, `{timeZone: UTC}`, "pause.timeZone: is given without until"},
		"no schedule":    {ownGroup, `{until: tomorrow}`, `pause.until: "tomorrow" is not a schedule`},
		"no zone":        {ownGroup, `{until: "0 9 * * *", timeZone: Bonn}`, `pause.timeZone: "Bonn" is not a time zone`},
		"a zone inside":  {ownGroup, `{until: "CRON_TZ=UTC 0 9 * * *"}`, "belongs in timeZone"},
		"Argo's":         {argoGroup, `{until: "0 9 * * *"}`, "pause.until: is not a field of Argo Rollouts"},
	} {
		t.Run(name, func(t *testing.T) {
			object := rollout.Object{}
			text := "apiVersion: " + tt.group + "/v1alpha1\nkind: Rollout\nmetadata: {name: web, namespace: a}\nspec:\n" +
				"  workloadRef: {apiVersion: apps/v1, kind: Deployment, name: web}\n  strategy: {canary: {steps: [{pause: " + tt.pause + "}]}}\n"
			must(t, yaml.Unmarshal([]byte(text), &object))
			d, err := newDocument(object)
			if tt.want != "" {
				compare.Contains(t, fmt.Sprint(err), tt.want)
				return
			}
			must(t, err)
			if p := d.spec.Canary.Steps[0].Pause; p.Until == "" || p.Duration != nil {
				t.Errorf("read as %+v", p)
			}
		})
	}
}

// TestNewestKubernetes checks that the constant newest is the minor version of the required client-go.
func TestNewestKubernetes(t *testing.T) {
	data, err := os.ReadFile("../go.mod")
	must(t, err)
	compare.Contains(t, string(data), fmt.Sprintf("\tk8s.io/client-go v0.%d.", newest))
}

// TestKeysAsTheServer generates an object of each built-in kind, in which each list has the same item twice. The reader
// must refuse the lists that client-go's schema of the API server refuses.
func TestKeysAsTheServer(t *testing.T) {
	server, lists, index := applyconfigurations.NewTypeConverter(scheme.Scheme), 0, regexp.MustCompile(`\[[^\]]*\]`)
	place := regexp.MustCompile(`(?m)^ *(\.\S+): (.*)$`)
	for gvk, kind := range scheme.Scheme.AllKnownTypes() {
		_, isObject := kind.FieldByName("ObjectMeta")
		if !isObject || gvk.Version == "__internal" || gvk.Kind == "ComponentStatus" { // only the API server writes these kinds
			continue
		}
		object, _ := doubled(kind).(map[string]any)
		object["apiVersion"], object["kind"] = gvk.GroupVersion().String(), gvk.Kind
		_, err := server.ObjectToTyped(&unstructured.Unstructured{Object: object})
		if err == nil || !strings.Contains(err.Error(), "duplicate") {
			t.Logf("%s: %v", gvk, err)
			continue
		}
		want, got := map[string]bool{}, map[string]bool{}
		for _, m := range place.FindAllStringSubmatch(err.Error(), -1) {
			if strings.Contains(m[2], "duplicate") {
				want[index.ReplaceAllString(m[1][1:], "")] = true
			} else {
				t.Errorf("%s: the sample is wrong: %s", gvk, m[0])
			}
		}
		r := typeReader{minor: newest}
		r.Place = func(e *rollout.InvalidError) {
			got[index.ReplaceAllString(e.Field[:strings.LastIndex(e.Field, "[")], "")] = true
			if !strings.Contains(e.Msg, "is listed twice") {
				t.Errorf("%s: %s", gvk, e.Error())
			}
		}
		r.readBuiltIn(object)
		compare.CheckNamed(t, gvk.String(), want, got)
		lists += len(want)
	}
	if lists < 300 {
		t.Errorf("%d lists with keys, want at least 300", lists)
	}
}

// doubled returns a value of a type, in which each list has the same item twice. If a type contains itself, the inner value is nil.
func doubled(kind reflect.Type, within ...reflect.Type) any {
	for kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	switch kind.Name() {
	case "Time":
		return "2026-11-29T07:00:00Z"
	case "MicroTime":
		return "2026-11-29T07:00:00.000000Z"
	case "Duration", "Quantity":
		return "1"
	}
	if _, readsItself := reflect.New(kind).Interface().(json.Unmarshaler); readsItself || slices.Contains(within, kind) {
		return nil
	}
	if kind.Kind() == reflect.Struct {
		within = append(slices.Clip(within), kind)
	}
	switch kind.Kind() {
	case reflect.Struct:
		object := map[string]any{}
		for _, f := range rollout.Fields(kind) {
			if f.Name == "status" {
				continue // the table has no fields of statuses, because Git has no statuses
			}
			object[f.Name] = doubled(f.Type, within...)
		}
		return object
	case reflect.Map:
		return map[string]any{"a": doubled(kind.Elem(), within...)}
	case reflect.Slice:
		if kind.Elem().Kind() == reflect.Uint8 {
			return "YQ=="
		}
		item := doubled(kind.Elem(), within...)
		return []any{item, item}
	case reflect.String:
		return "a"
	case reflect.Bool:
		return true
	default:
		return int64(1)
	}
}

// TestFieldTable checks each line of the embedded field table.
func TestFieldTable(t *testing.T) {
	last := ""
	for line := range strings.Lines(fieldTable) {
		words := strings.Fields(line)
		if len(words) < 2 || !strings.HasPrefix(words[0], "api") || words[0] <= last {
			t.Fatalf("line %q is not TYPE.FIELD MINOR KEYS, or not in order", line)
		}
		last = words[0]
		if minor, err := strconv.Atoi(words[1]); err != nil || minor > newest || minor == 0 && len(words) == 2 {
			t.Errorf("line %q says nothing", line)
		}
	}
}

// TestExpressionsOfFlux checks the results of the expressions in the documentation of Flux and of its library envsubst.
func TestExpressionsOfFlux(t *testing.T) {
	v := variables{"var": "abcABC123", "dotted": "a.b.c", "cluster_env": "prod", "empty": "", "quote": `"`, "n": "8"}
	for text, want := range map[string]string{
		"${var}": "abcABC123", "${#var}": "9", "${var^}": "AbcABC123", "${var^^}": "ABCABC123", "${var,}": "abcABC123", "${var,,}": "abcabc123",
		"${var:3}": "ABC123", "${var:3:2}": "AB", "${dotted#*.}": "b.c", "${dotted##*.}": "c", "${dotted%.*}": "a.b", "${dotted%%.*}": "a",
		"${empty:-default}": "default", "${unset=default}": "default", "${unset:-default}": "default",
		"${unset:=default}": "default", "${cluster_env:=dev}": "prod", "${unset:=${cluster_env}}": "prod", "${unset:=}": "",
		"${dotted/b/x}": "a.x.c", "${dotted//./-}": "a-b-c", "${var/#abc/x}": "xABC123", "${var/%123/x}": "abcABCx",
		"$var": "$var", "$${var}": "${var}", "$$": "$", "${quote}${n}${quote}": `"8"`, "a ${var} b ${n}": "a abcABC123 b 8",
	} {
		got, unset, err := v.eval(text)
		if got != want || unset != "" || err != nil {
			t.Errorf("%s is %q, unset %q, error %v, want %q", text, got, unset, err, want)
		}
	}
	for text, want := range map[string]string{
		"${unset}": "unset", "${#unset}": "unset", "${unset^^}": "unset", "${var}${other:0:1}${unset}": "other", "${empty:=${unset}}": "unset",
	} {
		if got, unset, err := v.eval(text); unset != want || err == nil {
			t.Errorf("%s is %q, unset %q, error %v, want that %s is not set", text, got, unset, err, want)
		}
	}
	for _, text := range []string{"${", "${}", "${a b}", "${var:1:9223372036854775807}", "${var:?word}", "${var:+word}", "${var",
		strings.Repeat("${var}", maxParts+1)} {
		if got, unset, err := v.eval(text); unset != "" || err == nil {
			t.Errorf("%.30s is %q, unset %q, and no error", text, got, unset)
		}
	}
}
