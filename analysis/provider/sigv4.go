package provider

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/rollout"
)

// signer signs requests to AWS with Signature Version 4
// (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html).
type signer struct {
	awsKeys
	region, service string
	at              time.Time
}

// awsKeys holds AWS credentials from STS (XML) or the agent (JSON). Temporary credentials have a token.
type awsKeys struct {
	ID     string `json:"AccessKeyId" xml:"AccessKeyId"`
	Secret string `json:"SecretAccessKey" xml:"SecretAccessKey"`
	Token  string `json:"Token" xml:"SessionToken"`
}

// awsHost matches hosts for signed requests, in all AWS partitions and with VPC endpoints, and localhost, which only an
// administrator can allow.
var awsHost = regexp.MustCompile(`^([^.]+\.)*(aps-workspaces(-fips)?|es|aos)\.([^.]+\.)*` +
	`(amazonaws\.com|amazonaws\.com\.cn|amazonaws\.eu|api\.aws|on\.aws)$|^(localhost|127\.0\.0\.1|::1)$`)

// checkAWS refuses other servers: a signed request has the key's ID and the session's token.
func checkAWS(address string) error {
	if u, err := url.Parse(address); err == nil && awsHost.MatchString(strings.ToLower(u.Hostname())) {
		return nil
	}
	return wrong("address", "write the address of the workspace or the domain at amazonaws.com, or remove sigv4",
		"%q is not an AWS server, and requests to it would be signed", shown(address))
}

// sign adds the time and the signature.
func (g signer) sign(r *http.Request, body []byte) {
	at := g.at.UTC().Format("20060102T150405Z")
	r.Header.Set("X-Amz-Date", at)
	if g.Token != "" {
		r.Header.Set("X-Amz-Security-Token", g.Token)
	}
	headers := map[string]string{"host": cmp.Or(r.Host, r.URL.Host)}
	for name, values := range r.Header {
		if name = strings.ToLower(name); strings.HasPrefix(name, "x-amz-") || name == "content-type" {
			headers[name] = strings.Join(strings.Fields(strings.Join(values, ",")), " ")
		}
	}
	names := slices.Sorted(maps.Keys(headers))
	var listed strings.Builder
	for _, name := range names {
		listed.WriteString(name + ":" + headers[name] + "\n")
	}
	signed := strings.Join(names, ";")
	// All AWS services except S3 encode an encoded path again.
	path := strings.Join(rollout.Mapped(strings.Split(cmp.Or(r.URL.EscapedPath(), "/"), "/"), awsEscape), "/")
	canonical := strings.Join([]string{
		r.Method, path, canonicalQuery(r.URL.Query()), listed.String(), signed, rollout.Digest(body, sha256.Size),
	}, "\n")
	scope := strings.Join([]string{at[:8], g.region, g.service, "aws4_request"}, "/")
	text := strings.Join([]string{"AWS4-HMAC-SHA256", at, scope, rollout.Digest([]byte(canonical), sha256.Size)}, "\n")
	key := []byte("AWS4" + g.Secret)
	for _, part := range []string{at[:8], g.region, g.service, "aws4_request", text} {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(part))
		key = mac.Sum(nil)
	}
	r.Header.Set("Authorization",
		"AWS4-HMAC-SHA256 Credential="+g.ID+"/"+scope+", SignedHeaders="+signed+", Signature="+hex.EncodeToString(key))
}

func canonicalQuery(query url.Values) string {
	var pairs []string
	for key, values := range query {
		for _, value := range values {
			pairs = append(pairs, awsEscape(key)+"="+awsEscape(value))
		}
	}
	slices.Sort(pairs)
	return strings.Join(pairs, "&")
}

// awsEscape keeps only letters, digits and -_.~ (RFC 3986).
func awsEscape(text string) string {
	return strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
}
