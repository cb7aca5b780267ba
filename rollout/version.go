package rollout

import "slices"

const (
	// APIVersion is the version of new files. Records and promotion files have Config.APIVersion, because an older
	// program may read them.
	APIVersion = "gitrollout.dev/v1beta1"
	// AlphaVersion has APIVersion's fields, but its Promotions count steps from 0.
	AlphaVersion = "gitrollout.dev/v1alpha1"
	// StepsVersion exists only for Promotions. These count steps from 1.
	StepsVersion = "gitrollout.dev/v1alpha2"
)

// Versions returns the versions of a kind that gitrollout reads, newest first.
func Versions(kind string) []string {
	if kind == "Promotion" {
		return []string{APIVersion, StepsVersion, AlphaVersion}
	}
	return []string{APIVersion, AlphaVersion}
}

// CheckVersion returns an InvalidError for an unknown version of a kind.
func CheckVersion(file, kind, version string) error {
	if slices.Contains(Versions(kind), version) {
		return nil
	}
	return Invalidf(file, "apiVersion", "%q is not known", version).WithFix("use %s, or a newer gitrollout", APIVersion)
}
