package worker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/traffic"
)

// The bytes of a message are exact, which neither encoding/json nor encoding/gob would be: a nil list stays one, and
// so do a pointer to 0, and 1.0 that is no whole number. A struct is its fields one after the other, since both
// sides are the same program.

// The types that a value of any type can have. A router's configuration is by the router's name.
const (
	isNil = iota
	isFalse
	isTrue
	isWhole
	isFloat
	isText
	isList
	isMapping
	isRouter
)

// short are the texts that are sent once, and then by number: keys, kinds and names are there again and again.
const short = 64

var errGarbled = errors.New("the message is garbled")

type encoder struct {
	out   []byte
	texts map[string]uint64
}

// encode returns the bytes of a value.
func encode(v any) ([]byte, error) {
	e := &encoder{texts: map[string]uint64{}}
	if err := e.value(reflect.ValueOf(v)); err != nil {
		return nil, err
	}
	return e.out, nil
}

func (e *encoder) uint(n uint64) { e.out = binary.AppendUvarint(e.out, n) }

func (e *encoder) text(s string) {
	if n, known := e.texts[s]; known {
		e.uint(n<<1 | 1)
		return
	}
	e.uint(uint64(len(s)) << 1)
	e.out = append(e.out, s...)
	if len(s) <= short {
		e.texts[s] = uint64(len(e.texts))
	}
}

func (e *encoder) float(f float64) {
	e.out = binary.LittleEndian.AppendUint64(e.out, math.Float64bits(f))
}

func (e *encoder) value(v reflect.Value) error {
	switch v.Kind() {
	case reflect.Bool:
		e.out = append(e.out, isFalse)
		if v.Bool() {
			e.out[len(e.out)-1] = isTrue
		}
	case reflect.Int, reflect.Int64:
		e.out = binary.AppendVarint(e.out, v.Int())
	case reflect.Float64:
		e.float(v.Float())
	case reflect.String:
		e.text(v.String())
	case reflect.Interface:
		return e.any(v.Interface())
	case reflect.Pointer:
		if v.IsNil() {
			e.uint(0)
			return nil
		}
		e.uint(1)
		return e.value(v.Elem())
	case reflect.Slice:
		return e.list(v)
	case reflect.Map:
		return e.mapping(v)
	case reflect.Struct:
		for i := range v.NumField() {
			if !v.Type().Field(i).IsExported() {
				if !v.Field(i).IsZero() {
					return fmt.Errorf("encode %s: %s is set", v.Type(), v.Type().Field(i).Name)
				}
				continue
			}
			if err := e.value(v.Field(i)); err != nil {
				return err
			}
		}
	default:
		return fmt.Errorf("encode %s: no such value crosses", v.Type())
	}
	return nil
}

func (e *encoder) list(v reflect.Value) error {
	if v.IsNil() {
		e.uint(0)
		return nil
	}
	e.uint(uint64(v.Len()) + 1)
	if v.Type().Elem().Kind() == reflect.Uint8 {
		e.out = append(e.out, v.Bytes()...)
		return nil
	}
	for i := range v.Len() {
		if err := e.value(v.Index(i)); err != nil {
			return err
		}
	}
	return nil
}

func (e *encoder) mapping(v reflect.Value) error {
	if object, is := v.Interface().(rollout.Object); is {
		return e.object(object)
	}
	if v.IsNil() {
		e.uint(0)
		return nil
	}
	e.uint(uint64(v.Len()) + 1)
	for entries := v.MapRange(); entries.Next(); {
		if err := e.value(entries.Key()); err != nil {
			return err
		}
		if err := e.value(entries.Value()); err != nil {
			return err
		}
	}
	return nil
}

// object writes what nearly all of a Render is, without reflection.
func (e *encoder) object(m map[string]any) error {
	if m == nil {
		e.uint(0)
		return nil
	}
	e.uint(uint64(len(m)) + 1)
	for key, v := range m {
		e.text(key)
		if err := e.any(v); err != nil {
			return err
		}
	}
	return nil
}

func (e *encoder) any(v any) error {
	switch v := v.(type) {
	case nil:
		e.uint(isNil)
	case bool:
		e.uint(isFalse)
		if v {
			e.out[len(e.out)-1] = isTrue
		}
	case int64:
		e.uint(isWhole)
		e.out = binary.AppendVarint(e.out, v)
	case float64:
		e.uint(isFloat)
		e.float(v)
	case string:
		e.uint(isText)
		e.text(v)
	case []any:
		e.uint(isList)
		if v == nil {
			e.uint(0)
			return nil
		}
		e.uint(uint64(len(v)) + 1)
		for _, element := range v {
			if err := e.any(element); err != nil {
				return err
			}
		}
	case map[string]any:
		e.uint(isMapping)
		return e.object(v)
	default:
		return e.router(v)
	}
	return nil
}

// router writes a router's configuration, which is a pointer to a struct of package traffic.
func (e *encoder) router(v any) error {
	of := reflect.ValueOf(v)
	for kind, t := range traffic.Types() {
		if of.Type() == reflect.PointerTo(t) && !of.IsNil() {
			e.uint(isRouter)
			e.text(kind)
			return e.value(of.Elem())
		}
	}
	return fmt.Errorf("encode: no %T crosses", v)
}

type decoder struct {
	in    []byte
	texts []string
	err   error
}

// decode reads the bytes of a value into it.
func decode(data []byte, into any) error {
	d := &decoder{in: data}
	d.value(reflect.ValueOf(into).Elem())
	if len(d.in) > 0 {
		d.fail()
	}
	return d.err
}

// fail ends the message: all that is still asked of it is 0, and soon over.
func (d *decoder) fail() { d.in, d.err = nil, errGarbled }

func (d *decoder) uint() uint64 {
	n, size := binary.Uvarint(d.in)
	if size <= 0 {
		d.fail()
		return 0
	}
	d.in = d.in[size:]
	return n
}

func (d *decoder) int() int64 {
	n, size := binary.Varint(d.in)
	if size <= 0 {
		d.fail()
		return 0
	}
	d.in = d.in[size:]
	return n
}

// bytes are the next n, which stay where they are.
func (d *decoder) bytes(n uint64) []byte {
	if n > uint64(len(d.in)) {
		d.fail()
		return nil
	}
	out := d.in[:n:n]
	d.in = d.in[n:]
	return out
}

func (d *decoder) float() float64 {
	if b := d.bytes(8); b != nil {
		return math.Float64frombits(binary.LittleEndian.Uint64(b))
	}
	return 0
}

func (d *decoder) text() string {
	n := d.uint()
	if n&1 == 1 {
		if n>>1 >= uint64(len(d.texts)) {
			d.fail()
			return ""
		}
		return d.texts[n>>1]
	}
	s := string(d.bytes(n >> 1))
	if len(s) <= short {
		d.texts = append(d.texts, s)
	}
	return s
}

// length is that of a list or mapping, of which each element takes a byte or more.
func (d *decoder) length() (n int, isNil bool) {
	sent := d.uint()
	if sent > uint64(len(d.in))+1 {
		d.fail()
		return 0, true
	}
	return int(sent) - 1, sent == 0
}

func (d *decoder) value(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(d.uint() == isTrue)
	case reflect.Int, reflect.Int64:
		v.SetInt(d.int())
	case reflect.Float64:
		v.SetFloat(d.float())
	case reflect.String:
		v.SetString(d.text())
	case reflect.Interface:
		if got := d.any(); got != nil {
			v.Set(reflect.ValueOf(got))
		}
	case reflect.Pointer:
		if d.uint() == 1 {
			v.Set(reflect.New(v.Type().Elem()))
			d.value(v.Elem())
		}
	case reflect.Slice:
		d.list(v)
	case reflect.Map:
		d.mapping(v)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				d.value(v.Field(i))
			}
		}
	default:
		d.fail()
	}
}

func (d *decoder) list(v reflect.Value) {
	n, isNil := d.length()
	if isNil {
		return
	}
	if v.Type().Elem().Kind() == reflect.Uint8 {
		v.SetBytes(d.bytes(uint64(n)))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), n, n))
	for i := range n {
		d.value(v.Index(i))
	}
}

func (d *decoder) mapping(v reflect.Value) {
	if v.Type() == reflect.TypeFor[rollout.Object]() {
		v.Set(reflect.ValueOf(rollout.Object(d.object())))
		return
	}
	n, isNil := d.length()
	if isNil {
		return
	}
	v.Set(reflect.MakeMapWithSize(v.Type(), n))
	for range n {
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		d.value(key)
		d.value(value)
		v.SetMapIndex(key, value)
	}
}

func (d *decoder) object() map[string]any {
	n, isNil := d.length()
	if isNil {
		return nil
	}
	m := make(map[string]any, n)
	for range n {
		key := d.text()
		m[key] = d.any()
	}
	return m
}

func (d *decoder) any() any {
	switch d.uint() {
	case isNil:
		return nil
	case isFalse:
		return false
	case isTrue:
		return true
	case isWhole:
		return d.int()
	case isFloat:
		return d.float()
	case isText:
		return d.text()
	case isList:
		n, isNil := d.length()
		if isNil {
			return []any(nil)
		}
		out := make([]any, n)
		for i := range out {
			out[i] = d.any()
		}
		return out
	case isMapping:
		return d.object()
	case isRouter:
		t := traffic.Types()[d.text()]
		if t == nil {
			break
		}
		v := reflect.New(t)
		d.value(v.Elem())
		return v.Interface()
	}
	d.fail()
	return nil
}
