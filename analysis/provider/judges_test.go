package provider_test

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"gitrollout.dev/gitrollout/analysis"
	"gitrollout.dev/gitrollout/analysis/provider"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

var kayentaContract = contract{
	kind: "kayenta",
	doc:  "https://github.com/spinnaker/kayenta/blob/master/kayenta-web/src/main/java/com/netflix/kayenta/controllers/CanaryController.java",
	config: "{address: '" + asReader + "', application: guestbook, canaryConfigName: my-test, metricsAccountName: m, " +
		"configurationAccountName: c, storageAccountName: s, threshold: {pass: 90, marginal: 75}, scopes: [{name: default, " +
		"controlScope: {scope: app=a, region: eu, step: 60}, experimentScope: {scope: app=b, step: 60}}]}",
	serve: func(f *fake, w http.ResponseWriter, r *http.Request, body string) bool {
		if !isReader(r) {
			return false
		}
		switch r.Method + " " + r.URL.Path {
		case "GET /canaryConfig":
			f.wantEqual("query", r.URL.Query(), url.Values{"application": {"guestbook"}, "configurationAccountName": {"c"}})
			_, _ = w.Write([]byte(`[{"id":"other","name":"x"},{"id":"id-1","name":"my-test","updatedTimestamp":1}]`))
		case "POST /canary/id-1":
			f.wantEqual("query", r.URL.Query(),
				url.Values{"application": {"guestbook"}, "metricsAccountName": {"m"}, "configurationAccountName": {"c"}, "storageAccountName": {"s"}})
			const lastInterval = `"step": 60, "start": "2026-01-31T11:55:30Z", "end": "2026-01-31T12:00:30Z"`
			f.wantEqual("body", f.object(body), parsed(f.t, `{"thresholds": {"pass": 90, "marginal": 75}, "scopes": {"default": {
				"controlScope": {"scope": "app=a", "location": "eu", `+lastInterval+`},
				"experimentScope": {"scope": "app=b", "location": "", `+lastInterval+`}}}}`))
			_, _ = w.Write([]byte(`{"canaryExecutionId":"01ABC"}`))
		case "GET /canary/01ABC":
			f.send(w)
		default:
			f.t.Errorf("%s %s is not documented", r.Method, r.URL)
		}
		return true
	},
	answers: []canned{
		{name: "one", reply: kayentaReply("95.6"), want: 95.0, phase: analysis.Successful},
		{name: "passes", reply: kayentaReply("90"), want: 90.0, phase: analysis.Successful},
		{name: "marginal", reply: kayentaReply("89.9"), want: 89.0, phase: analysis.Inconclusive},
		{name: "fails", reply: kayentaReply("74.9"), want: 74.0, phase: analysis.Failed},
		{name: "empty", reply: `{"complete":true,"status":"terminal"}`, err: "its status at Kayenta is terminal"},
		{name: "lies", reply: `{"status":"succeeded"}`, err: "does not say whether the comparison is complete"},
		{name: "never ends", reply: `{"complete":false,"status":"running"}`, err: "it runs for ever"},
	},
}

func kayentaReply(score string) string {
	return `{"complete":true,"status":"succeeded","result":{"judgeResult":{"score":{"score":` + score + `,"classification":"Pass"}}}}`
}

var webhookContract = contract{
	kind: "webhook", doc: "https://docs.flagger.app/usage/webhooks", anyStatus: true,
	config: "{url: ADDRESS/gate/check, metadata: {type: cmd, cmd: 'hey -z 1m http://shop'}, headers: [{key: X-Token, value: " + token + "}]}",
	serve: func(f *fake, w http.ResponseWriter, r *http.Request, body string) bool {
		if r.Header.Get("X-Token") != token {
			return false
		}
		f.want(r, "POST /gate/check")
		f.wantEqual("Content-Type", r.Header.Get("Content-Type"), "application/json")
		f.wantEqual("body", body, `{"checksum":"v1:abc","metadata":{"cmd":"hey -z 1m `+
			`http://shop","type":"cmd"},"name":"checkout","namespace":"shop","phase":"Progressing"}`)
		status := map[string]int{"closed": http.StatusForbidden, "begun": http.StatusAccepted}[f.reply]
		w.WriteHeader(cmp.Or(status, http.StatusOK))
		_, _ = w.Write([]byte(f.reply))
		return true
	},
	answers: []canned{
		{name: "one", reply: "OK", want: 200.0, phase: analysis.Successful},
		{name: "empty", reply: "", want: 200.0, phase: analysis.Successful},
		{name: "begun", reply: "begun", want: 202.0, phase: analysis.Successful},
		{name: "closed", reply: "closed", want: 403.0, phase: analysis.Failed},
	},
}

// TestGates checks that a release waits at a closed gate, and that an open rollback gate fails the release, as in Flagger.
func TestGates(t *testing.T) {
	for _, c := range []struct {
		kind, reply string
		want        analysis.Phase
	}{
		{"confirm-rollout", "OK", analysis.Successful}, {"confirm-rollout", "closed", analysis.Running},
		{"confirm-promotion", "closed", analysis.Running}, {"confirm-traffic-increase", "closed", analysis.Running},
		{"rollback", "OK", analysis.Failed}, {"rollback", "closed", analysis.Successful},
		{"pre-rollout", "closed", analysis.Failed},
	} {
		b := newBench(t, webhookContract)
		b.reply, b.request.Config["type"], b.request.Config["retries"] = c.reply, c.kind, 2
		got, err := provider.Measure(t.Context(), b.deps, b.request)
		if err != nil || got.Phase != c.want {
			t.Errorf("%s, %s: got %v and %v, want %s", c.kind, c.reply, got, err, c.want)
		}
		if want := map[string]int64{"OK": 1, "closed": 3}[c.reply]; b.asked.Load() != want {
			t.Errorf("%s, %s: it was asked %d times, want %d", c.kind, c.reply, b.asked.Load(), want)
		}
	}
}

// TestEffectsAreNotRepeated checks that a request that may have had an effect is not repeated.
func TestEffectsAreNotRepeated(t *testing.T) {
	for path, c := range map[string]contract{"/measure": webPostContract, "/canary/id-1": kayentaContract, "/gate/check": webhookContract} {
		var asked atomic.Int64
		failing := c
		failing.serve = func(f *fake, w http.ResponseWriter, r *http.Request, body string) bool {
			if r.URL.Path == path {
				asked.Add(1)
				w.WriteHeader(http.StatusInternalServerError)
				return true
			}
			return c.serve(f, w, r, body)
		}
		b := newBench(t, failing)
		if _, err := b.measure(t.Context()); (err == nil) != c.anyStatus || asked.Load() != 1 {
			t.Errorf("%s %s was asked %d times, with %v", c.kind, path, asked.Load(), err)
		}
	}
}

// TestKayentaNamesNoComparison checks that a response without an ID is an error, because no comparison has begun.
func TestKayentaNamesNoComparison(t *testing.T) {
	nameless := kayentaContract
	nameless.serve = func(f *fake, w http.ResponseWriter, r *http.Request, body string) bool {
		if r.Method == http.MethodPost {
			_, _ = w.Write([]byte(`{}`))
			return true
		}
		return kayentaContract.serve(f, w, r, body)
	}
	compare.Check(t, "the answer of Kayenta has no canaryExecutionId", newBench(t, nameless).wantError(""))
}

// fakeJobs is a cluster that has only Jobs.
type fakeJobs struct {
	made    []map[string]any
	state   rollout.JobState
	err     error
	begun   bool
	deleted []string
}

func (f *fakeJobs) EnsureJob(_ context.Context, object map[string]any, _ string, begun bool) (rollout.JobState, error) {
	f.begun = begun
	for _, made := range f.made {
		if compare.Equal(made["metadata"], object["metadata"]) {
			return f.state, f.err
		}
	}
	f.made = append(f.made, object)
	return f.state, f.err
}

func (f *fakeJobs) DeleteJob(_ context.Context, namespace, name string) error {
	f.deleted = append(f.deleted, namespace+"/"+name)
	return f.err
}

func jobRequest(t *testing.T) provider.Request {
	t.Helper()
	shop := rollout.Workload{Name: "checkout"}
	return provider.Request{Kind: "job", Namespace: "shop", Workload: shop, ID: "checkout/7d9f/Integration Tests/12", Config: fromYAML(t, `
metadata: {labels: {foo: bar}, annotations: {a: b}}
spec: {backoffLimit: 1, template: {spec: {restartPolicy: Never, containers: [{name: test, image: "test:1"}]}}}
`)}
}

func TestJob(t *testing.T) {
	for name, c := range map[string]struct {
		state   rollout.JobState
		err     error
		phase   analysis.Phase
		message string
	}{
		"runs":     {rollout.JobState{}, nil, analysis.Running, "the Job runs"},
		"complete": {rollout.JobState{Complete: true}, nil, analysis.Successful, ""},
		"failed": {rollout.JobState{Failed: true, Message: "BackoffLimitExceeded"}, nil, analysis.Failed,
			"the Job failed: BackoffLimitExceeded"},
		"failed silently": {rollout.JobState{Failed: true}, nil, analysis.Failed, "the Job failed"},
		"no image": {rollout.JobState{Stuck: "ErrImagePull", Message: "not found"}, nil, analysis.Inconclusive,
			"the Job cannot start: ErrImagePull: not found"},
		"failed and stuck": {rollout.JobState{Failed: true, Stuck: "ErrImagePull"}, nil, analysis.Failed, "the Job failed"},
		"gone":             {rollout.JobState{Gone: true}, nil, analysis.Inconclusive, "the Job was deleted before it was over"},
		"forbidden":        {rollout.JobState{}, errors.New("forbidden"), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			jobs := &fakeJobs{state: c.state, err: c.err}
			var got provider.Result
			var err error
			for range 2 { // the second call simulates a process after a crash
				got, err = provider.Measure(t.Context(), provider.Deps{Jobs: jobs}, jobRequest(t))
			}
			if !errors.Is(err, c.err) || got.Phase != c.phase || got.Message != c.message {
				t.Errorf("got %+v and %v", got, err)
			}
			if len(jobs.made) != 1 {
				t.Errorf("%d Jobs were made, want one", len(jobs.made))
			}
		})
	}
}

// TestJobsThatCannotBe checks that no Job is created if Deps.Jobs or the request's ID is missing, and that a failed deletion is an error.
func TestJobsThatCannotBe(t *testing.T) {
	nameless := jobRequest(t)
	nameless.ID = ""
	jobs := &fakeJobs{}
	for want, c := range map[string]struct {
		deps    provider.Deps
		request provider.Request
	}{
		"there are no Jobs here":            {provider.Deps{}, jobRequest(t)},
		"the measurement has no ID, so its": {provider.Deps{Jobs: jobs}, nameless},
	} {
		if _, err := provider.Measure(t.Context(), c.deps, c.request); err == nil || !strings.HasPrefix(err.Error(), want) || len(jobs.made) > 0 {
			t.Errorf("%v, want %s", err, want)
		}
		if err := provider.Stop(t.Context(), c.deps, c.request); err != nil || len(jobs.deleted) > 0 {
			t.Errorf("%s: it is deleted: %v", want, err)
		}
	}
	jobs.err = errors.New("away")
	if err := provider.Stop(t.Context(), provider.Deps{Jobs: jobs}, jobRequest(t)); !errors.Is(err, jobs.err) ||
		!strings.HasPrefix(err.Error(), "delete the job shop/checkout-7d9f-integration-tests-12-") {
		t.Errorf("a Job that cannot be deleted: %v", err)
	}
}

func TestJobObject(t *testing.T) {
	jobs := &fakeJobs{}
	_, err := provider.Measure(t.Context(), provider.Deps{Jobs: jobs}, jobRequest(t))
	must(t, err)
	name := provider.JobName(jobRequest(t).ID)
	want := map[string]any{
		"apiVersion": "batch/v1", "kind": "Job",
		"metadata": map[string]any{
			"name": name, "namespace": "shop", "labels": map[string]any{"foo": "bar", provider.LabelMeasurement: "true"},
			"annotations":     map[string]any{"a": "b", provider.AnnotationMeasurement: "checkout/7d9f/Integration Tests/12"},
			"ownerReferences": []any{map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "name": "checkout"}},
		},
		"spec": map[string]any{"backoffLimit": int64(1), "ttlSecondsAfterFinished": int64(86400),
			"template": map[string]any{"spec": map[string]any{
				"restartPolicy": "Never", "containers": []any{map[string]any{"name": "test", "image": "test:1"}},
			}}},
	}
	compare.CheckNamed(t, "the Job differs", want, jobs.made[0])
	for kind, owner := range map[string]any{
		"StatefulSet":          []any{map[string]any{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "checkout"}},
		"CloneSet.apps.kruise": nil,
	} {
		request := jobRequest(t)
		request.Workload.Kind = kind
		_, err = provider.Measure(t.Context(), provider.Deps{Jobs: jobs}, request)
		must(t, err)
		compare.CheckNamed(t, "owner of a "+kind+"'s Job", owner, jobs.made[len(jobs.made)-1]["metadata"].(map[string]any)["ownerReferences"])
	}
	if err := provider.Stop(t.Context(), provider.Deps{Jobs: jobs}, jobRequest(t)); err != nil ||
		!compare.Equal(jobs.deleted, []string{"shop/" + name}) {
		t.Errorf("deleted %v, %v", jobs.deleted, err)
	}
}

// TestJobStaysToBeRead checks that a finished Job stays for at least a day, so that a process that starts late can read the result. A Job
// that was seen running is not created again.
func TestJobStaysToBeRead(t *testing.T) {
	for given, want := range map[int]int64{0: 86400, 10: 86400, 604800: 604800} {
		jobs, request := &fakeJobs{}, jobRequest(t)
		request.Config["spec"].(map[string]any)["ttlSecondsAfterFinished"] = given
		got, err := provider.Measure(t.Context(), provider.Deps{Jobs: jobs}, request)
		if ttl := jobs.made[0]["spec"].(map[string]any)["ttlSecondsAfterFinished"]; err != nil || ttl != want || jobs.begun {
			t.Errorf("with %d: %v, want %d; begun %t; %v", given, ttl, want, jobs.begun, err)
		}
		request.Metadata = got.Metadata
		if _, err := provider.Measure(t.Context(), provider.Deps{Jobs: jobs}, request); err != nil || !jobs.begun {
			t.Errorf("asked again: begun %t, %v", jobs.begun, err)
		}
	}
}

func TestJobName(t *testing.T) {
	form := regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)
	seen := map[string]string{}
	for _, id := range []string{"a", "A", "a/b", "a.b", "a-b", "日本", "-", strings.Repeat("x", 300), strings.Repeat("x", 301),
		strings.Repeat("ab/", 20)} {
		name := provider.JobName(id)
		if !form.MatchString(name) || len(name) > 63 {
			t.Errorf("%q becomes %q", id, name)
		}
		if other, ok := seen[name]; ok {
			t.Errorf("%q and %q become %q", id, other, name)
		}
		seen[name] = id
	}
	if got := provider.JobName("checkout/7d9f/Integration Tests/12"); got != "checkout-7d9f-integration-tests-12-"+
		rollout.Digest([]byte("checkout/7d9f/Integration Tests/12"), 6) {
		t.Errorf("got %q", got)
	}
}
