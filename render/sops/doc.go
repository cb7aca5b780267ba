// Package sops opens files that SOPS has encrypted for keys of age or OpenPGP: YAML, JSON, dotenv, and any other file
// in JSON, as `sops encrypt` writes them.
//
// Who reads a file is not who has the keys: a File says how its data key is locked, Keys unlock that, and the file is
// opened with what comes of it. A worker that renders does the one, the process that asks it the other.
package sops
