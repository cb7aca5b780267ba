package plan

import (
	"fmt"
	"math"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/traffic"
)

type canary struct{}

func (canary) Compiles(spec rollout.Spec) bool { return spec.Canary != nil }

func (canary) Compile(spec rollout.Spec) Compiled {
	c := spec.Canary
	p := Compiled{
		Strategy: StrategyCanary, OldRole: RoleStable, FreshRole: RoleCanary, Main: c.StableService, Side: c.CanaryService,
		Stages: canaryStages(spec), Passed: len(c.Steps), Background: c.Analysis, Pins: CanaryPins,
	}
	if len(c.Steps) == 0 {
		p.Strategy = StrategyRollingUpdate
	}
	if pair := c.PingPong; pair != nil {
		p.pingPong, p.Main, p.Side = true, pair.PingService, pair.PongService
	}
	if c.Traffic != nil {
		p.Routing, p.Pins = &Routing{Traffic: c.Traffic, dynamic: c.DynamicStableScale}, RoutedPins
		if spec.Scaling == rollout.InPlace {
			p.Pins = SharedPins
		}
	}
	p.AbortDelay = time.Duration(c.AbortScaleDownDelaySeconds) * time.Second
	p.AtOnce = c.StableService == "" && c.Traffic == nil
	return p
}

// canaryStages returns one stage per step, then the stages of canaryHandover. As in Argo Rollouts, the weight is 0
// before the first setWeight.
func canaryStages(spec rollout.Spec) []Stage {
	c := spec.Canary
	var stages []Stage
	weight := 0
	var scale *rollout.CanaryScale
	var routes []rollout.ManagedRoute
	for i, step := range c.Steps {
		s := Stage{Name: step.Name, Wait: PodsWait{}}
		switch {
		case step.SetWeight != nil:
			weight = *step.SetWeight
			if spec.Scaling == rollout.InPlace || c.Traffic == nil { // setWeight sets the pods, so it replaces setCanaryScale
				scale = nil
			}
			s.Text = fmt.Sprintf("setWeight %d", weight)
		case step.SetCanaryScale != nil:
			scale = step.SetCanaryScale
			s.Text = scaleText(*scale)
			if scale.MatchTrafficWeight {
				scale = nil
			}
		case step.Route != nil:
			s.Text = routeText(*step.Route)
			routes = traffic.Managed(c.Steps[:i+1], c.Traffic.ManagedRoutes)
		case step.Analysis != nil:
			s.Text, s.Wait = analysisText(step.Analysis), AnalysisWait{step.Analysis}
		case step.Experiment != nil:
			s.Text, s.Wait = experimentText(step.Experiment), ExperimentWait{step.Experiment}
		default:
			s.Text, s.Wait = pauseOf(step.Pause)
		}
		s.Weight, s.Routes = weight, routes
		s.Scaled = scale != nil && (spec.Scaling == rollout.InPlace || c.Traffic == nil)
		s.Counts = canaryCounts(spec, weight, scale, len(routes) > 0)
		if c.Traffic != nil && s.Counts(100).Canary == 0 {
			s.Weight, s.Routes = 0, nil // no canary pod can get requests, so a later step applies the weight
		}
		if step.Headers != nil && (s.Weight > 0 || len(s.Routes) > 0) { // only requests to the new version get headers
			s.Headers, s.Text = step.Headers, s.Text+", headers "+strings.Join(step.Headers.Names(), ", ")
		}
		stages = append(stages, s)
	}
	return append(stages, canaryHandover(spec, weight)...)
}

func pauseOf(p *rollout.Pause) (string, Wait) {
	switch {
	case p == nil:
		return "pause", PromotionWait{}
	case p.Duration != nil:
		return "pause " + p.Duration.String(), TimerWait{Duration: *p.Duration}
	case p.Until != "":
		return strings.TrimSpace("pause until " + p.Until + " " + p.TimeZone), TimerWait{Until: p.Until, Zone: p.TimeZone}
	case p.Timeout != nil:
		return "pause, at most " + p.Timeout.String(), PromotionWait{Timeout: *p.Timeout, OnTimeout: p.OnTimeout}
	default:
		return "pause", PromotionWait{}
	}
}

func canaryHandover(spec rollout.Spec, weight int) []Stage {
	c := spec.Canary
	if c.Traffic != nil && len(c.Steps) > 0 && spec.Scaling != rollout.InPlace {
		return routedHandover(spec)
	}
	if len(c.Steps) == 0 || spec.Scaling != rollout.Surge || c.StableService == "" || c.ScaleDownDelaySeconds == 0 {
		return nil
	}
	return switchStages(time.Duration(c.ScaleDownDelaySeconds)*time.Second, true, weight)
}

// routedHandover returns the last stages of a routed canary. Once routers send all requests to the new version, the
// stable Service selects this version. Ping-pong Services need no switch.
func routedHandover(spec rollout.Spec) []Stage {
	c := spec.Canary
	s := Stage{Weight: c.Traffic.MaxWeight, final: true, Counts: func(n int) Counts {
		if c.DynamicStableScale {
			return Counts{Canary: n}
		}
		return Counts{Canary: n, Stable: n}
	}}
	stages := []Stage{s.With("route-all", "send all requests to the new version", PodsWait{})}
	if s.Switched = c.PingPong == nil; s.Switched {
		stages = append(stages, s.With("switch", "switch", DelayWait{c.Traffic.Settle}))
	}
	return s.kept(stages, time.Duration(c.ScaleDownDelaySeconds)*time.Second)
}

func analysisText(a *rollout.Analysis) string {
	return "analysis " + strings.Join(rollout.Mapped(a.Metrics, func(m rollout.Metric) string { return m.Name }), ", ")
}

func experimentText(e *rollout.Experiment) string {
	names := rollout.Mapped(e.Templates, func(t rollout.ExperimentTemplate) string {
		if t.Weight > 0 {
			return fmt.Sprintf("%s (weight %d)", t.Name, t.Weight)
		}
		return t.Name
	})
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

// canaryCounts returns a step's pods for n replicas. In place, new pods replace stable pods. Otherwise n stable pods
// stay, or fewer with dynamicStableScale. Matched requests need a canary pod, even at weight 0.
func canaryCounts(spec rollout.Spec, weight int, scale *rollout.CanaryScale, matched bool) func(n int) Counts {
	c := spec.Canary
	full := 100
	if c.Traffic != nil {
		full = c.Traffic.MaxWeight
	}
	return func(n int) Counts {
		if spec.Scaling == rollout.InPlace {
			surge := spec.MaxSurge.RoundUp(n) > 0
			want, all := Approximate(n, weight, surge), weight == 100
			switch {
			case scale != nil:
				want, all = batch(n, *scale, surge)
			case matched && want.Canary == 0:
				want = Counts{Canary: min(1, n), Stable: max(0, n-1)}
			}
			return inPlace(spec, atLeast(want, c.MinPodsPerReplicaSet, n), n, all)
		}
		want := Counts{Canary: ceilShare(n, weight, full), Stable: n}
		exact := scale != nil && scale.Replicas != nil
		switch {
		case exact:
			want.Canary = min(*scale.Replicas, n)
		case scale != nil && scale.Weight != nil:
			want.Canary = ceilShare(n, *scale.Weight, 100)
		case matched:
			want.Canary = max(want.Canary, min(1, n))
		}
		if c.DynamicStableScale {
			want.Stable = max(ceilShare(n, full-weight, full), n-want.Canary)
		}
		floored := atLeast(want, c.MinPodsPerReplicaSet, n)
		if exact {
			floored.Canary = want.Canary // the minimum does not apply to an explicit number
		}
		if c.DynamicStableScale {
			floored.Stable = n - WholePercent(n-floored.Stable, n)
		}
		return floored
	}
}

// inPlace returns the closest counts that the controller can keep. A Deployment's maxUnavailable is a percentage,
// because an integer would remove too many pods when an autoscaler halves n. Rounding may keep more stable pods: 53 %
// of 147 removes 77 pods, and no percentage removes 78. Other kinds keep one stable pod, except at weight 100.
func inPlace(spec rollout.Spec, c Counts, n int, all bool) Counts {
	switch kind := spec.Workload.Ref().Kind; {
	case spec.Partition == nil && kind == rollout.WorkloadKinds[0].Kind:
		gone := n - c.Stable
		kept := gone - WholePercent(gone, n)
		return Counts{Canary: c.Canary - kept, Stable: c.Stable + kept}
	case all || c.Canary < n:
		return c
	default:
		return Counts{Canary: max(0, n-1), Stable: min(n, 1)}
	}
}

// batch returns the counts of setCanaryScale with in-place scaling. Shares are rounded up. Unless scale.Weight is 100,
// at least one stable pod stays.
func batch(n int, scale rollout.CanaryScale, surge bool) (c Counts, all bool) {
	if scale.Replicas != nil {
		c.Canary = min(*scale.Replicas, n)
	} else {
		c.Canary, all = ceilShare(n, *scale.Weight, 100), *scale.Weight == 100
	}
	if c.Canary == n && !all && !surge {
		c.Canary = max(0, n-1)
	}
	if c.Stable = n - c.Canary; !all {
		c.Stable = max(c.Stable, min(n, 1))
	}
	return c, all
}

// WholePercent returns the largest k <= m that equals p% of n, rounded down, for some integer p.
func WholePercent(m, n int) int {
	if m <= 0 {
		return m
	}
	return ((m+1)*100 - 1) / n * n / 100
}

func atLeast(c Counts, floor, n int) Counts {
	floor = min(floor, n)
	if c.Canary > 0 {
		c.Canary = max(c.Canary, floor)
	}
	if c.Stable > 0 {
		c.Stable = max(c.Stable, floor)
	}
	return c
}

func ceilShare(n, weight, full int) int { return (n*weight + full - 1) / full }

// Approximate splits n pods, or n+1 with a surge, as close to the weight as possible, like Argo Rollouts'
// CalculateReplicaCountsForBasicCanary. If no split fits, as for 5 pods at 90 %, it returns n-1 canary pods. Argo
// Rollouts returns 0.
func Approximate(n, weight int, surge bool) Counts {
	if n == 0 {
		return Counts{}
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
		return Counts{Canary: n - 1, Stable: 1}
	}
	best, bestError := options[0], math.Inf(1)
	for _, o := range options {
		if off := math.Abs(float64(o.canary)*100/float64(o.total) - float64(weight)); off < bestError {
			best, bestError = o, off
		}
	}
	return Counts{Canary: best.canary, Stable: best.total - best.canary}
}
