package provider_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/analysis/provider"
	"gitrollout.dev/gitrollout/rollout"
)

// TestAProviderIsOneRow checks that one entry in the table is all that a new provider needs.
func TestAProviderIsOneRow(t *testing.T) {
	defer provider.AddDice()()
	texts := append(readDocsTexts(t), docsText{Kind: "dice", Title: "Dice", Result: "a number", Credentials: "none", Own: true})
	last := "| `dice`: Dice (not in Argo Rollouts) | a number | none | `sides` |\n"
	if !slices.Contains(provider.Kinds(), "dice") || !strings.HasSuffix(docsTable(texts), last) ||
		provider.Types()["dice"].Name() != "diceConfig" {
		t.Errorf("the kinds are %v, the types %v, the table of the docs is\n%s", provider.Kinds(), provider.Types(), docsTable(texts))
	}
	got, err := provider.Measure(t.Context(), provider.Deps{},
		provider.Request{Kind: "dice", Config: map[string]any{"sides": 6}, Secrets: []string{"s3cret"}})
	if err != nil || got.Value != 6.0 || got.Message != "rolled by ***" {
		t.Errorf("measured %+v, %v", got, err)
	}
	for field, config := range map[string]map[string]any{"provider.dice.sides": {"sides": 0}, "provider.dice.side": {"side": 6}} {
		var problem *rollout.InvalidError
		if err := provider.Check("dice", config); !errors.As(err, &problem) || problem.Field != field {
			t.Errorf("%v: %v, want a problem with %s", config, err, field)
		}
	}
}
