package wire

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

const maxPkt = 65520

type pktReader struct {
	r   *bufio.Reader
	buf []byte
}

func newPktReader(r io.Reader) *pktReader {
	return &pktReader{r: bufio.NewReaderSize(r, 16<<10)}
}

// next reads a line. Its first four hex digits are its length, including the digits. Lengths 0 to 2 are separators;
// go-git accepts only 0. The payload is valid until the next call.
func (p *pktReader) next() (payload []byte, isData bool, err error) {
	head, err := p.r.Peek(4)
	if err != nil {
		if len(head) > 0 && errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, false, err
	}
	size, err := strconv.ParseUint(string(head), 16, 17)
	if err != nil || size == 3 || size > maxPkt {
		return nil, false, fmt.Errorf("the answer is not Git's protocol: %q", oneLine(string(head)))
	}
	_, _ = p.r.Discard(4)
	if size < 4 {
		return nil, false, nil
	}
	if cap(p.buf) < int(size) {
		p.buf = make([]byte, maxPkt)
	}
	payload = p.buf[:size-4]
	if _, err := io.ReadFull(p.r, payload); err != nil {
		return nil, false, io.ErrUnexpectedEOF
	}
	if text, ok := strings.CutPrefix(string(payload[:min(len(payload), 4)]), "ERR "); ok || text == "ERR" {
		return nil, false, &serverError{oneLine(strings.TrimPrefix(string(payload), "ERR "))}
	}
	return payload, true, nil
}

func (p *pktReader) line() (text string, ok bool, err error) {
	payload, ok, err := p.next()
	return strings.TrimSuffix(string(payload), "\n"), ok, err
}

type pktWriter struct{ buf []byte }

func (w *pktWriter) linef(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.buf = append(fmt.Appendf(w.buf, "%04x", len(text)+4), text...)
}

func (w *pktWriter) each(word string, ids []plumbing.Hash) {
	for _, id := range ids {
		w.linef("%s %s\n", word, id)
	}
}

func (w *pktWriter) flush() { w.buf = append(w.buf, "0000"...) }
func (w *pktWriter) delim() { w.buf = append(w.buf, "0001"...) }

type capabilities map[string]string

func (c capabilities) has(name string) bool { _, ok := c[name]; return ok }

func (c capabilities) add(word string) {
	name, value, _ := strings.Cut(word, "=")
	if name == "symref" && strings.HasPrefix(value, "HEAD:") {
		name, value = "symref-HEAD", strings.TrimPrefix(value, "HEAD:")
	}
	c[name] = value
}

func (c capabilities) only(names ...string) string {
	have := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !c.has(name) })
	if c.has("agent") {
		have = append(have, "agent="+userAgent)
	}
	return strings.Join(have, " ")
}

type advertisement struct {
	V2   bool // protocol version 2
	caps capabilities
	Refs map[string]string // all ids by full ref name; nil in version 2, and in a stored greeting
}

func readAdvertisement(p *pktReader) (*advertisement, error) {
	a := &advertisement{caps: capabilities{}, Refs: map[string]string{}}
	for first := true; ; {
		text, ok, err := p.line()
		switch {
		case err != nil:
			return nil, err
		case !ok && first && a.caps.has("service"):
			delete(a.caps, "service")
			continue
		case !ok:
			if format := cmp.Or(a.caps["object-format"], "sha1"); format != "sha1" {
				err = fmt.Errorf("the repository's object format %s is not supported (only sha1)", oneLine(format))
			}
			return a, err
		case first && strings.HasPrefix(text, "# service="):
			a.caps["service"] = ""
			continue
		case first && text == "version 2":
			a.V2, a.Refs = true, nil
		case text == "version 1":
		case a.V2:
			a.caps.add(text)
		default:
			if err := a.addRef(text); err != nil {
				return nil, err
			}
		}
		first = false
	}
}

// addRef parses "<id> <ref>". In the first line, NUL and the capabilities follow the ref.
func (a *advertisement) addRef(text string) error {
	text, caps, _ := strings.Cut(text, "\x00")
	for word := range strings.FieldsSeq(caps) {
		a.caps.add(word)
	}
	id, name, ok := strings.Cut(text, " ")
	switch {
	case id == "shallow":
	case !ok || len(id) != 40 && len(id) != 64:
		return fmt.Errorf("the answer is not Git's protocol: %q", oneLine(text))
	case name != "capabilities^{}":
		a.Refs[name] = id
	}
	return nil
}

// bandReader extracts a side-band stream's data. A packet's first byte is 1 for data, 2 for messages, 3 for fatal
// errors. On an open connection, go-git's reader would hang after the flush.
type bandReader struct {
	p       *pktReader
	remarks io.Writer
	rest    []byte
	err     error
}

func (b *bandReader) Read(out []byte) (int, error) {
	for len(b.rest) == 0 && b.err == nil {
		payload, isData, err := b.p.next()
		switch {
		case err != nil:
			b.err = unexpected(err)
		case !isData:
			b.err = io.EOF
		case len(payload) == 0:
		case payload[0] == 1:
			b.rest = payload[1:]
		case payload[0] == 2:
			_, _ = b.remarks.Write(payload[1:])
		case payload[0] == 3:
			b.err = &serverError{oneLine(string(payload[1:]))}
		default:
			b.err = fmt.Errorf("the answer is not Git's protocol: side band %d", payload[0])
		}
	}
	if len(b.rest) == 0 {
		return 0, b.err
	}
	n := copy(out, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}
