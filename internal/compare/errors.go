package compare

import "strings"

// CheckError reports a failure unless err is an error whose text contains want. If want is "", it reports a failure unless err is nil.
func CheckError(t Reporter, name string, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("%s: %v", name, err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("%s: error %v, want one with %q", name, err, want)
	}
}
