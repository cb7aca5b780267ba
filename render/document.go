package render

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// The groups of Rollout documents, and gitrollout's annotation for the one
// setting that Argo Rollouts has no field for.
const (
	ownGroup          = "gitrollout.dev"
	argoGroup         = "argoproj.io"
	kruiseGroup       = "rollouts.kruise.io"
	annotationScaling = "gitrollout.dev/scaling"
)

// isRollout reports whether an object asks for a staged release. Kruise's do
// too, and would fight with ours over the same Deployment.
func isRollout(ref rollout.Ref) bool {
	return ref.Kind == "Rollout" && (ref.Group == ownGroup || ref.Group == argoGroup || ref.Group == kruiseGroup)
}

// document is a Rollout document as it was read. What it leaves out is nil, so
// that the Deployment can say it.
type document struct {
	object   rollout.Object
	ref      rollout.Ref
	argo     bool
	workload rollout.Workload // the Deployment that it is about
	inline   bool             // it has the template; the Deployment is made of it

	spec                    rollout.Spec // without what may also come from the Deployment
	replicas                *int
	minReadySeconds         *int
	revisionHistoryLimit    *int
	progressDeadlineSeconds *int
	maxSurge                *rollout.Amount
	maxUnavailable          *rollout.Amount
	selector                map[string]any
	template                map[string]any
	analyses                []measured
	routers                 map[string]value // the blocks of trafficRouting, by kind
	warnings                []string
}

// newDocument reads a Rollout document strictly.
func newDocument(object rollout.Object) (*document, error) {
	d := &document{object: object, ref: object.Ref()}
	r := &reader{ref: shortRef(d.ref), object: object}
	if version := object.APIVersion(); version != rollout.APIVersion && version != argoGroup+"/v1alpha1" {
		r.fail("apiVersion", "use "+rollout.APIVersion+" or "+argoGroup+"/v1alpha1", "%q is not a Rollout that gitrollout knows", version)
		return nil, r.err
	}
	d.argo = d.ref.Group == argoGroup
	top := value{r: r, raw: map[string]any(object)}
	top.object(map[string]fieldRule{"apiVersion": {}, "kind": {}, "metadata": {}, "spec": {}, "status": {}})
	d.read(top.field("spec"))
	d.warnings = r.warnings
	if r.err != nil {
		return nil, r.err
	}
	return d, nil
}

// shortRef names an object for people: Rollout/shop/checkout.
func shortRef(ref rollout.Ref) string { return ref.Kind + "/" + ref.Namespace + "/" + ref.Name }

func (d *document) read(spec value) {
	if !spec.object(specFields(d.argo)) {
		spec.fail("", "is missing")
		return
	}
	spec.field("analysis").object(analysisHistoryFields)
	d.replicas = spec.field("replicas").count()
	d.minReadySeconds = spec.field("minReadySeconds").count()
	d.revisionHistoryLimit = spec.field("revisionHistoryLimit").count()
	d.progressDeadlineSeconds = spec.field("progressDeadlineSeconds").count()
	d.spec.ProgressDeadlineAbort = spec.field("progressDeadlineAbort").boolOr(false)
	d.spec.Paused = spec.field("paused").boolOr(false)
	if window := spec.field("rollbackWindow"); window.object(rollbackWindowFields) {
		d.spec.RollbackWindow = window.field("revisions").count()
	}
	d.readWorkload(spec)
	d.readStrategy(spec.field("strategy"))
}

// readWorkload reads what is moved: a Deployment of the app, or the template.
func (d *document) readWorkload(spec value) {
	d.workload = rollout.Workload{Namespace: d.ref.Namespace, Name: d.ref.Name}
	ref, template, selector := spec.field("workloadRef"), spec.field("template"), spec.field("selector")
	if ref.object(workloadRefFields) {
		for _, field := range []value{template, selector} {
			if field.given() {
				field.fail("keep one of them", "is given, and spec.workloadRef too")
			}
		}
		if version := ref.field("apiVersion"); version.text() != "apps/v1" {
			version.fail("use apps/v1", "%q is not apps/v1", version.text())
		}
		if kind := ref.field("kind"); kind.text() != "Deployment" {
			kind.fail("name a Deployment", "%q is not a kind that can be moved in stages", kind.text())
		}
		if d.workload.Name = ref.field("name").text(); d.workload.Name == "" {
			ref.field("name").fail("name the Deployment", "is missing")
		}
		return
	}
	d.inline = true
	if !d.argo {
		ref.fail("name the Deployment: {apiVersion: apps/v1, kind: Deployment, name: …}", "is missing")
		return
	}
	d.template, _ = template.raw.(map[string]any)
	if len(d.template) == 0 {
		template.fail("give the pod template, or name a Deployment in spec.workloadRef", "is missing")
	}
	d.selector, _ = selector.raw.(map[string]any)
	if len(d.selector) == 0 {
		selector.fail("select the labels of the pod template", "is missing")
	}
}

func (d *document) readStrategy(strategy value) {
	if !strategy.object(strategyFields) {
		strategy.fail("give canary or blueGreen", "is missing")
		return
	}
	canary, blueGreen := strategy.field("canary"), strategy.field("blueGreen")
	switch {
	case canary.given() && blueGreen.given():
		strategy.fail("keep one of them", "has both canary and blueGreen")
	case canary.given():
		d.readCanary(canary)
	case blueGreen.given():
		d.readBlueGreen(blueGreen)
	default:
		strategy.fail("give one of them; an empty canary is written canary: {}", "has neither canary nor blueGreen")
	}
}

func (d *document) readCanary(v value) {
	if !v.object(canaryFields) {
		return
	}
	c := &rollout.Canary{
		StableService:      v.field("stableService").text(),
		CanaryService:      v.field("canaryService").text(),
		DynamicStableScale: v.field("dynamicStableScale").boolOr(false),
	}
	d.spec.Canary = c
	if c.StableService != "" && c.StableService == c.CanaryService {
		v.field("canaryService").fail("name another Service", "%q is the stableService too", c.CanaryService)
	}
	d.readTraffic(v.field("trafficRouting"))
	d.readPingPong(v.field("pingPong"))
	d.maxSurge, d.maxUnavailable = v.field("maxSurge").amount(true), v.field("maxUnavailable").amount(true)
	d.readScaling(v)
	d.readDelays(v)
	for _, step := range v.field("steps").list() {
		c.Steps = append(c.Steps, d.readStep(step))
	}
	c.Analysis = d.readAnalysis(v.field("analysis"), false)
	if a := c.Analysis; a != nil && a.StartingStep > 0 && a.StartingStep >= len(c.Steps) {
		v.field("analysis").field("startingStep").fail("count from 0, which is the first", "%d is beyond the %d steps, so nothing would be measured", a.StartingStep, len(c.Steps))
	}
	d.checkSteps(v.field("steps"))
}

// readScaling decides how pods make room for the canary.
func (d *document) readScaling(v value) {
	field := v.field("scaling")
	if d.argo {
		if field.given() {
			field.fail("set the annotation "+annotationScaling, "is not a field of Argo Rollouts")
		}
		field = value{r: v.r, path: "metadata.annotations[" + annotationScaling + "]"}
		if text := d.object.Annotation(annotationScaling); text != "" {
			field.raw = text
		}
	}
	if d.spec.Canary.Traffic != nil {
		d.spec.Scaling = rollout.Surge
		if field.given() && field.text() != string(rollout.Surge) {
			field.fail("leave it out, or set dynamicStableScale: true", "is %q, and with trafficRouting the new version's pods are there before they get requests", field.text())
		}
		return
	}
	d.spec.Scaling = rollout.Scaling(field.oneOf(string(rollout.InPlace), string(rollout.Surge)))
	if d.spec.Canary.DynamicStableScale && d.spec.Scaling == rollout.Surge {
		v.field("dynamicStableScale").fail("keep one of them", "shrinks stable while the canary grows, and scaling: surge keeps it whole")
	}
}

// scaleDownDelay is how long pods without traffic are kept by default, for
// every node to have learnt that they get none (30 s, as in Argo Rollouts).
const scaleDownDelay = 30

// readDelays reads what matters only while canary pods are there in addition.
func (d *document) readDelays(v value) {
	c := d.spec.Canary
	surge := d.spec.Scaling == rollout.Surge
	dynamic := c.Traffic != nil && c.DynamicStableScale
	if delay := v.field("scaleDownDelaySeconds"); dynamic && delay.given() {
		delay.fail("leave it out", "is given, and with dynamicStableScale the old pods are gone by then")
	}
	if surge && !dynamic {
		c.AbortScaleDownDelaySeconds = scaleDownDelay
		if c.Traffic != nil || c.StableService != "" && c.CanaryService != "" {
			c.ScaleDownDelaySeconds = scaleDownDelay
		}
	}
	for _, setting := range []struct {
		name string
		into *int
	}{
		{"abortScaleDownDelaySeconds", &c.AbortScaleDownDelaySeconds},
		{"scaleDownDelaySeconds", &c.ScaleDownDelaySeconds},
		{"minPodsPerReplicaSet", &c.MinPodsPerReplicaSet},
	} {
		field := v.field(setting.name)
		n := field.count()
		switch {
		case n == nil:
		case surge:
			*setting.into = *n
		default:
			v.r.warn(field.path, "is ignored: pods are replaced in place, it needs scaling: surge")
		}
	}
}

func (d *document) readBlueGreen(v value) {
	if !v.object(blueGreenFields) {
		return
	}
	b := &rollout.BlueGreen{
		ActiveService:              v.field("activeService").text(),
		PreviewService:             v.field("previewService").text(),
		PreviewReplicaCount:        v.field("previewReplicaCount").count(),
		AutoPromotionEnabled:       v.field("autoPromotionEnabled").boolOr(true),
		AutoPromotionSeconds:       v.field("autoPromotionSeconds").countOr(0),
		ScaleDownDelaySeconds:      v.field("scaleDownDelaySeconds").countOr(scaleDownDelay),
		AbortScaleDownDelaySeconds: v.field("abortScaleDownDelaySeconds").countOr(scaleDownDelay),
	}
	d.spec.BlueGreen, d.spec.Scaling = b, rollout.Surge
	b.PrePromotion, b.PostPromotion = d.readAnalysis(v.field("prePromotionAnalysis"), true), d.readAnalysis(v.field("postPromotionAnalysis"), true)
	switch {
	case b.ActiveService == "":
		v.field("activeService").fail("name the Service that is switched", "is missing")
	case b.ActiveService == b.PreviewService:
		v.field("previewService").fail("name another Service", "%q is the activeService too", b.PreviewService)
	case !b.AutoPromotionEnabled && b.AutoPromotionSeconds > 0:
		v.r.warn(v.field("autoPromotionSeconds").path, "is ignored: autoPromotionEnabled is false, so a promotion is waited for")
	}
}

func (d *document) readStep(v value) rollout.Step {
	var step rollout.Step
	if !v.object(stepFields) {
		v.fail("", "is empty")
		return step
	}
	var actions []string
	for _, name := range stepActions {
		if v.field(name).given() {
			actions = append(actions, name)
		}
	}
	switch {
	case len(actions) == 0:
		v.fail("give it one of "+strings.Join(stepActions, ", ")+"; a pause without end is written pause: {}", "has no action")
	case len(actions) > 1:
		v.fail("make them steps of their own", "has more than one action: %s", strings.Join(actions, ", "))
	}
	if name := v.field("name"); name.given() {
		if d.argo {
			name.fail("use apiVersion "+rollout.APIVersion, "is not a field of Argo Rollouts")
		}
		step.Name = name.text()
	}
	step.SetWeight = v.field("setWeight").atMost(d.fullWeight())
	step.Route = d.readRoute(v)
	if pause := v.field("pause"); pause.object(pauseFields) {
		step.Pause = d.readPause(pause)
		d.readPauseUntil(pause, step.Pause)
	}
	step.Analysis = d.readAnalysis(v.field("analysis"), true)
	step.Experiment = d.readExperiment(v.field("experiment"))
	if scale := v.field("setCanaryScale"); scale.object(canaryScaleFields) {
		step.SetCanaryScale = d.readCanaryScale(scale)
	}
	return step
}

// readPause reads how long to wait, and what happens when nobody promotes.
func (d *document) readPause(v value) *rollout.Pause {
	p := &rollout.Pause{Duration: v.field("duration").duration(endless)}
	timeout, then := v.field("timeout"), v.field("onTimeout")
	if !timeout.given() {
		if then.given() {
			then.fail("give timeout, too", "is given without timeout")
		}
		return p
	}
	if !d.isNative(timeout) {
		return p
	}
	if p.Duration != nil {
		timeout.fail("leave duration out", "is given, and duration too: a pause with a duration ends by itself")
	}
	p.Timeout = timeout.duration(endless)
	p.OnTimeout = then.oneOf(rollout.TimeoutAbort, rollout.TimeoutPromote)
	return p
}

// fullWeight is the weight that is all requests, or all pods.
func (d *document) fullWeight() int {
	if t := d.spec.Canary.Traffic; t != nil {
		return t.MaxWeight
	}
	return 100
}

func (d *document) readCanaryScale(v value) *rollout.CanaryScale {
	s := &rollout.CanaryScale{
		Replicas:           v.field("replicas").count(),
		Weight:             v.field("weight").percent(),
		MatchTrafficWeight: v.field("matchTrafficWeight").boolOr(false),
	}
	given := 0
	for _, is := range []bool{s.Replicas != nil, s.Weight != nil, s.MatchTrafficWeight} {
		if is {
			given++
		}
	}
	if given != 1 {
		v.fail("give one of replicas, weight, matchTrafficWeight: true", "has %d settings", given)
	}
	if d.spec.Scaling != rollout.Surge {
		v.fail("set scaling: surge", "needs canary pods in addition to stable's, and they are replaced in place")
	}
	return s
}

// endless is how to pause without a duration.
const endless = "leave duration out to wait for a promotion"

// duration returns a duration: seconds as a number or in quotes, or a Go duration
// such as 5m. Nil if the value is absent; otherwise says what to do about one that
// is over at once.
func (v value) duration(otherwise string) *time.Duration {
	if !v.given() {
		return nil
	}
	var d time.Duration
	s, isText := v.raw.(string)
	seconds, err := strconv.ParseInt(s, 10, 32)
	switch {
	case !isText:
		d = time.Duration(v.countOr(0)) * time.Second
	case err == nil:
		d = time.Duration(seconds) * time.Second
	default:
		if d, err = time.ParseDuration(s); err != nil {
			v.fail("write seconds, or a duration such as 30s, 5m, 1h30m", "%q is not a duration", s)
		}
	}
	if d <= 0 {
		v.fail(otherwise, "%s is not more than 0", describe(v.raw))
	}
	return &d
}

// checkSteps looks at the steps as a whole.
func (d *document) checkSteps(v value) {
	if v.r.err != nil {
		return
	}
	names := map[string]int{}
	weight := 0
	for i, step := range d.spec.Canary.Steps {
		if first, taken := names[step.Name]; taken && step.Name != "" {
			v.r.fail(fmt.Sprintf("%s[%d].name", v.path, i), "a promotion names steps, so name each once", "%q is the name of steps[%d] too", step.Name, first)
		}
		if _, err := strconv.Atoi(step.Name); step.Name == rollout.Full || err == nil {
			v.r.fail(fmt.Sprintf("%s[%d].name", v.path, i), "use another name", "%q means something else in a promotion", step.Name)
		}
		names[step.Name] = i
		if step.SetWeight == nil {
			continue
		}
		if *step.SetWeight < weight && d.spec.Scaling == rollout.InPlace {
			v.r.warn(fmt.Sprintf("%s[%d].setWeight", v.path, i), "goes down from %d to %d: the pods of the new version stay", weight, *step.SetWeight)
		}
		weight = *step.SetWeight
	}
}
