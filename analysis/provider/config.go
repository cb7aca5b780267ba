package provider

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

type fieldError = rollout.InvalidError

func parse(kind string, raw map[string]any) (config, error) {
	p, ok := rollout.Find(table, func(p provider) bool { return p.kind == kind })
	if !ok {
		fix := "use one of " + strings.Join(Kinds(), ", ")
		if kind == "plugin" {
			fix = "gitrollout runs no plugins; the provider web can query any HTTP service"
		}
		return nil, &fieldError{Field: kind, Msg: "is not a provider that gitrollout knows", Fix: fix}
	}
	c := p.config()
	plain, err := rollout.Plain(raw)
	if err != nil {
		return nil, err
	}
	r := rollout.Reader{Hide: true}
	for _, name := range ofMetric {
		isOwn := func(f rollout.Field) bool { return f.Name == name }
		if raw[name] != nil && !slices.ContainsFunc(rollout.Fields(reflect.TypeOf(c).Elem()), isOwn) {
			r.Fail(kind+"."+name, "it is a field of the metric: write it beside provider", "is not a known field")
		}
	}
	if r.Read(kind, plain, c); r.Err != nil {
		return nil, r.Err
	}
	err = cmp.Or(checkFields("", reflect.ValueOf(c).Elem()), c.check())
	if invalid := new(fieldError); errors.As(err, &invalid) {
		invalid.Field = strings.TrimSuffix(strings.Replace(kind+"."+invalid.Field, ".[", "[", 1), ".")
	}
	return c, err
}

// checks has functions for formats in check:"…" tags. Texts that are empty or have arguments are not checked.
var checks = map[string]func(field, text string) error{
	"url": checkURL, "duration": checkDuration, "moment": checkMoment, "secretName": checkSecretName,
	"jsonPath": checkJSONPath}

// checkFields checks values by their fields' tags: required:"fix" refuses blank texts, and check:"…" names a format.
func checkFields(at string, v reflect.Value) error {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return checkFields(at, v.Elem())
	case reflect.Slice:
		for i := range v.Len() {
			if err := checkFields(fmt.Sprintf("%s[%d]", at, i), v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Struct:
		for f, value := range v.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			field := strings.Trim(at+"."+name, ".") // embedded structs have no name
			if err := cmp.Or(checkField(field, f.Tag, value), checkFields(field, value)); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkField(field string, tag reflect.StructTag, v reflect.Value) error {
	text := v.String()
	if fix, is := tag.Lookup("required"); is {
		if err := required(field, text, fix); err != nil {
			return err
		}
	}
	switch check := tag.Get("check"); {
	case check == "seconds":
		return checkSeconds(field, v.Interface().(*int64))
	case check == "secret":
		return required(field, text, "fill it from a Secret: an arg with valueFrom.secretKeyRef, and {{args.…}} here")
	case checks[check] != nil && text != "" && !hasArgument(text):
		return checks[check](field, text)
	}
	return nil
}

var ofMetric = []string{"count", "failureCondition", "failureLimit", "interval", "successCondition"}

// argument matches placeholders that a measurement fills in. Other braces belong to the query.
var argument = regexp.MustCompile(`\{\{\s*(args\.|(release\.)?elapsed\s*\}\})`)

func hasArgument(text string) bool { return argument.MatchString(text) }

func wrong(field, fix, format string, args ...any) error {
	return &fieldError{Field: field, Msg: fmt.Sprintf(format, args...), Fix: fix}
}

func required(field, value, fix string) error {
	if strings.TrimSpace(value) == "" {
		return wrong(field, fix, "is missing")
	}
	return nil
}

func checkURL(field, value string) error {
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return wrong(field, "write it as in http://prometheus.monitoring:9090", "%q is not a URL", shown(value))
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return wrong(field, "use 1 to 65535", "%q has an invalid port", shown(value))
		}
	}
	return nil
}

func shown(value string) string {
	value, _, _ = strings.Cut(value, "?")
	if scheme, rest, ok := strings.Cut(value, "://"); ok {
		return scheme + "://" + rest[strings.LastIndex(rest, "@")+1:]
	}
	return value[strings.LastIndex(value, "@")+1:]
}

func checkDuration(field, value string) error {
	if d, err := time.ParseDuration(value); err != nil || d <= 0 {
		return wrong(field, "write 30s, 5m or the like", "%q is not a duration", value)
	}
	return nil
}

func duration(value string, byDefault time.Duration) time.Duration {
	if d, err := time.ParseDuration(value); err == nil {
		return d
	}
	return byDefault
}

const maxSeconds = 600

func checkSeconds(field string, value *int64) error {
	if value != nil && (*value < 1 || *value > maxSeconds) {
		return wrong(field, fmt.Sprintf("give 1 to %d seconds, or leave it out", maxSeconds), "is %d", *value)
	}
	return nil
}

func seconds(value *int64, byDefault time.Duration) time.Duration {
	if value == nil {
		return byDefault
	}
	return time.Duration(*value) * time.Second
}

func oneOf(field, value string, allowed ...string) error {
	if value == "" || hasArgument(value) || slices.Contains(allowed, value) {
		return nil
	}
	return wrong(field, "use one of "+strings.Join(allowed, ", "), "is %q", value)
}

type header struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

var headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

func checkHeaders(headers []header) error {
	for i, h := range headers {
		field := fmt.Sprintf("headers[%d]", i)
		if !headerName.MatchString(h.Key) && !hasArgument(h.Key) {
			return wrong(field+".key", "write it as in X-Scope-OrgID", "%q is not a valid header name", h.Key)
		}
		if strings.ContainsAny(h.Value, "\r\n\x00") {
			return wrong(field+".value", "remove the line break at its end", "has more than one line")
		}
	}
	return nil
}

func headerOf(headers []header) http.Header {
	h := http.Header{}
	for _, one := range headers {
		h.Set(one.Key, one.Value)
	}
	return h
}

var secretName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)

func checkSecretName(field, name string) error {
	if secretName.MatchString(name) {
		return nil
	}
	return wrong(field, "use small letters, digits, dots and dashes", "%q is not a valid Secret name", name)
}
