package images

// Parts returns the container or repository, the new repository and the version.
func (o Order) Parts() [3]string { return [3]string{o.name, o.repo, o.version} }
