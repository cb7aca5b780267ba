package strategies

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// plan is one workload's release as a list of stages. Whatever the strategy is,
// the machine in decide.go walks the list and the overlay in desired.go turns
// the stage that is reached into objects.
type plan struct {
	spec   rollout.Spec
	stages []stage
}

// stage is one entry of a plan. What it asks for holds until the next stage
// asks for something else.
type stage struct {
	name      string // the user's name for it, "" if none
	text      string // "setWeight 20", for people and for commit subjects
	weight    int    // asked for the new version: percent, or a share of Traffic.MaxWeight
	routes    []rollout.ManagedRoute
	counts    func(n int) counts
	wait      waitKind
	duration  time.Duration     // of a timed wait
	switched  bool              // the stable or active Service selects the new version
	analysis  *rollout.Analysis // of waitAnalysis
	timeout   time.Duration     // of waitGate: how long somebody may take; 0: for ever
	onTimeout string
	until     string // of a timed wait to a moment of a schedule
	zone      string // of until

	experiment *rollout.Experiment // of waitExperiment
}

// counts is how many pods of each version a stage comes to rest at, for a given
// number of replicas.
type counts struct{ canary, stable int }

type waitKind int

const (
	waitPods       waitKind = iota // until the pods are what the stage asks for
	waitGate                       // until somebody promotes
	waitTimer                      // for a duration, or until somebody promotes
	waitDelay                      // for a duration, whatever anybody says
	waitNothing                    // passes in the next pass, once it is applied
	waitAnalysis                   // until the stage's analysis has passed
	waitExperiment                 // until the stage's experiment is over
)

// pauses reports whether the wait is for people or the clock, not for pods.
func (w waitKind) pauses() bool { return w == waitGate || w == waitTimer || w == waitDelay }

// measures reports whether the stage waits for measurements.
func (w waitKind) measures() bool { return w == waitAnalysis }

// planOf compiles a spec. A canary without steps is an empty plan: the user's
// own rolling update.
func planOf(spec rollout.Spec) plan {
	if spec.BlueGreen != nil {
		return plan{spec: spec, stages: blueGreenStages(spec)}
	}
	return plan{spec: spec, stages: canaryStages(spec)}
}

// names returns the stages' names, for promotions that say through: NAME.
func (p plan) names() []string {
	names := make([]string, len(p.stages))
	for i, s := range p.stages {
		names[i] = s.name
	}
	return names
}

// digest identifies the list of stages, so that a change of steps in flight is
// noticed.
func (p plan) digest() string {
	var b strings.Builder
	for _, s := range p.stages {
		c := s.counts(100)
		fmt.Fprintf(&b, "%s|%s|%d|%d|%d|%d|%s|%t\n", s.name, s.text, s.weight, c.canary, c.stable, s.wait, s.duration, s.switched)
		if s.experiment != nil {
			raw, _ := json.Marshal(s.experiment) // likewise
			fmt.Fprintf(&b, "%s\n", raw)
		}
		if s.analysis != nil || s.timeout > 0 {
			raw, _ := json.Marshal(s.analysis) // texts, numbers and what was JSON
			fmt.Fprintf(&b, "%s|%s|%s\n", raw, s.timeout, s.onTimeout)
		}
		if len(s.routes) > 0 {
			raw, _ := json.Marshal(s.routes) // texts and numbers, which always encode
			fmt.Fprintf(&b, "%s\n", raw)
		}
	}
	sum := sha256.Sum256([]byte(b.String()))
	return hex.EncodeToString(sum[:4])
}

// at returns the stage in progress, false when there is none left.
func (p plan) at(step int) (stage, bool) {
	if step < 0 || step >= len(p.stages) {
		return stage{}, false
	}
	return p.stages[step], true
}

// handover is the first stage after the decision to promote: from there on a
// release is finished, whatever the time is.
func (p plan) handover() int {
	if p.spec.Canary != nil {
		return len(p.spec.Canary.Steps)
	}
	return slices.IndexFunc(p.stages, func(s stage) bool { return s.name == "scale-up" || s.switched })
}

// resume finds where a release that asked for a weight goes on in a changed
// list: at the first stage that waits for pods and asks for at least as much,
// so that no pod moves back. A list that asks for less everywhere goes on at
// its last such stage. Example: at 40 in [20, 40, 60], the new list [10, 50,
// 100] goes on at 50. A release that asked for no pod yet does not skip an
// experiment.
func (p plan) resume(weight int) int {
	last := 0
	for i, s := range p.stages {
		if s.wait == waitExperiment && weight == 0 {
			return i
		}
		if s.wait != waitPods {
			continue
		}
		last = i
		if s.weight >= weight {
			return i
		}
	}
	return last
}

// replicas returns the number of pods that the workload should have: what Git
// says, or what the cluster's autoscaler has set.
func replicas(spec rollout.Spec, live rollout.ObservedWorkload) int {
	if spec.Replicas != nil {
		return *spec.Replicas
	}
	return live.Replicas
}

func minReady(spec rollout.Spec) time.Duration {
	return time.Duration(spec.MinReadySeconds) * time.Second
}
