package provider

import (
	"context"
	"slices"
	"time"
)

// PrometheusAddresses are the environment variables for the default address.
var PrometheusAddresses = prometheusAddresses

var (
	CheckAWS      = checkAWS      // says why a host gets no signed request
	CheckJSONPath = checkJSONPath // says why a path is refused
	ValueAt       = valueAt       // follows a path
	JobName       = jobName       // returns the name of a measurement's Job
	Moment        = moment        // reads a time such as now-5m
)

// AWSEndpoint returns the address of STS in a region.
func AWSEndpoint(region string) string {
	return awsEndpoint(&session{deps: Deps{Getenv: func(string) string { return "" }}}, "sts", "STS", region)
}

// TimeoutOf returns the timeout of a configuration.
func TimeoutOf(kind string, raw map[string]any) (time.Duration, error) {
	c, err := parse(kind, raw)
	if err != nil {
		return 0, err
	}
	return c.timeout(), nil
}

// diceConfig is the configuration of a provider that exists only in a test.
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

// AddDice adds the provider dice to the table of providers, until remove is called.
func AddDice() (remove func()) {
	known := table
	table = append(slices.Clone(table), provider{"dice", func() config { return &diceConfig{} }})
	return func() { table = known }
}
