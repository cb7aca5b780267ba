// Package sign makes and verifies signatures of commits, by keys in the format allowed_signers (see ssh-keygen(1)) or
// by an OpenPGP keyring. It works like git with gpg.format=ssh and gpg.format=openpgp, without external programs.
//
// The package reads no files and no clock. As in git, an SSH key must be valid at the time of the commit, and an
// OpenPGP key at the time of the signature.
//
//	commit.go    the signed part of a commit, and the signature
//	signers.go   the format allowed_signers
//	sshsig.go    makes and verifies SSH signatures
//	keyring.go   verifies OpenPGP signatures
//	policy.go    the accepted keys of both formats
package sign
