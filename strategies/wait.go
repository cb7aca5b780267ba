package strategies

import (
	"fmt"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/rollout/schedule"
)

// wait keeps a workload at a stage: one type for each kind. Whoever walks the stages knows when each ends.
type wait interface {
	// traits returns the properties that do not depend on the cluster.
	traits() traits
}

// traits holds a wait's part of a plan's digest, whether it waits for users or the clock, and if it can end early.
type traits struct {
	number   int // identifies the kind of wait
	duration time.Duration
	more     string // more lines of the digest
	pauses   bool
	early    bool
}

// noWait passes in the next pass, once its stage is applied.
type noWait struct{}

func (noWait) traits() traits { return traits{number: 4} }

// podsWait waits until new pods have served for minReadySeconds and get their requests, and old pods are few enough.
type podsWait struct{}

func (podsWait) traits() traits { return traits{} }

// promotionWait waits for a promotion, or for a timeout.
type promotionWait struct {
	timeout   time.Duration // the longest wait; 0: no limit
	onTimeout string        // rollout.TimeoutAbort or TimeoutPromote
}

func (w promotionWait) traits() traits {
	t := traits{number: 1, pauses: true}
	if w.timeout > 0 {
		t.more = fmt.Sprintf("null|%s|%s\n", w.timeout, w.onTimeout)
	}
	return t
}

// timerWait waits for a duration or for the next time of a schedule, unless a promotion comes first.
type timerWait struct {
	duration time.Duration
	until    string // cron, in the time zone; "": the duration
	zone     string
}

func (w timerWait) traits() traits {
	return traits{number: 2, duration: w.duration, pauses: true, early: true}
}

// end returns when a pause ends, zero if never.
func (w timerWait) end(entered time.Time) time.Time {
	if w.until == "" {
		return entered.Add(w.duration)
	}
	due, _ := nextOf(w.until, w.zone, entered)
	return due
}

func nextOf(expression, zone string, after time.Time) (time.Time, error) {
	moments, err := schedule.Parse(expression, zone)
	if err != nil {
		return time.Time{}, err
	}
	return moments.Next(after), nil
}

// delayWait waits for a duration that no promotion ends early.
type delayWait struct{ duration time.Duration }

func (w delayWait) traits() traits { return traits{number: 3, duration: w.duration, pauses: true} }

// analysisWait waits for the stage's analysis or a promotion, by which gateInconclusive accepts an inconclusive one.
type analysisWait struct{ *rollout.Analysis }

func (w analysisWait) traits() traits {
	return traits{number: 5, more: encoded(w.Analysis) + "|0s|\n", early: true}
}

// experimentWait waits for the experiment's pods, then its duration and required analyses, or for a promotion.
type experimentWait struct{ *rollout.Experiment }

// The digest of an experiment keeps the field names of its first version, whatever names a document uses now.
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
		Labels      map[string]string
		Annotations map[string]string
		Selector    map[string]any
		Service     *string
	}
)

func (w experimentWait) traits() traits {
	e := experimentMark{Analyses: w.Analyses, Duration: w.Duration, ProgressDeadlineSeconds: w.ProgressDeadlineSeconds}
	for _, t := range w.Templates {
		e.Templates = append(e.Templates, templateMark(t))
	}
	return traits{number: 6, more: encoded(e) + "\n", early: true}
}
