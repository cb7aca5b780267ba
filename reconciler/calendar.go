package reconciler

import (
	"fmt"

	"gitrollout.dev/gitrollout/rollout"
)

// readCalendars takes over the windows of the configuration and the freeze file,
// and looks at the apps again for which they have changed. A freeze file that
// cannot be understood freezes all of them: it was meant to stop something.
func (r *Reconciler) readCalendars(tree Snapshot) error {
	file := rollout.FreezePath(r.Cluster)
	var freeze *rollout.Freeze
	entry, found, err := tree.Lookup(file)
	if err != nil {
		return fmt.Errorf("look up %s: %w", file, err)
	}
	if found {
		data, err := tree.ReadBlob(entry.ID)
		if err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
		if freeze, err = rollout.ParseFreeze(file, data); err != nil {
			freeze = rollout.Unreadable(err)
			r.Log.Error("all apps are frozen: the freeze cannot be read", "error", err)
		}
	}
	for name, a := range r.apps {
		if calendar := r.config.CalendarOf(name, freeze); !calendar.Equal(a.calendar) {
			a.calendar, a.dirty = calendar, true
		}
	}
	return nil
}
