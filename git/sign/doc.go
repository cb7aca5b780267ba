// Package sign makes and verifies signatures of commits as git does with gpg.format=ssh and openpgp, without external
// programs, files or a clock. As in git, an SSH key must be valid at the time of the commit, and an OpenPGP key at the
// time of the signature.
package sign
