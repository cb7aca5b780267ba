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

func blueGreenStages(b *rollout.BlueGreen) []Stage {
	preview := Stage{Counts: FullSets}
	if b.PreviewReplicaCount != nil {
		// At least one pod runs, as in Argo Rollouts: users cannot judge an empty preview.
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

// FullSets returns n pods of each version.
func FullSets(n int) Counts { return Counts{Canary: n, Stable: n} }

func switchStages(delay time.Duration, scaleUp bool, weight int) []Stage {
	var stages []Stage
	s := Stage{Counts: FullSets, Weight: weight, final: true}
	if scaleUp {
		stages = append(stages, s.With("scale-up", "scale up", PodsWait{}))
	}
	s.Weight, s.Switched = 100, true
	return s.kept(append(stages, s.With("switch", "switch", NoWait{})), delay)
}

func (s Stage) kept(stages []Stage, delay time.Duration) []Stage {
	if delay == 0 {
		return stages
	}
	s.keeps = true
	return append(stages, s.With("scale-down-delay", "keep the old version "+delay.String(), DelayWait{delay}))
}
