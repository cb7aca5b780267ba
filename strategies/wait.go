package strategies

import "time"

// wait is what keeps a workload at a stage. Each kind is one file.
type wait interface {
	// verdict says whether the workload may leave its stage.
	verdict(in Input, m moving) verdict

	// traits are what is known of it without looking.
	traits() traits

	// forecast says what ends a stage and how long that takes at least.
	forecast(c *forecaster, s *ForecastStage)
}

// traits are what the digest of a plan has of a wait, whether it pauses, for people or the clock and not for pods, and
// whether a promotion ends it before it is over.
type traits struct {
	number   int // of the kind of wait
	duration time.Duration
	more     string // lines
	pauses   bool
	early    bool
}

// verdict says whether a step is done and, if not, what it waits for.
type verdict struct {
	done   bool
	by     string    // who opened the gate, "" if nobody had to
	text   string    // what it waits for
	paused bool      // it waits for people or the clock, not for pods
	due    time.Time // when the clock is through, zero if it is not the clock
	broken string    // why it will not be done by waiting, "" if it may
	route  bool      // the step's pods serve: its weight and routes are due
	full   bool      // somebody has promoted all steps at once
	rides  bool      // it has no pods, and the others of its release are through
	begins bool      // the experiment's pods are available: its clock and its analyses are due
}

// noWait passes in the next pass, once its stage is applied.
type noWait struct{}

func (noWait) verdict(Input, moving) verdict        { return verdict{done: true} }
func (noWait) traits() traits                       { return traits{number: 4} }
func (noWait) forecast(*forecaster, *ForecastStage) {}
