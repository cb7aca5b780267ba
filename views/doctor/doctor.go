// Package doctor finds out what is missing for gitrollout to work, and says what to do about it: of the configuration
// and the apps in a tree (gitrollout validate), and of Git, the cluster and the clocks as they are (gitrollout doctor).
package doctor

import (
	"fmt"

	"gitrollout.dev/gitrollout/rollout"
)

// Examination is what is found of Git and the cluster. It is the form of its JSON.
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

// Health is how a check has ended.
type Health string

// The ways in which a check can end.
const (
	Healthy Health = "ok"
	Warning Health = "warning" // it works, and may not be meant
	Problem Health = "problem" // a release would be held, or not begin
	Unknown Health = "unknown" // it could not be looked at from here
)

// Add notes the result of a check. Fix is what to do about it, "" for nothing.
func (e *Examination) Add(check string, status Health, fix, format string, args ...any) {
	message := rollout.OneLine(fmt.Sprintf(format, args...)) // what servers say may have lines
	e.Findings = append(e.Findings, Finding{Check: check, Status: status, Message: message, Fix: fix})
	switch status {
	case Problem:
		e.Problems++
	case Warning:
		e.Warnings++
	}
}
