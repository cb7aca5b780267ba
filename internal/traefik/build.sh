#!/usr/bin/env bash
# build.sh OUT VERSION: builds Traefik without the clients of some 180 DNS services, which only
# ACME certificates need. They are a third of the compiled code, and no test uses them. lego
# lists these clients in one generated file; the script replaces this file by an empty list.
set -euo pipefail
cd "$(dirname "$0")"
out=$1 version=$2
work=$(dirname "$out")/traefik.build
lego=github.com/go-acme/lego/v4

mkdir -p "$work"
go mod download "$lego"
rm -rf "$work/lego"
cp -r "$(go list -m -f '{{.Dir}}' "$lego")" "$work/lego"
chmod -R u+w "$work/lego"
cat >"$work/lego/providers/dns/zz_gen_dns_providers.go" <<'EOF'
package dns

import (
	"fmt"

	"github.com/go-acme/lego/v4/challenge"
)

// NewDNSChallengeProviderByName has none to offer.
func NewDNSChallengeProviderByName(name string) (challenge.Provider, error) {
	return nil, fmt.Errorf("unrecognized DNS provider: %s", name)
}
EOF
sed "s#=> ./ext#=> $PWD/ext#" go.mod >"$work/go.mod"
echo "replace $lego => $work/lego" >>"$work/go.mod"
cp go.sum "$work/go.sum"
go build -modfile "$work/go.mod" -ldflags "-s -w -X github.com/traefik/traefik/v3/pkg/version.Version=$version" \
	-o "$out" github.com/traefik/traefik/v3/cmd/traefik
