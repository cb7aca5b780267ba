// Package doctor has the checks of "validate" (a tree) and "doctor" (Git, cluster and clocks).
package doctor

import (
	"fmt"

	"gitrollout.dev/gitrollout/rollout"
)

// Examination holds findings of "doctor".
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
	Warning Health = "warning" // works; may be a mistake
	Problem Health = "problem" // an app would be held, or no release start
	Unknown Health = "unknown" // this machine cannot check
)

// Add records a result. fix is "" if not needed or unknown.
func (e *Examination) Add(check string, status Health, fix, format string, args ...any) {
	message := rollout.OneLine(fmt.Sprintf(format, args...)) // servers' messages may have several lines
	e.Findings = append(e.Findings, Finding{Check: check, Status: status, Message: message, Fix: fix})
	switch status {
	case Problem:
		e.Problems++
	case Warning:
		e.Warnings++
	}
}
