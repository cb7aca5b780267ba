package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"gitrollout.dev/gitrollout/rollout"
)

// Reason classifies an object's refusal.
type Reason string

const (
	Forbidden     Reason = "Forbidden"
	Quota         Reason = "Quota"     // a ResourceQuota is used up
	Denied        Reason = "Denied"    // an admission webhook or policy denies the change
	Immutable     Reason = "Immutable" // the field cannot change on a live object
	Invalid       Reason = "Invalid"
	UnknownKind   Reason = "UnknownKind"   // the API server does not serve the kind or version
	NamespaceGone Reason = "NamespaceGone" // the namespace is being deleted
	Missing       Reason = "Missing"       // no such object or namespace
	Contested     Reason = "Contested"     // the object is in two apps, or exists outside the app
	Overwritten   Reason = "Overwritten"   // another writer changes the same fields repeatedly
	Unavailable   Reason = "Unavailable"   // the API server is overloaded or does not answer; retry
	Unexpected    Reason = "Unexpected"
)

// Error explains in one line why an object was refused, with a fix. Equal refusals have equal texts.
type Error struct {
	Ref    rollout.Ref
	Reason Reason
	Msg    string // one line, usually the API server's message
	Fix    string // "" if in Msg, or unknown
	Err    error  // client-go's error; may be nil
}

// Error returns "Kind namespace/name: message; fix".
func (e *Error) Error() string {
	return strings.TrimSuffix(e.Ref.Title()+": "+e.Msg+"; "+e.Fix, "; ")
}

func (e *Error) Unwrap() error { return e.Err }

// Temporary reports whether a retry can succeed without a user's change.
func (e *Error) Temporary() bool { return e.Reason == Unavailable || e.Reason == NamespaceGone }

// IsForbidden reports whether the user lacks a right.
func IsForbidden(err error) bool { return apierrors.IsForbidden(err) }

func isRefused(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Reason != Unavailable && e.Reason != Unexpected
}

// explain converts client-go's error to an Error without a Secret's content. verb is an RBAC verb.
func explain(err error, ref rollout.Ref, verb string) error {
	if err == nil {
		return nil
	}
	if known := new(Error); errors.As(err, &known) {
		return err
	}
	if errors.Is(err, errUnknownKind) {
		kind := schema.GroupKind{Group: ref.Group, Kind: ref.Kind}
		e := &Error{Ref: ref, Reason: UnknownKind, Err: err,
			Msg: fmt.Sprintf("kind %s is not known to the cluster", kind), Fix: "install its CRD"}
		if other := (unserved{}); errors.As(err, &other) {
			e.Msg, e.Fix = fmt.Sprintf("kind %s %v", kind, other), "change its apiVersion"
		}
		return e
	}
	if left := outside(""); errors.As(err, &left) {
		return &Error{Ref: ref, Reason: Forbidden, Msg: left.Error(), Err: err, Fix: "remove the object, " +
			"or add its namespace to --namespaces; without this flag, all namespaces are managed"}
	}
	e := &Error{Ref: ref, Reason: Unexpected, Msg: serverMessage(err), Err: err}
	e.Reason, e.Fix = reasonOf(err, e.Msg, verb)
	if ref.Kind == "Secret" && ref.Group == "" {
		e.hideContent(err)
	}
	return e
}

// bracketed matches a key such as [password]. plainField matches a path that shows no key.
var (
	bracketed  = regexp.MustCompile(`\[.*\]`)
	plainField = regexp.MustCompile(`^(data|stringData|type|immutable|metadata\.[a-zA-Z]+)(\[…\])?$`)
)

// hideContent removes a Secret's keys and content from an error, because Git records the error.
func (e *Error) hideContent(err error) {
	const left, see = "the server's answer is left out, because it may quote the content", "kubectl apply --dry-run=server"
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return // network errors quote no content
	}
	switch e.Reason {
	case Denied:
		hook, _, _ := strings.Cut(e.Msg, "denied the request")
		e.Msg, e.Fix = rollout.OneLine(hook)+" denied the request; "+left, "to see the answer, run: "+see
	case Immutable:
		e.Msg = "is immutable"
	case Invalid, Unexpected:
		e.Msg, e.Fix = "is not valid"+fieldsOf(status)+"; "+left, "to see the answer, run: "+see
	}
}

func fieldsOf(status apierrors.APIStatus) string {
	details := status.Status().Details
	if details == nil {
		return ""
	}
	var fields []string
	for _, cause := range details.Causes {
		field := bracketed.ReplaceAllString(cause.Field, "[…]")
		if plainField.MatchString(field) && !slices.Contains(fields, field) {
			fields = append(fields, field)
		}
	}
	if len(fields) == 0 {
		return ""
	}
	return " (" + strings.Join(fields, ", ") + ")"
}

// serverMessage returns one line. For an invalid object, it keeps only the first cause.
func serverMessage(err error) string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return rollout.OneLine(err.Error())
	}
	s := status.Status()
	if s.Reason != metav1.StatusReasonInvalid || s.Details == nil || len(s.Details.Causes) == 0 {
		return rollout.OneLine(s.Message)
	}
	// The API server sends the causes in random order, but equal refusals need equal texts.
	first := slices.MinFunc(s.Details.Causes, func(a, b metav1.StatusCause) int {
		return cmp.Or(cmp.Compare(a.Field, b.Field), cmp.Compare(a.Message, b.Message))
	})
	text := first.Message
	if field := first.Field; field != "" && field != "<nil>" {
		text = field + ": " + text
	}
	if more := len(s.Details.Causes) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return rollout.OneLine(text)
}

// reasonOf reads the status code and the text, because codes are ambiguous. 403 means RBAC, quota, admission or a
// terminating namespace, and 422 means invalid or immutable.
func reasonOf(err error, msg, verb string) (Reason, string) {
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return NamespaceGone, "wait until the namespace is gone, or stop its deletion"
	case strings.Contains(msg, "admission webhook") && strings.Contains(msg, "denied the request"),
		strings.Contains(msg, "ValidatingAdmissionPolicy"), strings.Contains(msg, "violates PodSecurity"):
		return Denied, ""
	case apierrors.IsForbidden(err) && strings.Contains(msg, "exceeded quota"):
		return Quota, "raise the quota, or delete objects that use it"
	case apierrors.IsForbidden(err) && strings.Contains(msg, "attempting to grant RBAC permissions not"):
		return Forbidden, "a user can grant only its own rights: give the reconciler's user the same rights, " +
			"or the verbs escalate and bind for this kind"
	case apierrors.IsForbidden(err):
		return Forbidden, fmt.Sprintf("allow the reconciler's user to %s this kind", verb)
	case apierrors.IsUnauthorized(err):
		return Forbidden, "give the reconciler valid credentials"
	case isImmutable(err, msg):
		return Immutable, "this field cannot change on a live object: revert the change, use a new name, " +
			"or delete the object and let it be created anew"
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err),
		strings.Contains(msg, "failed to create typed patch object"): // a wrong type gives code 500
		return Invalid, ""
	case apierrors.IsNotFound(err):
		return Missing, ""
	case transient(err):
		return Unavailable, ""
	}
	return Unexpected, ""
}

// isImmutable reports whether an immutable field would change. No status code says so, and texts differ by kind.
func isImmutable(err error, msg string) bool {
	if !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
		return false
	}
	return slices.ContainsFunc([]string{
		"immutable", "may not change once set", "may not be changed", "fields other than", "cannot change roleRef",
	}, func(phrase string) bool { return strings.Contains(msg, phrase) })
}

// transient reports whether a retry may succeed. An error without a status is a network error or a timeout.
func transient(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return true
	}
	code := status.Status().Code
	return code >= 500 || code == 429 || code == 409 || code == 408
}
