// Package sign makes and checks the signatures of commits: SSH signatures against a list in the format of
// allowed_signers (see ssh-keygen(1)), and OpenPGP signatures against a keyring. It is what git does with
// gpg.format=ssh and gpg.format=openpgp, without its programs.
//
// The package reads no files, asks no clock and knows nothing of repositories: a commit is its bytes as Git
// stores them, and the time for which a key must be valid is the commit's own, as in git.
//
//	commit.go    what of a commit is signed, and the signature
//	signers.go   the allowed_signers format
//	sshsig.go    SSH signatures, made and checked
//	keyring.go   OpenPGP signatures, checked
//	policy.go    both together
package sign
