// Package sign makes SSH signatures of commits, and verifies SSH and OpenPGP signatures. It uses no programs, files or
// clock. As in git, an SSH key must be valid at the commit's time, and an OpenPGP key at the signature's time.
package sign
