package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"
)

// part is a module of a program, from the toolchain's build info.
type part struct{ path, version, sum string }

// parts returns a program's modules, and Go's standard library.
func parts(program string) ([]part, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, err
	}
	all := []part{{path: "stdlib", version: strings.TrimPrefix(info.GoVersion, "go")}}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		all = append(all, part{m.Path, m.Version, m.Sum})
	}
	return all, nil
}

// purl returns the package URL, which identifies the module in both SBOM formats.
func (p part) purl() string { return "pkg:golang/" + p.path + "@" + p.version }

// sha256 returns the module's hash from go.sum in hex, or "" without a hash. The hash covers a list of the module's
// files and their hashes.
func (p part) sha256() string {
	encoded, ok := strings.CutPrefix(p.sum, "h1:")
	raw, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil {
		return ""
	}
	return hex.EncodeToString(raw)
}

// object is a JSON object. Its keys are sorted in the document.
type object map[string]any

// writeSBOMs writes the SBOM of each program, as CycloneDX and as SPDX. Both SBOMs list the modules in the program's
// build info.
func (r *release) writeSBOMs(programs map[platform]string) error {
	for p, path := range programs {
		all, err := parts(path)
		if err != nil {
			return fmt.Errorf("list the modules of the program for %s: %w", p, err)
		}
		for suffix, document := range map[string]object{".cdx.json": r.cycloneDX(p, all), ".spdx.json": r.spdx(p, all)} {
			text, err := json.MarshalIndent(document, "", "  ")
			if err != nil {
				return err
			}
			if err := r.write(r.base(p)+suffix, append(text, '\n')); err != nil {
				return err
			}
		}
	}
	return nil
}

// cycloneDX returns a document according to https://cyclonedx.org/docs/1.6/json.
func (r *release) cycloneDX(p platform, all []part) object {
	self := "pkg:golang/gitrollout.dev/gitrollout@" + r.version
	components, refs := []object{}, []string{}
	for _, c := range all {
		one := object{
			"type": "library", "bom-ref": c.purl(), "name": c.path, "version": c.version, "purl": c.purl(), "scope": "required",
		}
		if sum := c.sha256(); sum != "" {
			one["hashes"] = []object{{"alg": "SHA-256", "content": sum}}
		}
		components, refs = append(components, one), append(refs, c.purl())
	}
	return object{
		"$schema":   "http://cyclonedx.org/schema/bom-1.6.schema.json",
		"bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
		"serialNumber": "urn:uuid:" + r.uuid(p),
		"metadata": object{"timestamp": r.date.Format(time.RFC3339), "component": object{
			"type": "application", "bom-ref": self, "name": "gitrollout", "version": r.version, "purl": self,
			"licenses":   []object{{"license": object{"id": "Apache-2.0"}}},
			"properties": []object{{"name": "platform", "value": p.String()}},
		}},
		"components":   components,
		"dependencies": []object{{"ref": self, "dependsOn": refs}},
	}
}

// unnamed matches characters that an SPDX identifier must not have.
var unnamed = regexp.MustCompile(`[^A-Za-z0-9.-]`)

// spdx returns a document according to https://spdx.github.io/spdx-spec/v2.3.
func (r *release) spdx(p platform, all []part) object {
	const unknown = "NOASSERTION"
	entry := func(id, name, version, purl, licence string) object {
		return object{"SPDXID": id, "name": name, "versionInfo": version, "downloadLocation": unknown, "filesAnalyzed": false,
			"licenseConcluded": licence, "licenseDeclared": licence, "copyrightText": unknown,
			"externalRefs": []object{
				{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl},
			}}
	}
	const self = "SPDXRef-gitrollout"
	packages := []object{entry(self, "gitrollout", r.version, "pkg:golang/gitrollout.dev/gitrollout@"+r.version, "Apache-2.0")}
	relations := []object{{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": self}}
	for i, c := range all {
		id := fmt.Sprintf("SPDXRef-%d-%s", i, unnamed.ReplaceAllString(c.path, "-"))
		one := entry(id, c.path, c.version, c.purl(), unknown)
		if sum := c.sha256(); sum != "" {
			one["checksums"] = []object{{"algorithm": "SHA256", "checksumValue": sum}}
		}
		packages = append(packages, one)
		relations = append(relations, object{"spdxElementId": self, "relationshipType": "DEPENDS_ON", "relatedSpdxElement": id})
	}
	return object{
		"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": r.base(p),
		"documentNamespace": "https://gitrollout.dev/spdx/" + r.base(p) + "-" + r.uuid(p),
		"creationInfo":      object{"created": r.date.Format(time.RFC3339), "creators": []string{"Tool: gitrollout-release-" + r.version}},
		"packages":          packages, "relationships": relations,
	}
}

// uuid derives a UUID (version 8 of RFC 9562) from platform, version and commit, so that a repeated build has the same UUID.
func (r *release) uuid(p platform) string {
	s := sha256.Sum256([]byte(r.base(p) + r.commit))
	s[6], s[8] = s[6]&0x0f|0x80, s[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", s[0:4], s[4:6], s[6:8], s[8:10], s[10:16])
}
