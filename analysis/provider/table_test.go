package provider

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// diceConfig is the configuration of a provider that this test adds to the table.
type diceConfig struct {
	Sides int `json:"sides"`
}

func (c *diceConfig) check() error {
	if c.Sides < 1 {
		return wrong("sides", "give a number of sides", "is %d", c.Sides)
	}
	return nil
}

func (c *diceConfig) timeout() time.Duration { return time.Second }

func (c *diceConfig) measure(context.Context, *session) (Result, error) {
	return Result{Value: float64(c.Sides), Message: "rolled by s3cret"}, nil
}

// TestAProviderIsOneRow checks that one entry in the table is all that a new provider needs.
func TestAProviderIsOneRow(t *testing.T) {
	known := table
	table = append(slices.Clone(table), provider{"dice", func() config { return &diceConfig{} }})
	texts := append(readDocsTexts(t), docsText{Kind: "dice", Title: "Dice", Result: "a number", Credentials: "none", Own: true})
	defer func() { table = known }()

	last := "| `dice`: Dice (not in Argo Rollouts) | a number | none | `sides` |\n"
	if !slices.Contains(Kinds(), "dice") || !strings.HasSuffix(docsTable(texts), last) || Types()["dice"].Name() != "diceConfig" {
		t.Errorf("the kinds are %v, the types %v, the table of the docs is\n%s", Kinds(), Types(), docsTable(texts))
	}
	got, err := Measure(t.Context(), Deps{}, Request{Kind: "dice", Config: map[string]any{"sides": 6}, Secrets: []string{"s3cret"}})
	if err != nil || got.Value != 6.0 || got.Message != "rolled by ***" {
		t.Errorf("measured %+v, %v", got, err)
	}
	for field, config := range map[string]map[string]any{"provider.dice.sides": {"sides": 0}, "provider.dice.side": {"side": 6}} {
		var problem *fieldError
		if err := Check("dice", config); !errors.As(err, &problem) || problem.Field != field {
			t.Errorf("%v: %v, want a problem with %s", config, err, field)
		}
	}
}
