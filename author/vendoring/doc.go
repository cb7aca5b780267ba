// Package vendoring copies charts, folders of other repositories and registries' artifacts into the repository, so that
// renders need no network. A lock file records their versions.
// The package does not trust responses. It unpacks archives in memory, within bounds. An archive may contain only
// regular files and folders. Only cmd/gitrollout imports the package, for the command vendor.
package vendoring
