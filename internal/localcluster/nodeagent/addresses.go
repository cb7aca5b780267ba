package nodeagent

import (
	"fmt"
	"net/netip"
)

// Pods have addresses in 10.244.0.0/16. The last /24 of this range is for nodes. Pods cannot have
// loopback addresses, because these are invalid in EndpointSlices.
var (
	firstPodIP = netip.MustParseAddr("10.244.0.1")
	lastPodIP  = netip.MustParseAddr("10.244.254.255")
)

// nodeIP returns the address of the n-th node, counted from 0.
func nodeIP(n int) string { return fmt.Sprintf("10.244.255.%d", n+1) }

// addressPool allocates pod addresses in turn. It reuses a released address as late as possible, so that an
// outdated endpoint does not lead to another pod.
type addressPool struct {
	last  netip.Addr
	taken map[netip.Addr]bool
}

func newAddressPool() *addressPool {
	return &addressPool{last: lastPodIP, taken: make(map[netip.Addr]bool)}
}

func (p *addressPool) take() (string, error) {
	for candidate := p.after(p.last); candidate != p.last; candidate = p.after(candidate) {
		if !p.taken[candidate] {
			p.taken[candidate], p.last = true, candidate
			return candidate.String(), nil
		}
	}
	return "", fmt.Errorf("no free pod address: all %d are taken", len(p.taken))
}

// keep reserves an address, such as the address of a pod from an earlier run.
func (p *addressPool) keep(ip string) {
	if address, err := netip.ParseAddr(ip); err == nil {
		p.taken[address] = true
	}
}

func (p *addressPool) giveBack(ip string) {
	if address, err := netip.ParseAddr(ip); err == nil {
		delete(p.taken, address)
	}
}

func (p *addressPool) after(address netip.Addr) netip.Addr {
	if address == lastPodIP {
		return firstPodIP
	}
	return address.Next()
}
