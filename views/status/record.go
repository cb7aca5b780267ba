package status

import (
	"slices"

	"gitrollout.dev/gitrollout/reconciler/propose"
	"gitrollout.dev/gitrollout/rollout"
)

// Record collects the changes of an app's state file as Events.
type Record struct {
	path     string
	newer    propose.Snapshot // commit of the last Visit
	id       string           // blob in newer, or "" without the file
	events   []Event
	releases map[string]bool
}

// NewRecord returns a Record without commits.
func NewRecord(app string) *Record {
	return &Record{path: rollout.StatePath(app), releases: map[string]bool{}}
}

// Visit reads the next older commit. It returns the number of releases so far. The oldest release may be incomplete.
func (r *Record) Visit(s propose.Snapshot) (releases int, err error) {
	entry, _, err := s.Lookup(r.path)
	if err != nil {
		return 0, err
	}
	err = r.changed(entry.ID)
	r.newer, r.id = s, entry.ID
	return len(r.releases), err
}

// Releases returns the releases in the visited commits, newest first. The flag "whole" means that Visit has read all
// commits.
func (r *Record) Releases(whole bool) ([]Past, error) {
	if whole {
		if err := r.changed(""); err != nil {
			return nil, err
		}
	}
	slices.Reverse(r.events)
	return Releases(r.events, whole), nil
}

// changed adds an Event if the last visited commit changed the file. The argument is the file's blob id in the next
// older commit.
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
		return nil // the reconciler also ignored this invalid record
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
