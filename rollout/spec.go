package rollout

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Spec is one Rollout document with Argo Rollouts' fields and defaults; see docs/coming-from-argo-rollouts.md.
type Spec struct {
	Name      string
	Workload  Workload
	Partition *Partitioned // nil if the workload's kind is in WorkloadKinds
	Canary    *Canary      // nil if BlueGreen is set
	BlueGreen *BlueGreen   // nil if Canary is set

	Replicas                *int      // nil if an autoscaler (HPA, KEDA) scales the workload
	MaxSurge                Amount    // maxSurge in Git; default 25%, rounded up
	MaxUnavailable          Amount    // maxUnavailable in Git; default 25%; see Unavailable
	MinReadySeconds         int       // default 0; seconds that a pod must be Ready to count as available
	ProgressDeadlineSeconds int       // default 600; seconds without progress; pauses do not count
	ProgressDeadlineAbort   bool      `json:"progressDeadlineAbort"` // true: abort at the deadline; false (default): only report
	RollbackWindow          *int      // number of former versions that skip steps if released again; nil: all
	Paused                  bool      `json:"paused"`             // spec.paused: while true, no step ends
	RestartAt               time.Time `json:"restartAt,omitzero"` // pods created earlier are deleted; zero: none
	Scaling                 Scaling   // source of capacity for canary pods

	// JSON of the labels and annotations that gitrollout sets on stable pods and on new pods; "" for none
	StableMetadata, NewMetadata string `json:",omitempty"`
}

// Scaling selects whether canary pods are added to stable pods or replace them.
type Scaling string

// Surge keeps all stable pods, so that an abort starts no pods. InPlace replaces stable pods by canary pods, within
// maxSurge and maxUnavailable.
const (
	Surge   Scaling = "surge"
	InPlace Scaling = "inPlace"
)

// Canary is a canary strategy. Without steps, a release is a rolling update.
type Canary struct {
	Steps                      []Step
	StableService              string         `json:"stableService"` // Service for the stable version, "" for none
	CanaryService              string         `json:"canaryService"`
	PingPong                   *PingPong      `json:"pingPong"` // in place of StableService and CanaryService
	Traffic                    *Traffic       // nil: weights are shares of pods, not requests
	Analysis                   *Analysis      // in the background of the release; nil for none
	Watch                      *Analysis      `json:",omitempty"`         // after the release; nil for none
	DynamicStableScale         bool           `json:"dynamicStableScale"` // less traffic to stable means fewer stable pods
	Rebalance                  bool           `json:"rebalance" own:""`   // StatefulSets: evict surplus new pods
	NodeOrder                  []NodeSelector `json:"nodeOrder" own:""`   // DaemonSets: order in which nodes update
	MinPodsPerReplicaSet       int            // least pods of a version that has pods; 0 or 1: no minimum
	AbortScaleDownDelaySeconds int            // with Surge: seconds that canary pods stay after all traffic is on stable
	ScaleDownDelaySeconds      int            // with Surge and Services: seconds that old pods stay after promotion
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

// Matches reports whether labels include MatchLabels.
func (s NodeSelector) Matches(labels map[string]string) bool {
	for key, value := range s.MatchLabels {
		if has, found := labels[key]; !found || has != value {
			return false
		}
	}
	return true
}

// BlueGreen starts all new pods beside the stable pods, then switches the active Service once.
type BlueGreen struct {
	ActiveService              string `json:"activeService" needs:"name the Service to switch"`
	PreviewService             string `json:"previewService"`                      // Service of the new version
	PreviewReplicaCount        *int   `json:"previewReplicaCount"`                 // preview pods; nil: as many as stable pods
	AutoPromotionEnabled       bool   `json:"autoPromotionEnabled" default:"true"` // if false, users must promote
	AutoPromotionSeconds       int    `json:"autoPromotionSeconds"`                // seconds from ready preview to switch; default 0
	ScaleDownDelaySeconds      int    `json:"scaleDownDelaySeconds" default:"30"`
	AbortScaleDownDelaySeconds int    `json:"abortScaleDownDelaySeconds" default:"30"` // 0: at once

	PrePromotion  *Analysis
	PostPromotion *Analysis
	Watch         *Analysis `json:",omitempty"` // after the release
}

// Step is one step of a release. Besides Name and Headers, exactly one field is set.
type Step struct {
	// Name is the user's name for the step, or "".
	Name string `json:"name" own:""`
	// SetWeight is the new version's weight: a percentage of pods, or a share of Traffic.MaxWeight.
	SetWeight      *int         `json:"setWeight" max:"1000000"`
	Pause          *Pause       `json:"pause"`
	SetCanaryScale *CanaryScale `json:"setCanaryScale"`
	// Headers modifies the headers of requests to the new version, during this step only.
	Headers *HeaderModifier `json:"requestHeaderModifier" own:""`

	Analysis   *Analysis
	Experiment *Experiment
	Route      *ManagedRoute // for setHeaderRoute, setMirrorRoute and match; without Matches, the step removes the route
}

// Pause waits for a duration, a schedule's next match or, with neither, a promotion.
type Pause struct {
	Duration *time.Duration `json:"duration" min:"1" fix:"leave duration out to wait for a promotion"`
	// Timeout limits the wait for a promotion.
	Timeout   *time.Duration `json:"timeout" own:"" min:"1" fix:"leave timeout out to wait for a promotion"`
	OnTimeout string         `json:"onTimeout" own:"" oneOf:"abort promote"` // "" without Timeout; default: abort
	// Until is a cron schedule. Its next match ends the pause.
	Until    string `json:"until" own:""`
	TimeZone string `json:"timeZone" own:""` // for Until; "" is UTC
}

// The values of Pause.OnTimeout.
const (
	TimeoutAbort   = "abort"
	TimeoutPromote = "promote"
)

// CanaryScale sets the number of canary pods independently of the weight.
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

// ReadValue reads a number or percentage. As in Argo Rollouts, a quoted number is a percentage.
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

// RoundUp returns the amount out of n pods, rounded like maxSurge.
func (a Amount) RoundUp(n int) int { return a.of(n, 99) }

// RoundDown returns the amount out of n pods, rounded like maxUnavailable.
func (a Amount) RoundDown(n int) int { return a.of(n, 0) }

func (a Amount) of(n, hundredths int) int {
	if !a.Percent {
		return a.Value
	}
	return (n*a.Value + hundredths) / 100
}

func (a Amount) String() string {
	if a.Percent {
		return fmt.Sprintf("%d%%", a.Value)
	}
	return fmt.Sprintf("%d", a.Value)
}
