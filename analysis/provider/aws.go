package provider

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"gitrollout.dev/gitrollout/call"
	"gitrollout.dev/gitrollout/rollout"
)

type sigv4Config struct {
	Region  string `json:"region,omitempty"`  // default AWS_REGION
	Profile string `json:"profile,omitempty"` // a profile in AWS_SHARED_CREDENTIALS_FILE
	RoleARN string `json:"roleArn,omitempty"`
}

// signer finds credentials in the AWS SDKs' order: profile, environment, the service account's token (IRSA), EKS Pod
// Identity's agent. It never uses the node's credentials.
func (c sigv4Config) signer(ctx context.Context, s *session, service string) (*signer, error) {
	g := &signer{service: service, at: s.deps.Now(),
		region: cmp.Or(c.Region, s.deps.Getenv("AWS_REGION"), s.deps.Getenv("AWS_DEFAULT_REGION"))}
	if g.region == "" {
		return nil, errors.New("there is no AWS region: set AWS_REGION")
	}
	var err error
	if g.awsKeys, err = c.keys(ctx, s, g.region); err != nil || c.RoleARN == "" {
		return g, err
	}
	sts := *g
	sts.service = "sts"
	form := url.Values{"Action": {"AssumeRole"}, "Version": {"2011-06-15"}, "RoleArn": {c.RoleARN},
		"RoleSessionName": {"gitrollout"}}
	g.awsKeys, err = askSTS(ctx, s, g.region, form, &sts)
	return g, err
}

func (c sigv4Config) keys(ctx context.Context, s *session, region string) (awsKeys, error) {
	if c.Profile != "" {
		return profileKeys(s, c.Profile)
	}
	env := s.deps.Getenv
	k := awsKeys{env("AWS_ACCESS_KEY_ID"), env("AWS_SECRET_ACCESS_KEY"), env("AWS_SESSION_TOKEN")}
	if k.ID != "" && k.Secret != "" {
		s.Hide(k.ID, k.Secret, k.Token)
		return k, nil
	}
	if file, role := env("AWS_WEB_IDENTITY_TOKEN_FILE"), env("AWS_ROLE_ARN"); file != "" && role != "" {
		token, err := s.readFile(file)
		if err != nil {
			return awsKeys{}, err
		}
		s.Hide(token)
		return askSTS(ctx, s, region, url.Values{
			"Action": {"AssumeRoleWithWebIdentity"}, "Version": {"2011-06-15"}, "RoleArn": {role},
			"RoleSessionName": {cmp.Or(env("AWS_ROLE_SESSION_NAME"), "gitrollout")}, "WebIdentityToken": {token}}, nil)
	}
	if address := env("AWS_CONTAINER_CREDENTIALS_FULL_URI"); address != "" {
		return agentKeys(ctx, s, address)
	}
	return awsKeys{}, errors.New("there are no AWS credentials: " +
		"give the service account a role, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
}

func askSTS(ctx context.Context, s *session, region string, form url.Values, g *signer) (awsKeys, error) {
	got, err := askAWS(ctx, s, awsEndpoint(s, "sts", "STS", region), form, g)
	if err != nil {
		return awsKeys{}, fmt.Errorf("AWS credentials: %w", err)
	}
	var answered struct {
		Role awsKeys `xml:"AssumeRoleResult>Credentials"`
		Web  awsKeys `xml:"AssumeRoleWithWebIdentityResult>Credentials"`
	}
	if err := xml.Unmarshal(got.Body, &answered); err != nil {
		return awsKeys{}, errors.New("the answer of STS differs from its documentation")
	}
	return s.taken(cmp.Or(answered.Role, answered.Web), "the answer of STS has no credentials")
}

func askAWS(ctx context.Context, s *session, address string, form url.Values, g *signer) (call.Answer, error) {
	c := call.Request{Method: http.MethodPost, Base: address, Path: "/", Body: []byte(form.Encode()),
		Type: "application/x-www-form-urlencoded; charset=utf-8"}
	if g != nil {
		c.Sign = func(r *http.Request) { g.sign(r, c.Body) }
	}
	return s.do(ctx, c)
}

func (s *session) taken(k awsKeys, missing string) (awsKeys, error) {
	if k.ID == "" || k.Secret == "" {
		return awsKeys{}, errors.New(missing)
	}
	s.Hide(k.ID, k.Secret, k.Token)
	return k, nil
}

func agentKeys(ctx context.Context, s *session, address string) (awsKeys, error) {
	c := call.Request{Method: http.MethodGet, Base: address}
	token := s.deps.Getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN")
	if file := s.deps.Getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); file != "" {
		var err error
		if token, err = s.readFile(file); err != nil {
			return awsKeys{}, err
		}
	}
	if token != "" {
		c.Header = http.Header{"Authorization": {token}}
	}
	agent := s.caller("")
	agent.Client = s.deps.Agent
	got, err := agent.Do(ctx, c)
	if err != nil {
		return awsKeys{}, fmt.Errorf("AWS credentials: %w", err)
	}
	var answered awsKeys
	const missing = "the AWS credentials agent answered without credentials"
	if json.Unmarshal(got.Body, &answered) != nil {
		return awsKeys{}, errors.New(missing)
	}
	return s.taken(answered, missing)
}

func profileKeys(s *session, name string) (awsKeys, error) {
	file := cmp.Or(s.deps.Getenv("AWS_SHARED_CREDENTIALS_FILE"), s.deps.Getenv("HOME")+"/.aws/credentials")
	text, err := s.readFile(file)
	if err != nil {
		return awsKeys{}, err
	}
	section, values := "", map[string]string{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		key, value, isValue := strings.Cut(line, "=")
		switch {
		case strings.HasPrefix(line, "["):
			section = strings.TrimSpace(strings.Trim(line, "[]"))
		case isValue && section == name:
			values[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
	}
	k := awsKeys{values["aws_access_key_id"], values["aws_secret_access_key"], values["aws_session_token"]}
	return s.taken(k, fmt.Sprintf("%s has no profile %s with credentials", file, name))
}

// awsEndpoint prefers an endpoint in the environment, as AWS's SDKs do.
func awsEndpoint(s *session, host, service, region string) string {
	domain := "amazonaws.com"
	if strings.HasPrefix(region, "cn-") {
		domain = "amazonaws.com.cn"
	}
	return cmp.Or(s.deps.Getenv("AWS_ENDPOINT_URL_"+service), s.deps.Getenv("AWS_ENDPOINT_URL"),
		"https://"+host+"."+region+"."+domain)
}

func (s *session) readFile(name string) (string, error) {
	data, err := s.deps.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("AWS credentials: %w", err)
	}
	return strings.TrimSpace(string(data)), nil
}

// signer signs requests to AWS with Signature Version 4
// (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html).
type signer struct {
	awsKeys
	region, service string
	at              time.Time
}

// awsKeys holds AWS credentials from STS (XML) or the agent (JSON).
type awsKeys struct {
	ID     string `json:"AccessKeyId" xml:"AccessKeyId"`
	Secret string `json:"SecretAccessKey" xml:"SecretAccessKey"`
	Token  string `json:"Token" xml:"SessionToken"`
}

// awsHost matches the hosts that get signed requests: AWS services in all partitions, VPC endpoints, and localhost.
// Only an administrator can allow connections to localhost.
var awsHost = regexp.MustCompile(`^([^.]+\.)*(aps-workspaces(-fips)?|es|aos)\.([^.]+\.)*` +
	`(amazonaws\.com|amazonaws\.com\.cn|amazonaws\.eu|api\.aws|on\.aws)$|^(localhost|127\.0\.0\.1|::1)$`)

// checkAWS refuses servers outside awsHost, because a signed request contains the key's ID and the session's token.
func checkAWS(address string) error {
	if u, err := url.Parse(address); err == nil && awsHost.MatchString(strings.ToLower(u.Hostname())) {
		return nil
	}
	return wrong("address", "write the address of the workspace or the domain at amazonaws.com, or remove sigv4",
		"%q is not an AWS server, and requests to it would be signed", shown(address))
}

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
	// All AWS services except S3 sign a path that is encoded twice.
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

// awsEscape escapes all except letters, digits and -_.~ (RFC 3986).
func awsEscape(text string) string {
	return strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
}
