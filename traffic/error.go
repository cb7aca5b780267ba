package traffic

import (
	"fmt"

	"gitrollout.dev/gitrollout/rollout"
)

// wrong is the error of an object.
func wrong(about rollout.Ref, field, format string, args ...any) *rollout.InvalidError {
	return &rollout.InvalidError{About: about, Field: field, Msg: fmt.Sprintf(format, args...)}
}

// misfit is the error of the configuration.
func misfit(field, format string, args ...any) *rollout.InvalidError {
	return wrong(rollout.Ref{}, field, format, args...)
}

// missing is the error of a name that no object of the app has.
func missing(field, kind, namespace, name string) error {
	if name == "" {
		return misfit(field, "is missing").WithFix("name the %s", kind)
	}
	return misfit(field, "%s/%s/%s is not in this app", kind, namespace, name).WithFix("add it to the kustomization")
}
