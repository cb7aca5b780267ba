// Package forge shows on a forge what is in Git: a pull request for each proposal, and the status of each release on
// its commit. GitHub, GitLab, and Gitea with Forgejo are one file and one line of a table each.
//
// It is decoration. A promotion is what is merged into the users' branch, and a forge that is down, slow or refuses
// delays nothing: a Worker takes orders and carries them out in the background, as the forge's rate limits allow. It
// keeps no record. What is open already is found by the name of its branch.
//
// Hook is the other direction: it listens to the forge's webhooks, so that a push takes effect at once.
package forge
