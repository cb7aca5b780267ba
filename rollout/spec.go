package rollout

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Spec is one Rollout document, with Argo Rollouts' fields and defaults; docs/coming-from-argo-rollouts.md lists the
// differences.
type Spec struct {
	Name      string       // name of the Rollout document
	Workload  Workload     // the workload that the release updates
	Partition *Partitioned // description of the workload's kind, if the kind is not in WorkloadKinds; else nil
	Canary    *Canary      // the canary strategy; nil if BlueGreen is set
	BlueGreen *BlueGreen   // the blue-green strategy; nil if Canary is set

	Replicas                *int   // nil if an autoscaler scales the workload (HPA, KEDA)
	MaxSurge                Amount // the workload's maxSurge in Git; default 25%, rounded up
	MaxUnavailable          Amount // the workload's maxUnavailable in Git; default 25%; see Unavailable
	MinReadySeconds         int    // default 0; a pod counts as available after it has been Ready this long
	ProgressDeadlineSeconds int    // default 600; allowed seconds without progress; pauses do not count
	// true: the release is aborted after the deadline; false (default): the missed deadline is only reported
	ProgressDeadlineAbort bool `json:"progressDeadlineAbort"`
	// how many versions before the stable version skip their steps when they are released again; nil: all
	RollbackWindow *int
	Paused         bool      `json:"paused"`             // spec.paused of the document: while true, no step ends
	RestartAt      time.Time `json:"restartAt,omitzero"` // pods created before this time are deleted; zero: none
	Scaling        Scaling   // where the capacity for canary pods comes from

	// labels and annotations that pods of the stable and the new version get after their start, in JSON; "" for none
	StableMetadata, NewMetadata string `json:",omitempty"`
}

// Scaling selects whether canary pods are additional, or replace stable pods.
type Scaling string

// Surge keeps all stable pods, so that an abort starts no pods. InPlace replaces pods within maxSurge and
// maxUnavailable, and needs no spare capacity.
const (
	Surge   Scaling = "surge"
	InPlace Scaling = "inPlace"
)

// Canary is a canary strategy. Without steps, a release is a plain rolling update.
type Canary struct {
	Steps                      []Step
	StableService              string         `json:"stableService"` // a Service of the app for the stable version, "" for none
	CanaryService              string         `json:"canaryService"`
	PingPong                   *PingPong      `json:"pingPong"` // two Services in place of StableService and CanaryService
	Traffic                    *Traffic       // nil: weights are shares of pods, not of requests
	Analysis                   *Analysis      // analysis in the background of the release; nil for none
	Watch                      *Analysis      `json:",omitempty"`         // analysis after the release; nil for none
	DynamicStableScale         bool           `json:"dynamicStableScale"` // stable pods decrease with their traffic share
	Rebalance                  bool           `json:"rebalance" own:""`   // StatefulSets: evict surplus new pods
	NodeOrder                  []NodeSelector `json:"nodeOrder" own:""`   // DaemonSets: order in which nodes update
	MinPodsPerReplicaSet       int            // minimum number of pods for each version that has pods; 0 or 1: no minimum
	AbortScaleDownDelaySeconds int            // with Surge: seconds that canary pods stay after all traffic is on stable
	ScaleDownDelaySeconds      int            // with Surge and Services: seconds that old pods stay after the promotion
	// how many of a step's new pods must be available; nil: all
	ReplicaProgressThreshold *ProgressThreshold `json:"replicaProgressThreshold"`
}

// ProgressThreshold is a percentage or number of a step's new pods.
type ProgressThreshold struct {
	Type  string `json:"type" needs:"give Percent or Pods" oneOf:"Percent Pods Pod"`
	Value int    `json:"value" needs:"give a percentage, or a number of pods"`
}

// NodeSelector selects nodes by labels.
type NodeSelector struct {
	MatchLabels map[string]string `json:"matchLabels" needs:"give the labels that the nodes have"`
}

// Matches reports whether labels include all of MatchLabels.
func (s NodeSelector) Matches(labels map[string]string) bool {
	for key, value := range s.MatchLabels {
		if has, found := labels[key]; !found || has != value {
			return false
		}
	}
	return true
}

// BlueGreen starts all new pods beside the stable pods, and then switches the active Service once.
type BlueGreen struct {
	ActiveService        string `json:"activeService" needs:"name the Service to switch"`
	PreviewService       string `json:"previewService"`                      // Service of the new version
	PreviewReplicaCount  *int   `json:"previewReplicaCount"`                 // number of preview pods; nil: as many as stable pods
	AutoPromotionEnabled bool   `json:"autoPromotionEnabled" default:"true"` // false: a promotion is required
	// seconds from the time when the preview is ready to the switch; default 0
	AutoPromotionSeconds       int `json:"autoPromotionSeconds"`
	ScaleDownDelaySeconds      int `json:"scaleDownDelaySeconds" default:"30"`
	AbortScaleDownDelaySeconds int `json:"abortScaleDownDelaySeconds" default:"30"` // 0: remove the preview immediately

	PrePromotion  *Analysis // analysis before the switch
	PostPromotion *Analysis // analysis after the switch
	Watch         *Analysis `json:",omitempty"` // analysis after the release
}

// Step is one step of a release. Apart from Name and Headers, exactly one field is set.
type Step struct {
	// Name is the user's name for the step, "" for none.
	Name string `json:"name" own:""`
	// SetWeight is the new version's weight: a percentage of pods, or a share of Traffic.MaxWeight.
	SetWeight      *int         `json:"setWeight" max:"1000000"`
	Pause          *Pause       `json:"pause"`
	SetCanaryScale *CanaryScale `json:"setCanaryScale"`
	// Headers changes the headers of requests to the new version, only during this step.
	Headers *HeaderModifier `json:"requestHeaderModifier" own:""`

	Analysis   *Analysis
	Experiment *Experiment
	Route      *ManagedRoute // for setHeaderRoute, setMirrorRoute and match; a Route without Matches removes the route
}

// Pause waits for a duration, a schedule's next match or, without either, a promotion.
type Pause struct {
	Duration *time.Duration `json:"duration" min:"1" fix:"leave duration out to wait for a promotion"`
	// Timeout bounds the wait for a promotion. After the timeout, the action OnTimeout follows.
	Timeout   *time.Duration `json:"timeout" own:"" min:"1" fix:"leave timeout out to wait for a promotion"`
	OnTimeout string         `json:"onTimeout" own:"" oneOf:"abort promote"` // "" without Timeout; default: abort
	// Until is a cron schedule. The pause ends at the next time that matches the schedule.
	Until    string `json:"until" own:""`
	TimeZone string `json:"timeZone" own:""` // time zone for Until; "" is UTC
}

// The values of Pause.OnTimeout.
const (
	TimeoutAbort   = "abort"
	TimeoutPromote = "promote"
)

// CanaryScale sets the number of canary pods independently of the weight. Exactly one field is set.
type CanaryScale struct {
	Replicas           *int `json:"replicas"`
	Weight             *int `json:"weight" max:"100"`
	MatchTrafficWeight bool `json:"matchTrafficWeight"`
	_                  any  `one:"replicas weight matchTrafficWeight" none:"give replicas, weight or matchTrafficWeight: true"`
}

// Amount is a number or percentage of pods: 3 or "25%".
type Amount struct {
	Value   int
	Percent bool
}

// ReadValue reads a number or percentage. As in Argo Rollouts, a number in quotes is a percentage.
func (a *Amount) ReadValue(raw any) error {
	text, isText := raw.(string)
	n, isNumber := raw.(int64)
	digits, _ := strings.CutSuffix(text, "%")
	var err error
	if isText {
		n, err = strconv.ParseInt(digits, 10, 64)
	}
	switch {
	case !isText && !isNumber:
		return fmt.Errorf("must be a whole number, not %s", Describe(raw))
	case err != nil || isText && digits[0] == '+':
		return fmt.Errorf("%q is neither a number of pods nor a percentage such as 25%%", text)
	case n < 0:
		return &InvalidError{Msg: fmt.Sprintf("%#v is negative", raw), Fix: "give 0 or more"}
	case n > math.MaxInt32:
		return fmt.Errorf("%#v is more than Kubernetes can hold", raw)
	}
	*a = Amount{Value: int(n), Percent: isText}
	return nil
}

// Shape returns the JSON Schema of an amount.
func (Amount) Shape() map[string]any {
	return either(map[string]any{"type": "integer", "minimum": 0, "maximum": math.MaxInt32}, pattern(`^[0-9]+%?$`))
}

// RoundUp returns the amount out of n pods, rounded up as in maxSurge. 25% of 10 is 3.
func (a Amount) RoundUp(n int) int { return a.of(n, 99) }

// RoundDown returns the amount out of n pods, rounded down as in maxUnavailable. 25% of 10 is 2.
func (a Amount) RoundDown(n int) int { return a.of(n, 0) }

// of adds a number of hundredths, then rounds down.
func (a Amount) of(n, hundredths int) int {
	if !a.Percent {
		return a.Value
	}
	return (n*a.Value + hundredths) / 100
}

// String returns "3" or "25%".
func (a Amount) String() string {
	if a.Percent {
		return fmt.Sprintf("%d%%", a.Value)
	}
	return fmt.Sprintf("%d", a.Value)
}
