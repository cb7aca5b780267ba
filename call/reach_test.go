package call_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"gitrollout.dev/gitrollout/call"
	"gitrollout.dev/gitrollout/internal/compare"
)

// TestReach checks that addresses of this machine, its local network link and clouds' metadata services are allowed only if Reach.Own
// contains them. All other addresses are allowed.
func TestReach(t *testing.T) {
	allowed := call.Reach{Own: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("fd00:ec2::254/128")}}
	for address, c := range map[string]struct{ closed, open bool }{
		"127.0.0.1": {false, true}, "127.1.2.3": {false, true}, "::ffff:127.0.0.1": {false, true}, "64:ff9b::7f00:1": {false, true},
		"::1": {}, "0.0.0.0": {}, "::": {}, "0.1.2.3": {}, "169.254.169.254": {}, "169.254.170.23": {}, "::ffff:169.254.169.254": {},
		"64:ff9b::a9fe:a9fe": {}, "fe80::1%eth0": {}, "224.0.0.1": {}, "ff02::1": {}, "255.255.255.255": {},
		"fd00:ec2::254": {false, true}, "fd00:ec2::23": {}, "100.100.100.200": {}, "168.63.129.16": {}, "192.0.0.192": {},
		"10.96.0.10": {true, true}, "192.168.1.1": {true, true}, "172.16.0.1": {true, true}, "100.64.0.1": {true, true},
		"8.8.8.8": {true, true}, "2001:db8::1": {true, true}, "fd12:3456::1": {true, true},
	} {
		ip := netip.MustParseAddr(address)
		compare.CheckNamed(t, address+" is asked", c.closed, (call.Reach{}).Check(ip) == nil)
		compare.CheckNamed(t, address+" is asked where some are allowed", c.open, allowed.Check(ip) == nil)
	}
}

// TestNothingOfThisMachineIsAsked checks that a client from ClientsWithin does not connect to this machine under any of its names and
// addresses. The error names the flag that allows the connection.
func TestNothingOfThisMachineIsAsked(t *testing.T) {
	asked := 0
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	t.Cleanup(inside.Close)
	port := inside.URL[strings.LastIndex(inside.URL, ":")+1:]
	ask := func(client func(bool) *http.Client, url string) error {
		ctx, end := context.WithTimeout(t.Context(), 5*time.Minute)
		defer end()
		c := call.Caller{Client: client, Secrets: &call.Secrets{}}
		_, err := c.Do(ctx, call.Request{Method: http.MethodGet, Base: url})
		return err
	}
	closed := call.ClientsWithin(call.Reach{})
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433", "0"} {
		url := "http://" + host + ":" + port
		if err := ask(closed, url); err == nil {
			t.Errorf("%s is asked", url)
		} else if host == "127.0.0.1" && !strings.Contains(err.Error(), "--analysis-allow-cidr 127.0.0.1/32") {
			t.Errorf("%s: %v", url, err)
		}
	}
	compare.CheckNamed(t, "requests that have arrived", 0, asked)
	open := call.ClientsWithin(call.Reach{Own: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	if err := ask(open, inside.URL); err != nil || asked != 1 {
		t.Errorf("where it is allowed: %v, %d requests", err, asked)
	}
}
