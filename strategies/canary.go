package strategies

import (
	"fmt"
	"math"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/traffic"
)

// canary moves a share of pods or requests step by step. Without steps it is the user's own rolling update.
type canary struct{}

func (canary) compiles(spec rollout.Spec) bool { return spec.Canary != nil }

func (canary) compile(spec rollout.Spec) plan {
	c := spec.Canary
	p := plan{
		strategy: StrategyCanary, oldRole: RoleStable, freshRole: RoleCanary, main: c.StableService, side: c.CanaryService,
		stages: canaryStages(spec), passed: len(c.Steps), background: c.Analysis, pins: canaryPins,
	}
	if len(c.Steps) == 0 {
		p.strategy = StrategyRollingUpdate
	}
	if pair := c.PingPong; pair != nil {
		p.pingPong, p.main, p.side = true, pair.PingService, pair.PongService
	}
	if c.Traffic != nil {
		p.routing, p.pins = &routing{Traffic: c.Traffic, dynamic: c.DynamicStableScale}, routedPins
		if spec.Scaling == rollout.InPlace {
			p.pins = sharedPins
		}
	}
	p.abortDelay = time.Duration(c.AbortScaleDownDelaySeconds) * time.Second
	p.atOnce = c.StableService == "" && c.Traffic == nil
	return p
}

// canaryStages returns a stage for each step, at its index, and later ones. As in Argo Rollouts weights start at 0.
func canaryStages(spec rollout.Spec) []stage {
	c := spec.Canary
	var stages []stage
	weight := 0
	var scale *rollout.CanaryScale
	var routes []rollout.ManagedRoute
	taken := false // setCanaryScale came after the current weight
	for i, step := range c.Steps {
		s := stage{name: step.Name, wait: podsWait{}}
		switch {
		case step.SetWeight != nil:
			weight, taken = *step.SetWeight, false
			if spec.Scaling == rollout.InPlace || c.Traffic == nil { // the weight is a number of pods, as in setCanaryScale
				scale = nil
			}
			s.text = fmt.Sprintf("setWeight %d", weight)
		case step.SetCanaryScale != nil:
			scale, taken = step.SetCanaryScale, true
			s.text = scaleText(*scale)
			if scale.MatchTrafficWeight {
				scale = nil
			}
		case step.Route != nil:
			s.text = routeText(*step.Route)
			routes = traffic.Managed(c.Steps[:i+1], c.Traffic.ManagedRoutes)
		case step.Analysis != nil:
			s.text, s.wait = analysisText(step.Analysis), analysisWait{step.Analysis}
		case step.Experiment != nil:
			s.text, s.wait = experimentText(step.Experiment), experimentWait{step.Experiment}
		default:
			s.text, s.wait = pauseOf(step.Pause)
		}
		s.weight, s.routes = weight, routes
		s.scaled = scale != nil && (spec.Scaling == rollout.InPlace || c.Traffic == nil)
		s.counts = canaryCounts(spec, weight, scale, len(routes) > 0)
		if c.Traffic != nil && taken && s.counts(100).canary == 0 {
			s.weight, s.routes = 0, nil // no canary pod gets requests; a later setWeight never completes
		}
		stages = append(stages, s)
	}
	return append(stages, canaryHandover(spec, weight)...)
}

// pauseOf returns the text and the wait of a pause.
func pauseOf(p *rollout.Pause) (string, wait) {
	switch {
	case p == nil:
		return "pause", promotionWait{}
	case p.Duration != nil:
		return "pause " + p.Duration.String(), timerWait{duration: *p.Duration}
	case p.Until != "":
		return strings.TrimSpace("pause until " + p.Until + " " + p.TimeZone), timerWait{until: p.Until, zone: p.TimeZone}
	case p.Timeout != nil:
		return "pause, at most " + p.Timeout.String(), promotionWait{timeout: *p.Timeout, onTimeout: p.OnTimeout}
	default:
		return "pause", promotionWait{}
	}
}

// canaryHandover returns the stages that keep stable pods after the promotion: a full second set, switch, delay.
func canaryHandover(spec rollout.Spec, weight int) []stage {
	c := spec.Canary
	if c.Traffic != nil && len(c.Steps) > 0 && spec.Scaling != rollout.InPlace {
		return routedHandover(spec)
	}
	if len(c.Steps) == 0 || spec.Scaling != rollout.Surge || c.StableService == "" || c.ScaleDownDelaySeconds == 0 {
		return nil
	}
	return switchStages(time.Duration(c.ScaleDownDelaySeconds)*time.Second, true, weight)
}

// routedHandover returns the last stages of a routed canary: all requests go to the new version, then the stable
// Service, without requests by then, is switched. Ping-pong Services need no switch.
func routedHandover(spec rollout.Spec) []stage {
	c := spec.Canary
	s := stage{weight: c.Traffic.MaxWeight, final: true, counts: func(n int) counts {
		if c.DynamicStableScale {
			return counts{canary: n}
		}
		return counts{canary: n, stable: n}
	}}
	stages := []stage{s.with("route-all", "send all requests to the new version", podsWait{})}
	if s.switched = c.PingPong == nil; s.switched {
		stages = append(stages, s.with("switch", "switch", delayWait{c.Traffic.Settle}))
	}
	return s.kept(stages, time.Duration(c.ScaleDownDelaySeconds)*time.Second)
}

func analysisText(a *rollout.Analysis) string {
	return "analysis " + strings.Join(rollout.Mapped(a.Metrics, func(m rollout.Metric) string { return m.Name }), ", ")
}

func experimentText(e *rollout.Experiment) string {
	names := rollout.Mapped(e.Templates, func(t rollout.ExperimentTemplate) string { return t.Name })
	text := "experiment " + strings.Join(names, ", ")
	if e.Duration != nil {
		text += " " + e.Duration.String()
	}
	return text
}

func routeText(r rollout.ManagedRoute) string {
	text := "setHeaderRoute " + r.Name
	switch {
	case r.Mirror != nil:
		text = "setMirrorRoute " + r.Name
	case r.Name == rollout.MatchRoute:
		text = "match"
	}
	if len(r.Matches) == 0 {
		text += ", ended"
	}
	return text
}

func scaleText(s rollout.CanaryScale) string {
	switch {
	case s.Replicas != nil:
		return fmt.Sprintf("setCanaryScale replicas %d", *s.Replicas)
	case s.Weight != nil:
		return fmt.Sprintf("setCanaryScale weight %d", *s.Weight)
	default:
		return "setCanaryScale matchTrafficWeight"
	}
}

// canaryCounts returns the pods of a canary, never fewer than n in all. In place it replaces stable pods; otherwise
// stable keeps all or, with dynamicStableScale, its share of traffic. Matched users need a canary pod at any weight.
func canaryCounts(spec rollout.Spec, weight int, scale *rollout.CanaryScale, matched bool) func(n int) counts {
	c := spec.Canary
	full := 100
	if c.Traffic != nil {
		full = c.Traffic.MaxWeight
	}
	return func(n int) counts {
		if spec.Scaling == rollout.InPlace {
			surge := spec.MaxSurge.RoundUp(n) > 0
			want, all := approximate(n, weight, surge), weight == 100
			switch {
			case scale != nil:
				want, all = batch(n, *scale, surge)
			case matched && want.canary == 0:
				want = counts{canary: min(1, n), stable: max(0, n-1)}
			}
			return inPlace(spec, atLeast(want, c.MinPodsPerReplicaSet, n), n, all)
		}
		want := counts{canary: ceilShare(n, weight, full), stable: n}
		exact := scale != nil && scale.Replicas != nil
		switch {
		case exact:
			want.canary = min(*scale.Replicas, n)
		case scale != nil && scale.Weight != nil:
			want.canary = ceilShare(n, *scale.Weight, 100)
		case matched:
			want.canary = max(want.canary, min(1, n))
		}
		if c.DynamicStableScale {
			want.stable = max(ceilShare(n, full-weight, full), n-want.canary)
		}
		floored := atLeast(want, c.MinPodsPerReplicaSet, n)
		if exact {
			floored.canary = want.canary // an explicit number is not raised to the minimum
		}
		if c.DynamicStableScale {
			floored.stable = n - wholePercent(n-floored.stable, n)
		}
		return floored
	}
}

// inPlace returns the counts that the workload's controller can hold. A Deployment keeps enough stable pods that the
// removed ones are a whole percentage of n: 78 of 147 are none, as 53 % are 77. An integer would stay when an
// autoscaler halves n, and remove pods that serve. Other kinds keep one stable pod as long as not all pods are asked
// for: a single pod moves with the promotion.
func inPlace(spec rollout.Spec, c counts, n int, all bool) counts {
	switch kind := spec.Workload.Ref().Kind; {
	case spec.Partition == nil && kind == rollout.WorkloadKinds[0].Kind:
		gone := n - c.stable
		kept := gone - wholePercent(gone, n)
		return counts{canary: c.canary - kept, stable: c.stable + kept}
	case all || c.canary < n:
		return c
	default:
		return counts{canary: max(0, n-1), stable: min(n, 1)}
	}
}

// batch returns the counts of setCanaryScale in place, a share rounded up. One stable pod stays below a scale of 100
// %: 2 replicas of 2 pods are 1 canary and 1 stable, or 2 and 1 with a surge.
func batch(n int, scale rollout.CanaryScale, surge bool) (c counts, all bool) {
	if scale.Replicas != nil {
		c.canary = min(*scale.Replicas, n)
	} else {
		c.canary, all = ceilShare(n, *scale.Weight, 100), *scale.Weight == 100
	}
	if c.canary == n && !all && !surge {
		c.canary = max(0, n-1)
	}
	if c.stable = n - c.canary; !all {
		c.stable = max(c.stable, min(n, 1))
	}
	return c, all
}

// wholePercent returns the largest number of pods, at most m, that a percentage of n yields, rounded down.
func wholePercent(m, n int) int {
	if m <= 0 {
		return m
	}
	return ((m+1)*100 - 1) / n * n / 100
}

// atLeast raises each version that has pods to the minimum, at most to n.
func atLeast(c counts, floor, n int) counts {
	floor = min(floor, n)
	if c.canary > 0 {
		c.canary = max(c.canary, floor)
	}
	if c.stable > 0 {
		c.stable = max(c.stable, floor)
	}
	return c
}

func ceilShare(n, weight, full int) int { return (n*weight + full - 1) / full }

// approximate splits n pods, or n+1 with a surge, closest to the weight, like CalculateReplicaCountsForBasicCanary of
// Argo Rollouts. 5 pods at 20 % are 1/4; 3 pods at 10 % with a surge are 1/3, without one 1/2. One case differs: a
// tie without a surge whose upper half is n, as 2 pods at 75 %, gives n-1 canary pods, not none.
func approximate(n, weight int, surge bool) counts {
	if n == 0 {
		return counts{}
	}
	up, down := ceilShare(n, weight, 100), n*weight/100
	tie := func(total int) bool { return total*weight%100 == 50 }
	zeroOK := weight == 100 || weight == 0 || (n == 1 && !surge)

	type option struct{ canary, total int }
	var options []option
	if up < n || zeroOK {
		options = append(options, option{up, n})
	}
	if !tie(n) && (down != 0 || zeroOK) {
		options = append(options, option{down, n})
	}
	if surge {
		options = append(options, option{up, n + 1})
		if !tie(n+1) && (down != 0 || zeroOK) {
			options = append(options, option{down, n + 1})
		}
	}
	if len(options) == 0 {
		return counts{canary: n - 1, stable: 1}
	}
	best, bestError := options[0], math.Inf(1)
	for _, o := range options {
		if off := math.Abs(float64(o.canary)*100/float64(o.total) - float64(weight)); off < bestError {
			best, bestError = o, off
		}
	}
	return counts{canary: best.canary, stable: best.total - best.canary}
}
