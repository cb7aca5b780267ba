package strategies_test

import (
	"math/rand/v2"
	"slices"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

func randomSource(rng *rand.Rand) source {
	var s source
	names := []string{"web", "api"}
	for i := range 1 + rng.IntN(4)/3 {
		s.workloads = append(s.workloads, staged{spec: randomSpec(rng, names[i]), version: "v1"})
	}
	return s
}

func randomSpec(rng *rand.Rand, name string) rollout.Spec {
	limits := [][2]rollout.Amount{
		{percent(25), percent(25)}, {percent(25), percent(25)}, {{Value: 1}, {Value: 0}}, {{Value: 0}, {Value: 1}}, {{Value: 3}, {Value: 2}},
		{percent(100), {Value: 0}}, {{Value: 0}, percent(100)}, {percent(0), percent(1)}, {percent(1), percent(0)}, {percent(50), {Value: 0}},
	}
	limit := limits[rng.IntN(len(limits))]
	spec := rollout.Spec{
		Name: name, Workload: rollout.Workload{Namespace: testApp.Namespace, Name: name}, MaxSurge: limit[0],
		MaxUnavailable: limit[1], ProgressDeadlineSeconds: 60 + rng.IntN(600), ProgressDeadlineAbort: rng.IntN(4) == 0,
		Scaling: rollout.InPlace,
	}
	if rng.IntN(3) > 0 {
		spec.Replicas = new(sizes[rng.IntN(len(sizes))])
	}
	if rng.IntN(3) == 0 {
		spec.MinReadySeconds = 1 + rng.IntN(20)
	}
	if rng.IntN(4) == 0 {
		spec.RollbackWindow = new(rng.IntN(3))
	}
	if rng.IntN(4) == 0 {
		spec.Scaling, spec.BlueGreen = rollout.Surge, randomBlueGreen(rng, name)
		return spec
	}
	if rng.IntN(2) == 0 {
		spec.Scaling = rollout.Surge
	}
	spec.Canary = &rollout.Canary{Steps: randomSteps(rng, spec.Scaling)}
	if rng.IntN(4) == 0 {
		spec.Canary.MinPodsPerReplicaSet = rng.IntN(4)
	}
	if n := spec.ProgressDeadlineSeconds; n%4 == 0 {
		spec.Canary.ReplicaProgressThreshold = &rollout.ProgressThreshold{Type: []string{"Percent", "Pods"}[n/4%2], Value: n % 101}
	}
	if rng.IntN(2) == 0 {
		spec.Canary.StableService, spec.Canary.CanaryService = name, name+"-canary"
	}
	if spec.Canary.StableService != "" && rng.IntN(2) == 0 {
		randomTraffic(rng, &spec, name)
	}
	if spec.Scaling == rollout.Surge && !spec.Canary.DynamicStableScale {
		spec.Canary.AbortScaleDownDelaySeconds, spec.Canary.ScaleDownDelaySeconds = rng.IntN(3)*15, rng.IntN(3)*15
	}
	return spec
}

// randomTraffic adds routes to a canary.
func randomTraffic(rng *rand.Rand, spec *rollout.Spec, name string) {
	spec.Scaling = rollout.Surge
	c := spec.Canary
	c.Traffic = &rollout.Traffic{
		MaxWeight: 100, Settle: time.Duration(rng.IntN(4)) * time.Second,
		Routers: []rollout.Router{httpRoute(name)},
	}
	c.DynamicStableScale = rng.IntN(3) == 0
	if rng.IntN(4) == 0 {
		c.PingPong = &rollout.PingPong{PingService: name, PongService: name + "-canary"}
		c.StableService, c.CanaryService = "", ""
	}
	c.Steps = randomSteps(rng, rollout.Surge)
	for i := range c.Steps {
		if rng.IntN(6) == 0 {
			c.Steps[i] = rollout.Step{Name: c.Steps[i].Name, Route: randomRoute(rng)}
		}
	}
}

// randomExperiments adds experiments between a canary's steps. If requests are routed, some templates have a weight.
func randomExperiments(rng *rand.Rand, c *rollout.Canary) []rollout.Step {
	steps := c.Steps
	for range 1 + rng.IntN(2) {
		e := &rollout.Experiment{Duration: new(time.Duration(1+rng.IntN(60)) * time.Second), ProgressDeadlineSeconds: 30 + rng.IntN(300)}
		for i, name := range []string{"baseline", "canary"}[rng.IntN(2):] {
			ref := []rollout.SpecRef{rollout.SpecStable, rollout.SpecCanary}[rng.IntN(2)]
			e.Templates = append(e.Templates, rollout.ExperimentTemplate{Name: name, SpecRef: ref, Replicas: 1 + rng.IntN(3)})
			if i == 0 && rng.IntN(2) == 0 {
				e.Templates[0].Service = new("")
			}
		}
		steps = slices.Insert(slices.Clone(steps), rng.IntN(len(steps)+1), rollout.Step{Experiment: e})
	}
	weight := 0
	for _, step := range steps {
		if step.SetWeight != nil {
			weight = *step.SetWeight
		}
		if step.Experiment == nil || c.Traffic == nil || c.DynamicStableScale || weight > 80 {
			continue
		}
		for i := range step.Experiment.Templates {
			if t := &step.Experiment.Templates[i]; t.Replicas > 1 {
				t.Weight, t.Service = 10, new("")
			}
		}
	}
	return steps
}

func randomRoute(rng *rand.Rand) *rollout.ManagedRoute {
	r := &rollout.ManagedRoute{Name: []string{"staff", rollout.MatchRoute}[rng.IntN(2)]}
	if rng.IntN(3) > 0 {
		r.Matches = []rollout.Match{{Headers: []rollout.NamedMatch{{Name: "X-Staff", StringMatch: rollout.StringMatch{Exact: "yes"}}}}}
	}
	if rng.IntN(4) == 0 {
		r.Mirror = new(50)
	}
	return r
}

func randomBlueGreen(rng *rand.Rand, name string) *rollout.BlueGreen {
	b := &rollout.BlueGreen{
		ActiveService: name, AutoPromotionEnabled: rng.IntN(2) == 0, AutoPromotionSeconds: rng.IntN(3) * 20,
		ScaleDownDelaySeconds: rng.IntN(3) * 15, AbortScaleDownDelaySeconds: rng.IntN(3) * 15,
	}
	if rng.IntN(2) == 0 {
		b.PreviewService = name + "-preview"
	}
	if rng.IntN(3) == 0 {
		b.PreviewReplicaCount = new(rng.IntN(4))
	}
	return b
}

func randomSteps(rng *rand.Rand, scaling rollout.Scaling) []rollout.Step {
	weights := []int{0, 1, 5, 10, 20, 25, 33, 50, 50, 66, 75, 90, 99, 100}
	var steps []rollout.Step
	weight := 0
	for range rng.IntN(6) {
		var step rollout.Step
		switch n := rng.IntN(10); {
		case n < 5:
			w := weights[rng.IntN(len(weights))]
			if w < weight && rng.IntN(4) > 0 {
				w = weight
			}
			weight = w
			step.SetWeight = &w
		case n < 7:
			step.Pause = &rollout.Pause{}
		case n < 9 || scaling != rollout.Surge:
			step.Pause = &rollout.Pause{Duration: new(time.Duration(1+rng.IntN(60)) * time.Second)}
		default:
			step.SetCanaryScale = []*rollout.CanaryScale{{Replicas: new(rng.IntN(5))}, {Weight: new(rng.IntN(101))},
				{MatchTrafficWeight: true}}[rng.IntN(3)]
		}
		if len(steps) == 0 {
			step.Name = "first"
		}
		steps = append(steps, step)
	}
	return steps
}

// otherSettings changes fields other than steps: scale-down delays, the promotion settings of blue-green, or sometimes the whole strategy.
func otherSettings(rng *rand.Rand, spec *rollout.Spec) {
	switch {
	case rng.IntN(4) == 0:
		other := randomSpec(rng, spec.Workload.Name)
		spec.Scaling, spec.Canary, spec.BlueGreen = other.Scaling, other.Canary, other.BlueGreen
	case spec.BlueGreen != nil:
		b := randomBlueGreen(rng, spec.Workload.Name)
		b.PreviewService = spec.BlueGreen.PreviewService
		spec.BlueGreen = b
	case spec.Scaling == rollout.Surge && !spec.Canary.DynamicStableScale:
		c := *spec.Canary
		c.ScaleDownDelaySeconds = rng.IntN(3) * 15
		spec.Canary = &c
	}
}
