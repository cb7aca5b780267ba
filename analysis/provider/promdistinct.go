package provider

import (
	"encoding/json"
	"errors"
	"fmt"

	"gitrollout.dev/gitrollout/call"
)

// promDistinct returns a function that counts a label's values with a series above 0: [bad, all], by the label n as in
// promPair. Series without the label do not count.
func promDistinct(label string) func(string, json.RawMessage) (any, error) {
	return func(from string, raw json.RawMessage) (any, error) {
		var series []promSeriesOf
		if err := call.Decode(from, raw, &series); err != nil {
			return nil, err
		}
		bad, all, labelled := map[string]bool{}, map[string]bool{}, false
		for _, one := range series {
			name, value := one.Metric["n"], one.Metric[label]
			if one.Value == nil || name != "bad" && name != "of" {
				return nil, errors.New(`the query's result has a series without n="bad" or n="of"; add the label by label_replace`)
			}
			labelled = labelled || value != ""
			if value == "" || !(*one.Value > 0) { // NaN is not above 0
				continue
			}
			if all[value] = true; name == "bad" {
				bad[value] = true
			}
		}
		switch {
		case len(series) == 0:
			return []any{}, nil
		case !labelled:
			return nil, fmt.Errorf("the query's result has no label %s, as in sum by (%s) (increase(…))", label, label)
		}
		return []any{float64(len(bad)), float64(len(all))}, nil
	}
}
