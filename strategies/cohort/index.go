package cohort

import "slices"

// Index finds the apps that read a file. The zero value is empty.
type Index struct {
	files   map[string][]string // by app, sorted
	readers map[string][]string // by file
}

// Set replaces an app's files, which must be sorted, and reports whether they differ.
func (x *Index) Set(app string, files []string) (changed bool) {
	was := x.files[app]
	if slices.Equal(was, files) {
		return false
	}
	if x.files == nil {
		x.files, x.readers = map[string][]string{}, map[string][]string{}
	}
	for _, f := range was {
		if _, stays := slices.BinarySearch(files, f); !stays {
			left := slices.DeleteFunc(slices.Clone(x.readers[f]), func(a string) bool { return a == app })
			if x.readers[f] = left; len(left) == 0 {
				delete(x.readers, f)
			}
		}
	}
	for _, f := range files {
		if _, had := slices.BinarySearch(was, f); !had {
			x.readers[f] = append(x.readers[f], app)
		}
	}
	if x.files[app] = files; len(files) == 0 {
		delete(x.files, app)
	}
	return true
}

// Files returns an app's files.
func (x *Index) Files(app string) []string { return x.files[app] }

// Readers returns the apps that read a file, in any order. Later calls of Set do not change the result.
func (x *Index) Readers(file string) []string { return slices.Clip(x.readers[file]) }
