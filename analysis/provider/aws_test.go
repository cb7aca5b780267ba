package provider_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gitrollout.dev/gitrollout/analysis/provider"
)

// wantSignature fails the test if a request is not signed for the given scope and headers.
func wantSignature(t *testing.T, r *http.Request, scope, signed string) {
	t.Helper()
	form := regexp.MustCompile("^AWS4-HMAC-SHA256 Credential=" + regexp.QuoteMeta(scope) + ", SignedHeaders=" + regexp.QuoteMeta(signed) +
		", Signature=[0-9a-f]{64}$")
	if got := r.Header.Get("Authorization"); !form.MatchString(got) {
		t.Errorf("Authorization is %q, want the scope %s and the headers %s", got, scope, signed)
	}
}

// signed returns a test case in which requests to Prometheus on AWS are signed. env lists environment variables: NAME=VALUE, separated by
// spaces.
func signed(env, sigv4 string, serve server) contract {
	c := prometheusContract
	c.config = "{address: ADDRESS/workspaces/ws-1, query: up, authentication: {sigv4: " + sigv4 + "}}"
	c.env = map[string]string{}
	for _, pair := range strings.Fields(env) {
		name, value, _ := strings.Cut(pair, "=")
		c.env[name] = value
	}
	c.serve = serve
	return c
}

// TestAWSCredentials checks that credentials are found in the order of AWS's SDKs, and that STS exchanges them for a role's credentials.
func TestAWSCredentials(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		must(t, os.WriteFile(file, []byte(text), 0o600))
		return file
	}
	profiles := write("credentials", "[default]\naws_access_key_id = no\n[metrics]\naws_access_key_id = AKIDPROFILE\naws_secret_access_key = "+
		token+"\naws_session_token = s3cr3t-session\n[other]\naws_access_key_id=no\n")
	identity := write("token", token+"\n")
	const keys = "AWS_REGION=eu-west-1 AWS_ACCESS_KEY_ID=AKIDENV AWS_SECRET_ACCESS_KEY=" + token
	const agent = " AWS_CONTAINER_CREDENTIALS_FULL_URI=ADDRESS/agent"
	for name, c := range map[string]struct{ env, sigv4, id, region string }{
		"environment": {keys + " AWS_SESSION_TOKEN=s3cr3t-session", "{}", "AKIDENV", "eu-west-1"},
		"half of the environment": {"AWS_DEFAULT_REGION=eu-west-1 AWS_ACCESS_KEY_ID=AKIDENV AWS_ROLE_ARN=arn:aws:iam::1:role/pod" + agent +
			" AWS_CONTAINER_AUTHORIZATION_TOKEN=" + token, "{}", "AKIDAGENT", "eu-west-1"},
		"profile": {"AWS_SHARED_CREDENTIALS_FILE=" + profiles, "{profile: metrics, region: eu-north-1}", "AKIDPROFILE", "eu-north-1"},
		"service account": {"AWS_REGION=eu-west-1 AWS_ROLE_ARN=arn:aws:iam::1:role/pod AWS_ENDPOINT_URL_STS=ADDRESS/sts/ " +
			"AWS_WEB_IDENTITY_TOKEN_FILE=" + identity, "{}", "AKIDWEB", "eu-west-1"},
		"pod identity": {"AWS_REGION=eu-west-1" + agent + " AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=" + identity, "{}", "AKIDAGENT", "eu-west-1"},
		"another role": {keys + " AWS_ENDPOINT_URL_STS=ADDRESS/sts/", "{roleArn: 'arn:aws:iam::1:role/metrics'}", "AKIDROLE", "eu-west-1"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, signed(c.env, c.sigv4, func(f *fake, w http.ResponseWriter, r *http.Request, body string) bool {
				switch r.URL.Path {
				case "/sts/":
					return serveSTS(f, w, r, body)
				case "/agent":
					f.wantEqual("Authorization", r.Header.Get("Authorization"), token)
					_, _ = io.WriteString(w, `{"AccessKeyId":"AKIDAGENT","SecretAccessKey":"`+token+`","Token":"s3cr3t-session"}`)
					return true
				}
				f.want(r, "POST /workspaces/ws-1/api/v1/query")
				wantSignature(f.t, r, c.id+"/20260131/"+c.region+"/aps/aws4_request", "content-type;host;x-amz-date;x-amz-security-token")
				f.send(w)
				return true
			}))
			b.wantValue([]any{0.97})
			for _, mode := range []string{"500", "tells"} {
				b.mode = mode
				got, err := b.measure(t.Context())
				checkQuiet(t, err, got)
			}
		})
	}
}

// TestSignedHosts checks that only requests to AWS's services are signed, not requests to customers' servers on AWS.
func TestSignedHosts(t *testing.T) {
	for want, hosts := range map[bool][]string{
		true: {"aps-workspaces.eu-west-1.amazonaws.com", "APS-workspaces.cn-north-1.amazonaws.com.cn", "aps-workspaces.eu-west-1.api.aws",
			"vpce-0a1b-2c3d.aps-workspaces.eu-west-1.vpce.amazonaws.com", "aps-workspaces-fips.us-gov-west-1.amazonaws.com:443",
			"search-shop-x1.eu-west-1.es.amazonaws.com", "search-shop-x1.aos.eu-west-1.on.aws", "127.0.0.1:9090", "[::1]:9090", "localhost"},
		false: {"prometheus.monitoring:9090", "example.com", "aps-workspaces.eu-west-1.amazonaws.com.example.com", "aps-workspaces.example.com",
			"aps-workspaces.eu-west-1.xamazonaws.com", "user@aps-workspaces.eu-west-1.amazonaws.com@example.com",
			"ec2-192-0-2-1.eu-west-1.compute.amazonaws.com", "a1b2.execute-api.eu-west-1.amazonaws.com",
			"es-1.eu-west-1.elb.amazonaws.com", "a1b2.lambda-url.eu-west-1.on.aws", "192.0.2.1", ""},
	} {
		for _, host := range hosts {
			if err := provider.CheckAWS("https://" + host + "/x"); (err == nil) != want {
				t.Errorf("%s: %v", host, err)
			}
		}
	}
	b := newBench(t, signed(provider.PrometheusAddresses[0]+"=http://prometheus.monitoring:9090 AWS_REGION=r AWS_ACCESS_KEY_ID=A "+
		"AWS_SECRET_ACCESS_KEY=B", "{}", nil))
	delete(b.request.Config, "address")
	b.wantError("is not an AWS server")
}

// TestAWSFaults checks that, if the region or credentials are missing, Prometheus gets no request, and the error says why.
func TestAWSFaults(t *testing.T) {
	sts := func(answer string) server {
		return func(f *fake, w http.ResponseWriter, r *http.Request, _ string) bool {
			if r.URL.Path != "/other/" {
				f.t.Errorf("%s is asked", r.URL.Path)
			}
			if answer == "" {
				return false
			}
			_, _ = io.WriteString(w, answer)
			return true
		}
	}
	role := "<AssumeRoleResponse><AssumeRoleResult><Credentials>%</Credentials></AssumeRoleResult></AssumeRoleResponse>"
	half := strings.Replace(role, "%", "<AccessKeyId>A</AccessKeyId>", 1)
	other := strings.Replace(role, "%", "<SecretAccessKey>A</SecretAccessKey>", 1)
	profiles := filepath.Join(t.TempDir(), "credentials")
	must(t, os.WriteFile(profiles, []byte("aws_access_key_id = A\naws_secret_access_key = B\n[half]\naws_access_key_id = A\n[rest]\n"+
		"aws_secret_access_key = B\n"), 0o600))
	const agent = "AWS_REGION=r AWS_CONTAINER_CREDENTIALS_FULL_URI=ADDRESS/other/"
	const asked = "AWS_REGION=r AWS_ACCESS_KEY_ID=A AWS_SECRET_ACCESS_KEY=B AWS_ENDPOINT_URL=ADDRESS/other"
	const noCredentials = "the AWS credentials agent answered without credentials"
	files := "AWS_REGION=r AWS_SHARED_CREDENTIALS_FILE=" + profiles
	for name, c := range map[string]struct {
		env, sigv4 string
		serve      server
		want       string
	}{
		"no region":         {"AWS_ACCESS_KEY_ID=A AWS_SECRET_ACCESS_KEY=B", "{}", nil, "there is no AWS region: set AWS_REGION"},
		"nothing":           {"AWS_REGION=r", "{}", nil, "there are no AWS credentials"},
		"no secret":         {"AWS_REGION=r AWS_ACCESS_KEY_ID=A", "{}", nil, "there are no AWS credentials"},
		"no role":           {"AWS_REGION=r AWS_WEB_IDENTITY_TOKEN_FILE=/nowhere", "{}", nil, "there are no AWS credentials"},
		"no token":          {"AWS_REGION=r AWS_WEB_IDENTITY_TOKEN_FILE=/nowhere AWS_ROLE_ARN=arn", "{}", nil, "AWS credentials: open /nowhere"},
		"no agent's token":  {agent + " AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=/nowhere", "{}", nil, "AWS credentials: open /nowhere"},
		"agent says no":     {agent, "{}", sts(""), "AWS credentials: GET "},
		"agent has no id":   {agent, "{}", sts(`{"SecretAccessKey":"B"}`), noCredentials},
		"agent has half":    {agent, "{}", sts(`{"AccessKeyId":"A"}`), noCredentials},
		"agent is none":     {agent, "{}", sts("hello"), noCredentials},
		"STS says no":       {asked, "{roleArn: 'arn:a'}", sts(""), "AWS credentials: POST "},
		"STS is none":       {asked, "{roleArn: 'arn:a'}", sts("hello <"), "the answer of STS differs from its documentation"},
		"STS has half":      {asked, "{roleArn: 'arn:a'}", sts(half), "the answer of STS has no credentials"},
		"STS has the other": {asked, "{roleArn: 'arn:a'}", sts(other), "the answer of STS has no credentials"},
		"no profiles":       {"AWS_REGION=r AWS_SHARED_CREDENTIALS_FILE=/nowhere", "{profile: x}", nil, "AWS credentials: open /nowhere"},
		"no such profile":   {files, "{profile: x}", nil, profiles + " has no profile x with credentials"},
		"half a profile":    {files, "{profile: half}", nil, "has no profile half with credentials"},
		"the other half":    {files, "{profile: rest}", nil, "has no profile rest with credentials"},
	} {
		t.Run(name, func(t *testing.T) { newBench(t, signed(c.env, c.sigv4, c.serve)).wantError(c.want) })
	}
	for region, want := range map[string]string{"eu-west-1": "https://sts.eu-west-1.amazonaws.com",
		"cn-north-1": "https://sts.cn-north-1.amazonaws.com.cn"} {
		if got := provider.AWSEndpoint(region); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestAgentIsAskedApart checks that requests to the credentials agent use a separate HTTP client, Deps.Agent.
func TestAgentIsAskedApart(t *testing.T) {
	b := newBench(t, signed("AWS_REGION=r AWS_CONTAINER_CREDENTIALS_FULL_URI=ADDRESS/agent", "{}", nil))
	b.deps.Agent = func(bool) *http.Client { return &http.Client{Transport: refusing{}} }
	b.wantError("not by this one")
	if b.asked.Load() != 0 {
		t.Errorf("after %d requests", b.asked.Load())
	}
}

type refusing struct{}

func (refusing) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("not by this one")
}

// serveSTS responds as documented for AssumeRole and AssumeRoleWithWebIdentity (https://docs.aws.amazon.com/STS/latest/APIReference/).
func serveSTS(f *fake, w http.ResponseWriter, r *http.Request, body string) bool {
	f.want(r, "POST /sts/")
	action, id := "AssumeRole", "AKIDROLE"
	if strings.Contains(body, "Action=AssumeRoleWithWebIdentity") {
		if !strings.Contains(body, "WebIdentityToken=s3cr3t%2Fwith%2Bodd%3Dchars") || r.Header.Get("Authorization") != "" {
			return false
		}
		action, id = "AssumeRoleWithWebIdentity", "AKIDWEB"
	} else {
		wantSignature(f.t, r, "AKIDENV/20260131/eu-west-1/sts/aws4_request", "content-type;host;x-amz-date")
	}
	_, _ = fmt.Fprintf(w, `<%[1]sResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><%[1]sResult><Credentials>`+
		`<SessionToken>s3cr3t-session</SessionToken><SecretAccessKey>%[2]s</SecretAccessKey><AccessKeyId>%[3]s</AccessKeyId>`+
		`</Credentials></%[1]sResult></%[1]sResponse>`, action, token, id)
	return true
}
