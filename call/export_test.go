package call

import "net/netip"

func (e *Error) IsUndone() bool            { return e.undone }     // reports whether a server has certainly not processed a request
func (r Reach) Check(ip netip.Addr) error  { return r.check(ip) }  // returns why an address is not allowed, but does not connect
func (s *Secrets) Line(text string) string { return s.line(text) } // hides secrets in one line
