// Package vendoring copies external charts, repositories and artifacts into the repository, so that renders need no
// network; a lock file records versions. Responses are not trusted: archives are unpacked in memory, within bounds, and
// may contain only regular files and folders.
package vendoring
