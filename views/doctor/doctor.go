// Package doctor has the checks of two commands. "validate" checks a tree. "doctor" checks Git, the cluster and clocks.
package doctor

import (
	"fmt"

	"gitrollout.dev/gitrollout/rollout"
)

// Examination holds the findings about Git and the cluster, as JSON.
type Examination struct {
	Cluster  string    `json:"cluster"`
	Problems int       `json:"problems"`
	Warnings int       `json:"warnings"`
	Findings []Finding `json:"findings"`
}

// Finding is the result of one check.
type Finding struct {
	Check   string `json:"check"` // git.read, cluster.rights …
	Status  Health `json:"status"`
	Message string `json:"message"`
	Fix     string `json:"fix,omitempty"`
}

// Health is the outcome of a check.
type Health string

// The outcomes of a check.
const (
	Healthy Health = "ok"
	Warning Health = "warning" // works, but may be a mistake
	Problem Health = "problem" // a release would be held, or not begin
	Unknown Health = "unknown" // could not be checked from this machine
)

// Add records a check's result. The parameter "fix" is "" if there is nothing to do.
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
