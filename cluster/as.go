package cluster

import (
	"context"
	"net/http"
	"strings"

	"k8s.io/client-go/transport"
)

type accountKey struct{}

// As returns a context whose requests have the rights of a service account, NAMESPACE/NAME. With account "", they have
// the client's own rights, as do watches, Evict, OtherOwners and Serves with any account.
func As(ctx context.Context, account string) context.Context {
	return context.WithValue(ctx, accountKey{}, account)
}

// impersonating sends each request as the service account in the context.
type impersonating struct{ next http.RoundTripper }

func (t impersonating) RoundTrip(r *http.Request) (*http.Response, error) {
	account, _ := r.Context().Value(accountKey{}).(string)
	if account == "" {
		return t.next.RoundTrip(r)
	}
	return transport.NewImpersonatingRoundTripper(transport.ImpersonationConfig{ // the API server adds the groups
		UserName: "system:serviceaccount:" + strings.ReplaceAll(account, "/", ":"),
	}, t.next).RoundTrip(r)
}
