// Package sops opens files that SOPS has encrypted for keys of age or OpenPGP: YAML, JSON, dotenv, and any other file
// in JSON, as `sops encrypt` writes them.
//
// Reading and keys are separate: a File returns its encrypted data key as locks, Keys unlock it, and it opens the file.
// A worker reads files; the process that starts it has the keys.
package sops
