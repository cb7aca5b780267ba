package plan

import (
	"fmt"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/schedule"
)

// Wait is the condition that keeps a workload at a stage.
type Wait interface{ Traits() traits }

type traits struct {
	Number   int // the kind of wait in the digest
	duration time.Duration
	more     string // further lines of the digest
	Pauses   bool
	Early    bool
}

// NoWait ends in the first pass after the stage's objects were applied.
type NoWait struct{}

func (NoWait) Traits() traits { return traits{Number: 4} }

// PodsWait waits until enough new pods are available and known to proxies, and no surplus pods are left.
type PodsWait struct{}

func (PodsWait) Traits() traits { return traits{} }

// PromotionWait waits for a promotion or a timeout.
type PromotionWait struct {
	Timeout   time.Duration // 0: no limit
	OnTimeout string        // rollout.TimeoutAbort or TimeoutPromote
}

func (w PromotionWait) Traits() traits {
	t := traits{Number: 1, Pauses: true}
	if w.Timeout > 0 {
		t.more = fmt.Sprintf("null|%s|%s\n", w.Timeout, w.OnTimeout)
	}
	return t
}

// TimerWait waits for a duration or a schedule's next time. A promotion ends it early.
type TimerWait struct {
	Duration time.Duration
	Until    string // cron expression in the time zone Zone; "" if Duration applies
	Zone     string
}

func (w TimerWait) Traits() traits {
	return traits{Number: 2, duration: w.Duration, Pauses: true, Early: true}
}

// End returns when a pause that began at "entered" ends; zero if the schedule has no next time.
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

// DelayWait waits for a duration. A promotion does not end this wait early.
type DelayWait struct{ Duration time.Duration }

func (w DelayWait) Traits() traits { return traits{Number: 3, duration: w.Duration, Pauses: true} }

// AnalysisWait waits for the stage's analysis, or a promotion that skips it.
type AnalysisWait struct{ *rollout.Analysis }

func (w AnalysisWait) Traits() traits {
	return traits{Number: 5, more: encoded(w.Analysis) + "|0s|\n", Early: true}
}

// ExperimentWait waits for the experiment's pods, duration and required analyses, or a promotion.
type ExperimentWait struct{ *rollout.Experiment }

// Digests need the original field names, which documents no longer have.
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
