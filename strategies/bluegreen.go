package strategies

import (
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

type blueGreen struct{}

func (blueGreen) compiles(spec rollout.Spec) bool { return spec.BlueGreen != nil }

func (blueGreen) compile(spec rollout.Spec) plan {
	b := spec.BlueGreen
	return plan{
		strategy: StrategyBlueGreen, oldRole: RoleActive, freshRole: RolePreview,
		main: b.ActiveService, side: b.PreviewService, pins: blueGreenPins,
		stages: blueGreenStages(b), abortDelay: time.Duration(b.AbortScaleDownDelaySeconds) * time.Second,
	}
}

// blueGreenStages returns preview pods, gate, full set, Service switch and scale-down delay, with the analyses.
func blueGreenStages(b *rollout.BlueGreen) []stage {
	preview := stage{counts: fullSets}
	if b.PreviewReplicaCount != nil {
		// At least one pod, as in Argo Rollouts: a preview without pods would be promoted unseen.
		preview.counts = func(n int) counts { return counts{canary: min(n, max(1, *b.PreviewReplicaCount)), stable: n} }
	}
	stages := []stage{preview.with("preview", "preview", podsWait{})}
	if a := b.PrePromotion; a != nil {
		stages = append(stages, preview.with("pre-promotion", analysisText(a), analysisWait{a}))
	}
	switch {
	case !b.AutoPromotionEnabled:
		stages = append(stages, preview.with("promotion", "wait for promotion", promotionWait{}))
	case b.AutoPromotionSeconds > 0:
		clock := timerWait{duration: time.Duration(b.AutoPromotionSeconds) * time.Second}
		stages = append(stages, preview.with("promotion", "wait for promotion", clock))
	}
	end := switchStages(time.Duration(b.ScaleDownDelaySeconds)*time.Second, b.PreviewReplicaCount != nil, 0)
	if a := b.PostPromotion; a != nil {
		at := slices.IndexFunc(end, func(s stage) bool { return s.switched })
		end = slices.Insert(end, at+1, end[at].with("post-promotion", analysisText(a), analysisWait{a}))
	}
	return append(stages, end...)
}

func fullSets(n int) counts { return counts{canary: n, stable: n} }

// switchStages returns the last stages where a whole Service moves: a full set, the switch, and a delay for rollbacks.
func switchStages(delay time.Duration, scaleUp bool, weight int) []stage {
	var stages []stage
	s := stage{counts: fullSets, weight: weight, final: true}
	if scaleUp {
		stages = append(stages, s.with("scale-up", "scale up", podsWait{}))
	}
	s.weight, s.switched = 100, true
	return s.kept(append(stages, s.with("switch", "switch", noWait{})), delay)
}

// kept adds a last stage that keeps the old version's pods for the delay, if there is one.
func (s stage) kept(stages []stage, delay time.Duration) []stage {
	if delay == 0 {
		return stages
	}
	s.keeps = true
	return append(stages, s.with("scale-down-delay", "keep the old version "+delay.String(), delayWait{delay}))
}
