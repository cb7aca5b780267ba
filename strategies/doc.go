// Package strategies decides what happens to an app. Decide returns the next State from Git, the recorded State, the
// cluster and the time. Desired returns a State's objects. Both are pure functions.
package strategies
