// Package forge opens pull requests for proposals, and sets statuses on the commits of releases. It supports GitHub,
// GitLab and Gitea (also Forgejo). A Worker sends in the background, so that no release waits for a forge. A Hook
// receives webhooks of pushes.
package forge
