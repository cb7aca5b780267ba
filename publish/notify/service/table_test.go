package service_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/publish/notify"
	"gitrollout.dev/gitrollout/publish/notify/service"
	"gitrollout.dev/gitrollout/rollout"
)

// TestAServiceIsOneLine adds a service as a row of the table. The service must get its settings and credentials. No
// error may contain a credential.
func TestAServiceIsOneLine(t *testing.T) {
	var told []string
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		told = append(told, r.URL.Path+" "+r.Header.Get("X-Ring")+" "+string(body))
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "no pigeon has the ring "+r.Header.Get("X-Ring"))
	}))
	defer server.Close()
	known := service.WithPigeon(notify.Profile{Defaults: []rollout.EventKind{rollout.EventAborted}, Resolves: true})

	r := rollout.Receiver{
		Name: "team", Service: "pigeon", Settings: map[string]string{"address": server.URL + "/"},
		Credentials: map[string]rollout.Credential{"token": {Env: "KEY"}},
	}
	for _, e := range []rollout.Event{aborted(), recovered()} {
		m, wanted, err := notify.MessageFor(r, known["pigeon"].Profile, e)
		if err != nil || !wanted {
			t.Fatalf("it is not told of %v: %v", e.Kinds, err)
		}
		must(t, known.Send(t.Context(), deps(server.URL), r, m))
	}
	if len(told) != 2 || !strings.HasPrefix(told[0], "/loft s3cr3t-api-key {") || !strings.Contains(told[0], "aborted") {
		t.Errorf("it was told %q", told)
	}
	if _, wanted, _ := notify.MessageFor(r, known["pigeon"].Profile, rollout.Event{Kinds: []rollout.EventKind{rollout.EventStarted}}); wanted {
		t.Error("it is told more than its line says")
	}

	status = http.StatusForbidden
	err := known.Send(t.Context(), deps(server.URL), r, notify.Message{})
	if !failureOf(t, err).Final || !strings.HasSuffix(err.Error(), "403 Forbidden: no pigeon has the ring ***") {
		t.Errorf("got %v", err)
	}
}
