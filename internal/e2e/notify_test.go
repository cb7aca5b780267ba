package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/internal/compare"
	"gitrollout.dev/gitrollout/rollout"
)

// inbox is a server that records CloudEvents, which have IDs, and chat messages, which have none.
type inbox struct {
	mu     sync.Mutex
	events []event
	chat   []string
	away   bool          // responds with 503
	slow   time.Duration // delay before the response
	server *httptest.Server
}

type event struct {
	ID   string `json:"id"`
	Type string `json:"type"`
	Data struct {
		Kinds   []string `json:"kinds"`
		Release string   `json:"release"`
		Author  string   `json:"author"`
		Text    string   `json:"text"`
	} `json:"data"`
}

func newInbox(t *testing.T) *inbox {
	b := &inbox{}
	b.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, _ := io.ReadAll(r.Body)
		b.mu.Lock()
		away, slow := b.away, b.slow
		b.mu.Unlock()
		if away {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		b.mu.Lock()
		if r.URL.Path == "/events" {
			var e event
			if err := json.Unmarshal(data, &e); err != nil {
				t.Errorf("not an event: %s", data)
			}
			b.events = append(b.events, e)
		} else {
			var m struct {
				Text string `json:"text"`
			}
			_ = json.Unmarshal(data, &m)
			b.chat = append(b.chat, m.Text)
		}
		b.mu.Unlock()
		time.Sleep(slow) // the message has arrived, but gitrollout has no response yet
	}))
	t.Cleanup(b.server.Close)
	return b
}

// told returns all received events in order.
func (b *inbox) told() []event {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.events)
}

// kinds returns the types of distinct events in order.
func (b *inbox) kinds() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var kinds, ids []string
	for _, e := range b.events {
		if !slices.Contains(ids, e.ID) {
			ids = append(ids, e.ID)
			kinds = append(kinds, strings.TrimPrefix(e.Type, "dev.gitrollout.release."))
		}
	}
	return kinds
}

func (b *inbox) messages() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.chat)
}

// notified returns a world, and an inbox to which gitrollout reports a release's main events.
func notified(t *testing.T) (*world, *inbox) {
	app := newShop(2, "scaling: surge", "setWeight: 50", "pause: {}")
	w := newWorld(t, app.files())
	b := newInbox(t)
	w.env = []string{"GITROLLOUT_NOTIFY_CHAT=" + b.server.URL + "/chat"}
	w.configure(fmt.Sprintf(`notifications:
- name: events
  webhook: {address: %s/events}
  events: [started, paused, promoted, completed, aborted, rolledBack, restored]
- name: chat
  slack: {url: {env: GITROLLOUT_NOTIFY_CHAT}}
  events: [started, paused, promoted, completed, aborted, rolledBack, restored]
`, b.server.URL))
	return w, b
}

// awaitKinds waits for exactly the given events.
func (b *inbox) awaitKinds(t *testing.T, want ...string) {
	t.Helper()
	within(t, 2*timeout, fmt.Sprint("told ", want), func() bool {
		return slices.Equal(b.kinds(), want) && len(b.messages()) >= len(want)
	}, func() any { return fmt.Sprintf("%v and %q", b.kinds(), b.messages()) })
}

// story releases v2, promotes v2, releases v3, and reverts v3. It calls between() five times meanwhile.
func (w *world) story(between func()) {
	w.t.Helper()
	app := newShop(2, "scaling: surge", "setWeight: 50", "pause: {}")
	second := w.push("v2", app.at("v2").files())
	between()
	w.awaitPause(1)
	between()
	w.promote()
	between()
	w.awaitHealthy(second)
	between()
	third := w.stage("v3", app.at("v3").files())
	w.repo.Revert(third)
	between()
	w.await("back at v2", func(s rollout.State) bool { return s.Phase == rollout.Healthy })
}

// told lists the events of story that each receiver must get, in order.
var told = []string{
	"started", "completed", // v1
	"started", "paused", "promoted", "completed", // v2
	"started", "paused", "rolledBack", "restored", // v3
}

// TestNotifiedOnce checks that each transition is reported once to each receiver, and not again after a restart.
func TestNotifiedOnce(t *testing.T) {
	t.Parallel()
	w, b := notified(t)
	w.start().awaitHealthy(w.repo.Head())
	w.story(func() {})
	b.awaitKinds(t, told...)
	w.restartAfterKill()
	time.Sleep(2 * time.Second)
	if events, chat := len(b.told()), b.messages(); events != len(told) || len(chat) != len(told) {
		t.Errorf("told %d events and %d messages, want %d: %q", events, len(chat), len(told), chat)
	}
	w.ran("notify", "test", "--to", "chat", "--event", "completed")
	if chat := b.messages(); len(chat) != len(told)+1 || chat[len(told)] != "sample in test: release completed" {
		t.Errorf("after a sample: %q", chat)
	}
	compare.Contains(t, w.failed("notify", "test", "--to", "chat", "--event", "stalled"), "chat does not get this event")
	compare.Contains(t, w.failed("notify", "test"), "name a receiver with --to: events, chat")
	if e := b.told()[3]; e.Data.Release == "" || e.Data.Author == "" || !strings.Contains(e.Data.Text, "gitrollout/promote/test/") {
		t.Errorf("the pause is told as %+v", e)
	}
}

// TestNotifiedThoughKilled kills gitrollout several times during releases. No event may be lost. A repeated event has
// the same ID, and a repeated chat message is marked as possibly repeated.
func TestNotifiedThoughKilled(t *testing.T) {
	t.Parallel()
	w, b := notified(t)
	b.slow = 300 * time.Millisecond // so that some kills happen during a request
	w.start().awaitHealthy(w.repo.Head())
	w.story(w.restartAfterKill)
	b.awaitKinds(t, told...)
	t.Logf("told %q", b.messages())
	again := 0
	for _, text := range b.messages() {
		if strings.HasSuffix(text, "(perhaps sent before)") {
			again++
		}
	}
	if plain := len(b.messages()) - again; plain > len(told) {
		t.Errorf("%d messages do not say that they come again, and there were %d events: %q", plain, len(told), b.messages())
	}
}

// TestNotifiedWhenServiceReturns checks that an unreachable service delays no release and gets its messages later.
func TestNotifiedWhenServiceReturns(t *testing.T) {
	t.Parallel()
	w, b := notified(t)
	b.away = true
	w.start().awaitHealthy(w.repo.Head())
	w.story(func() {})
	if got := b.kinds(); len(got) > 0 {
		t.Errorf("told %v while away", got)
	}
	b.mu.Lock()
	b.away = false
	b.mu.Unlock()
	b.awaitKinds(t, told...)
	compare.Contains(t, w.log.String(), "503 Service Unavailable") // the log has the reason for the delay
}

// TestNotifiedByTwo checks that two reconcilers for one cluster report each event once.
func TestNotifiedByTwo(t *testing.T) {
	t.Parallel()
	w, b := notified(t)
	w.start()
	w.twin().start()
	w.awaitHealthy(w.repo.Head())
	w.story(func() {})
	b.awaitKinds(t, told...)
	time.Sleep(time.Second)
	if len(b.told()) != len(told) || len(b.messages()) != len(told) {
		t.Errorf("told %d events and %d messages, want %d: %q", len(b.told()), len(b.messages()), len(told), b.messages())
	}
}
