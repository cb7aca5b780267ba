package call

import "net/netip"

func (e *Error) IsUndone() bool            { return e.undone }     // reports whether a server has certainly not processed a request
func (r Reach) Check(ip netip.Addr) error  { return r.check(ip) }  // says why an address is not allowed, without a connection
func (s *Secrets) Line(text string) string { return s.line(text) } // hides secrets in one line
