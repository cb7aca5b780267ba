package worker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"

	"github.com/fxamacker/cbor/v2"

	"gitrollout.dev/gitrollout/render"
	"gitrollout.dev/gitrollout/render/sops"
	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/traffic"
)

// maxMessage is in bytes. A file, or all rendered objects as JSON, has at most 16 MiB.
const maxMessage = 64 << 20

type order struct {
	App      *rollout.App
	Ahead    []answer // answers to probable requests
	Answer   *answer
	Content  []byte
	TooLarge bool
	Failed   bool   // reading the tree failed
	Key      []byte // data key for Locks, or nil
	Locked   string // why there is no key
}

// answer has the entry at Path and, if Path's parent folder is small, all entries in this folder. Workers usually
// request these entries next.
type answer struct {
	Path   string
	Entry  rollout.Entry
	Found  bool
	Listed bool
	Folder []rollout.Entry
	Files  map[string][]byte // the folder's small files, by id
}

// word is a worker's request or result. Exactly one field is set.
type word struct {
	Lookup *string     // a path
	List   *string     // a folder; the answer has all entries
	Read   string      // the id of a file
	Locks  []sops.Lock // of an encrypted file; the answer has the data key
	Done   *outcome
}

type outcome struct {
	Render  *rollout.Render
	Invalid *rollout.InvalidError
	Err     string // ignored if reading the tree failed
	Looked  render.Looked

	Panic string
	Stack []byte
}

func send(to io.Writer, message any) error {
	body, err := encoding.Marshal(message)
	if err != nil {
		return err
	}
	if len(body) > maxMessage {
		return fmt.Errorf("%w: %d bytes", errTooLarge, len(body))
	}
	if _, err = to.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(body)))); err == nil {
		_, err = to.Write(body)
	}
	return err
}

var errTooLarge = errors.New("the message is too large")

func receive(from io.Reader, message any) error {
	var head [4]byte
	if _, err := io.ReadFull(from, head[:]); err != nil {
		return err
	}
	n := binary.LittleEndian.Uint32(head[:])
	if n > maxMessage {
		return fmt.Errorf("%w: %d bytes", errTooLarge, n)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(from, body); err != nil {
		return err
	}
	return decode(body, message)
}

// Unlike encoding/json and gob, CBOR preserves nil lists, pointers to 0, and floats such as 1.0. A field with json:"-"
// needs a cbor tag (TestAllFieldsCross).
var (
	encoding, _ = cbor.EncOptions{Time: cbor.TimeRFC3339Nano}.EncMode()
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

// UnmarshalCBOR converts each router's mapping to the Go type of the router's kind, because CBOR does not record types.
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
