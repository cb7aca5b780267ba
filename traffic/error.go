package traffic

import (
	"fmt"

	"gitrollout.dev/gitrollout/rollout"
)

// Error says what is wrong with an object, or with the configuration.
type Error struct {
	About rollout.Ref // the zero value for the Rollout document
	Field string      // in the object or, of a Rollout document, below trafficRouting
	Msg   string
	Fix   string
}

// wrong is the error of an object.
func wrong(about rollout.Ref, field, format string, args ...any) *Error {
	return &Error{About: about, Field: field, Msg: fmt.Sprintf(format, args...)}
}

// misfit is the error of the configuration.
func misfit(field, format string, args ...any) *Error {
	return wrong(rollout.Ref{}, field, format, args...)
}

// fix adds what to do.
func (e *Error) fix(format string, args ...any) *Error {
	e.Fix = fmt.Sprintf(format, args...)
	return e
}

// Error returns the message with the object's name.
func (e *Error) Error() string {
	text := e.Msg
	if e.Field != "" {
		text = e.Field + ": " + text
	}
	if e.About != (rollout.Ref{}) {
		text = e.About.String() + ": " + text
	}
	return text
}

// missing is the error of a name that no object of the app has.
func missing(field, kind, namespace, name string) error {
	if name == "" {
		return misfit(field, "is missing").fix("name the %s", kind)
	}
	return misfit(field, "%s/%s/%s is not in this app", kind, namespace, name).fix("add it to the kustomization")
}
