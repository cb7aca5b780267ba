package status

import (
	"slices"

	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/rollout"
)

// Record reads one app's file in a line of commits, newest first. What changed it is an event: that is all it goes
// by, and no commit's message.
type Record struct {
	path     string
	newer    propose.Snapshot // the commit that was visited last
	id       string           // of the file in it, "" if it has none
	events   []Event
	releases map[string]bool
}

// NewRecord has visited nothing yet.
func NewRecord(app string) *Record {
	return &Record{path: rollout.StatePath(app), releases: map[string]bool{}}
}

// Visit reads the next commit, and returns how many releases are known of by now, the oldest maybe in part.
func (r *Record) Visit(s propose.Snapshot) (releases int, err error) {
	entry, _, err := s.Lookup(r.path)
	if err != nil {
		return 0, err
	}
	err = r.changed(entry.ID)
	r.newer, r.id = s, entry.ID
	return len(r.releases), err
}

// Releases are what the visited commits tell, newest first. Whole says that nothing came before them.
func (r *Record) Releases(whole bool) ([]Past, error) {
	if whole {
		if err := r.changed(""); err != nil {
			return nil, err
		}
	}
	slices.Reverse(r.events)
	return Releases(r.events, whole), nil
}

// changed notes an event if the file was another one, or was not there, before the commit that was visited last.
func (r *Record) changed(before string) error {
	if r.id == "" || r.id == before {
		return nil
	}
	data, err := r.newer.ReadBlob(r.id)
	if err != nil {
		return err
	}
	state, err := rollout.ParseEditedState(r.path, data)
	if rollout.IsInvalid(err) {
		return nil // a record that nobody could read had no effect
	}
	if err != nil {
		return err
	}
	commit := r.newer.Commit()
	r.events = append(r.events, Event{Commit: commit.ID, At: commit.When, State: *state})
	if release := state.Release; release != nil {
		r.releases[string(release.Hash)+release.Since.String()] = true
	} else if state.Stable == nil {
		r.releases[state.Source] = true
	}
	return nil
}
