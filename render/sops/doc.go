// Package sops opens files that SOPS has encrypted for age or OpenPGP keys: YAML, JSON, dotenv, and files in SOPS' JSON
// form. Keys decrypts a data key, and File.Open the values. So only a render worker's parent has private keys.
package sops
