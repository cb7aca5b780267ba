package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"gitrollout.dev/gitrollout/call"
	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/publish/notify"
	"gitrollout.dev/gitrollout/publish/notify/service"
	"gitrollout.dev/gitrollout/rollout"
)

var update = flag.Bool("update", false, "write the golden files again")

var at = time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// send sends an event to a receiver. The server parameter is the URL of the test server.
func send(t *testing.T, server string, r rollout.Receiver, e rollout.Event) error {
	t.Helper()
	return service.Send(t.Context(), deps(server), r, messageFor(t, r, e))
}

// failureOf returns err as a Failure. It fails the test if the text of err contains a credential.
func failureOf(t *testing.T, err error) *service.Failure {
	t.Helper()
	var failed *service.Failure
	if !errors.As(err, &failed) {
		t.Fatalf("%v is not a Failure", err)
	}
	compare.CheckNamed(t, "it tells a credential: "+err.Error(), false, strings.Contains(err.Error(), "s3cr3t"))
	return failed
}

// recording returns the URL of a server that responds with the given status. The server adds each request's Authorization header and body
// to the list.
func recording(t *testing.T, code int) (url string, taken *[]string) {
	t.Helper()
	taken = new([]string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		*taken = append(*taken, r.Header.Get("Authorization")+" "+string(data))
		w.WriteHeader(code)
	}))
	t.Cleanup(server.Close)
	return server.URL, taken
}

// aborted returns an event whose texts contain links and mentions.
func aborted() rollout.Event {
	return rollout.Event{
		ID: strings.Repeat("ab", 20) + "/shop", Kinds: []rollout.EventKind{rollout.EventAborted, rollout.EventAnalysisFailed}, At: at,
		Cluster: "prod-eu", App: "shop",
		Reason: "metric error-rate: <!channel> failed & went back", Release: "h1-7b4e2a91d0", Stable: "h1-0123456789",
		Commit: strings.Repeat("9f", 20),
		Author: "Ann <ann@example.com>", Subject: `Cheaper "basket" <https://evil.example|click>`, Since: at.Add(-10 * time.Minute),
		Step: 2, Steps: 4, StepName: "setWeight 40", Weight: 40,
		Waiting: "Git to agree with the stable version", Proposal: "gitrollout/revert/prod-eu/shop",
		Analyses:  []rollout.EventAnalysis{{Run: "step-2", Metric: "error-rate", Phase: rollout.AnalysisFailed, Value: "[0.2]"}},
		CommitURL: "https://git.example.com/shop/commit/9f9f", ProposalURL: "https://git.example.com/shop/tree/gitrollout/revert/prod-eu/shop",
		Trouble: "prod-eu/shop/h1-7b4e2a91d0",
	}
}

// recovered returns the event that ends the problem in aborted's event.
func recovered() rollout.Event {
	e := aborted()
	e.ID = strings.Repeat("cd", 20) + "/shop"
	e.Kinds, e.At, e.Analyses = []rollout.EventKind{rollout.EventRecovered}, at.Add(time.Hour), nil
	e.Trouble, e.Reason, e.Waiting, e.Proposal, e.ProposalURL = "", "", "", "", ""
	e.Over = []string{"prod-eu/shop/h1-7b4e2a91d0"}
	return e
}

// request is a request in a golden file of a service.
type request struct {
	Path    string            `json:"path"`
	Headers map[string]string `json:"headers"`
	Body    json.RawMessage   `json:"body"`
}

// contract describes a service's API as its public documentation does.
type contract struct {
	path     func(string) bool
	auth     [2]string // name and value of the credential's header
	media    string    // Content-Type; "" for application/json
	required []string  // paths of the body's required fields
	status   int
	answer   string
}

func is(path string) func(string) bool { return func(got string) bool { return got == path } }

// hookPath is the path of a webhook's URL. Its last part is secret.
const hookPath = "/hooks/T0000/s3cr3t-of-the-webhook"

var contracts = map[string]contract{
	"slack": {path: is(hookPath), required: []string{"text", "attachments.0.blocks.0.type", "attachments.0.color"}, status: 200, answer: "ok"},
	"slackToken": {path: is("/chat.postMessage"), auth: [2]string{"Authorization", "Bearer xoxb-s3cr3t-token"},
		required: []string{"channel", "text"}, status: 200, answer: `{"ok":true}`},
	"msteams": {path: is(hookPath),
		required: []string{"type", "attachments.0.contentType", "attachments.0.content.type", "attachments.0.content.version"}, status: 202},
	"discord":    {path: is(hookPath), required: []string{"embeds.0.title", "allowed_mentions.parse"}, status: 204},
	"googleChat": {path: is(hookPath), required: []string{"cardsV2.0.card.sections.0.widgets", "thread.threadKey"}, status: 200, answer: "{}"},
	"rocketChat": {path: is(hookPath), required: []string{"attachments.0.title"}, status: 200, answer: `{"success":true}`},
	"webhook": {path: is(hookPath), auth: [2]string{"X-Api-Key", "s3cr3t-of-a-header"}, media: "application/cloudevents+json", status: 204,
		required: []string{"specversion", "id", "source", "type", "time", "data.app"}},
	"pagerDuty": {path: is("/v2/enqueue"), required: []string{"routing_key", "event_action", "dedup_key"}, status: 202,
		answer: `{"status":"success"}`},
	"opsgenie": {path: func(p string) bool { return p == "/v2/alerts" || strings.HasSuffix(p, "/close") },
		auth:     [2]string{"Authorization", "GenieKey s3cr3t-api-key"},
		required: []string{"source"}, status: 202},
	"alertmanager": {path: is("/api/v2/alerts"), auth: [2]string{"Authorization", "Basic dXNlcjpzM2NyM3QtcGFzc3dvcmQ="},
		required: []string{"0.labels.alertname", "0.endsAt"}, status: 200},
	"grafana": {path: is("/api/annotations"), auth: [2]string{"Authorization", "Bearer glsa-s3cr3t-token"},
		required: []string{"text", "tags", "time"}, status: 200, answer: `{"id":1}`},
}

// serve returns a server that fails the test if a request violates the contract. The server also records the requests.
func (c contract) serve(t *testing.T, taken *[]request) *httptest.Server {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(r.Body)
		var body any
		media := c.media
		if media == "" {
			media = "application/json"
		}
		switch {
		case err != nil || json.Unmarshal(data, &body) != nil:
			t.Errorf("the body is not JSON: %s", data)
		case r.Method != http.MethodPost || !c.path(r.URL.Path):
			t.Errorf("%s %s differs from the documentation", r.Method, r.URL)
		case !strings.HasPrefix(r.Header.Get("Content-Type"), media):
			t.Errorf("Content-Type %s, want %s", r.Header.Get("Content-Type"), media)
		case c.auth[0] != "" && r.Header.Get(c.auth[0]) != c.auth[1]:
			t.Errorf("%s is %q", c.auth[0], r.Header.Get(c.auth[0]))
		}
		for _, field := range c.required {
			if !has(body, strings.Split(field, ".")) {
				t.Errorf("%s is missing in %s", field, data)
			}
		}
		*taken = append(*taken, request{Path: r.URL.RequestURI(), Body: data})
		if signature := r.Header.Get("X-Gitrollout-Signature"); signature != "" {
			(*taken)[len(*taken)-1].Headers = map[string]string{"X-Gitrollout-Signature": signature}
		}
		w.WriteHeader(c.status)
		if c.status != http.StatusNoContent {
			_, _ = io.WriteString(w, c.answer)
		}
	}))
	t.Cleanup(server.Close)
	return server
}

func has(v any, path []string) bool {
	if len(path) == 0 {
		return true
	}
	switch v := v.(type) {
	case map[string]any:
		inner, ok := v[path[0]]
		return ok && has(inner, path[1:])
	case []any:
		return len(v) > 0 && path[0] == "0" && has(v[0], path[1:])
	}
	return false
}

// env returns a Getenv function with the tests' credentials. The webhook's URL is on the given server.
func env(server string) func(string) string {
	return func(name string) string {
		return map[string]string{
			"HOOK": server + hookPath, "SLACK": "xoxb-s3cr3t-token", "KEY": "s3cr3t-api-key", "GRAFANA": "glsa-s3cr3t-token",
			"USER": "user", "PASSWORD": "s3cr3t-password", "HEADER": "s3cr3t-of-a-header", "SIGN": "s3cr3t-to-sign",
		}[name]
	}
}

// receiverOf returns a receiver for a service in contracts, at the given URL.
func receiverOf(name, server string) rollout.Receiver {
	r := rollout.Receiver{Name: "team", Service: strings.TrimSuffix(name, "Token"), Settings: map[string]string{},
		Lists: map[string][]string{}, Credentials: map[string]rollout.Credential{}}
	credential := func(field, env string) { r.Credentials[field] = rollout.Credential{Env: env} }
	switch name {
	case "slackToken":
		credential("token", "SLACK")
		r.Settings["channel"], r.Settings["address"] = "#releases", server
	case "webhook":
		credential("url", "HOOK")
		credential("signingKey", "SIGN")
		r.Headers = map[string]rollout.Credential{"X-Api-Key": {Env: "HEADER"}}
	case "pagerDuty":
		credential("routingKey", "KEY")
		r.Settings["address"] = server
	case "opsgenie":
		credential("apiKey", "KEY")
		r.Settings["address"] = server
	case "alertmanager":
		credential("username", "USER")
		credential("password", "PASSWORD")
		r.Settings["address"] = server + "/"
	case "grafana":
		credential("token", "GRAFANA")
		r.Settings["address"], r.Settings["dashboard"], r.Lists["tags"] = server, "shop-dash", []string{"team:shop"}
	default:
		credential("url", "HOOK")
	}
	return r
}

func deps(server string) service.Deps {
	return service.Deps{Client: call.Clients(), Getenv: env(server)}
}

func messageFor(t *testing.T, r rollout.Receiver, e rollout.Event) notify.Message {
	t.Helper()
	if r.On == nil && r.Service == "grafana" {
		r.On = []rollout.EventKind{rollout.EventAborted, rollout.EventRecovered}
	}
	m, ok, err := notify.MessageFor(r, service.ProfileOf(r.Service), e)
	if err != nil || !ok {
		t.Fatalf("%s is not told of %v: %v", r.Service, e.Kinds, err)
	}
	return m
}

// TestContracts sends the start and the end of a problem to each service, and compares the requests with golden files.
func TestContracts(t *testing.T) {
	for name, c := range contracts {
		t.Run(name, func(t *testing.T) {
			var taken []request
			server := c.serve(t, &taken)
			r := receiverOf(name, server.URL)
			for _, e := range []rollout.Event{aborted(), recovered()} {
				must(t, send(t, server.URL, r, e))
			}
			got, err := json.MarshalIndent(taken, "", "  ")
			must(t, err)
			golden := filepath.Join("testdata", name+".json")
			if *update {
				must(t, os.WriteFile(golden, append(got, '\n'), 0o644))
			}
			want, err := os.ReadFile(golden)
			must(t, err)
			compare.CheckNamed(t, "requests", strings.TrimSpace(string(want)), string(got))
		})
	}
}

// TestMessagesThatSayLittle checks that no request contains null, even for a message with only a title. Services refuse null.
func TestMessagesThatSayLittle(t *testing.T) {
	for name, c := range contracts {
		t.Run(name, func(t *testing.T) {
			var taken []request
			server := c.serve(t, &taken)
			r := receiverOf(name, server.URL)
			m := notify.Message{Event: rollout.Event{
				ID: "ab/shop", Kinds: []rollout.EventKind{rollout.EventAborted}, Kind: rollout.EventAborted, At: at, Cluster: "prod-eu",
				App: "shop", Title: "shop: aborted", Trouble: "prod-eu/shop", Outcome: messageFor(t, r, aborted()).Outcome,
			}}
			must(t, service.Send(t.Context(), deps(server.URL), r, m))
			for _, request := range taken {
				var body any
				if err := json.Unmarshal(request.Body, &body); err != nil || hasNull(body) {
					t.Errorf("%v in %s", err, request.Body)
				}
			}
			compare.CheckNamed(t, "requests were sent", true, len(taken) > 0)
		})
	}
}

// TestSlackTakesLongTexts checks that texts stay within the limits of Slack's blocks, even though escapes lengthen them.
func TestSlackTakesLongTexts(t *testing.T) {
	long := strings.Repeat("<", 2500)
	m, err := service.Templated(rollout.Receiver{Service: "slack"},
		notify.Message{Event: rollout.Event{Title: long, Text: long}, Facts: []notify.Fact{{Name: "Reason", Value: long}}})
	must(t, err)
	for _, block := range m["attachments"].([]any)[0].(service.Object)["blocks"].([]any) {
		section := block.(service.Object)
		if text, is := section["text"].(service.Object); is && utf8.RuneCountInString(text["text"].(string)) > 3000 {
			t.Errorf("a block has %q", text["text"])
		}
		fields, _ := section["fields"].([]any)
		for _, f := range fields {
			if n := utf8.RuneCountInString(f.(service.Object)["text"].(string)); n > 2000 {
				t.Errorf("a field has %d characters", n)
			}
		}
	}
}

func hasNull(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case map[string]any:
		delete(v, "contentUrl") // Microsoft's documentation requires null here
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), hasNull)
	case []any:
		return slices.ContainsFunc(v, hasNull)
	}
	return false
}

// TestResolveFails checks that send opens no incident if the request that resolves an older incident fails.
func TestResolveFails(t *testing.T) {
	for _, service := range []string{"pagerDuty", "opsgenie"} {
		url, taken := recording(t, http.StatusServiceUnavailable)
		e := aborted()
		e.Over = []string{"prod-eu/shop/h1-0123456789"}
		if err := send(t, url, receiverOf(service, url), e); err == nil || len(*taken) != 1 {
			t.Errorf("%s: %d requests, %v", service, len(*taken), err)
		}
	}
}

// TestEndsAlone checks that a message that begins no problem opens no incident.
func TestEndsAlone(t *testing.T) {
	for _, s := range []string{"pagerDuty", "opsgenie", "alertmanager"} {
		for name, c := range map[string]struct {
			change func(*notify.Message)
			asked  int
		}{
			"is over, and another is wrong": {func(m *notify.Message) { m.Ends, m.Over = true, []string{"other"} }, 1},
			"is over, and none is wrong":    {func(m *notify.Message) { m.Trouble, m.Over = "", []string{"other"} }, 1},
			"nothing":                       {func(m *notify.Message) { m.Trouble = "" }, 0},
			"is wrong":                      {func(*notify.Message) {}, 1},
		} {
			url, taken := recording(t, http.StatusAccepted)
			r := receiverOf(s, url)
			m := messageFor(t, r, aborted())
			c.change(&m)
			err := service.Send(t.Context(), deps(url), r, m)
			opens := strings.Contains(strings.Join(*taken, " "), "metric error-rate")
			if err != nil || len(*taken) != c.asked || opens != (name == "is wrong") {
				t.Errorf("%s: what %s: %v, %q", s, name, err, *taken)
			}
		}
	}
}

// TestSettingsOfServices checks Rocket.Chat's setting "channel", and Alertmanager's credential "token".
func TestSettingsOfServices(t *testing.T) {
	url, taken := recording(t, http.StatusOK)
	chat, alerts := receiverOf("rocketChat", url), receiverOf("alertmanager", url)
	chat.Settings["channel"] = "#releases"
	alerts.Credentials = map[string]rollout.Credential{"token": {Env: "KEY"}}
	for want, r := range map[string]rollout.Receiver{`"channel":"#releases"`: chat, "Bearer s3cr3t-api-key ": alerts} {
		must(t, send(t, url, r, aborted()))
		compare.Contains(t, (*taken)[len(*taken)-1], want)
	}
}

// TestFailures checks which failures are final, and the pause after other failures. No error may contain a credential,
// even if the service's response contains it.
func TestFailures(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer func(w http.ResponseWriter, r *http.Request)
		final  bool
		after  time.Duration
		says   string
	}{
		{name: "400", answer: status(400), final: true, says: "400 Bad Request: no /hooks"},
		{name: "404", answer: status(404), final: true, says: "404"},
		{name: "429", answer: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "7")
			status(429)(w, r)
		}, after: 7 * time.Second, says: "429"},
		{name: "503 until", answer: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Date", at.Format(http.TimeFormat))
			w.Header().Set("Retry-After", at.Add(2*time.Minute).Format(http.TimeFormat))
			status(503)(w, r)
		}, after: 2 * time.Minute, says: "503"},
		{name: "429 for a week", answer: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Retry-After", "604800")
			status(429)(w, r)
		}, after: time.Hour, says: "429"},
		{name: "500", answer: status(500), says: "500"},
		{name: "redirect", answer: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://elsewhere.example/", http.StatusTemporaryRedirect)
		}, final: true, says: "307"},
		{name: "hangs up", answer: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, says: "connection"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name := range contracts {
				t.Run(name, func(t *testing.T) {
					server := httptest.NewServer(http.HandlerFunc(c.answer))
					defer server.Close()
					err := send(t, server.URL, receiverOf(name, server.URL), aborted())
					failed := failureOf(t, err)
					compare.CheckNamed(t, err.Error(), []any{c.final, c.after}, []any{failed.Final, failed.After})
					compare.Contains(t, err.Error(), strings.Split(c.says, " ")[0])
				})
			}
		})
	}
}

// status returns a handler whose response contains the request, as some services' responses do.
func status(code int) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		w.WriteHeader(code)
		fmt.Fprintf(w, "no %s %v %.100s", r.URL, r.Header["Authorization"], data)
	}
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer server.Close()
	defer close(release)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	r := receiverOf("slack", server.URL)
	err := service.Send(ctx, deps(server.URL), r, messageFor(t, r, aborted()))
	compare.CheckNamed(t, err.Error(), false, failureOf(t, err).Final)
}

func TestSlackSaysNo(t *testing.T) {
	for said, final := range map[string]bool{"channel_not_found": true, "invalid_auth": true, "internal_error": false} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"ok":false,"error":%q}`, said)
		}))
		err := send(t, server.URL, receiverOf("slackToken", server.URL), aborted())
		server.Close()
		compare.CheckNamed(t, said, final, failureOf(t, err).Final)
		compare.Contains(t, err.Error(), said)
	}
}

func TestCredentials(t *testing.T) {
	var taken []request
	server := contracts["slack"].serve(t, &taken)
	d := deps(server.URL)
	d.Secret = func(_ context.Context, namespace, name string) (map[string]string, error) {
		if namespace != "ops" || name != "chat" {
			return nil, fmt.Errorf("no Secret %s/%s", namespace, name)
		}
		return map[string]string{"slack": server.URL + hookPath + "\n"}, nil
	}
	d.ReadFile = func(path string) ([]byte, error) {
		if path != "/etc/notify/slack" {
			return nil, os.ErrNotExist
		}
		return []byte(server.URL + hookPath), nil
	}
	d.Getenv = func(name string) string { return map[string]string{"GITROLLOUT_NOTIFY_DIR": "/etc/notify"}[name] }
	for _, c := range []struct {
		name       string
		credential rollout.Credential
		says       string
	}{
		{name: "Secret", credential: rollout.Credential{Secret: rollout.SecretRef{Name: "chat", Key: "slack"}, Namespace: "ops"}},
		{name: "no such key", credential: rollout.Credential{Secret: rollout.SecretRef{Name: "chat", Key: "teams"}, Namespace: "ops"},
			says: "url: the key teams of the Secret chat is empty or not there"},
		{name: "no such Secret", credential: rollout.Credential{Secret: rollout.SecretRef{Name: "other", Key: "teams"}}, says: "no Secret"},
		{name: "file", credential: rollout.Credential{File: "slack"}},
		{name: "no such file", credential: rollout.Credential{File: "teams"}, says: "not exist"},
		{name: "no such variable", credential: rollout.Credential{Env: "GITROLLOUT_NOTIFY_X"}, says: "GITROLLOUT_NOTIFY_X is empty or not there"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := receiverOf("slack", server.URL)
			r.Credentials["url"] = c.credential
			err := service.Send(t.Context(), d, r, messageFor(t, r, aborted()))
			compare.CheckNamed(t, "accepted", c.says == "", err == nil)
			compare.Contains(t, fmt.Sprint(err), c.says)
			var failed *service.Failure
			compare.CheckNamed(t, "final, though the Secret may still be made", false, errors.As(err, &failed) && failed.Final)
		})
	}
}

// TestTableIsTheConfigurations checks that the table has exactly the services that a configuration may have.
func TestTableIsTheConfigurations(t *testing.T) {
	compare.CheckNamed(t, "services", slices.Sorted(maps.Keys(rollout.Services())), slices.Sorted(maps.Keys(service.Table())))
	for name, row := range service.Table() {
		if _, tested := contracts[name]; !tested && name != "email" {
			t.Errorf("%s has no contract", name)
		}
		compare.CheckNamed(t, name+" resolves", len(rollout.Services()[name].Only) > 0, row.Resolves)
	}
}

// TestForeignTextsAreNoMarkdown checks hostile authors' texts in services that support Markdown. The messages must
// contain no mention, and no link whose text hides its address.
func TestForeignTextsAreNoMarkdown(t *testing.T) {
	for _, name := range []string{"discord", "msteams", "rocketChat"} {
		t.Run(name, func(t *testing.T) {
			url, taken := recording(t, http.StatusNoContent)
			e := aborted()
			for _, text := range []*string{&e.Title, &e.Text, &e.Reason, &e.Subject, &e.Author, &e.Waiting} {
				*text += " [Log in](https://evil.example) ![x](https://evil.example/x) [a][b] <https://evil.example|here> @all @here"
			}
			must(t, send(t, url, receiverOf(name, url), e))
			var sent any
			must(t, json.Unmarshal([]byte((*taken)[len(*taken)-1]), &sent))
			text := fmt.Sprint(sent)
			compare.Contains(t, text, "Log in")
			for _, bad := range []string{"](https://evil", "|here", "][b]", "@all", "@here"} {
				compare.CheckNamed(t, bad+" is in "+text, false, strings.Contains(text, bad))
			}
		})
	}
}
