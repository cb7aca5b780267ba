package traffic

import (
	"bytes"
	"encoding/json"
	"errors"

	"gitrollout.dev/gitrollout/rollout"
)

func decodeJSON(raw []byte, into any) error {
	from := json.NewDecoder(bytes.NewReader(raw))
	from.DisallowUnknownFields()
	return from.Decode(into)
}

func asError(err error, into **rollout.InvalidError) bool { return errors.As(err, into) }
