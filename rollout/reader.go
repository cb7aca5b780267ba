package rollout

import (
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Reader reads one document strictly into structs.
type Reader struct {
	Argo     bool          // the document is of Argo Rollouts
	Hide     bool          // messages leave out the document's texts, which may be credentials
	Err      *InvalidError // first error, with others in Also; or nil
	Partial  bool          // a field is unknown, missing or of the wrong type
	Warnings []string      // each begins with a field's path

	Place func(*InvalidError) // adds file and line to errors; may be nil

	failed   []string // paths of fields with an error
	misnamed bool     // an unknown field may be a missing field's misspelt name
	forms    map[reflect.Type][]Field
}

// Read reads JSON values into a pointer. In errors, each path begins with `at`. For credentials, see Reader.Hide.
func Read(at string, raw, into any) *InvalidError {
	var r Reader
	r.Read(at, raw, into)
	return r.Err
}

// Read is like the function Read, but collects errors and warnings.
func (r *Reader) Read(at string, raw, into any) {
	v := value{r: r, path: at, raw: raw}
	v.into(reflect.ValueOf(into).Elem(), Field{})
}

// Fail records an error, unless the field, or a field below, already has an error.
func (r *Reader) Fail(field, fix, format string, args ...any) {
	e := &InvalidError{Field: field, Msg: fmt.Sprintf(format, args...), Fix: fix}
	if slices.ContainsFunc(r.failed, func(f string) bool { return strings.HasPrefix(f+".", field+".") }) {
		return
	}
	if r.Place != nil {
		r.Place(e)
	}
	e.Field = Printable(field) // names of fields are users' texts
	r.failed, r.Err = append(r.failed, field), r.Err.And(e)
}

// Warn records a probable mistake.
func (r *Reader) Warn(field, format string, args ...any) {
	r.Warnings = append(r.Warnings, Printable(field)+" "+fmt.Sprintf(format, args...))
}

// Selfread is a type that reads its own value. The Reader puts the path before the error, as in "x is missing". An
// *InvalidError may have a fix, and a path below the value.
type Selfread interface{ ReadValue(raw any) error }

type value struct {
	r    *Reader
	path string
	raw  any
}

func (v value) fail(fix, format string, args ...any) { v.r.Fail(v.path, fix, format, args...) }

func (v value) lacks(fix, format string, args ...any) {
	v.r.Partial = true
	v.fail(fix, format, args...)
}

func (v value) misfit(f Field, belongs string) {
	_, isText := v.raw.(string)
	fix := ""
	switch {
	case belongs == "a list":
		fix = "begin each entry with a dash"
	case belongs == "a mapping":
		fix = "write its fields below it"
	case belongs == "a string":
		fix = cmp.Or(f.Tag.Get("fix"), "quote it")
	case isText:
		fix = "write " + belongs + ", without quotes"
	}
	given := Describe(v.raw)
	if isText && v.r.Hide {
		given = "a string"
	}
	v.lacks(fix, "must be %s, not %s", belongs, given)
}

func (v value) into(to reflect.Value, f Field) {
	if v.raw == nil || v.raw == "" && f.Has("default") {
		if raw := f.Literal("default"); raw != nil {
			value{r: v.r, path: v.path, raw: raw}.into(to, f)
		} else if f.Has("needs") && !v.r.misnamed {
			v.lacks(f.Tag.Get("needs"), "is missing")
		}
		return
	}
	if to.Kind() != reflect.Pointer && v.reads(to.Addr().Interface(), f) {
		return
	}
	switch to.Kind() {
	case reflect.Pointer:
		to.Set(reflect.New(to.Type().Elem()))
		v.into(to.Elem(), f)
	case reflect.Struct:
		v.mapping(to)
	case reflect.Map:
		v.entries(to, f)
	case reflect.Slice:
		v.list(to, f)
	case reflect.String:
		v.text(to, f)
	case reflect.Bool:
		is, ok := v.raw.(bool)
		if !ok {
			v.misfit(f, "true or false")
		}
		to.SetBool(is)
	case reflect.Float64:
		v.number(to, f)
	case reflect.Interface:
		to.Set(reflect.ValueOf(v.raw))
	default:
		v.whole(to, f)
	}
	hasLength := slices.Contains([]reflect.Kind{reflect.String, reflect.Slice, reflect.Map}, to.Kind())
	if f.Has("needs") && hasLength && to.Len() == 0 {
		v.lacks(f.Tag.Get("needs"), "is empty")
	}
}

func (v value) reads(to any, f Field) bool {
	var err error
	switch to := to.(type) {
	case *time.Duration:
		v.duration(to, f)
		return true
	case *time.Time:
		text, _ := v.raw.(string)
		if *to, err = time.Parse(time.RFC3339, text); err != nil {
			v.fail("write it as in 2026-01-02T15:04:05Z", "%s is not a time", Describe(v.raw))
		}
		return true
	case Selfread:
		err = to.ReadValue(v.raw)
	case encoding.TextUnmarshaler:
		text, ok := v.raw.(string)
		if !ok {
			v.misfit(f, "a string")
			return true
		}
		err = to.UnmarshalText([]byte(text))
	case json.Unmarshaler:
		var data []byte
		if data, err = json.Marshal(v.raw); err == nil {
			err = to.UnmarshalJSON(data)
		}
	default:
		return false
	}
	if invalid, is := errors.AsType[*InvalidError](err); is && invalid != nil {
		v.r.Fail(join(v.path, invalid.Field), invalid.Fix, "%s", invalid.Msg)
	} else if err != nil {
		v.fail("", "%v", err)
	}
	return true
}

func join(path, field string) string {
	if path == "" || field == "" || field[0] == '[' {
		return path + field
	}
	return path + "." + field
}

func (v value) mapping(to reflect.Value) {
	given, ok := v.raw.(map[string]any)
	if !ok {
		v.misfit(Field{}, "a mapping")
		return
	}
	form := v.form(to.Type())
	known, rest := map[string]bool{}, -1
	for i, f := range form {
		known[f.Name] = true
		if f.Name == Rest {
			rest = i
		}
	}
	others := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if known[name] {
			continue
		}
		if others[name] = given[name]; rest < 0 {
			v.r.misnamed, v.r.Partial = true, true
			v.r.Fail(join(v.path, name), suggest(name, form, v.r.Argo), "is not a known field")
		}
	}
	for i, f := range form {
		switch {
		case i == rest:
			to.FieldByIndex(f.index).Set(reflect.ValueOf(others))
		case f.Name == "":
			v.rules(f, given)
		default:
			v.field(to, f, given[f.Name])
		}
	}
}

func (v value) form(t reflect.Type) []Field {
	form, known := v.r.forms[t]
	if !known {
		form = Fields(t)
		if v.r.forms == nil {
			v.r.forms = map[reflect.Type][]Field{}
		}
		v.r.forms[t] = form
	}
	return form
}

func (v value) field(to reflect.Value, f Field, raw any) {
	at := value{r: v.r, path: join(v.path, f.Name), raw: raw}
	if raw != nil {
		switch {
		case f.Has("notYet"):
			v.r.Fail(at.path, f.Tag.Get("notYet"), "is not supported yet")
		case f.Has("refused"):
			v.r.Fail(at.path, f.Tag.Get("refused"), "is not supported here")
		case !v.r.Argo && f.Has("argo"):
			v.r.Fail(at.path, f.Tag.Get("argo"), "is not supported here")
		case v.r.Argo && f.Has("own"):
			v.r.Fail(at.path, cmp.Or(f.Tag.Get("own"), "use apiVersion "+APIVersion), "is not a field of Argo Rollouts")
		case f.Has("ignored"):
			v.r.Warn(at.path, "is ignored: %s", f.Tag.Get("ignored"))
		}
	}
	if into := to.FieldByIndex(f.index); into.CanSet() {
		at.into(into, f)
	}
}

func (v value) rules(f Field, given map[string]any) {
	if f.Has("some") && len(given) == 0 {
		v.fail(f.Tag.Get("some"), "is empty")
	}
	if !f.Has("one") {
		return
	}
	among := f.Words("one")
	has := slices.DeleteFunc(slices.Clone(among), func(name string) bool {
		raw := given[name]
		return raw == nil || raw == "" || raw == false
	})
	switch {
	case len(has) == 0 && !v.r.misnamed:
		v.lacks(cmp.Or(f.Tag.Get("none"), "give one"), "needs one of %s", strings.Join(among, ", "))
	case len(has) > 1:
		v.lacks(cmp.Or(f.Tag.Get("many"), "keep only one"), "has %s", strings.Join(has, " and "))
	}
}

func (v value) entries(to reflect.Value, f Field) {
	given, ok := v.raw.(map[string]any)
	if !ok {
		v.misfit(f, "a mapping")
		return
	}
	to.Set(reflect.MakeMapWithSize(to.Type(), len(given)))
	for _, name := range slices.Sorted(maps.Keys(given)) {
		at := value{r: v.r, path: v.path + "[" + name + "]", raw: given[name]}
		key, element := reflect.New(to.Type().Key()).Elem(), reflect.New(to.Type().Elem()).Elem()
		value{r: v.r, path: at.path, raw: name}.into(key, Field{})
		at.into(element, Field{Tag: f.Tag})
		to.SetMapIndex(key, element)
	}
}

func (v value) list(to reflect.Value, f Field) {
	given, ok := v.raw.([]any)
	if !ok {
		v.misfit(f, "a list")
		return
	}
	if most, err := strconv.Atoi(f.Tag.Get("max")); err == nil && len(given) > most {
		v.fail(f.Tag.Get("fix"), "has %d entries, at most %d are allowed", len(given), most)
	}
	to.Set(reflect.MakeSlice(to.Type(), len(given), len(given)))
	for i, raw := range given {
		at := value{r: v.r, path: fmt.Sprintf("%s[%d]", v.path, i), raw: raw}
		if raw == nil || raw == "" && f.each() != "" { // no format allows ""
			at.lacks("", "is empty")
		}
		at.into(to.Index(i), Field{Tag: f.each()})
	}
}

func (f Field) each() reflect.StructTag {
	var tag string
	for _, key := range []string{"is", "oneOf", "large"} {
		if text, has := f.Tag.Lookup(key); has {
			tag += fmt.Sprintf("%s:%q ", key, text)
		}
	}
	return reflect.StructTag(tag)
}

// FileTypes returns the types of files by kind, for JSON Schemas.
func FileTypes() map[string]reflect.Type {
	return map[string]reflect.Type{
		"Config":    reflect.TypeFor[configFile](),
		"Promotion": reflect.TypeFor[promotionFile](),
		"Freeze":    reflect.TypeFor[freezeFile](),
		"Fleet":     reflect.TypeFor[fleetFile](),
		"Vendor":    reflect.TypeFor[vendorFile](),
		"Policy":    reflect.TypeFor[policyFile](),
	}
}
