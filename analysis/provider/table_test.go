package provider

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// diceConfig is the configuration of a provider that only the table knows.
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

// TestAProviderIsOneRow adds a provider as a row of the table, and checks that it works like the others.
func TestAProviderIsOneRow(t *testing.T) {
	known := table
	table = append(slices.Clone(table),
		provider{kind: "dice", title: "Dice", result: "a number", keys: "none", config: func() config { return &diceConfig{} }})
	defer func() { table = known }()

	last := Rows()[len(Rows())-1]
	if !slices.Contains(Kinds(), "dice") || !slices.Equal(last.Fields, []string{"sides"}) || Types()["dice"].Name() != "diceConfig" {
		t.Errorf("the kinds are %v, the last row is %+v", Kinds(), last)
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

// Row is one row of the docs' table of providers.
type Row struct {
	Kind, Title  string
	Argo         bool     // Argo Rollouts has it, with the same fields
	Fields       []string // below the kind
	Result, Keys string   // the value that conditions see, and the source of credentials, in Markdown
}

// Rows is the docs' table.
func Rows() []Row {
	var rows []Row
	for _, p := range table {
		rows = append(rows,
			Row{Kind: p.kind, Title: p.title, Argo: p.argo, Fields: fields(p.config()), Result: p.result, Keys: p.keys})
	}
	return rows
}

// fields returns the names of a configuration's fields.
func fields(c config) []string {
	var names []string
	for _, f := range rollout.Fields(reflect.TypeOf(c).Elem()) {
		names = append(names, f.Name)
	}
	return names
}
