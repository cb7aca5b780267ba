// Package vendoring copies external files (charts, repositories, artifacts in registries) into the repository, so that
// renders need no network. A lock file records the versions. The package does not trust responses. It unpacks archives
// in memory, within bounds. An archive may contain only regular files and folders.
package vendoring
