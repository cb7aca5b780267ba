package plan

import (
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

type blueGreen struct{}

func (blueGreen) Compiles(spec rollout.Spec) bool { return spec.BlueGreen != nil }

func (blueGreen) Compile(spec rollout.Spec) Compiled {
	b := spec.BlueGreen
	return Compiled{
		Strategy: StrategyBlueGreen, OldRole: RoleActive, FreshRole: RolePreview,
		Main: b.ActiveService, Side: b.PreviewService, Pins: BlueGreenPins,
		Stages: blueGreenStages(b), AbortDelay: time.Duration(b.AbortScaleDownDelaySeconds) * time.Second,
	}
}

// blueGreenStages returns preview pods, gate, full set, Service switch and scale-down delay, with the analyses.
func blueGreenStages(b *rollout.BlueGreen) []Stage {
	preview := Stage{Counts: FullSets}
	if b.PreviewReplicaCount != nil {
		// At least one pod, as in Argo Rollouts: a preview without pods would be promoted unseen.
		preview.Counts = func(n int) Counts { return Counts{Canary: min(n, max(1, *b.PreviewReplicaCount)), Stable: n} }
	}
	stages := []Stage{preview.With("preview", "preview", PodsWait{})}
	if a := b.PrePromotion; a != nil {
		stages = append(stages, preview.With("pre-promotion", analysisText(a), AnalysisWait{a}))
	}
	switch {
	case !b.AutoPromotionEnabled:
		stages = append(stages, preview.With("promotion", "wait for promotion", PromotionWait{}))
	case b.AutoPromotionSeconds > 0:
		clock := TimerWait{Duration: time.Duration(b.AutoPromotionSeconds) * time.Second}
		stages = append(stages, preview.With("promotion", "wait for promotion", clock))
	}
	end := switchStages(time.Duration(b.ScaleDownDelaySeconds)*time.Second, b.PreviewReplicaCount != nil, 0)
	if a := b.PostPromotion; a != nil {
		at := slices.IndexFunc(end, func(s Stage) bool { return s.Switched })
		end = slices.Insert(end, at+1, end[at].With("post-promotion", analysisText(a), AnalysisWait{a}))
	}
	return append(stages, end...)
}

// FullSets returns all pods of both versions.
func FullSets(n int) Counts { return Counts{Canary: n, Stable: n} }

// switchStages returns the last stages where a whole Service moves: a full set, the switch, and a delay for rollbacks.
func switchStages(delay time.Duration, scaleUp bool, weight int) []Stage {
	var stages []Stage
	s := Stage{Counts: FullSets, Weight: weight, final: true}
	if scaleUp {
		stages = append(stages, s.With("scale-up", "scale up", PodsWait{}))
	}
	s.Weight, s.Switched = 100, true
	return s.kept(append(stages, s.With("switch", "switch", NoWait{})), delay)
}

// kept adds a last stage that keeps the old version's pods for the delay, if there is one.
func (s Stage) kept(stages []Stage, delay time.Duration) []Stage {
	if delay == 0 {
		return stages
	}
	s.keeps = true
	return append(stages, s.With("scale-down-delay", "keep the old version "+delay.String(), DelayWait{delay}))
}
