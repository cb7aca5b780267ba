package status

import "gitrollout.dev/gitrollout/strategies"

// Parts of an App, for tables without a whole App.

var (
	ImagesText  = imagesText  // shortens a list of images
	NextOfHooks = nextOfHooks // returns the next steps while a hook runs or has failed
	SharedOf    = sharedOf    // returns the app's place in a shared change
	WaitingOf   = waitingOf   // says what several workloads wait for
)

func (a App) Seen(known strategies.Known) App { return a.seen(known) } // adds the known figures of detections
