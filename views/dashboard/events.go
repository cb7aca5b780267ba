package dashboard

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// heartbeat is the interval of messages that keep proxies from closing an idle stream.
	heartbeat = 15 * time.Second
	// together is the delay in which further changes join an event.
	together     = 100 * time.Millisecond
	writeTimeout = 20 * time.Second
)

type message struct {
	id, event string
	data      any
}

// events streams the changes of all apps or of one app (?app=NAME). It starts after the id in Last-Event-ID or ?since=.
// Without a valid id, it sends all data.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	name := r.FormValue("app")
	known := s.Board.parse(r.Header.Get("Last-Event-ID"), r.FormValue("since"))
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // disables nginx's buffering
	control := http.NewResponseController(w)
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for told := false; ; {
		wake := s.Board.wake()
		m, number, news := s.next(r, name, known)
		if gone := m.event == "gone"; gone {
			news, told = !told, true
		} else {
			news, told = news || told, false
		}
		if known = number; news {
			if err := write(w, control, s.Now(), m); err != nil {
				return
			}
		}
		select {
		case <-r.Context().Done():
			return
		case <-beat.C:
			if err := write(w, control, s.Now(), message{}); err != nil {
				return
			}
		case <-wake:
			select {
			case <-r.Context().Done():
				return
			case <-time.After(together):
			}
		}
	}
}

func (s *Server) next(r *http.Request, name string, known int64) (m message, number int64, news bool) {
	if name == "" {
		f, newest, whole, news := s.Board.since(known)
		m = message{id: s.Board.id(newest), event: "change", data: f}
		if whole {
			m.event = "reset"
		}
		return m, newest, news
	}
	d, number, found := s.Board.app(name)
	m = message{id: s.Board.id(number), event: "app", data: s.seenBy(r, d)}
	if !found {
		m.event, m.data = "gone", map[string]string{"app": name}
	}
	return m, number, number > known
}

func write(w http.ResponseWriter, control *http.ResponseController, now time.Time, m message) error {
	text := ": alive\n\n"
	if m.event != "" {
		data, err := json.Marshal(struct {
			Now  time.Time `json:"now"`
			What any       `json:"what"`
		}{now.UTC(), m.data})
		if err != nil {
			return err
		}
		text = fmt.Sprintf("id: %s\nevent: %s\ndata: %s\n\n", m.id, m.event, data)
	}
	if err := control.SetWriteDeadline(now.Add(writeTimeout)); err != nil {
		return err
	}
	if _, err := w.Write([]byte(text)); err != nil {
		return err
	}
	return control.Flush()
}

func (b *Board) id(number int64) string { return fmt.Sprintf("%s-%d", b.epoch, number) }

func (b *Board) parse(ids ...string) int64 {
	for _, id := range ids {
		epoch, number, _ := strings.Cut(id, "-")
		if n, err := strconv.ParseInt(number, 10, 64); err == nil && epoch == b.epoch && n > 0 {
			return n
		}
	}
	return 0
}
