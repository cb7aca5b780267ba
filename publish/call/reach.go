package call

import (
	"fmt"
	"net/netip"
	"slices"
	"syscall"
)

// Reach is which addresses may be asked. Addresses that a name leads to are looked at when they are dialled, so a name
// that leads elsewhere the second time leads nowhere. Through a proxy, it is the proxy's address that is looked at.
type Reach struct {
	Own []netip.Prefix // that may be asked although they are of this machine, its network's or its cloud's own
}

// own are the addresses of this machine, of what is on its link, and of clouds' metadata services outside of that.
func own() []netip.Prefix {
	var all []netip.Prefix
	for _, text := range []string{
		"0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "255.255.255.255/32",
		"::/128", "::1/128", "fe80::/10", "ff00::/8",
		"fd00:ec2::/32",      // AWS
		"100.100.100.200/32", // Alibaba Cloud
		"168.63.129.16/32",   // Azure
		"192.0.0.192/32",     // Oracle Cloud
	} {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

// nat64 is IPv4 within IPv6: an address of it is the one in its last four bytes.
var nat64 = netip.MustParsePrefix("64:ff9b::/96")

// check says why an address is not asked.
func (r Reach) check(ip netip.Addr) error {
	ip = ip.Unmap().WithZone("")
	if nat64.Contains(ip) {
		bytes := ip.As16()
		ip = netip.AddrFrom4([4]byte(bytes[12:]))
	}
	holds := func(p netip.Prefix) bool { return p.Contains(ip) }
	if !slices.ContainsFunc(own(), holds) || slices.ContainsFunc(r.Own, holds) {
		return nil
	}
	return fmt.Errorf("%s is an address of this machine or of its surroundings, which nobody asked to measure; "+
		"where that is meant: --analysis-allow-cidr %s", ip, netip.PrefixFrom(ip, ip.BitLen()))
}

// control is net.Dialer's.
func (r Reach) control(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%q is no address", address)
	}
	return r.check(to.Addr())
}
