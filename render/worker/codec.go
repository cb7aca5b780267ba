package worker

import (
	"errors"
	"fmt"
	"math"
	"reflect"

	"github.com/fxamacker/cbor/v2"

	"gitrollout.dev/gitrollout/traffic"
)

// Messages are CBOR, which preserves nil lists, pointers to 0, and 1.0 as a float, unlike encoding/json and
// encoding/gob. A field with the tag json:"-" needs a tag cbor (see TestAllFieldsCross).
var (
	encoding, _ = cbor.EncOptions{Time: cbor.TimeRFC3339Nano}.EncMode() // no error, because the options are valid
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

// UnmarshalCBOR decodes an outcome. CBOR lacks the types of routers, so UnmarshalCBOR converts each router's mapping to
// the type of the router's kind.
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
