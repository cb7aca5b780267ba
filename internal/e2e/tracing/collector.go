package tracing

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"regexp"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
)

// identifiers matches the ID fields of spans. OTLP writes IDs in hexadecimal, but protobuf's JSON expects base64.
var identifiers = regexp.MustCompile(`"(traceId|spanId|parentSpanId)":"([0-9a-f]+)"`)

// Decode parses an OTLP export request. A field that trace.proto does not define is an error.
func Decode(r *http.Request) (*collector.ExportTraceServiceRequest, error) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if r.Method != http.MethodPost || r.URL.Path != "/v1/traces" || r.Header.Get("Content-Type") != "application/json" {
		return nil, fmt.Errorf("%s %s of %q", r.Method, r.URL.Path, r.Header.Get("Content-Type"))
	}
	data = identifiers.ReplaceAllFunc(data, func(field []byte) []byte {
		m := identifiers.FindSubmatch(field)
		id := make([]byte, hex.DecodedLen(len(m[2])))
		if _, err := hex.Decode(id, m[2]); err != nil {
			return field
		}
		return fmt.Appendf(nil, `"%s":"%s"`, m[1], base64.StdEncoding.EncodeToString(id))
	})
	request := &collector.ExportTraceServiceRequest{}
	if err := protojson.Unmarshal(data, request); err != nil {
		return nil, fmt.Errorf("%w: %s", err, data)
	}
	return request, nil
}
