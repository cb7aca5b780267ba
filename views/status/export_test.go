package status

import "gitrollout.dev/gitrollout/strategies"

// Parts of an App, for tables without a whole App.

var (
	ImagesText  = imagesText  // shortens a list of images
	NextOfHooks = nextOfHooks // returns the next steps while a hook runs or has failed
	SharedOf    = sharedOf    // returns the app's state in a shared change
	WaitingOf   = waitingOf   // returns the text about the waits of several workloads
)

func (a App) Seen(known strategies.Known) App { return a.seen(known) } // sets Progress.Sees, with a cache of detections
