package dashboard

import (
	"net/http"
	"time"

	"gitrollout.dev/gitrollout/views/status"
)

// Policy is the header Content-Security-Policy of each answer.
const Policy = policy

// Fleet, Row and Moves are parts of the answers.
type (
	Fleet = fleet
	Row   = row
	Moves = moves
)

func (m *moves) Add(now time.Time, a status.App) *Moves { return m.add(now, a) } // adds a sample of each workload
func (m *moves) Copy() map[string][]Sample              { return m.copy() }      // returns the samples by workload
func (m *moves) Last() time.Time                        { return m.last }        // returns the time of the last sample

var RowOf = rowOf // returns an app's row

// Since returns the changes after a number.
func (b *Board) Since(number int64) (f Fleet, newest int64, whole, news bool) { return b.since(number) }

func (b *Board) App(name string) (d Detail, number int64, found bool) { return b.app(name) } // returns an app's page
func (b *Board) Epoch() string                                        { return b.epoch }     // returns the id of the process

func (b *Board) Forgotten() int { return len(b.gone) } // returns the number of removed apps that a Board remembers

func (b *Board) IsDrawn(app string) bool { return b.apps[app] != nil && b.apps[app].moves != nil } // reports whether an app has samples

// NextData returns the data of the next message of a stream.
func (s *Server) NextData(r *http.Request, app string) any {
	m, _, _ := s.next(r, app, 0)
	return m.data
}

func (f *Feed) News() int { return len(f.news) } // returns the number of waiting updates
