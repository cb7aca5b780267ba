package strategies

import (
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// blueGreenStages compiles a blue-green release: preview pods, the gate, a full
// set, the switch of the active Service, and the time for which the old set
// stays.
func blueGreenStages(spec rollout.Spec) []stage {
	b := spec.BlueGreen
	full := func(n int) counts { return counts{canary: n, stable: n} }
	preview := full
	if b.PreviewReplicaCount != nil {
		// At least one pod, as Argo Rollouts does for a non-zero workload: a
		// preview of nothing would be promoted unseen.
		preview = func(n int) counts { return counts{canary: min(n, max(1, *b.PreviewReplicaCount)), stable: n} }
	}
	stages := []stage{{name: "preview", text: "preview", counts: preview, wait: waitPods}}
	if b.PrePromotion != nil {
		stages = append(stages, stage{name: "pre-promotion", text: analysisText(b.PrePromotion), counts: preview, wait: waitAnalysis, analysis: b.PrePromotion})
	}
	switch {
	case !b.AutoPromotionEnabled:
		stages = append(stages, stage{name: "promotion", text: "wait for promotion", counts: preview, wait: waitGate})
	case b.AutoPromotionSeconds > 0:
		stages = append(stages, stage{
			name: "promotion", text: "wait for promotion", counts: preview,
			wait: waitTimer, duration: time.Duration(b.AutoPromotionSeconds) * time.Second,
		})
	}
	end := handover(time.Duration(b.ScaleDownDelaySeconds)*time.Second, b.PreviewReplicaCount != nil, 0)
	if b.PostPromotion == nil {
		return append(stages, end...)
	}
	at := slices.IndexFunc(end, func(s stage) bool { return s.switched }) + 1
	after := stage{name: "post-promotion", text: analysisText(b.PostPromotion), weight: 100, counts: full, wait: waitAnalysis, analysis: b.PostPromotion, switched: true}
	return append(stages, slices.Insert(end, at, after)...)
}

// handover is the end of each release that moves a whole Service at once: a
// full set of new pods beside the old set, then the switch, then the time in
// which going back is one change of a selector.
func handover(delay time.Duration, scaleUp bool, weight int) []stage {
	full := func(n int) counts { return counts{canary: n, stable: n} }
	var stages []stage
	if scaleUp {
		stages = append(stages, stage{name: "scale-up", text: "scale up", weight: weight, counts: full, wait: waitPods})
	}
	stages = append(stages, stage{name: "switch", text: "switch", weight: 100, counts: full, wait: waitNothing, switched: true})
	if delay > 0 {
		stages = append(stages, stage{
			name: "scale-down-delay", text: "keep the old version " + delay.String(), weight: 100,
			counts: full, wait: waitDelay, duration: delay, switched: true,
		})
	}
	return stages
}
