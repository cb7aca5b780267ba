package call

import (
	"fmt"
	"net/netip"
	"slices"
	"syscall"

	"gitrollout.dev/gitrollout/rollout"
)

// Reach restricts the IP addresses of connections, including connections to proxies. DNS resolution precedes the check.
type Reach struct {
	Own []netip.Prefix // always allowed, even if refused by default
}

// own lists addresses that are refused by default: this machine, link-local, multicast, and clouds' metadata services.
var own = rollout.Mapped([]string{
	"0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "255.255.255.255/32",
	"::/128", "::1/128", "fe80::/10", "ff00::/8",
	"fd00:ec2::/32",      // AWS
	"100.100.100.200/32", // Alibaba Cloud
	"168.63.129.16/32",   // Azure
	"192.0.0.192/32",     // Oracle Cloud
}, netip.MustParsePrefix)

// nat64 is the prefix of IPv6 addresses that contain an IPv4 address (RFC 6052).
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

func (r Reach) check(ip netip.Addr) error {
	ip = ip.Unmap().WithZone("")
	if nat64.Contains(ip) {
		bytes := ip.As16()
		ip = netip.AddrFrom4([4]byte(bytes[12:]))
	}
	holds := func(p netip.Prefix) bool { return p.Contains(ip) }
	if !slices.ContainsFunc(own, holds) || slices.ContainsFunc(r.Own, holds) {
		return nil
	}
	return fmt.Errorf("%s is an address of this machine or of its surroundings, and analyses may not query it; "+
		"to allow it: --analysis-allow-cidr %s", ip, netip.PrefixFrom(ip, ip.BitLen()))
}

func (r Reach) control(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%q is not an address", address)
	}
	return r.check(to.Addr())
}
