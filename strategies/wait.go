package strategies

import "time"

// wait keeps a workload at a stage. Each kind is one file.
type wait interface {
	// verdict returns whether the workload may leave its stage.
	verdict(in Input, m workload) verdict

	// traits returns the properties that do not depend on the cluster.
	traits() traits

	// forecast sets the kind of a stage's wait and its least time.
	forecast(c *forecaster, s *ForecastStage)
}

// traits holds a wait's part of a plan's digest, whether it waits for users or the clock, and if it can end early.
type traits struct {
	number   int // identifies the kind of wait
	duration time.Duration
	more     string // more lines of the digest
	pauses   bool
	early    bool
}

// verdict is the result of a gate: whether a step is done and, if not, the reason.
type verdict struct {
	done   bool
	by     string    // who opened the gate, "" if it needed no promotion
	text   string    // the wait, for users
	paused bool      // it waits for users or the clock, not for pods
	due    time.Time // when a timed wait ends, zero if it is not timed
	broken string    // why waiting does not help, "" if it may
	route  bool      // the step's pods serve: its weight and routes may be applied
	full   bool      // a full promotion passes all remaining steps
	rides  bool      // it has no pods, and the release's other workloads have passed their steps
	begins bool      // the experiment's pods are available: its duration and its analyses begin
}

// noWait passes in the next pass, once its stage is applied.
type noWait struct{}

func (noWait) verdict(Input, workload) verdict      { return verdict{done: true} }
func (noWait) traits() traits                       { return traits{number: 4} }
func (noWait) forecast(*forecaster, *ForecastStage) {}
