package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/call"
	"gitrollout.dev/gitrollout/rollout"
)

// newRelicConfig runs an NRQL query on New Relic's NerdGraph
// (https://docs.newrelic.com/docs/apis/nerdgraph/examples/nerdgraph-nrql-tutorial/). The result is a mapping for one
// row, a list for several rows, and nil for none. The account and key are in a Secret in gitrollout's namespace.
type newRelicConfig struct {
	Profile string `json:"profile,omitempty" check:"secretName"` // name of the Secret; default newrelic
	Query   string `json:"query" required:"write the NRQL query"`
	Timeout *int64 `json:"timeout,omitempty" check:"seconds"` // time that the query may take; default 5
}

var nerdGraphs = map[string]string{"us": "https://api.newrelic.com/graphql",
	"eu": "https://api.eu.newrelic.com/graphql"}

const nrqlQuery = `query ($query: Nrql!, $accountId: Int!, $timeout: Seconds!) {
  actor { account(id: $accountId) { nrql(query: $query, timeout: $timeout) { results } } }
}`

func (c *newRelicConfig) check() error { return nil }

// timeout adds 10 seconds, so that the server can report a slow query.
func (c *newRelicConfig) timeout() time.Duration {
	return seconds(c.Timeout, 5*time.Second) + 10*time.Second
}

func (c *newRelicConfig) measure(ctx context.Context, s *session) (Result, error) {
	secret, err := s.secret(ctx, "", cmp.Or(c.Profile, "newrelic"), "personal-api-key", "account-id")
	if err != nil {
		return Result{}, err
	}
	account, err := strconv.Atoi(secret["account-id"])
	if err != nil {
		return Result{}, errors.New("account-id in the Secret is not a number")
	}
	address := cmp.Or(secret["base-url-nerdgraph"], nerdGraphs[strings.ToLower(cmp.Or(secret["region"], "us"))])
	if address == "" {
		return Result{}, errors.New("region in the Secret is neither us nor eu")
	}
	ask := call.Request{Base: address, Header: http.Header{"Api-Key": {secret["personal-api-key"]}}}
	data, err := askGraphQL(ctx, s, "New Relic", ask, nrqlQuery, map[string]any{
		"query": strings.TrimSpace(c.Query), "accountId": account,
		"timeout": int64(seconds(c.Timeout, 5*time.Second) / time.Second)})
	if err != nil {
		return Result{}, err
	}
	var answered struct {
		Actor struct {
			Account *struct {
				NRQL *struct {
					Results []map[string]any `json:"results"`
				} `json:"nrql"`
			} `json:"account"`
		} `json:"actor"`
	}
	if err := call.Decode("New Relic", data, &answered); err != nil {
		return Result{}, err
	}
	if answered.Actor.Account == nil || answered.Actor.Account.NRQL == nil {
		return Result{}, fmt.Errorf("New Relic's answer lacks account.nrql")
	}
	result := Result{Metadata: map[string]string{"ResolvedNewRelicQuery": c.Query}}
	switch rows := answered.Actor.Account.NRQL.Results; {
	case len(rows) == 1 && len(rows[0]) > 0:
		result.Value = rows[0]
	case len(rows) > 1:
		result.Value = rollout.Mapped(rows, func(row map[string]any) any { return row })
	}
	return result, nil
}
