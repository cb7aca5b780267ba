// Package sign makes and verifies signatures of commits. It verifies SSH signatures by a list in the format of
// allowed_signers (see ssh-keygen(1)) and OpenPGP signatures by a keyring. It works like git with gpg.format=ssh and
// gpg.format=openpgp, without external programs.
//
// The package reads no files and no clock. It takes a commit as the bytes that Git stores. As in git, an SSH key must
// be valid at the time of the commit. An OpenPGP key must be valid at the time of the signature.
//
//	commit.go    the signed part of a commit, and the signature
//	signers.go   the allowed_signers format
//	sshsig.go    SSH signatures, made and verified
//	keyring.go   OpenPGP signatures, verified
//	policy.go    the accepted keys of both formats
package sign
