// Package sops opens files that SOPS has encrypted for age or OpenPGP keys. It reads YAML, JSON, dotenv, and other
// files in SOPS' JSON form, as `sops encrypt` writes them. Reading and keys are separate. A File returns its encrypted
// data key as Locks, Keys decrypt the data key, and File.Open uses it to decrypt the values. So a render worker reads
// files, and only its parent process has the keys.
package sops
