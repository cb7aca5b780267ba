package simulate

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// View is a process's access to the cluster. While Stale is true, reads return the last refresh, plus the writes that
// Cluster.wrote adds. Unseen says why the view is stale, if known.
type View struct {
	Stale  bool
	Unseen string
	Wants  func(app string, ref rollout.Ref) (rollout.Object, error) // as in cluster.Options

	cluster  *Cluster
	name     string
	gate     Gate
	observed rollout.Observed       // at the last refresh, as digests
	digests  map[rollout.Ref]string // "" if Apply must write
	toldAt   int                    // Cluster.writes at the last Observe
}

// View returns a new process's view.
func (c *Cluster) View(name string, gate Gate) *View {
	return &View{cluster: c, name: name, gate: gate, digests: map[rollout.Ref]string{}}
}

// Observe implements reconciler.Observer.
func (v *View) Observe(app string, workloads []rollout.Workload, _ []rollout.Ref) rollout.Observed {
	seen := v.observed
	if !v.Stale {
		seen = v.cluster.Kube.Observe(workloads...)
	}
	out := rollout.Observed{
		Workloads: make(map[rollout.Workload]rollout.ObservedWorkload, len(workloads)), Unseen: v.Unseen,
	}
	for _, w := range workloads {
		if live, ok := seen.Workloads[w]; ok {
			if o := v.cluster.objects[w.Ref()]; o != nil && o.app != app {
				live.Serial, live.BreakGlass = 0, "" // label of another app
			}
			out.Workloads[w] = live
		}
	}
	v.toldAt = v.cluster.writes
	return out
}

// Serves implements reconciler.Observer.
func (v *View) Serves(_ context.Context, service rollout.Ref, podHash string) (bool, error) {
	err := v.gate(Effect{Verb: "ask", Object: service.Kind + "/" + service.Name}).Err
	return err == nil && v.cluster.Kube.Serves(service, podHash), err
}

// SameTemplate implements reconciler.Observer. The model adds no defaults, so equal templates have equal JSON.
func (v *View) SameTemplate(_ context.Context, o rollout.Object) (bool, error) {
	if outcome := v.gate(Effect{Verb: "compare", Object: name(o)}); outcome.Err != nil {
		return false, outcome.Err
	}
	w, _ := v.cluster.Kube.WorkloadOf(o.Ref())
	d := v.cluster.Kube.Deployments[w]
	if d == nil {
		return false, nil
	}
	template, err := json.Marshal(o.Map("spec")["template"])
	if err != nil {
		return false, fmt.Errorf("encode the template of %s: %w", name(o), err)
	}
	return string(template) == d.Template, nil
}

// Nodes implements reconciler.Options.Nodes.
func (v *View) Nodes(context.Context) (map[string]map[string]string, error) {
	if outcome := v.gate(Effect{Verb: "ask", Object: "which nodes there are"}); outcome.Err != nil {
		return nil, outcome.Err
	}
	return v.cluster.Kube.NodeLabels(), nil
}

// Know implements reconciler.Options.Know. It also gives existing objects of these kinds to Kube.
func (v *View) Know(kinds []rollout.Partitioned) {
	c := v.cluster
	for _, p := range kinds {
		if known, _ := rollout.FindPartitioned(nil, p.APIVersion, p.Kind); known != nil || !c.Kube.Describe(p) {
			continue
		}
		for _, ref := range c.Objects() {
			if o := c.objects[ref].body; o.APIVersion() == p.APIVersion && o.Kind() == p.Kind {
				_ = c.Kube.Apply(o) // accepted before
			}
		}
	}
}

// OtherOwners implements reconciler.Observer. It reads Cluster.foreign.
func (v *View) OtherOwners(
	_ context.Context, app string, objects []rollout.Object, _ time.Time,
) ([]rollout.Foreign, error) {
	if outcome := v.gate(Effect{Verb: "ask", Object: "whose the objects of " + app + " are"}); outcome.Err != nil {
		return nil, outcome.Err
	}
	var all []rollout.Foreign
	for _, o := range objects {
		if by := v.cluster.foreign[o.Ref()]; by != "" {
			all = append(all, rollout.Foreign{Ref: o.Ref(), By: by, Sign: "its owner", Fix: "delete the owner"})
			continue
		}
		if err := v.refuseForeign(app, o); err != nil {
			all = append(all, rollout.Foreign{Ref: o.Ref(), By: "another app", Sign: err.Error(), Fix: "keep it in one app"})
		}
	}
	return all, nil
}

func name(o rollout.Object) string { return o.Kind() + "/" + o.Name() }

// Check implements reconciler.Applier.
func (v *View) Check(_ context.Context, app string, objects []rollout.Object) error {
	if outcome := v.gate(Effect{Verb: "check", Object: app}); outcome.Err != nil {
		return outcome.Err
	}
	for _, o := range objects {
		if err := cmp.Or(v.refuseForeign(app, o), v.cluster.Kube.Check(o)); err != nil {
			return &rollout.InvalidError{Msg: fmt.Sprintf("the cluster refuses %s %s: %v", o.Kind(), o.Name(), err)}
		}
	}
	return nil
}

func (v *View) refuseForeign(app string, o rollout.Object) error {
	live := v.cluster.objects[o.Ref()]
	if live != nil && live.app != app && o.Annotation(rollout.AnnotationGenerated) != "" {
		return &rollout.InvalidError{Msg: fmt.Sprintf("%s exists and is in app %s", o.Ref(), live.app)}
	}
	return nil
}

// Apply implements reconciler.Applier. It skips unchanged objects.
func (v *View) Apply(_ context.Context, app string, objects []rollout.Object) error {
	for _, o := range objects {
		digest, err := digestOf(app, o)
		if err != nil {
			return err
		}
		was := v.digests[o.Ref()]
		if !v.Stale {
			was = v.cluster.digest(o.Ref())
		}
		if was == digest {
			continue
		}
		if err := v.refuseForeign(app, o); err != nil {
			return err
		}
		if live := v.cluster.objects[o.Ref()]; live != nil && live.app == app && o.CreateOnly() {
			continue
		}
		outcome := v.gate(Effect{Verb: "apply", Object: name(o)})
		if outcome.Err == nil || outcome.After {
			v.cluster.writing(v, app, o)
			if err := v.cluster.apply(app, o, digest); err != nil {
				return fmt.Errorf("%s %s: %w", o.Kind(), o.Name(), err)
			}
		}
		if outcome.Err != nil {
			v.digests[o.Ref()] = "" // perhaps written, so write again
			return fmt.Errorf("%s %s: %w", o.Kind(), o.Name(), outcome.Err)
		}
		v.cluster.wrote(v, o, digest)
	}
	return nil
}

// Evict implements reconciler.Applier.
func (v *View) Evict(_ context.Context, namespace string, pod rollout.Pod) error {
	return v.act(Effect{Verb: "evict", Object: "Pod/" + pod.Name}, func() { v.cluster.Kube.Evict(namespace, pod) })
}

// Unannotate implements reconciler.Annotations for the abort annotation.
func (v *View) Unannotate(_ context.Context, ref rollout.Ref, _, value string) error {
	w, _ := rollout.WorkloadOf(ref)
	return v.act(Effect{Verb: "unannotate", Object: ref.Kind + "/" + ref.Name}, func() {
		if d := v.cluster.Kube.Deployments[w]; d != nil && d.BreakGlass == value {
			d.BreakGlass = ""
			v.cluster.Kube.OnChange("break glass removed")
		}
	})
}

// SetRole implements reconciler.Annotations.
func (v *View) SetRole(_ context.Context, namespace string, pod rollout.Pod, role string) error {
	return v.act(Effect{Verb: "label", Object: "Pod/" + pod.Name}, func() {
		v.cluster.Kube.SetRole(namespace, pod, role)
	})
}

func (v *View) act(e Effect, do func()) error {
	outcome := v.gate(e)
	if outcome.Err == nil || outcome.After {
		do()
	}
	return outcome.Err
}

// Prune implements reconciler.Applier. It keeps another app's object, but reports the object as deleted.
func (v *View) Prune(_ context.Context, app string, candidates []rollout.Ref) ([]rollout.Ref, error) {
	var gone []rollout.Ref
	for _, ref := range candidates {
		live := v.cluster.objects[ref]
		if live == nil || live.app != app {
			gone = append(gone, ref)
			continue
		}
		if live.body.Keeps() != "" {
			continue
		}
		err := v.act(Effect{Verb: "prune", Object: ref.Kind + "/" + ref.Name}, func() {
			v.cluster.writes++
			v.cluster.Delete(ref)
		})
		if err != nil {
			return gone, err
		}
		gone = append(gone, ref)
	}
	return gone, nil
}
