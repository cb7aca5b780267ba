// Package forge shows Git's state on a forge: a pull request for each proposal, and each release's status on its
// commit. Each forge is one file and one line of a table: GitHub, GitLab, and Gitea, which includes Forgejo. No release
// depends on the forge. A promotion is a merge into the users' branch, so a slow or failing forge delays nothing. A
// Worker carries out orders in the background, within the forge's rate limits. It finds an open pull request by its
// branch and keeps no record. Hook handles webhooks, so that a push takes effect immediately.
package forge
