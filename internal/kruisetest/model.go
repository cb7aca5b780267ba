package kruisetest

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"gitrollout.dev/gitrollout/rollout"
)

// revisionLabel is a pod's label with the name of its ControllerRevision.
const revisionLabel = "controller-revision-hash"

// model models the controllers of CloneSets and (in nodes.go) Advanced DaemonSets. It has only the behaviour on which
// releases depend, and ignores maxSurge and in-place updates. It creates or deletes one pod at a time, but chooses the
// pod as Kruise v1.8 does (calculateDiffsWithExpectation in pkg/controller/cloneset/sync).
type model struct {
	kube      kubernetes.Interface
	sets      dynamic.ResourceInterface
	namespace string
	of        rollout.Partitioned // paths of the kind's fields
}

// pass creates or deletes at most one pod of each object, and updates the object's status. After an error, the next
// pass retries.
func (m *model) pass(ctx context.Context) {
	all, err := m.sets.List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	for i := range all.Items {
		_ = m.sync(ctx, &all.Items[i])
	}
}

// set is a CloneSet or DaemonSet with its pods and revisions.
type set struct {
	*unstructured.Unstructured
	owner          metav1.OwnerReference
	replicas, keep int // keep is the number of pods that keep the old template
	update, base   *appsv1.ControllerRevision
	fresh, old     []corev1.Pod
}

func (m *model) sync(ctx context.Context, u *unstructured.Unstructured) error {
	s := &set{Unstructured: u, owner: *metav1.NewControllerRef(u, u.GroupVersionKind())}
	n, _, _ := unstructured.NestedInt64(u.Object, "spec", "replicas")
	s.replicas = int(n)
	if raw := rollout.In(u.Object, m.of.Partition); raw != nil {
		partition := intstr.Parse(fmt.Sprint(raw))
		s.keep, _ = intstr.GetScaledValueFromIntOrPercent(&partition, s.replicas, true)
		if s.replicas > 1 && s.keep == s.replicas && partition.Type == intstr.String && partition.StrVal != "100%" {
			s.keep--
		}
		if m.of.CountsNew {
			s.keep = s.replicas - s.keep
		}
		if m.of.Nodes == "" {
			s.keep = max(0, min(s.keep, s.replicas))
		}
	}
	if err := m.revisions(ctx, s); err != nil {
		return err
	}
	pods, err := m.kube.CoreV1().Pods(m.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, p := range pods.Items {
		switch {
		case !metav1.IsControlledBy(&p, u) || p.DeletionTimestamp != nil:
		case p.Labels[revisionLabel] == s.update.Name:
			s.fresh = append(s.fresh, p)
		default:
			s.old = append(s.old, p)
		}
	}
	move := m.move
	if m.of.Nodes != "" {
		move = m.moveOnNodes
	}
	if err := move(ctx, s); err != nil {
		return err
	}
	return m.report(ctx, s)
}

// revisions finds or creates the template's ControllerRevision, and makes it the newest revision.
func (m *model) revisions(ctx context.Context, s *set) error {
	client := m.kube.AppsV1().ControllerRevisions(m.namespace)
	list, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	template, _, _ := unstructured.NestedMap(s.Object, "spec", "template")
	data, err := json.Marshal(map[string]any{"spec": map[string]any{"template": template}})
	if err != nil {
		return err
	}
	sum := fnv.New32a()
	sum.Write(data)
	name := s.GetName() + "-" + strconv.FormatUint(uint64(sum.Sum32()), 36)
	base, _ := rollout.In(s.Object, m.of.Status.CurrentRevision).(string)
	newest := int64(0)
	for i := range list.Items {
		if r := &list.Items[i]; metav1.IsControlledBy(r, s) {
			newest = max(newest, r.Revision)
			if r.Name == name {
				s.update = r
			}
			if r.Name == base {
				s.base = r
			}
		}
	}
	switch {
	case s.update == nil:
		s.update, err = client.Create(ctx, &appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{s.owner}, Annotations: s.GetAnnotations()},
			Data:       runtime.RawExtension{Raw: data}, Revision: newest + 1,
		}, metav1.CreateOptions{})
	case s.update.Revision < newest:
		s.update.Revision = newest + 1
		s.update, err = client.Update(ctx, s.update, metav1.UpdateOptions{})
	}
	if s.base == nil {
		s.base = s.update
	}
	return err
}

// move creates or deletes at most one pod. Repeated calls bring the number of pods to s.replicas, and the number of old
// pods to s.keep.
func (m *model) move(ctx context.Context, s *set) error {
	all := len(s.fresh) + len(s.old)
	switch {
	case all < s.replicas && len(s.old) < s.keep:
		return m.create(ctx, s, s.base, "")
	case all < s.replicas:
		return m.create(ctx, s, s.update, "")
	case all > s.replicas && len(s.old) > s.keep:
		return m.remove(ctx, s.old)
	case all > s.replicas:
		return m.remove(ctx, s.fresh)
	case len(s.old) > s.keep && (slices.IndexFunc(s.old, isDown) >= 0 || slices.IndexFunc(s.fresh, isDown) < 0):
		return m.remove(ctx, s.old)
	}
	return nil
}

func isDown(p corev1.Pod) bool {
	i := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady })
	return i < 0 || p.Status.Conditions[i].Status != corev1.ConditionTrue
}

// remove deletes one pod, preferably an unready one.
func (m *model) remove(ctx context.Context, among []corev1.Pod) error {
	i := max(0, slices.IndexFunc(among, isDown))
	return m.kube.CoreV1().Pods(m.namespace).Delete(ctx, among[i].Name, metav1.DeleteOptions{})
}

// create creates a pod of a revision. If node is not "", the pod is bound to that node.
func (m *model) create(ctx context.Context, s *set, r *appsv1.ControllerRevision, node string) error {
	var data struct {
		Spec struct{ Template corev1.PodTemplateSpec }
	}
	if err := json.Unmarshal(r.Data.Raw, &data); err != nil {
		return err
	}
	t := data.Spec.Template
	pod := &corev1.Pod{ObjectMeta: t.ObjectMeta, Spec: t.Spec}
	pod.Spec.NodeName = node
	pod.GenerateName, pod.OwnerReferences, pod.Labels = s.GetName()+"-", []metav1.OwnerReference{s.owner}, maps.Clone(t.Labels)
	pod.Labels[revisionLabel], pod.Labels["pod-template-hash"] = r.Name, r.Name[len(s.GetName())+1:]
	_, err := m.kube.CoreV1().Pods(m.namespace).Create(ctx, pod, metav1.CreateOptions{})
	return err
}

// report writes the observed status. Once all pods, even unready ones, have the newest template, this template's
// revision becomes the current revision.
func (m *model) report(ctx context.Context, s *set) error {
	ready := func(pods []corev1.Pod) int64 {
		return int64(len(slices.DeleteFunc(slices.Clone(pods), isDown)))
	}
	all, base := len(s.fresh)+len(s.old), s.base.Name
	if len(s.fresh) == all && all == s.replicas {
		base = s.update.Name
	}
	is := m.of.Status
	fields := map[string]any{
		is.ObservedGeneration: s.GetGeneration(), is.Replicas: int64(all), is.Updated: int64(len(s.fresh)),
		is.UpdatedReady: ready(s.fresh), is.Available: ready(s.fresh) + ready(s.old),
		is.CurrentRevision: base, is.UpdateRevision: s.update.Name,
		"status.readyReplicas": ready(s.fresh) + ready(s.old), // Kruise's CustomResourceDefinition requires this field
	}
	if m.of.Nodes != "" {
		maps.Copy(fields, s.onNodes(ready(s.fresh)+ready(s.old)))
	}
	for field, value := range fields {
		if field == "" {
			continue
		}
		if err := unstructured.SetNestedField(s.Object, value, strings.Split(field, ".")...); err != nil {
			return err
		}
	}
	_, err := m.sets.UpdateStatus(ctx, s.Unstructured, metav1.UpdateOptions{})
	return err
}
