package traffic

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/tier"
	"gitrollout.dev/gitrollout/rollout"
)

// server is an app whose metrics server is faulty, and the expected result of its release.
type server struct {
	name   string
	answer http.HandlerFunc
	fields []string      // fields of the metric besides interval and count
	phase  rollout.Phase // final phase, or the phase in which the release stays
	why    string        // part of the reason or of the evidence
}

func vector(samples string) http.HandlerFunc {
	return text(`{"status":"success","data":{"resultType":"vector","result":[` + samples + `]}}`)
}

func text(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
}

func value(v string) string { return `{"metric":{},"value":[1,"` + v + `"]}` }

// hang returns without a response after the client has closed the connection.
func hang(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // without this read, the server does not notice a closed connection
	<-r.Context().Done()
}

func echo(w http.ResponseWriter, r *http.Request) {
	http.Error(w, fmt.Sprintf(`{"error": "I do not know %s"}`, r.Header.Get("Authorization")), http.StatusForbidden)
}

// tooSlow is the app with a short timeout. Other apps have a long timeout, because a busy machine can delay an answer by seconds.
const tooSlow = "too slow"

// servers returns the test cases: each has a Prometheus server's answer, fields of the metric, and the app's expected phase and message.
// With consecutiveErrorLimit 0, the first error ends the analysis.
func servers() []server {
	const low, atOnce = "successCondition: result[0] < 0.05", "consecutiveErrorLimit: 0"
	back := rollout.Degraded
	return []server{
		{"empty by default", vector(""), []string{low, atOnce}, back, "successCondition: result[0] < 0.05: index out of range"},
		{"empty, waits", vector(""), []string{low, "onNoData: wait"}, rollout.Progressing, ""},
		{"empty, passes", vector(""), []string{low, "onNoData: pass"}, rollout.Healthy, "no data"},
		{"empty, fails", vector(""), []string{low, "onNoData: fail"}, back, "failed: metric m"},
		{"NaN by default", vector(value("NaN")), []string{low}, back, "last values: [NaN]"},
		{"NaN, no failure", vector(value("NaN")), []string{"failureCondition: result[0] >= 0.05"}, rollout.Healthy, ""},
		{"NaN, waits", vector(value("NaN")), []string{low, "onNoData: wait"}, rollout.Progressing, ""},
		{"NaN, passes", vector(value("NaN")), []string{low, "onNoData: pass"}, rollout.Healthy, "no data"},
		{"NaN, fails", vector(value("NaN")), []string{low, "onNoData: fail"}, back, "failed: metric m"},
		{"infinite", vector(value("+Inf")), []string{low}, back, "[+Inf]"},
		{tooSlow, hang, []string{low, atOnce}, back, "no answer in time"},
		{"cut off", text(`{"status":"succ`), []string{low, atOnce}, back, "it is not JSON"},
		{"10 MiB", text(`{"status":"` + strings.Repeat("x", 10<<20)), []string{low, atOnce}, back, "larger than 1 MiB"},
		{"a page", text("<html><body>Please log in</body></html>"), []string{low, atOnce}, back, "it is not JSON"},
		{"nonsense", vector(`{"value":[1,2,3]}`), []string{low, atOnce}, back, "a sample is not a pair"},
		{"a word for a number", vector(value("many")), []string{low, atOnce}, back, "a sample's value is not a number"},
		{"another type", text(`{"status":"success","data":{"resultType":"string","result":[1,"fine"]}}`), []string{low, atOnce}, back,
			"the query's result is a text"},
		{"null", text("null"), []string{low, atOnce}, back, "an error of Prometheus"},
		{"says no, and repeats the header", echo, []string{low, atOnce}, back, "403 Forbidden: I do not know ***"},
		{"does not know", vector(value("0.05")), []string{low, "failureCondition: result[0] > 0.1"}, rollout.Paused, "inconclusive: metric m"},
	}
}

// oddServers releases, at the same time, an app for each server in servers, and an app with twelve metrics that hang.
// These apps delay neither the measurements nor the steps of another app.
func oddServers(t *testing.T) {
	tier.All(t)
	t.Parallel()
	var data atomic.Bool // set when the servers begin to return data
	var shops []measured
	plain := func(name, address string, steps []string, fields ...string) measured {
		fields = append([]string{"interval: 1s", "count: 2"}, fields...)
		m := metric("m", "up", "", fields...)
		m = strings.NewReplacer("PROMETHEUS", address, "timeout: 5",
			`headers: [{key: Authorization, value: "Bearer {{args.token}}"}]`+"\n        timeout: 30").Replace(m)
		return measured{name: name, plain: true, steps: steps, metric: m}
	}
	serve := func(answer http.HandlerFunc) string {
		s := httptest.NewServer(answer)
		t.Cleanup(s.Close)
		return s.URL
	}
	all := servers()
	inStep := []string{"setWeight: 50", inline}
	for _, s := range all {
		answer := s.answer
		shops = append(shops, plain(s.name, serve(func(w http.ResponseWriter, r *http.Request) {
			if s.phase == rollout.Progressing && data.Load() {
				vector(value("0.01"))(w, r) // the data that the metrics wait for
				return
			}
			answer(w, r)
		}), inStep, s.fields...))
		if last := &shops[len(shops)-1]; s.name == tooSlow {
			last.metric = strings.ReplaceAll(last.metric, "timeout: 30", "timeout: 2")
		}
	}
	none := httptest.NewServer(nil)
	none.Close()
	all = append(all, server{"nobody", nil, nil, rollout.Degraded, "connection refused"})
	shops = append(shops, plain("nobody", none.URL, inStep, "consecutiveErrorLimit: 1"))
	hanging := plain("hangs", serve(hang), []string{"setWeight: 50", "pause: {duration: 300s}"})
	hanging.fields, hanging.metric = "analysis: {"+templates+"}", ""
	for i := range 12 {
		hanging.metric += strings.Replace(plain("", serve(hang), nil).metric, "name: m", fmt.Sprintf("name: m%d", i), 1)
	}
	hanging.metric = strings.ReplaceAll(hanging.metric, "timeout: 30", "timeout: 60")
	beside := plain("beside", serve(vector(value("0.01"))),
		[]string{"setWeight: 50", inline, "pause: {duration: 3s}", "pause: {duration: 3s}", "pause: {duration: 3s}"})
	w := newMeasured(t, append(shops, hanging, beside)...)
	_, pushed := w.release("v2")
	w.checkBeside(pushed)
	for _, s := range all {
		a := w.app(s.name)
		ended := a.await(pushed, string(s.phase), func(state rollout.State) bool {
			return state.Phase == s.phase && (s.phase != rollout.Healthy || state.Stable.Commit == w.head)
		})
		if said := told(ended.states[a.name].Reason, a.runs()); s.phase != rollout.Progressing && !strings.Contains(said, s.why) {
			t.Errorf("%s: Git says %q, want %q", a, said, s.why)
		}
	}
	w.checkWaits("empty, waits", "NaN, waits")
	data.Store(true)
	w.app("empty, waits").awaitReleased(pushed)
	w.app("NaN, waits").awaitReleased(pushed)
	if s := w.app("hangs").state(); s.Phase != rollout.Paused {
		t.Errorf("the app whose server hangs is %s: %s", s.Phase, s.Reason)
	}
	w.checkQuiet()
}

// told returns the reason of a state and the messages of the state's analyses as one text.
func told(reason string, runs []rollout.AnalysisRun) string {
	for _, run := range runs {
		reason += " " + strings.ToLower(string(run.Phase)) + ": " + run.Message
		for _, m := range run.Metrics {
			for _, got := range m.Measurements {
				reason += " " + got.Message
			}
		}
	}
	return reason
}

// checkBeside waits for the release of the app `beside`, and logs the delay of its steps. If the release waited for the metrics that hang,
// it would take 12 minutes.
func (w *world) checkBeside(pushed time.Time) {
	w.t.Helper()
	a := w.app("beside")
	a.awaitReleased(pushed)
	at := func(step int) time.Time {
		return a.await(pushed, fmt.Sprint("step ", step),
			func(s rollout.State) bool { return len(s.Progress) == 1 && s.Progress[0].Step == step }).at
	}
	measured := at(2).Sub(at(1))
	w.t.Logf("beside 12 metrics that hang: two measurements took %s", measured.Round(10*time.Millisecond))
	for step := 2; step < 4; step++ {
		late := at(step+1).Sub(at(step)) - 3*time.Second
		w.t.Logf("a pause of 3s was over %s late", late.Round(10*time.Millisecond))
	}
}

// checkWaits fails the test unless each app is still Progressing, and `get` names the app's analysis.
func (w *world) checkWaits(names ...string) {
	w.t.Helper()
	for _, name := range names {
		a := w.app(name)
		out, err := w.gitrollout("get", a.name).CombinedOutput()
		if s := a.state(); s.Phase != rollout.Progressing || err != nil || !strings.Contains(string(out), "analysis shop/step-2") {
			w.t.Errorf("%s is %s: %v\n%s", a, s.Phase, err, out)
		}
	}
}

// checkQuiet fails the test if the credential is in the history of the state branch or in the log.
func (w *world) checkQuiet() {
	w.t.Helper()
	history := w.repo.InBare("log", "-p", "--format=%B", strings.TrimPrefix(stateRef, "refs/heads/"))
	if !strings.Contains(history, "I do not know ***") {
		w.t.Error("the state branch lacks the server's answer")
	}
	for where, said := range map[string]string{"the state branch": history, "the log": w.log.String()} {
		if strings.Contains(said, token) {
			w.t.Errorf("%s has the credential", where)
		}
		if strings.Contains(said, "panic") {
			w.t.Errorf("%s tells of a panic", where)
		}
	}
}
