// Package doctor has the checks of "validate" (a tree) and "doctor" (Git, cluster and clocks).
package doctor

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// Examination holds the findings of "doctor".
type Examination struct {
	Cluster  string    `json:"cluster"`
	Problems int       `json:"problems"`
	Warnings int       `json:"warnings"`
	Findings []Finding `json:"findings"`
}

// Finding is a check's result.
type Finding struct {
	Check   string `json:"check"` // such as git.read
	Status  Health `json:"status"`
	Message string `json:"message"`
	Fix     string `json:"fix,omitempty"`
}

// Health is a check's outcome.
type Health string

const (
	Healthy Health = "ok"
	Warning Health = "warning" // works, but may be a mistake
	Problem Health = "problem" // an app would be held, or a release could not start
	Unknown Health = "unknown" // this machine cannot check
)

// Add adds a finding.
func (e *Examination) Add(check string, status Health, fix, format string, args ...any) {
	message := rollout.OneLine(fmt.Sprintf(format, args...))
	e.Findings = append(e.Findings, Finding{Check: check, Status: status, Message: message, Fix: fix})
	switch status {
	case Problem:
		e.Problems++
	case Warning:
		e.Warnings++
	}
}

// Pauses and windows depend on this machine's clock. Pods' ages depend on the cluster's clock.
const (
	noticeableSkew = 5 * time.Second
	harmfulSkew    = time.Minute
)

// Clock compares this machine's clock with a Date header, which has whole seconds.
func Clock(
	ctx context.Context, e *Examination, check, whose string, client *http.Client, address string, now func() time.Time,
) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		e.Add(check, Unknown, "", "%v", err)
		return
	}
	before := now()
	response, err := client.Do(request)
	if err != nil {
		e.Add(check, Unknown, "", "%s has not answered: %v", whose, err)
		return
	}
	_ = response.Body.Close()
	middle := before.Add(now().Sub(before) / 2)
	at, err := http.ParseTime(response.Header.Get("Date"))
	if err != nil {
		e.Add(check, Unknown, "", "%s does not tell the time", whose)
		return
	}
	skew := middle.Sub(at.Add(500 * time.Millisecond)).Round(time.Second)
	const fix = "synchronize both clocks with NTP (timedatectl, chrony)"
	switch {
	case skew.Abs() >= harmfulSkew:
		e.Add(check, Problem, fix, "the clocks of this machine and of %s are %s apart", whose, skew.Abs())
	case skew.Abs() >= noticeableSkew:
		e.Add(check, Warning, fix, "the clocks of this machine and of %s are %s apart", whose, skew.Abs())
	default:
		e.Add(check, Healthy, "", "the clocks of this machine and of %s agree", whose)
	}
}
