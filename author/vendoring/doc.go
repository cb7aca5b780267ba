// Package vendoring copies external files into the repository, so that renders need no network. The files come from
// charts, from other repositories, and from artifacts in registries. A lock file records the versions.
// The package does not trust responses. It unpacks archives in memory, within bounds. An archive may contain only
// regular files and folders. Only cmd/gitrollout imports the package, for the command "vendor".
package vendoring
