package compare

import "strings"

// CheckError checks that err's text contains want. If want is "", it checks that err is nil.
func CheckError(t Reporter, name string, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("%s: %v", name, err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("%s: error %v, want one with %q", name, err, want)
	}
}
