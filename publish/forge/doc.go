// Package forge shows the state of Git on a forge: a pull request for each proposal, and the status of each release on
// its commit. GitHub, GitLab, and Gitea with Forgejo are one file and one line of a table each.
//
// The forge is decoration. A promotion is a merge into the users' branch, and a forge that is down, slow or refuses
// requests delays nothing. A Worker carries out orders in the background, within the forge's rate limits, without a
// record: it finds an open pull request by its branch. Hook handles webhooks, so that a push takes effect at once.
package forge
