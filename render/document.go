package render

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gitrollout.dev/gitrollout/rollout"
)

const (
	ownGroup          = "gitrollout.dev"
	argoGroup         = "argoproj.io"
	annotationScaling = "gitrollout.dev/scaling"
)

// ofOthers has the fix for each refused kind of another rollout tool. Without that tool, such objects have no effect.
// With that tool, two tools would move pods.
var ofOthers = map[string]string{
	"rollouts.kruise.io/Rollout":        "write a Rollout of gitrollout.dev, as in docs/coming-from-kruise-rollouts.md",
	"rollouts.kruise.io/TrafficRouting": "write the routes into a Rollout, as in docs/coming-from-kruise-rollouts.md",
	"rollouts.kruise.io/BatchRelease":   "leave it out: only the controller of Kruise Rollouts makes it",
	"flagger.app/Canary":                "write a Rollout, as in docs/coming-from-flagger.md",
	"flagger.app/MetricTemplate":        "write an AnalysisTemplate, as in docs/coming-from-flagger.md",
	"flagger.app/AlertProvider":         "write notifications into the configuration, as in docs/notifications.md",
	"argoproj.io/Experiment":            "write it as an experiment step of a Rollout",
	"argoproj.io/AnalysisRun":           "write an AnalysisTemplate, and name it in a Rollout",
}

func isRollout(ref rollout.Ref) bool {
	return ref.Kind == "Rollout" && (ref.Group == ownGroup || ref.Group == argoGroup)
}

type document struct {
	*rollout.Reader
	object   rollout.Object
	ref      rollout.Ref
	form     specForm
	workload rollout.Workload
	inline   bool // the Deployment is generated from the document's pod template
	spec     rollout.Spec
	analyses []measured
	alone    []*rollout.Analysis // analyses during which users reach only one version
	roles    []metadataKey       // podMetadata's keys
	routers  map[string]block    // trafficRouting's blocks, by kind
}

type block struct {
	path string
	raw  any
}

const (
	canaryPath    = "spec.strategy.canary"
	blueGreenPath = "spec.strategy.blueGreen"
)

func newDocument(object rollout.Object) (*document, error) {
	d := &document{object: object, ref: object.Ref()}
	if version := object.APIVersion(); d.ref.Group == argoGroup && version != argoGroup+"/v1alpha1" {
		return nil, rollout.Invalidf("", "apiVersion", "%q is not a Rollout version that gitrollout knows", version).
			WithFix("use %s or %s/v1alpha1", rollout.APIVersion, argoGroup)
	}
	d.Reader = &rollout.Reader{Argo: d.ref.Group == argoGroup}
	var form documentForm
	d.Read("", map[string]any(object), &form)
	if !d.Partial {
		d.read(form.Spec)
	}
	if d.Err != nil {
		return nil, d.Err
	}
	return d, nil
}

func shortRef(ref rollout.Ref) string { return ref.Kind + "/" + ref.Namespace + "/" + ref.Name }

func (d *document) read(form *specForm) {
	d.form, d.spec = *form, form.Spec
	if window := form.RollbackWindow; window != nil {
		d.spec.RollbackWindow = window.Revisions
	}
	d.readWorkload()
	if c := form.Strategy.Canary; c != nil {
		d.readCanary(c)
	}
	if b := form.Strategy.BlueGreen; b != nil {
		d.readBlueGreen(b)
	}
}

func (d *document) readWorkload() {
	d.workload = rollout.Workload{Namespace: d.ref.Namespace, Name: d.ref.Name}
	ref, template, selector := d.form.WorkloadRef, d.form.Template, d.form.Selector
	d.inline = ref == nil
	switch {
	case ref != nil && template != nil:
		d.Fail("spec.template", "keep only one", "conflicts with spec.workloadRef")
	case ref != nil:
		named := rollout.Object{"apiVersion": ref.APIVersion, "kind": ref.Kind}.Ref()
		named.Namespace, named.Name = d.ref.Namespace, ref.Name
		d.workload, _ = rollout.WorkloadOf(named)
	case !d.Argo:
		d.Fail("spec.workloadRef", "name the Deployment: {apiVersion: apps/v1, kind: Deployment, name: …}", "is missing")
	case len(template) == 0:
		d.Fail("spec.template", "give the pod template, or name a Deployment in spec.workloadRef", "is missing")
	case len(selector) == 0:
		d.Fail("spec.selector", "select the labels of the pod template", "is missing")
	}
}

func (d *document) readCanary(form *canaryForm) {
	c := &form.Canary
	d.spec.Canary = c
	if c.StableService != "" && c.StableService == c.CanaryService {
		d.Fail(canaryPath+".canaryService", "name another Service", "%q is also the stableService", c.CanaryService)
	}
	if form.Traffic != nil {
		d.readTraffic(form.Traffic)
	}
	d.checkPingPong()
	d.spec.NewMetadata = d.readRole(canaryPath+".canaryMetadata", form.CanaryMetadata)
	d.spec.StableMetadata = d.readRole(canaryPath+".stableMetadata", form.StableMetadata)
	d.readScaling(form)
	d.readDelays(form)
	for i := range form.Steps {
		c.Steps = append(c.Steps, d.readStep(stepPath(i), &form.Steps[i]))
	}
	if a := form.Analysis; a != nil {
		c.Analysis = d.readAnalysis(canaryPath+".analysis", &a.analysisForm, false)
		switch c.Analysis.StartingStep = a.StartingStep; {
		case a.StartingStep > 0 && a.StartingStep == len(c.Steps):
			d.Warn(canaryPath+".analysis.startingStep", "%d is after the last step, so nothing is measured", a.StartingStep)
		case a.StartingStep > len(c.Steps):
			d.Fail(canaryPath+".analysis.startingStep", "count steps from 0",
				"%d is beyond the %d steps, so nothing would be measured", a.StartingStep, len(c.Steps))
		}
	}
	c.Watch = form.Watch.read(d, canaryPath+".watch")
	d.checkSteps()
}

// readScaling reads whether a canary's pods are added to the stable pods (surge) or replace them (inPlace).
func (d *document) readScaling(form *canaryForm) {
	field, scaling := canaryPath+".scaling", form.Scaling
	if d.Argo {
		field = "metadata.annotations[" + annotationScaling + "]"
		scaling = rollout.Scaling(d.object.Annotation(annotationScaling))
	}
	if scaling != "" && scaling != rollout.Surge && scaling != rollout.InPlace {
		d.Fail(field, "", "%q must be %s or %s", scaling, rollout.InPlace, rollout.Surge)
	}
	d.spec.Scaling = scaling
	switch c := d.spec.Canary; {
	case d.workload.Kind != "": // inPlace.refuse checks the value
		d.spec.Scaling = cmp.Or(scaling, rollout.InPlace)
	case c.Traffic != nil:
		if d.spec.Scaling = rollout.Surge; scaling == rollout.InPlace {
			d.Fail(field, "leave it out, or set dynamicStableScale: true",
				"is %q, but with trafficRouting the new version's pods must exist before they get requests", scaling)
		}
	case scaling == "":
		d.spec.Scaling = rollout.InPlace
	case c.DynamicStableScale && scaling == rollout.Surge:
		d.Fail(canaryPath+".dynamicStableScale", "keep only one",
			"removes stable pods while the canary grows, but scaling: surge keeps all stable pods")
	}
}

// scaleDownDelay is Argo Rollouts' default, in seconds. During the delay, nodes may still send requests to old pods.
const scaleDownDelay = 30

func (d *document) readDelays(form *canaryForm) {
	c := d.spec.Canary
	surge := d.spec.Scaling == rollout.Surge
	dynamic := c.Traffic != nil && c.DynamicStableScale
	if dynamic && form.ScaleDownDelaySeconds != nil {
		d.Fail(canaryPath+".scaleDownDelaySeconds", "leave it out",
			"is set, but with dynamicStableScale no old pods are left after the promotion")
	}
	if surge && !dynamic {
		c.AbortScaleDownDelaySeconds = scaleDownDelay
		if c.Traffic != nil || c.StableService != "" && c.CanaryService != "" {
			c.ScaleDownDelaySeconds = scaleDownDelay
		}
	}
	for _, setting := range []struct {
		name  string
		given *int
		into  *int
	}{
		{"abortScaleDownDelaySeconds", form.AbortScaleDownDelaySeconds, &c.AbortScaleDownDelaySeconds},
		{"scaleDownDelaySeconds", form.ScaleDownDelaySeconds, &c.ScaleDownDelaySeconds},
		{"minPodsPerReplicaSet", form.MinPodsPerReplicaSet, &c.MinPodsPerReplicaSet},
	} {
		switch {
		case setting.given == nil:
		case dynamic && setting.name == "abortScaleDownDelaySeconds":
			d.Warn(canaryPath+"."+setting.name,
				"is ignored: with dynamicStableScale, an abort removes the new version's pods while it adds stable pods")
		case surge:
			*setting.into = *setting.given
		default:
			d.Warn(canaryPath+"."+setting.name, "is ignored: it needs scaling: surge, but pods are replaced in place")
		}
	}
}

func (d *document) readBlueGreen(form *blueGreenForm) {
	b := &form.BlueGreen
	d.spec.BlueGreen, d.spec.Scaling = b, rollout.Surge
	b.PrePromotion = d.readAnalysis(blueGreenPath+".prePromotionAnalysis", form.PrePromotion, true)
	b.PostPromotion = d.readAnalysis(blueGreenPath+".postPromotionAnalysis", form.PostPromotion, true)
	d.alone = []*rollout.Analysis{b.PrePromotion, b.PostPromotion}
	b.Watch = form.Watch.read(d, blueGreenPath+".watch")
	d.spec.NewMetadata = d.readRole(blueGreenPath+".previewMetadata", form.PreviewMetadata)
	d.spec.StableMetadata = d.readRole(blueGreenPath+".activeMetadata", form.ActiveMetadata)
	switch {
	case b.ActiveService == b.PreviewService:
		d.Fail(blueGreenPath+".previewService", "name another Service", "%q is also the activeService", b.PreviewService)
	case !b.AutoPromotionEnabled && b.AutoPromotionSeconds > 0:
		d.Warn(blueGreenPath+".autoPromotionSeconds",
			"is ignored: autoPromotionEnabled is false, so the release waits for a promotion")
	}
}

func stepPath(i int) string { return fmt.Sprintf("%s.steps[%d]", canaryPath, i) }

func (d *document) readStep(at string, form *stepForm) rollout.Step {
	step := form.Step
	if full := d.fullWeight(); step.SetWeight != nil && *step.SetWeight > full {
		d.Fail(at+".setWeight", "", "%d is not within 0..%d", *step.SetWeight, full)
	}
	step.Route = routeReader{d.Reader, d.spec.Canary.Traffic}.read(at, form)
	if step.Headers != nil {
		at, names := at+".requestHeaderModifier", rollout.Mapped(step.Headers.Names(), strings.ToLower)
		if d.spec.Canary.Traffic == nil {
			d.Fail(at, "add trafficRouting with a router", "is set, but there is no trafficRouting")
		} else if len(slices.Compact(slices.Sorted(slices.Values(names)))) < len(names) {
			d.Fail(at, "name each header once", "changes a header twice")
		}
	}
	if step.Pause != nil {
		d.checkPause(at+".pause", step.Pause)
	}
	step.Analysis = d.readAnalysis(at+".analysis", form.Analysis, true)
	if form.Experiment != nil {
		step.Experiment = d.readExperiment(at+".experiment", form.Experiment)
	}
	if s := step.SetCanaryScale; s != nil && s.MatchTrafficWeight && d.spec.Scaling != rollout.Surge {
		d.Fail(at+".setCanaryScale.matchTrafficWeight", "leave the step out",
			"is true, but pods are replaced in place, so setWeight already is a share of the pods")
	}
	return step
}

func (d *document) fullWeight() int {
	if t := d.spec.Canary.Traffic; t != nil && t.MaxWeight > 0 {
		return t.MaxWeight
	}
	return 100
}

func (d *document) checkPause(at string, p *rollout.Pause) {
	switch {
	case p.Timeout == nil && p.OnTimeout != "":
		d.Fail(at+".onTimeout", "give timeout, too", "is given without timeout")
	case p.Timeout != nil && p.Duration != nil:
		d.Fail(at+".timeout", "leave duration out", "conflicts with duration: a pause with a duration ends by itself")
	case p.Until == "" && p.TimeZone != "":
		d.Fail(at+".timeZone", "leave it out", "is given without until")
	case p.Until != "" && (p.Duration != nil || p.Timeout != nil):
		d.Fail(at+".until", "keep only one", "conflicts with duration or timeout")
	case p.Until != "":
		if _, wrong := rollout.ReadSchedule(at+".until", p.Until, at+".timeZone", p.TimeZone); wrong != nil {
			d.Fail(wrong.Field, wrong.Fix, "%s", wrong.Msg)
		}
	case p.Timeout != nil && p.OnTimeout == "":
		p.OnTimeout = rollout.TimeoutAbort
	}
}

func (d *document) checkSteps() {
	names, c, weight := map[string]int{}, d.spec.Canary, 0
	for i, step := range c.Steps {
		if step.SetWeight != nil {
			weight = *step.SetWeight
		}
		if weight == d.fullWeight() && step.Analysis != nil {
			d.alone = append(d.alone, step.Analysis)
		}
		d.checkShares(stepPath(i)+".experiment", step.Experiment, weight)
		at := stepPath(i) + ".name"
		if first, taken := names[step.Name]; taken && step.Name != "" {
			d.Fail(at, "use each name once: a promotion selects a step by its name",
				"%q is also the name of steps[%d]", step.Name, first)
		}
		if _, err := strconv.Atoi(step.Name); step.Name == rollout.Full || err == nil {
			d.Fail(at, "use another name", "%q cannot be a step's name: it has another meaning in a promotion", step.Name)
		}
		names[step.Name] = i
	}
	if c.StableService != "" && len(c.Steps) > 0 && c.Traffic == nil && d.spec.Scaling == rollout.InPlace {
		d.Warn(canaryPath+".stableService", "selects only stable pods, and each setWeight step leaves fewer, because "+
			"pods are replaced in place: leave stableService out, so that all pods get requests, or use scaling: surge")
	}
}
