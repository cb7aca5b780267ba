// Package sops opens files that SOPS has encrypted for age or OpenPGP keys: YAML, JSON, dotenv, and other files in
// SOPS' JSON form. Keys decrypts a file's data key, and File.Open decrypts the values. A render worker can therefore
// read files without the private keys, which only its parent process has.
package sops
