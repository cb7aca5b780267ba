// Package sops opens files that SOPS has encrypted for age or OpenPGP keys. It reads YAML, JSON, dotenv, and other
// files in SOPS' JSON form, as "sops encrypt" writes them. Each file has a data key, which the file contains in
// encrypted form. The type Keys decrypts the data key, and the method File.Open decrypts the values. A render worker
// can therefore read files without the private keys, which only its parent process has.
package sops
