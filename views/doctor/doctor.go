// Package doctor has the checks of two commands: "validate" for a tree, "doctor" for Git, cluster and clocks.
package doctor

import (
	"fmt"

	"gitrollout.dev/gitrollout/rollout"
)

// Examination holds the findings about Git and the cluster, in JSON for "doctor".
type Examination struct {
	Cluster  string    `json:"cluster"`
	Problems int       `json:"problems"`
	Warnings int       `json:"warnings"`
	Findings []Finding `json:"findings"`
}

// Finding is the result of one check.
type Finding struct {
	Check   string `json:"check"` // such as git.read
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
	Problem Health = "problem" // gitrollout would hold an app, or start no release
	Unknown Health = "unknown" // this machine cannot check
)

// Add records a check's result. "fix" is "" if no fix is needed or known.
func (e *Examination) Add(check string, status Health, fix, format string, args ...any) {
	message := rollout.OneLine(fmt.Sprintf(format, args...)) // a server's message may have several lines
	e.Findings = append(e.Findings, Finding{Check: check, Status: status, Message: message, Fix: fix})
	switch status {
	case Problem:
		e.Problems++
	case Warning:
		e.Warnings++
	}
}
