package dashboard

import (
	"cmp"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gitrollout.dev/gitrollout/rollout"
	"gitrollout.dev/gitrollout/views/status"
)

// Board holds the apps' status. It numbers changes, so that browsers can request the changes after a number.
type Board struct {
	Cluster string
	Staged  atomic.Bool // there is a fleet.yaml
	epoch   string      // random id of this process; other numbers are invalid

	mu      sync.Mutex
	number  int64
	note    string
	noted   int64
	apps    map[string]*shown
	gone    map[string]int64 // number of the removal, by app
	forgot  int64            // removals up to this number are deleted from Board.gone
	changed chan struct{}    // closed at the next change
}

type shown struct {
	app       status.App
	digest    [sha256.Size]byte // of app as JSON
	number    int64             // of the last change of app
	rowNumber int64             // of the last change of app's row
	moves     *moves            // nil without samples
}

// maxGone limits Board.gone. A browser that may have missed a dropped removal gets all apps.
const maxGone = 1000

// NewBoard returns an empty board. The note says why there are no apps yet.
func NewBoard(cluster, note string) *Board {
	return &Board{
		Cluster: cluster, epoch: rand.Text()[:8], note: note, number: 1, noted: 1,
		apps: map[string]*shown{}, gone: map[string]int64{}, changed: make(chan struct{}),
	}
}

// Show updates apps, removes the apps in gone, and sets the note. New samples get the time "now".
func (b *Board) Show(now time.Time, note string, apps []status.App, gone []string) error {
	updates := make([]shown, len(apps))
	for i, a := range apps {
		text, err := json.Marshal(a)
		if err != nil {
			return err
		}
		updates[i] = shown{app: a, digest: sha256.Sum256(text)}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	next := b.number + 1
	news := note != b.note
	if news {
		b.note, b.noted = note, next
	}
	for _, u := range updates {
		s := cmp.Or(b.apps[u.app.App], &shown{})
		b.apps[u.app.App] = s
		delete(b.gone, u.app.App)
		if s.digest == u.digest {
			continue
		}
		news = true
		if s.number == 0 || !reflect.DeepEqual(rowOf(s.app), rowOf(u.app)) {
			s.rowNumber = next
		}
		s.app, s.digest, s.number = u.app, u.digest, next
		s.moves = s.moves.add(now, u.app)
	}
	for _, name := range gone {
		if b.apps[name] != nil {
			delete(b.apps, name)
			b.gone[name], news = next, true
		}
	}
	if !news {
		return nil
	}
	b.number = next
	b.tidy()
	close(b.changed)
	b.changed = make(chan struct{})
	return nil
}

func (b *Board) tidy() {
	if len(b.gone) > maxGone {
		clear(b.gone)
		b.forgot = b.number
	}
	var drawn []string
	for name, s := range b.apps {
		if s.moves != nil {
			drawn = append(drawn, name)
		}
	}
	if len(drawn) <= maxDrawn {
		return
	}
	slices.SortFunc(drawn, func(a, c string) int { return b.apps[a].moves.last.Compare(b.apps[c].moves.last) })
	for _, name := range drawn[:len(drawn)-maxDrawn] {
		b.apps[name].moves = nil
	}
}

// Names returns the apps' sorted names.
func (b *Board) Names() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Sorted(maps.Keys(b.apps))
}

// Listing returns the apps by name, without metric queries.
func (b *Board) Listing() status.Listing {
	b.mu.Lock()
	defer b.mu.Unlock()
	names := slices.Sorted(maps.Keys(b.apps))
	l := status.Listing{Cluster: b.Cluster, Note: b.note, Apps: rollout.Mapped(names, func(name string) status.App {
		a := b.apps[name].app
		a.Metrics = withoutQueries(a.Metrics)
		return a
	})}
	l.SetChanges()
	return l
}

// Detail is the data of an app's page.
type Detail struct {
	status.App
	Short   map[string]string   `json:"shortImages"`         // images in short form by version; "" for the newest
	Samples map[string][]Sample `json:"samples,omitempty"`   // by workload
	Board   string              `json:"boardNote,omitempty"` // about the whole cluster
}

func (b *Board) app(name string) (d Detail, number int64, found bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.apps[name]
	if s == nil {
		return Detail{}, b.number, false
	}
	a := s.app
	d = Detail{App: a, Samples: s.moves.copy(), Board: b.note, Short: map[string]string{"": a.ImagesText()}}
	for _, r := range []*status.Release{a.Release, a.Stable} {
		if r != nil {
			d.Short[string(r.Hash)] = a.ImagesBeside(r.Images)
		}
	}
	if r := a.Rejected; r != nil {
		d.Short[string(r.Hash)] = a.ImagesBeside(r.Images)
	}
	return d, max(s.number, b.noted), true
}

type fleet struct {
	Cluster string   `json:"cluster"`
	Note    string   `json:"note,omitempty"`
	Apps    []row    `json:"apps"`
	Gone    []string `json:"gone,omitempty"`

	Changes []status.SharedChange `json:"changes,omitempty"`
}

// since returns the changes after a number. If the number is outdated or invalid, it returns all apps.
func (b *Board) since(number int64) (f fleet, newest int64, whole, news bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	whole = number <= b.forgot || number > b.number
	f = fleet{Cluster: b.Cluster, Note: b.note, Apps: []row{}}
	var places []*status.Shared
	for _, name := range slices.Sorted(maps.Keys(b.apps)) {
		s := b.apps[name]
		if places = append(places, s.app.Shared); whole || s.rowNumber > number {
			f.Apps = append(f.Apps, rowOf(s.app))
		}
	}
	f.Changes = status.SharedChanges(places)
	for name, at := range b.gone {
		if !whole && at > number {
			f.Gone = append(f.Gone, name)
		}
	}
	slices.Sort(f.Gone)
	return f, b.number, whole, whole || len(f.Apps)+len(f.Gone) > 0 || b.noted > number
}

func (b *Board) wake() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed
}

func clip(text string, runes int) string {
	text, _, _ = strings.Cut(text, "\n")
	return rollout.Cut(text, runes)
}
