package compare

import "strings"

// CheckError reports an error whose text lacks want. If want is "", it reports every error.
func CheckError(t Reporter, name string, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("%s: %v", name, err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("%s: error %v, want one with %q", name, err, want)
	}
}
