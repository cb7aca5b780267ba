package cluster

import (
	"context"
	"net/http"
	"strings"

	"k8s.io/client-go/transport"
)

type accountKey struct{}

// As returns a context with the rights of a service account (NAMESPACE/NAME), or with the client's own rights ("").
// Watches, Evict, OtherOwners and Serves always use the client's own rights.
func As(ctx context.Context, account string) context.Context {
	return context.WithValue(ctx, accountKey{}, account)
}

type impersonating struct{ next http.RoundTripper }

func (t impersonating) RoundTrip(r *http.Request) (*http.Response, error) {
	account, _ := r.Context().Value(accountKey{}).(string)
	if account == "" {
		return t.next.RoundTrip(r)
	}
	return transport.NewImpersonatingRoundTripper(transport.ImpersonationConfig{ // the server adds the account's groups
		UserName: "system:serviceaccount:" + strings.ReplaceAll(account, "/", ":"),
	}, t.next).RoundTrip(r)
}
