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

// Messages keep nil lists, pointers to 0, and 1.0 as a float. encoding/json and encoding/gob would change these values.
// A struct is encoded as its fields in order, because both sides are the same program.

// These constants are the types of a value of type any. isRouter is a router's configuration, with its kind.
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

// short is the maximum length of a text that a message contains only once. Its repetitions are sent as a number.
const short = 64

var errGarbled = errors.New("the message is garbled")

type encoder struct {
	out   []byte
	texts map[string]uint64
}

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

// length encodes the length of a list or mapping. It sends 0 for nil, and otherwise the length plus 1.
func (e *encoder) length(n int, isNil bool) {
	if isNil {
		n = -1
	}
	e.uint(uint64(n + 1))
}

func (e *encoder) bool(b bool) {
	if b {
		e.uint(isTrue)
	} else {
		e.uint(isFalse)
	}
}

func (e *encoder) float(f float64) {
	e.out = binary.LittleEndian.AppendUint64(e.out, math.Float64bits(f))
}

func (e *encoder) value(v reflect.Value) error {
	switch v.Kind() {
	case reflect.Bool:
		e.bool(v.Bool())
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
	e.length(v.Len(), v.IsNil())
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
	e.length(v.Len(), v.IsNil())
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

// object encodes an object without reflection. This saves time, because a Render has mostly objects.
func (e *encoder) object(m map[string]any) error {
	e.length(len(m), m == nil)
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
		e.bool(v)
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
		e.length(len(v), v == nil)
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

// router encodes a router's configuration: a pointer to a struct of package traffic.
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
