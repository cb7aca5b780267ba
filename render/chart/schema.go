package chart

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	helm "helm.sh/helm/v4/pkg/chart/v2"
)

// localSchemas removes remote references from schemas of values, with a warning: Helm fetches nothing.
func localSchemas(c *helm.Chart) (warnings []string) {
	decoder := json.NewDecoder(bytes.NewReader(c.Schema))
	decoder.UseNumber()
	var schema any
	if c.Schema != nil && decoder.Decode(&schema) == nil { // otherwise Helm reports the error
		if gone := withoutRemote(schema); len(gone) > 0 {
			c.Schema, _ = json.Marshal(schema) // cannot fail
			for _, ref := range gone {
				warnings = append(warnings, fmt.Sprintf(
					"chart %s: values.schema.json refers to %s, which is not in the chart: values are not checked against that",
					c.Name(), ref))
			}
		}
	}
	for _, d := range c.Dependencies() {
		warnings = append(warnings, localSchemas(d)...)
	}
	return warnings
}

func withoutRemote(v any) (gone []string) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			text, isText := v[key].(string)
			switch {
			case !isText:
				gone = append(gone, withoutRemote(v[key])...)
			case key == "$schema" && !strings.Contains(text, "://json-schema.org/"):
				delete(v, key)
			case (key == "$ref" || key == "$dynamicRef" || key == "$recursiveRef") && !strings.HasPrefix(text, "#"):
				delete(v, key)
				gone = append(gone, text)
			}
		}
	case []any:
		for _, item := range v {
			gone = append(gone, withoutRemote(item)...)
		}
	}
	return gone
}
