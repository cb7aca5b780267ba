package plan

import (
	"fmt"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/schedule"
)

// Wait is the condition that keeps a workload at a stage. Each kind of wait has its own type.
type Wait interface{ Traits() traits }

// traits holds the properties of a wait, and the lines that the wait adds to the plan's digest.
type traits struct {
	Number   int // identifies the kind of wait in the digest
	duration time.Duration
	more     string // further lines of the digest
	Pauses   bool
	Early    bool
}

// NoWait ends in the first pass after the stage's objects were applied.
type NoWait struct{}

func (NoWait) Traits() traits { return traits{Number: 4} }

// PodsWait waits until enough new pods are available, proxies know these pods, and no surplus pod is left.
type PodsWait struct{}

func (PodsWait) Traits() traits { return traits{} }

// PromotionWait waits for a promotion, or until its timeout ends.
type PromotionWait struct {
	Timeout   time.Duration // the longest wait; 0 for no limit
	OnTimeout string        // rollout.TimeoutAbort or TimeoutPromote
}

func (w PromotionWait) Traits() traits {
	t := traits{Number: 1, Pauses: true}
	if w.Timeout > 0 {
		t.more = fmt.Sprintf("null|%s|%s\n", w.Timeout, w.OnTimeout)
	}
	return t
}

// TimerWait waits for a duration or until the next time of a schedule. A promotion ends this wait early.
type TimerWait struct {
	Duration time.Duration
	Until    string // cron expression in the time zone Zone; "" if Duration applies
	Zone     string
}

func (w TimerWait) Traits() traits {
	return traits{Number: 2, duration: w.Duration, Pauses: true, Early: true}
}

// End returns when a pause that began at "entered" ends. It returns the zero time if the schedule has no next time.
func (w TimerWait) End(entered time.Time) time.Time {
	if w.Until == "" {
		return entered.Add(w.Duration)
	}
	due, _ := NextOf(w.Until, w.Zone, entered)
	return due
}

// NextOf returns the first time of a schedule after the given time.
func NextOf(expression, zone string, after time.Time) (time.Time, error) {
	moments, err := schedule.Parse(expression, zone)
	if err != nil {
		return time.Time{}, err
	}
	return moments.Next(after), nil
}

// DelayWait waits for a duration that no promotion ends early.
type DelayWait struct{ Duration time.Duration }

func (w DelayWait) Traits() traits { return traits{Number: 3, duration: w.Duration, Pauses: true} }

// AnalysisWait waits for the stage's analysis, or until a promotion skips the analysis.
type AnalysisWait struct{ *rollout.Analysis }

func (w AnalysisWait) Traits() traits {
	return traits{Number: 5, more: encoded(w.Analysis) + "|0s|\n", Early: true}
}

// ExperimentWait waits for the experiment's pods, duration and required analyses. A promotion ends this wait early.
type ExperimentWait struct{ *rollout.Experiment }

// The digest of an experiment uses the first field names of the documents, although documents have other names now.
type (
	experimentMark struct {
		Templates               []templateMark
		Analyses                []rollout.ExperimentAnalysis
		Duration                *time.Duration
		ProgressDeadlineSeconds int
	}
	templateMark struct {
		Name        string
		SpecRef     rollout.SpecRef
		Replicas    int
		Weight      int `json:",omitempty"`
		Labels      map[string]string
		Annotations map[string]string
		Selector    map[string]any
		Service     *string
	}
)

func (w ExperimentWait) Traits() traits {
	e := experimentMark{Analyses: w.Analyses, Duration: w.Duration, ProgressDeadlineSeconds: w.ProgressDeadlineSeconds}
	for _, t := range w.Templates {
		e.Templates = append(e.Templates, templateMark(t))
	}
	return traits{Number: 6, more: encoded(e) + "\n", Early: true}
}
