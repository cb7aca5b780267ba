// Package dashboard tests the dashboard in a real Chromium: pages with test data, and a release in a real cluster,
// promoted by clicks. It has only tests.
package dashboard
