// Package forge shows Git's state on a forge. It opens a pull request for each proposal, and sets a status on each
// release's commit. A table lists the forges: GitHub, GitLab, and Gitea (also for Forgejo). A slow or failing forge
// delays no release, because releases depend only on Git. A Worker sends the changes in the background, within the
// forge's rate limits. A Hook receives webhooks, so that pushes take effect immediately.
package forge
