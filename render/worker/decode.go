package worker

import (
	"encoding/binary"
	"math"
	"reflect"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/traffic"
)

type decoder struct {
	in    []byte
	texts []string
	err   error
}

func decode(data []byte, into any) error {
	d := &decoder{in: data}
	d.value(reflect.ValueOf(into).Elem())
	if len(d.in) > 0 {
		d.fail()
	}
	return d.err
}

// fail marks the message as garbled. All further reads return 0, so decoding ends soon.
func (d *decoder) fail() { d.in, d.err = nil, errGarbled }

func (d *decoder) uint() uint64 {
	n, size := binary.Uvarint(d.in)
	return advance(d, n, size)
}

func (d *decoder) int() int64 {
	n, size := binary.Varint(d.in)
	return advance(d, n, size)
}

// advance removes a decoded number of size bytes from the message. A size of 0 or less is an error.
func advance[N int64 | uint64](d *decoder, n N, size int) N {
	if size <= 0 {
		d.fail()
		return 0
	}
	d.in = d.in[size:]
	return n
}

// bytes returns the next n bytes of the message without a copy.
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

// length decodes the length of a list or mapping. It refuses more elements than remaining bytes.
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
