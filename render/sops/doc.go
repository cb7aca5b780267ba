// Package sops opens files that SOPS has encrypted for age or OpenPGP keys. It reads YAML, JSON, dotenv, and other
// files in SOPS' JSON form, as "sops encrypt" writes them. A File returns its encrypted data key as Locks. Keys decrypt
// the data key, and File.Open decrypts the values. A render worker can therefore read files without the keys, which
// only its parent process has.
package sops
