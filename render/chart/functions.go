package chart

import (
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"time"

	helm "helm.sh/helm/v4/pkg/chart/v2"
	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/rollout"
)

type functions struct {
	draw   Draw
	called map[string]bool
}

func pick[T any](f *functions, name string, first, second T) T {
	f.called[name] = true
	if f.draw == Other {
		return second
	}
	return first
}

var errNoClock = errors.New("durationRound is not supported: rendering has no clock")

type certificate struct{ Cert, Key string }

func (f *functions) table() template.FuncMap {
	t := template.FuncMap{
		"now": f.now, "ago": f.ago, "date": f.date, "dateInZone": f.dateInZone, "date_in_zone": f.dateInZone,
		"htmlDate":       func(date any) string { return f.date("2006-01-02", date) },
		"htmlDateInZone": func(date any, zone string) string { return f.dateInZone("2006-01-02", date, zone) },
		"toDate":         func(layout, text string) time.Time { at, _ := time.Parse(layout, text); return at },
		"mustToDate":     time.Parse,
		"durationRound":  func(any) (string, error) { return "", errNoClock },
		"uuidv4":         func() string { return pick(f, "uuidv4", strings.Repeat("a", 36), strings.Repeat("b", 36)) },
		"bcrypt":         func(string) string { return pick(f, "bcrypt", "a", "b") },
		"htpasswd":       func(user, _ string) string { return user + ":" + pick(f, "htpasswd", "a", "b") },
		"encryptAES":     func(_, _ string) string { return pick(f, "encryptAES", "a", "b") },
		"genPrivateKey":  func(string) string { return pick(f, "genPrivateKey", "a", "b") },
		"randBytes": func(n int) string {
			return base64.StdEncoding.EncodeToString([]byte(strings.Repeat(pick(f, "randBytes", "a", "b"), n)))
		},
		"randInt": func(from, to int) (int, error) {
			if to <= from {
				return 0, fmt.Errorf("randInt: there is no number from %d to %d", from, to-1)
			}
			return pick(f, "randInt", from, to-1), nil
		},
		"shuffle": func(text string) string {
			runes := []rune(text)
			slices.Reverse(runes)
			return pick(f, "shuffle", text, string(runes))
		},
		"keys": func(all ...map[string]any) []string {
			out := []string{}
			for _, one := range all {
				out = append(out, slices.Sorted(maps.Keys(one))...)
			}
			return out
		},
		"values": func(one map[string]any) []any {
			return rollout.Mapped(slices.Sorted(maps.Keys(one)), func(key string) any { return one[key] })
		},
	}
	for name, chars := range map[string][2]string{"randAlphaNum": {"a", "b"}, "randAlpha": {"a", "b"},
		"randAscii": {"a", "b"}, "randNumeric": {"1", "2"}} {
		t[name] = func(n int) string { return strings.Repeat(pick(f, name, chars[0], chars[1]), n) }
	}
	for _, name := range []string{"genCA", "genCAWithKey", "genSelfSignedCert", "genSelfSignedCertWithKey",
		"genSignedCert", "genSignedCertWithKey"} {
		t[name] = func(...any) certificate { return pick(f, name, certificate{"a", "a"}, certificate{"b", "b"}) }
	}
	if f.draw == Drawn {
		maps.DeleteFunc(t, func(name string, _ any) bool { return !slices.Contains(withoutChance, name) })
	}
	return t
}

// withoutChance lists the functions that are replaced even with Drawn.
var withoutChance = []string{"toDate", "mustToDate", "durationRound", "keys", "values"}

// now returns one of two constants, which differ in every field.
func (f *functions) now() time.Time {
	return pick(f, "now", time.Date(2001, 2, 3, 4, 5, 6, 7, time.UTC), time.Date(2012, 11, 10, 21, 32, 43, 54, time.UTC))
}

func (f *functions) at(date any) time.Time {
	switch date := date.(type) {
	case time.Time:
		return date
	case *time.Time:
		return *date
	case int, int32, int64:
		return time.Unix(reflect.ValueOf(date).Int(), 0)
	}
	return f.now()
}

func (f *functions) ago(date any) string { return f.now().Sub(f.at(date)).Round(time.Second).String() }

func (f *functions) date(layout string, date any) string { return f.at(date).UTC().Format(layout) }

func (f *functions) dateInZone(layout string, date any, zone string) string {
	in, err := time.LoadLocation(zone)
	if err != nil || zone == "Local" {
		in = time.UTC
	}
	return f.at(date).In(in).Format(layout)
}

func (f *functions) differences(c *helm.Chart, first, second []Document) (all []Chance, err error) {
	names := strings.Join(slices.Sorted(maps.Keys(f.called)), ", ")
	for i, d := range first {
		var other Document
		if i < len(second) {
			other = second[i]
		}
		if d.Text == other.Text && d.Source == other.Source {
			continue
		}
		what, field, fix := "the text", "the text", f.fix(c, d.Source)
		var x, y map[string]any
		var o rollout.Object
		if yaml.Unmarshal([]byte(d.Text), &x) == nil && yaml.Unmarshal([]byte(other.Text), &y) == nil {
			o = x
			what = o.Kind() + "/" + o.Name() + ":"
			field = cmp.Or(strings.TrimPrefix(difference(x, y), "."), field)
		}
		if o.IsSecret() {
			fix += "; or have the Secret created only once, with a patch that adds the annotation " +
				rollout.AnnotationCreateOnly + `: "true"`
		}
		why := &rollout.InvalidError{File: d.Source[strings.IndexByte(d.Source, '/')+1:], Fix: fix,
			Msg: strings.TrimSpace(fmt.Sprintf("%s %s would differ at each render (%s)", what, field, names))}
		if d.Source != other.Source {
			return nil, why
		}
		all = append(all, Chance{Kind: o.Kind(), Name: o.Name(), Hook: d.Hook, Why: why})
	}
	if len(second) > len(first) {
		return nil, &rollout.InvalidError{File: ".", Msg: "would render to different objects each time (" + names + ")",
			Fix: f.fix(c, "")}
	}
	return all, nil
}

func difference(x, y any) string {
	a, isMap := x.(map[string]any)
	b, alike := y.(map[string]any)
	if isMap && alike {
		for _, key := range slices.Concat(slices.Sorted(maps.Keys(a)), slices.Sorted(maps.Keys(b))) {
			was, had := a[key]
			is, has := b[key]
			if had != has || !reflect.DeepEqual(was, is) {
				return "." + key + difference(was, is)
			}
		}
		return ""
	}
	list, isList := x.([]any)
	others, alike := y.([]any)
	for i := range list {
		if isList && alike && i < len(others) && !reflect.DeepEqual(list[i], others[i]) {
			return fmt.Sprintf("[%d]%s", i, difference(list[i], others[i]))
		}
	}
	return ""
}

var valueName = regexp.MustCompile(`\.Values((?:\.\w+)+)`)

func (f *functions) fix(c *helm.Chart, source string) string {
	near, far := map[string]bool{}, map[string]bool{}
	calls := regexp.MustCompile(`\b(` + strings.Join(slices.Sorted(maps.Keys(f.called)), "|") + `)\b`)
	var look func(c *helm.Chart, prefix string)
	look = func(c *helm.Chart, prefix string) {
		for _, t := range c.Templates {
			for line := range strings.Lines(string(t.Data)) {
				if !calls.MatchString(line) {
					continue
				}
				for _, m := range valueName.FindAllStringSubmatch(line, -1) {
					far[prefix+m[1][1:]] = true
					if c.ChartFullPath()+"/"+t.Name == source {
						near[prefix+m[1][1:]] = true
					}
				}
			}
		}
		for _, d := range c.Dependencies() {
			look(d, prefix+d.Name()+".")
		}
	}
	look(c, "")
	named := near
	if len(near) == 0 {
		named = far
	}
	if len(named) == 0 {
		return "set it by a value, or remove it from the template"
	}
	return "set " + strings.Join(slices.Sorted(maps.Keys(named)), ", ") + " in the values"
}
