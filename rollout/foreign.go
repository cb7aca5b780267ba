package rollout

import "fmt"

// Foreign is a sign that somebody else has an object of an app in hand.
type Foreign struct {
	Ref   Ref    // the app's object
	By    string // Argo Rollouts, Flagger …, or another app
	Sign  string // what shows it
	Fix   string // how that one lets go
	Warns bool   // it only applies from files, as gitrollout does: the object is taken over, and that is to be known
}

// String returns "Deployment a/b is in the hands of X: the sign".
func (f Foreign) String() string {
	return fmt.Sprintf("%s is in the hands of %s: %s", f.Ref.Title(), f.By, f.Sign)
}
