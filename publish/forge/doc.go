// Package forge opens pull requests for proposals, and sets statuses on the commits of releases. It supports GitHub,
// GitLab, Gitea and Forgejo. A Worker sends in the background, so that no release waits for a forge.
package forge
