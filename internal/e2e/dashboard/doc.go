// Package dashboard has the tests of the dashboard in a real Chromium: pages over
// a board that the test fills, and a release of a real cluster that is followed
// and promoted by clicks. It has only tests.
package dashboard
