package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"gitrollout.dev/gitrollout/analysis/provider"
	"gitrollout.dev/gitrollout/cluster"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/internal/testcluster"
	"gitrollout.dev/gitrollout/rollout"
)

// newJobs returns a client of a real control plane, a new namespace there, and the cluster client that creates Jobs.
func newJobs(t *testing.T) (kube kubernetes.Interface, ns string, client *cluster.Client) {
	t.Helper()
	t.Parallel()
	shared := testcluster.Shared(t)
	client, err := cluster.New(shared.Config, cluster.Options{Cluster: "test", OnChange: func(string) {}})
	must(t, err)
	return shared.Kube, shared.Namespace(t), client
}

// measured repeats the request for a measurement until the measurement has ended, and returns the result.
func measured(t *testing.T, deps provider.Deps, request provider.Request) (got provider.Result) {
	t.Helper()
	await(t, "the measurement ends", func() bool {
		var err error
		got, err = provider.Measure(t.Context(), deps, request)
		must(t, err)
		return got.Phase != rollout.AnalysisRunning
	})
	return got
}

// TestJobsMeasure checks measurements by Jobs on a real control plane. One Job completes, one fails, one exceeds its deadline, and one
// cannot pull its image. A repeated request must find the same Job, and Stop must delete the Job.
func TestJobsMeasure(t *testing.T) {
	kube, ns, client := newJobs(t)
	deps := provider.Deps{Jobs: client, Now: time.Now}
	job := func(image, spec string) map[string]any {
		return fromYAML(t, `
metadata: {labels: {team: shop}}
spec: {`+spec+`template: {spec: {restartPolicy: Never, containers: [{name: check, image: "`+image+`"}]}}}`)
	}
	list := func() int {
		all, err := kube.BatchV1().Jobs(ns).List(t.Context(), metav1.ListOptions{LabelSelector: provider.LabelMeasurement})
		must(t, err)
		return len(all.Items)
	}
	for name, c := range map[string]struct {
		config map[string]any
		want   rollout.AnalysisPhase
		says   string
	}{
		"complete":  {job("check:v1-run200ms", ""), rollout.AnalysisSuccessful, ""},
		"fails":     {job("check:v1-crash", "backoffLimit: 0, "), rollout.AnalysisFailed, ""},
		"too slow":  {job("check:v1-run1h", "activeDeadlineSeconds: 1, "), rollout.AnalysisFailed, "deadline"},
		"bad image": {job("check:v1-badimage", ""), rollout.AnalysisInconclusive, "ImagePull"},
	} {
		t.Run(name, func(t *testing.T) {
			request := provider.Request{
				Kind: "job", Config: c.config, Namespace: ns, ID: "m-" + strings.ReplaceAll(name, " ", "-"),
				Workload: rollout.Workload{Name: "shop"}, Started: time.Now(),
			}
			got := measured(t, deps, request)
			if got.Phase != c.want || !strings.Contains(strings.ToLower(got.Message), strings.ToLower(c.says)) {
				t.Errorf("%s %q, want %s with %q", got.Phase, got.Message, c.want, c.says)
			}
			if n := list(); n != 1 {
				t.Errorf("%d Jobs were made, want 1", n)
			}
			for range 2 { // a second Stop must succeed too
				if err := provider.Stop(t.Context(), deps, request); err != nil {
					t.Error(err)
				}
			}
			await(t, "the Job is deleted", func() bool { return list() == 0 })
		})
	}
}

// TestJobsOfOthers checks that EnsureJob sets Taken for another measurement's Job. An error names a Secret that is missing or lacks the
// label for analyses.
func TestJobsOfOthers(t *testing.T) {
	kube, ns, client := newJobs(t)
	job := func(name, spec string) map[string]any {
		return fromYAML(t, `
apiVersion: batch/v1
kind: Job
metadata: {name: `+name+`, namespace: `+ns+`, annotations: {gitrollout.dev/measurement-id: mine}}
spec: {`+spec+`template: {spec: {restartPolicy: Never, containers: [{name: c, image: "c:v1-run1h"}]}}}`)
	}
	object, held := job("check", ""), job("held", "suspend: true, ")
	must(t, errorOf(client.EnsureJob(t.Context(), object, provider.AnnotationMeasurement, false)))
	object["metadata"].(map[string]any)["annotations"] = map[string]any{provider.AnnotationMeasurement: "yours"}
	if state, err := client.EnsureJob(t.Context(), object, provider.AnnotationMeasurement, false); err != nil || !state.Taken {
		t.Errorf("the Job of another measurement: %+v, error %v", state, err)
	}
	state, err := client.EnsureJob(t.Context(), held, provider.AnnotationMeasurement, false)
	if err != nil || !state.Suspended || state.Started.IsZero() {
		t.Errorf("a suspended Job: %+v, error %v", state, err)
	}
	resume := []byte(`{"spec":{"suspend":false}}`)
	must(t, errorOf(kube.BatchV1().Jobs(ns).Patch(t.Context(), "held", types.MergePatchType, resume, metav1.PatchOptions{})))
	await(t, "the Job is resumed", func() bool {
		state, err = client.EnsureJob(t.Context(), held, provider.AnnotationMeasurement, true)
		must(t, err)
		return !state.Suspended
	})
	if state.Taken || state.Gone {
		t.Errorf("a Job that goes on: %+v", state)
	}
	if _, err := client.SecretData(t.Context(), ns, "nobody", ""); err == nil || !strings.Contains(err.Error(), "Secret "+ns+"/nobody") {
		t.Errorf("a Secret that is not there: error %v", err)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "metrics"}, StringData: map[string]string{"token": "t0ken"}}
	must(t, errorOf(kube.CoreV1().Secrets(ns).Create(t.Context(), secret, metav1.CreateOptions{})))
	want := "Secret " + ns + "/metrics: has no label gitrollout.dev/analysis: \"true\"; " +
		"kubectl -n " + ns + " label secret metrics gitrollout.dev/analysis=true"
	if _, err := client.SecretData(t.Context(), ns, "metrics", rollout.LabelAnalysis); err == nil || err.Error() != want {
		t.Errorf("a Secret that is not for analyses: error %v", err)
	}
	if data, err := client.SecretData(t.Context(), ns, "metrics", ""); err != nil || data["token"] != "t0ken" {
		t.Errorf("%v, %v", data, err)
	}
}

// TestJobsBelongToTheirWorkload checks that the owner of a measurement's Job is the measured Deployment or StatefulSet. A Job that a user
// deletes is not created again.
func TestJobsBelongToTheirWorkload(t *testing.T) {
	kube, ns, client := newJobs(t)
	pods := corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "shop"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "shop", Image: "shop:v1"}}}}
	shop, err := kube.AppsV1().Deployments(ns).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "shop"},
		Spec:       appsv1.DeploymentSpec{Replicas: new(int32), Selector: metav1.SetAsLabelSelector(pods.Labels), Template: pods},
	}, metav1.CreateOptions{})
	must(t, err)
	deps := provider.Deps{Jobs: client, Now: time.Now}
	workload := rollout.Workload{Name: "shop"}
	request := provider.Request{Kind: "job", Namespace: ns, ID: "m", Workload: workload, Started: time.Now(), Config: fromYAML(t, `
spec: {template: {spec: {restartPolicy: Never, containers: [{name: check, image: "check:v1-run1h"}]}}}`)}
	got, err := provider.Measure(t.Context(), deps, request)
	if err != nil || got.Phase != rollout.AnalysisRunning {
		t.Fatalf("%+v, %v", got, err)
	}
	all, err := kube.BatchV1().Jobs(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(all.Items) != 1 || len(all.Items[0].OwnerReferences) != 1 || all.Items[0].OwnerReferences[0].UID != shop.UID {
		t.Fatalf("the Jobs are %+v, %v", all.Items, err)
	}
	set, err := kube.AppsV1().StatefulSets(ns).Create(t.Context(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "shop"},
		Spec:       appsv1.StatefulSetSpec{Replicas: new(int32), Selector: metav1.SetAsLabelSelector(pods.Labels), Template: pods},
	}, metav1.CreateOptions{})
	must(t, err)
	ofSet := request
	ofSet.ID, ofSet.Workload.Kind = "set", "StatefulSet"
	must(t, errorOf(provider.Measure(t.Context(), deps, ofSet)))
	sets, err := kube.BatchV1().Jobs(ns).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	owned := slices.ContainsFunc(sets.Items, func(job batchv1.Job) bool {
		return len(job.OwnerReferences) == 1 && job.OwnerReferences[0].UID == set.UID
	})
	compare.CheckNamed(t, "the StatefulSet owns its Job", true, owned)
	background := metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}
	must(t, kube.BatchV1().Jobs(ns).Delete(t.Context(), all.Items[0].Name, background))
	request.Metadata = got.Metadata
	if got = measured(t, deps, request); got.Phase != rollout.AnalysisInconclusive {
		t.Errorf("a Job that was deleted makes its measurement %s", got.Phase)
	}
	request.ID, request.Metadata, request.Workload.Name = "n", nil, "gone"
	if got, err := provider.Measure(t.Context(), deps, request); err != nil || got.Phase != rollout.AnalysisRunning {
		t.Errorf("without its Deployment: %+v, %v", got, err)
	}
}

func fromYAML(t *testing.T, text string) map[string]any {
	t.Helper()
	var out map[string]any
	must(t, yaml.Unmarshal([]byte(text), &out))
	return out
}
