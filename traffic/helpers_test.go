package traffic

import (
	"errors"

	kjson "sigs.k8s.io/json"

	"gitrollout.dev/gitrollout/rollout"
)

func decodeJSON(raw []byte, into any) error {
	strict, err := kjson.UnmarshalStrict(raw, into)
	return errors.Join(append(strict, err)...)
}

func asError(err error, into **rollout.InvalidError) bool { return errors.As(err, into) }
