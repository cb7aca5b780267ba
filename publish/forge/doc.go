// Package forge opens a pull request for each proposal, and sets a status on each release's commit. It supports GitHub,
// GitLab, and Gitea (also for Forgejo). A slow or failing forge delays no release, because releases depend only on Git.
// A Worker sends the changes in the background. A Hook receives webhooks, so that pushes take effect immediately.
package forge
