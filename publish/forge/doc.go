// Package forge opens pull requests for proposals, and sets statuses on the commits of releases, at GitHub, GitLab and
// Gitea (also Forgejo). A Worker sends in the background, so that no release waits for a forge.
package forge
