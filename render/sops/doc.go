// Package sops opens files that SOPS has encrypted for keys of age or OpenPGP: YAML, JSON, dotenv, and any other file
// in JSON, as `sops encrypt` writes them.
//
// Reading a file and holding its keys are separate: a File returns its encrypted data key as locks, Keys unlock the
// data key, and the data key opens the file. A worker reads files; the process that starts it has the keys.
package sops
