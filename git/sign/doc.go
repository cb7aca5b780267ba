// Package sign makes and verifies commits' signatures as git does with gpg.format=ssh and openpgp, without programs,
// files or a clock. As in git, an SSH key must be valid at the commit's time, and an OpenPGP key at the signature's
// time.
package sign
