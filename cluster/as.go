package cluster

import (
	"context"
	"net/http"
	"strings"

	"k8s.io/client-go/transport"
)

type accountKey struct{}

// As returns a context whose requests have a service account's rights. account is NAMESPACE/NAME, or "" for the
// client's own rights. Watches and the methods Evict, OtherOwners and Serves always use the client's rights.
func As(ctx context.Context, account string) context.Context {
	return context.WithValue(ctx, accountKey{}, account)
}

// impersonating is a RoundTripper. It sends each request as the service account in the request's context.
type impersonating struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t impersonating) RoundTrip(r *http.Request) (*http.Response, error) {
	account, _ := r.Context().Value(accountKey{}).(string)
	if account == "" {
		return t.next.RoundTrip(r)
	}
	return transport.NewImpersonatingRoundTripper(transport.ImpersonationConfig{ // the API server adds the groups
		UserName: "system:serviceaccount:" + strings.ReplaceAll(account, "/", ":"),
	}, t.next).RoundTrip(r)
}
