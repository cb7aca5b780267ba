package provider

import (
	"fmt"
	"regexp"
	"time"
)

// A moment is a time in a range query. Argo Rollouts accepts any expression, but gitrollout accepts only these forms:
//
//	now()
//	now() - duration("5m") + duration("30s")
//	date("2026-01-31T12:00:00Z")
var (
	momentForm = regexp.MustCompile(`^\s*(now\(\)|date\(\s*["']([^"']*)["']\s*\))\s*` +
		`((?:[+-]\s*duration\(\s*["'][^"']*["']\s*\)\s*)*)$`)
	spanForm = regexp.MustCompile(`([+-])\s*duration\(\s*["']([^"']*)["']\s*\)`)
)

func moment(text string, now time.Time) (time.Time, error) {
	parts := momentForm.FindStringSubmatch(text)
	if parts == nil {
		return time.Time{}, fmt.Errorf("%q is not a moment", text)
	}
	at := now
	if parts[1] != "now()" {
		var err error
		if at, err = time.Parse(time.RFC3339, parts[2]); err != nil {
			if at, err = time.Parse(time.DateOnly, parts[2]); err != nil {
				return time.Time{}, fmt.Errorf("%q is not a date", parts[2])
			}
		}
	}
	for _, span := range spanForm.FindAllStringSubmatch(parts[3], -1) {
		d, err := time.ParseDuration(span[2])
		if err != nil {
			return time.Time{}, fmt.Errorf("%q is not a duration", span[2])
		}
		if span[1] == "-" {
			d = -d
		}
		at = at.Add(d)
	}
	return at, nil
}

func checkMoment(field, text string) error {
	if _, err := moment(text, time.Unix(0, 0)); err != nil {
		return wrong(field, `write it as in now() - duration("5m"), or date("2026-01-31T12:00:00Z")`, "%s", err.Error())
	}
	return nil
}
