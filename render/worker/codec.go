package worker

import (
	"errors"
	"fmt"
	"math"
	"reflect"

	"github.com/fxamacker/cbor/v2"

	"gitrollout.dev/gitrollout/traffic"
)

// CBOR preserves nil lists, pointers to 0, and 1.0 as a float, unlike encoding/json and gob. A field with json:"-"
// needs a tag cbor (TestAllFieldsCross).
var (
	encoding, _ = cbor.EncOptions{Time: cbor.TimeRFC3339Nano}.EncMode() // the options are valid
	decoding, _ = cbor.DecOptions{
		MaxNestedLevels: 1000, MaxArrayElements: math.MaxInt32, MaxMapPairs: math.MaxInt32, TagsMd: cbor.TagsForbidden,
		IntDec: cbor.IntDecConvertSignedOrFail, DefaultMapType: reflect.TypeFor[map[string]any](),
		UTF8: cbor.UTF8DecodeInvalid, FieldNameMatching: cbor.FieldNameMatchingCaseSensitive,
	}.DecMode()
)

var errGarbled = errors.New("the message is garbled")

func decode(data []byte, into any) error {
	if err := decoding.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%w: %w", errGarbled, err)
	}
	return nil
}

// UnmarshalCBOR converts each router's mapping to its kind's type, which CBOR lacks.
func (o *outcome) UnmarshalCBOR(data []byte) error {
	type plain outcome
	if err := decode(data, (*plain)(o)); err != nil || o.Render == nil {
		return err
	}
	types := traffic.Types()
	for _, s := range o.Render.Specs {
		if s.Canary == nil || s.Canary.Traffic == nil {
			continue
		}
		for i := range s.Canary.Traffic.Routers {
			router := &s.Canary.Traffic.Routers[i]
			if router.Config == nil {
				continue
			}
			t := types[router.Kind]
			if t == nil {
				return fmt.Errorf("%w: there is no router %s", errGarbled, router.Kind)
			}
			config := reflect.New(t)
			raw, err := encoding.Marshal(router.Config)
			if err == nil {
				err = decode(raw, config.Interface())
			}
			if err != nil {
				return err
			}
			router.Config = config.Interface()
		}
	}
	return nil
}
