package rollout

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// VendorFile lists a folder's remote sources. VendorLock has vendored versions and digests.
const (
	VendorFile = "vendor.yaml"
	VendorLock = "vendor.lock"
)

// VendorSource has exactly one source: Chart, Git or OCI.
type VendorSource struct {
	_     any          `one:"chart git oci"`
	Chart *VendorChart `json:"chart,omitempty"`
	Git   *VendorGit   `json:"git,omitempty"`
	OCI   *VendorOCI   `json:"oci,omitempty"`
	Into  string       `json:"into" needs:"name a folder beside vendor.yaml" like:"folder"`
}

// VendorChart is a chart in a repository (with an index.yaml) or OCI registry.
type VendorChart struct {
	Repo    string `json:"repo" needs:"write https://host/path, or oci://host/path"`
	Name    string `json:"name" needs:"name the chart" is:"label"`
	Version string `json:"version" needs:"write a version, or a version range such as ~20.1"`

	// Flat puts the chart into <into>/<name>. A new version has the same path, so references stay valid.
	Flat bool `json:"flat,omitempty"`

	// Provenance is the path of public PGP keys to verify the chart's signature; "": no check.
	Provenance string `json:"provenance,omitempty"`
}

// VendorGit is a folder of another repository.
type VendorGit struct {
	URL  string `json:"url" needs:"write https://host/repository, or ssh://…"`
	Ref  string `json:"ref" needs:"name a tag, a branch or a commit"`
	Path string `json:"path,omitempty" default:"."` // folder in the repository
}

// VendorOCI is an artifact of "flux push artifact" in an OCI registry.
type VendorOCI struct {
	_      any    `one:"tag semver"`
	URL    string `json:"url" needs:"write oci://host/path"`
	Tag    string `json:"tag,omitempty"`
	Semver string `json:"semver,omitempty"` // range of versions; the newest is used
}

type vendorFile struct {
	APIVersion string         `json:"apiVersion"`
	Kind       string         `json:"kind"` // Vendor
	Sources    []VendorSource `json:"sources" needs:"list the sources" max:"200" fix:"write another file in another folder"`
}

// ParseVendor reads vendor.yaml strictly. Errors are InvalidErrors.
func ParseVendor(file string, data []byte) ([]VendorSource, error) {
	raw, err := decode[vendorFile](file, "Vendor", data)
	if err != nil {
		return nil, err
	}
	for i, s := range raw.Sources {
		at := fmt.Sprintf("sources[%d].", i)
		if !IsPlainPath(s.Into) || s.Into == "." && s.Chart == nil {
			return nil, Invalidf(file, at+"into", "%q is not a folder beside vendor.yaml", s.Into).
				WithFix("write a path without .., and without a slash at either end")
		}
		if part := ReservedPart(s.Into); part != "" {
			return nil, Invalidf(file, at+"into", "%q is in %s, which is not for vendored files", s.Into, part).
				WithFix("name another folder")
		}
		if field := s.withPassword(); field != "" {
			return nil, Invalidf(file, at+field, "has credentials, which all readers of the repository would see").
				WithFix("take them out, and log in with docker login or helm registry login; git uses its own credentials")
		}
	}
	return raw.Sources, nil
}

// IsPlainPath reports whether a relative path stays below its folder on every operating system.
func IsPlainPath(name string) bool {
	bad := func(r rune) bool { return unicode.IsControl(r) || strings.ContainsRune(`\:*?"<>|`, r) }
	isAbove := name == ".." || strings.HasPrefix(name, "../") || path.IsAbs(name)
	return name != "" && path.Clean(name) == name && !isAbove && utf8.ValidString(name) && !strings.ContainsFunc(name, bad)
}

// ReservedPart returns the first path element that may open .git or .gitrollout, or "".
func ReservedPart(name string) string {
	for part := range strings.SplitSeq(name, "/") {
		if name := GitName(part); name == ".git" || name == ".gitrollout" {
			return part
		}
	}
	return ""
}

// shortNames maps NTFS' 8.3 names (the part before "~") to reserved names.
var shortNames = map[string]string{
	"git": ".git", "gitrol": ".gitrollout", "gitign": ".gitignore", "gi250a": ".gitignore",
	"gitatt": ".gitattributes", "gi7d29": ".gitattributes", "gitmod": ".gitmodules", "gi7eba": ".gitmodules",
}

// GitName returns the reserved name, such as ".git", that a path element may open, or "". Many file systems ignore
// case. HFS+ ignores some code points. NTFS ignores final dots and spaces, and text after a colon.
func GitName(part string) string {
	isFormat := func(r rune) bool { return unicode.Is(unicode.Cf, r) }
	plain, _, _ := strings.Cut(strings.Join(strings.FieldsFunc(strings.ToLower(part), isFormat), ""), ":")
	plain = strings.TrimRight(plain, ". ")
	if short, n, _ := strings.Cut(plain, "~"); n != "" && strings.Trim(n, "0123456789") == "" {
		return shortNames[short]
	}
	if slices.Contains(slices.Collect(maps.Values(shortNames)), plain) {
		return plain
	}
	return ""
}

func (s VendorSource) withPassword() string {
	field, address := "oci.url", ""
	switch {
	case s.Chart != nil:
		field, address = "chart.repo", s.Chart.Repo
	case s.Git != nil:
		field, address = "git.url", s.Git.URL
	case s.OCI != nil:
		address = s.OCI.URL
	}
	_, rest, _ := strings.Cut(address, "://")
	host, _, _ := strings.Cut(rest, "/")
	at := strings.LastIndex(host, "@")
	if at < 0 || s.Git != nil && !strings.Contains(host[:at], ":") {
		return ""
	}
	return field
}

// Name returns the chart's name, or Into's last element, for messages.
func (s VendorSource) Name() string {
	if s.Chart != nil {
		return s.Chart.Name
	}
	return path.Base(s.Into)
}

// Wants returns source and version in one line, as in vendor.lock.
func (s VendorSource) Wants() string {
	switch {
	case s.Chart != nil:
		wants := fmt.Sprintf("chart %s %s %s", s.Chart.Repo, s.Chart.Name, s.Chart.Version)
		if s.Chart.Flat {
			wants += " flat"
		}
		if s.Chart.Provenance != "" {
			wants += " signed by " + s.Chart.Provenance
		}
		return wants
	case s.Git != nil:
		return fmt.Sprintf("git %s %s %s", s.Git.URL, s.Git.Ref, s.Git.Path)
	}
	return fmt.Sprintf("oci %s %s%s", s.OCI.URL, s.OCI.Tag, s.OCI.Semver)
}
